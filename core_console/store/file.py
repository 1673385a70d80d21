"""One compare-and-swap document in one file.

Owns the header line and what a version is. The file is the header and then the body, as it was
given. Never overwrites a file that it cannot read, and never looks inside the body.
"""

import asyncio
import os
import re
from functools import cache
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from core_console.ports import Conflict, Fault, Stored
from core_console.store.durable import (
    Worker,
    locked,
    make_folder,
    opened,
    read_at,
    remove_leftover,
    replace,
    sync_folder,
)
from core_console.store.faults import CorruptStore, told_as_faults
from core_console.store.turn import IDLE_S, KEPT_S, Turn

_FORM = b"core-console-document 1 %020d %012d %s\n"
_PATTERN = re.compile(rb"core-console-document 1 ([0-9]{20}) ([0-9]{12}) ([0-9a-f]{64})\n")
_HEADER_BYTES = len(_FORM % (0, 0, b"0" * 64))

BODY_BYTES_MAX = 64 * 1024 * 1024
"""Far above any budget (the metadoc's is 768 KiB): a damaged length must not eat the memory."""

_LOOKS = 10
"""How often a first line is read anew that was written over meanwhile: twice is rare already."""

_DIGEST_DIGITS = 16
"""How much of the digest a version holds: a restored backup never passes for what it replaced."""


class _Header(Struct, frozen=True, gc=False):
    """The first line: how often the document was swapped, and what its body must be."""

    revision: int
    length: int
    digest: str

    @property
    def version(self) -> str:
        return f"{self.revision}-{self.digest[:_DIGEST_DIGITS]}"

    def encoded(self) -> bytes:
        return _FORM % (self.revision, self.length, self.digest.encode())


class FileDocument:
    """A document in the file at `path`, with its lock file and temporary file beside it.

    Any number of processes on one machine may share it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_name(path.name + ".lock")
        self._worker = Worker("document")
        self._turn = Turn(path)
        self._ours_until_s = 0.0
        self._giving: asyncio.TimerHandle | None = None
        self._prepared = False
        self._seen = False

    async def version(self) -> str:
        """Return the stored version: one small read, so it is done at once."""
        with told_as_faults():
            header = self._header()
        return header.version if header else ""

    async def load(self) -> Stored:
        """Return what is stored, durable by then even if its writer died before it was sure."""
        return await self._worker.run(self._load)

    async def swap(self, expected: str, data: bytes) -> str:
        """Replace what is stored at version `expected` durably and return the new version.

        Raises:
            Conflict: another version is stored; nothing was changed.
            Fault: it failed. The swap may or may not have landed: load to find out.
        """
        if len(data) > BODY_BYTES_MAX:
            raise Fault(
                f"the document has {len(data)} bytes and a file holds {BODY_BYTES_MAX}",
                retryable=False,
            )
        loop, kept_s = asyncio.get_running_loop(), 0.0
        self._keep_turn(None)
        try:
            version = await self._worker.run(lambda: self._swap_in_turn(expected, data))
            kept_s = min(IDLE_S, self._ours_until_s - loop.time())
        except Conflict:
            kept_s, self._ours_until_s = KEPT_S, loop.time() + KEPT_S
            raise
        else:
            return version
        finally:
            self._keep_turn(kept_s)

    def close(self) -> None:
        """Finish the swap that has begun; afterwards every call but `version` is a Fault."""
        self._worker.close()
        self._turn.give()

    def _keep_turn(self, time_s: float | None) -> None:
        """Give the turn back after this time, at once when there is none; None is for a swap."""
        if self._giving is not None:
            self._giving.cancel()
            self._giving = None
        if time_s is None:
            return
        if time_s <= 0:
            self._turn.give()
        else:
            self._giving = asyncio.get_running_loop().call_later(time_s, self._turn.give)

    def _prepare(self) -> None:
        if self._prepared:
            return
        make_folder(self._path.parent)
        with locked(self._lock):
            remove_leftover(self._path)
        self._prepared = True

    def _load(self) -> Stored:
        self._prepare()
        with locked(self._lock):
            # A writer that died, or failed, between its rename and this sync left a file that a
            # crash could still take back: nobody may build on it before it is durable.
            sync_folder(self._path.parent)
            header = self._header()
            return self._stored(header) if header else Stored("", b"")

    def _stored(self, header: _Header) -> Stored:
        with opened(self._path, os.O_RDONLY) as descriptor:
            size = os.fstat(descriptor).st_size
            if size != _HEADER_BYTES + header.length or header.length > BODY_BYTES_MAX:
                raise CorruptStore("the document's file is not as long as its first line says")
            body = read_at(descriptor, _HEADER_BYTES, header.length)
        if sha256(body).hexdigest() != header.digest:
            raise CorruptStore("the document's content does not match the digest in its first line")
        return Stored(header.version, body)

    def _swap_in_turn(self, expected: str, data: bytes) -> str:
        self._prepare()
        self._turn.take()
        return self._swap(expected, data)

    def _swap(self, expected: str, data: bytes) -> str:
        with locked(self._lock):
            header = self._header()
            if (header.version if header else "") != expected:
                raise Conflict
            revision = header.revision + 1 if header else 1
            new = cache(lambda: _Header(revision, len(data), sha256(data).hexdigest()))
            replace(self._path, data, lambda: new().encoded(), _HEADER_BYTES, reuse=True)
        self._seen = True
        return new().version

    def _header(self) -> _Header | None:
        for _ in range(_LOOKS):
            try:
                line, is_there = self._first_line()
            except FileNotFoundError:
                if self._seen:
                    sentence = "the document's file is gone while the console runs"
                    raise CorruptStore(sentence) from None
                return None
            found = _PATTERN.fullmatch(line)
            if found is not None:
                self._seen = True
                return _Header(int(found[1]), int(found[2]), found[3].decode())
            if is_there:
                break
        raise CorruptStore("the document's first line is not one that this version writes")

    def _first_line(self) -> tuple[bytes, bool]:
        """Return the first line, and whether its file is still the document's.

        A file that was replaced while it was read may be written over by now.
        """
        with opened(self._path, os.O_RDONLY) as descriptor:
            line = os.pread(descriptor, _HEADER_BYTES, 0)
            if _PATTERN.fullmatch(line):
                return line, True
            return line, os.path.samestat(os.fstat(descriptor), os.lstat(self._path))
