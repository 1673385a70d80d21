"""The file store's own promises: no crash and no failing call can tear a document."""

import errno
import fcntl
import os
import resource
import stat
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from core_console.ports import Conflict, Fault
from core_console.store import durable
from core_console.store.durable import temporary_of
from core_console.store.faults import CorruptStore, fault_of
from core_console.store.file import FileDocument
from tests.store.faulty import Failing, SystemCalls, put_in_place
from tests.store.victim import NEW, OLD

SPARE, TURN = "document.spare", "document.turn"

pytestmark = pytest.mark.usefixtures("system_calls")


def run_victim(mode: str, folder: Path, times: int = 0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.store.victim", mode, str(folder), str(times)]
    return subprocess.Popen(command)


def left_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def places_in(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def fault_while(attempt: Awaitable[object]) -> str:
    """Return what the fault says that the attempt meets, "" when it meets none."""
    try:
        await attempt
    except Fault as fault:
        return fault.message
    return ""


async def test_a_writer_killed_at_any_point_leaves_the_old_or_the_new_document(
    tmp_path: Path,
) -> None:
    assert run_victim("swap", tmp_path).wait(60) == 0
    seen = []
    for place in places_in(tmp_path):
        document = FileDocument(place / "document")
        stored = await document.load()
        assert stored.data in {OLD, NEW}, place.name
        seen.append(stored.data)
        assert temporary_of(place / "document").name not in left_in(place)
        version = await document.swap(stored.version, b"after the crash")
        assert (await FileDocument(place / "document").load()).version == version
    assert seen.count(OLD) > 20
    assert seen.count(NEW) > 3


async def test_any_failing_call_is_a_fault_that_leaves_the_old_or_the_new_document(
    tmp_path: Path,
) -> None:
    struck, at = True, 0
    while struck:
        at += 1
        path = tmp_path / str(at) / "document"
        document = FileDocument(path)
        version = await document.swap(await document.swap("", b"older"), OLD)
        assert SPARE in left_in(path.parent)

        def fail() -> None:
            raise OSError(errno.ENOSPC, "no space left on device", str(path))  # noqa: B023 -- used at once

        calls = SystemCalls(at, fail)
        put_in_place(calls)
        told = await fault_while(document.swap(version, NEW))
        put_in_place(os)
        assert told == "" or told.startswith("the disk is full")
        assert str(tmp_path) not in told
        struck = len(calls.made) >= at
        stored = await document.load()
        assert stored.data in {OLD, NEW}
        assert left_in(path.parent) - {SPARE} == {"document", "document.lock", TURN}
        await document.swap(stored.version, b"works again")
        assert (await document.load()).data == b"works again"
    assert at > 12


async def test_short_writes_and_reads_are_completed(tmp_path: Path) -> None:
    put_in_place(SystemCalls(bytes_max=1_000))
    document = FileDocument(tmp_path / "document")
    version = await document.swap("", NEW)
    assert await document.load() == await FileDocument(tmp_path / "document").load()
    assert (await document.load()).data == NEW
    assert await document.version() == version


async def test_a_full_file_size_limit_is_a_fault_and_the_old_document_stays(
    tmp_path: Path,
) -> None:
    document = FileDocument(tmp_path / "document")
    version = await document.swap("", b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(Fault, match="file size limit"):
            await document.swap(version, NEW)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert left_in(tmp_path) == {"document", "document.lock", TURN}
    assert (await document.load()).data == b"old"


async def test_a_load_after_a_failed_folder_sync_syncs_the_folder_again(tmp_path: Path) -> None:
    document = FileDocument(tmp_path / "document")
    version = await document.swap("", b"old")
    put_in_place(Failing(frozenset({"rename"}), frozenset(), errno.EIO))
    with pytest.raises(Fault):
        await document.swap(version, b"new")
    calls = SystemCalls()
    put_in_place(calls)
    assert (await document.load()).data == b"new"
    assert calls.made.index("fsync") < calls.made.index("pread")


async def test_a_load_is_a_fault_while_the_folder_cannot_be_synced(tmp_path: Path) -> None:
    document = FileDocument(tmp_path / "document")
    await document.swap("", b"old")
    put_in_place(Failing(frozenset(), frozenset({"fsync"}), errno.EIO))
    with pytest.raises(Fault, match="input/output error"):
        await document.load()
    assert (await document.load()).data == b"old"


async def test_processes_that_swap_at_once_lose_no_update(tmp_path: Path) -> None:
    processes = [run_victim("count", tmp_path, 60) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    stored = await FileDocument(tmp_path / "document").load()
    assert stored.data == b"180"
    assert left_in(tmp_path) == {"document", "document.lock", SPARE, TURN}


async def test_what_a_dead_writer_left_is_removed_at_open(tmp_path: Path) -> None:
    temporary_of(tmp_path / "document").write_bytes(b"half a docu")
    await FileDocument(tmp_path / "document").load()
    assert left_in(tmp_path) == {"document.lock"}


async def test_a_lock_that_stays_taken_is_a_fault_and_not_a_hang(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "_POLLS", ((3, 0.000_1),))
    document = FileDocument(tmp_path / "document")
    version = await document.swap("", b"old")
    with (tmp_path / "document.lock").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(Fault, match="held the store's lock") as caught:
            await document.swap(version, b"new")
    assert caught.value.retryable
    await document.swap(version, b"new")


async def test_files_and_folders_are_the_console_users_alone(tmp_path: Path) -> None:
    document = FileDocument(tmp_path / "var" / "lib" / "document")
    await document.swap("", b"secret")
    for path in (tmp_path / "var").rglob("*"):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), path.name
    assert stat.S_IMODE((tmp_path / "var").stat().st_mode) == 0o700


async def test_a_link_in_the_place_of_the_temporary_file_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_bytes(b"precious")
    document = FileDocument(tmp_path / "document")
    version = await document.swap("", b"old")
    temporary_of(tmp_path / "document").symlink_to(precious)
    await document.swap(version, b"new")
    assert precious.read_bytes() == b"precious"


async def test_the_file_before_is_written_over_and_no_other_takes_new_room(tmp_path: Path) -> None:
    document = FileDocument(tmp_path / "document")
    version, files = "", []
    for size in (300_000, 200_000, 250_000, 10, 400_000):
        version = await document.swap(version, b"x" * size)
        files.append((tmp_path / "document").stat().st_ino)
        assert (await FileDocument(tmp_path / "document").load()).data == b"x" * size
    assert files[2:] == [files[0], files[1], files[0]]


async def test_a_file_that_somebody_linked_is_never_written_over(tmp_path: Path) -> None:
    document = FileDocument(tmp_path / "document")
    version = await document.swap("", b"kept")
    (tmp_path / "copy").hardlink_to(tmp_path / "document")
    kept = (tmp_path / "copy").read_bytes()
    for number in range(4):
        version = await document.swap(version, b"%d" % number)
    assert (tmp_path / "copy").read_bytes() == kept


@pytest.mark.parametrize("kind", ["folder", "link", "the document"])
async def test_what_lies_in_the_place_of_the_spare_file_is_not_written_to(
    tmp_path: Path, kind: str
) -> None:
    document = FileDocument(tmp_path / "document")
    version = await document.swap("", b"old")
    (precious := tmp_path / "precious").write_bytes(b"precious")
    if kind == "folder":
        (tmp_path / SPARE).mkdir()
    elif kind == "link":
        (tmp_path / SPARE).symlink_to(precious)
    else:  # a crash came between the link and the rename
        (tmp_path / SPARE).hardlink_to(tmp_path / "document")
    for body in (b"new", b"newer", b"newest"):
        version = await document.swap(version, body)
        assert (await FileDocument(tmp_path / "document").load()).data == body
    assert precious.read_bytes() == b"precious"


async def test_a_first_line_that_is_written_over_while_it_is_read_is_read_again(
    tmp_path: Path,
) -> None:
    document = FileDocument(tmp_path / "document")
    await document.swap(await document.swap("", b"older"), b"old")
    other = FileDocument(tmp_path / "document")
    looks = iter([False])

    class Overtaken(SystemCalls):
        """The file that was opened is replaced, and half of a first line is in it by now."""

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 -- whatever `os` has
            if name != "pread" or next(looks, True):
                return getattr(os, name)
            path = tmp_path / "document"
            path.rename(tmp_path / "gone")
            path.write_bytes((tmp_path / "gone").read_bytes())
            return lambda *_: b"core-console-document 1 0000"

    put_in_place(Overtaken())
    version = await other.version()
    put_in_place(os)
    assert version == await document.version()


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "an empty file": lambda _: b"",
    "no header": lambda _: b'{"playbooks": {}}' * 100,
    "another format": lambda raw: raw.replace(b"document 1 ", b"document 2 "),
    "a torn header": lambda raw: raw[:60],
    "a torn body": lambda raw: raw[:-1],
    "bytes after the end": lambda raw: raw + b" ",
    "a flipped bit": lambda raw: raw[:-5] + bytes([raw[-5] ^ 1]) + raw[-4:],
    "a length without end": lambda raw: raw.replace(b" 000000000013 ", b" 999999999999 "),
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_a_damaged_file_is_refused_and_left_as_it_is(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "document"
    await FileDocument(path).swap("", b"thirteen byte")
    damaged = DAMAGE[damage](path.read_bytes())
    assert damaged != path.read_bytes()
    path.write_bytes(damaged)
    document = FileDocument(path)
    with pytest.raises(CorruptStore, match="restore a backup") as caught:
        await document.load()
    assert not caught.value.retryable
    assert str(tmp_path) not in caught.value.message
    with pytest.raises((CorruptStore, Conflict)):
        await document.swap("", b"new")
    assert path.read_bytes() == damaged
    assert left_in(tmp_path) == {"document", "document.lock", TURN}


@pytest.mark.parametrize("name", ["document", "document.lock"])
async def test_a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for(
    tmp_path: Path, name: str
) -> None:
    os.mkfifo(tmp_path / name)
    document = FileDocument(tmp_path / "document")
    with held_open(tmp_path / name), pytest.raises(CorruptStore, match="is no file"):
        await document.load()
    with held_open(tmp_path / name), pytest.raises(CorruptStore, match="is no file"):
        await document.swap("", b"new")
    assert stat.S_ISFIFO((tmp_path / name).stat().st_mode)
    document.close()


@contextmanager
def held_open(path: Path) -> Iterator[None]:
    """Hold both ends of a pipe, so that nobody who opens it anyhow hangs the tests."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        yield
    finally:
        os.close(descriptor)


async def test_a_document_that_vanishes_while_the_console_runs_is_never_taken_for_new(
    tmp_path: Path,
) -> None:
    document = FileDocument(tmp_path / "document")
    await document.swap("", b"old")
    (tmp_path / "document").unlink()
    for attempt in (document.version(), document.load(), document.swap("", b"new")):
        with pytest.raises(CorruptStore, match="gone"):
            await attempt


async def test_a_restored_backup_is_another_version(tmp_path: Path) -> None:
    document = FileDocument(tmp_path / "document")
    first = await document.swap("", b"first")
    backup = (tmp_path / "document").read_bytes()
    second = await document.swap(first, b"second")
    (tmp_path / "document").write_bytes(backup)
    other = await document.swap(first, b"other")
    assert other.split("-")[0] == second.split("-")[0]
    assert other != second


async def test_a_document_beyond_the_bound_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_console.store.file.BODY_BYTES_MAX", 10)
    document = FileDocument(tmp_path / "document")
    with pytest.raises(Fault, match="11 bytes") as caught:
        await document.swap("", b"01234567890")
    assert not caught.value.retryable
    assert left_in(tmp_path) == set()


async def test_a_closed_document_is_a_fault(tmp_path: Path) -> None:
    document = FileDocument(tmp_path / "document")
    await document.swap("", b"old")
    document.close()
    with pytest.raises(Fault, match="closed"):
        await document.load()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO, errno.EPIPE])
def test_a_fault_says_what_happened_and_never_where(code: int) -> None:
    fault = fault_of(OSError(code, os.strerror(code), "/secret/place"))
    assert len(fault.message) > 10
    assert "/secret" not in fault.message
