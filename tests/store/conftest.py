"""The stores that the conformance suite runs on, and how each of them is made to fail."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from core_console.ports import Document, Fault, Log
from core_console.store.file import FileDocument
from core_console.store.filelog import FileLog
from core_console.store.memory import MemoryDocument, MemoryLog
from tests.store.faulty import Failing, put_in_place


class Shop(Protocol):
    """A store of one kind: what each replica gets, and the two ways in which a write fails."""

    def document(self) -> Document: ...
    def log(self) -> Log: ...
    def fail_next_swap(self) -> None: ...
    def lose_reply_of_next_swap(self) -> None: ...
    def fail_next_append(self) -> None: ...
    def lose_reply_of_next_append(self) -> None: ...


class MemoryShop:
    def __init__(self) -> None:
        self._document = MemoryDocument()
        self._log = MemoryLog()

    def document(self) -> Document:
        return self._document

    def log(self) -> Log:
        return self._log

    def fail_next_swap(self) -> None:
        self._document.troubles.before.append(Fault("the disk is full"))

    def lose_reply_of_next_swap(self) -> None:
        self._document.troubles.after.append(Fault("the connection broke"))

    def fail_next_append(self) -> None:
        self._log.troubles.before.append(Fault("the disk is full"))

    def lose_reply_of_next_append(self) -> None:
        self._log.troubles.after.append(Fault("the connection broke"))


class FileShop:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.opened: list[FileDocument | FileLog] = []

    def document(self) -> Document:
        self.opened.append(document := FileDocument(self._folder / "var/lib/document"))
        return document

    def log(self) -> Log:
        self.opened.append(log := FileLog(self._folder / "var/log/audit"))
        return log

    def fail_next_swap(self) -> None:
        put_in_place(Failing(frozenset(), frozenset({"write"}), errno.ENOSPC))

    def lose_reply_of_next_swap(self) -> None:
        put_in_place(Failing(frozenset({"rename"}), frozenset(), errno.EIO))

    def fail_next_append(self) -> None:
        put_in_place(Failing(frozenset(), frozenset({"write"}), errno.ENOSPC))

    def lose_reply_of_next_append(self) -> None:
        # Only a disk that refuses to take the lines back as well can leave them there.
        put_in_place(Failing(frozenset({"fdatasync"}), frozenset({"ftruncate"}), errno.EIO))


@pytest.fixture(params=["memory", "file"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    if request.param == "memory":
        yield MemoryShop()
        return
    files = FileShop(tmp_path)
    yield files
    put_in_place(os)
    for store in files.opened:
        store.close()


@pytest.fixture
def system_calls() -> Iterator[None]:
    """Undo whatever a test did to the system calls."""
    yield
    put_in_place(os)
