"""One append-only log of JSON lines in one file.

Owns how lines are added and how the end is repaired. Lines are numbered from 1 without a gap and
each holds its `seq`, so no index has to be kept. Never changes a whole line that was believed, and
never looks at anything in a line but its `seq`.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from core_console.ports import Conflict
from core_console.store.durable import (
    Worker,
    locked,
    make_folder,
    opened,
    read_at,
    sync_data,
    sync_folder,
    write_all,
)
from core_console.store.faults import CorruptStore, told_as_faults
from core_console.store.lines import SCAN_BYTES, find_line, fits, last_line, seq_of

READ_LINES_MAX = 256
"""One read never holds more than 17 MiB, and mostly about 100 KiB."""


class _Tail(Struct, frozen=True, gc=False):
    """How long the log was when it was last looked at under the lock, and its last line."""

    size: int
    seq: int


class FileLog:
    """A log in the file at `path`, with its lock file beside it.

    Any number of processes on one machine may share it. `repairs` counts the torn last lines
    that were cut off; `on_repair` is told how many bytes each had, in the log's own thread.
    """

    def __init__(self, path: Path, on_repair: Callable[[int], None] | None = None) -> None:
        self.repairs = 0
        self._on_repair = on_repair
        self._path = path
        self._lock = path.with_name(path.name + ".lock")
        self._worker = Worker("log")
        self._tail: _Tail | None = None
        self._next = (1, 0)

    async def last_seq(self) -> int:
        """Return the number of the last line, 0 when there is none.

        While nobody appends it costs one look at the file's length.
        """
        tail = self._tail
        if tail is not None:
            with told_as_faults():
                if os.stat(self._path).st_size == tail.size:  # noqa: PTH116 -- through `os`
                    return tail.seq
        return (await self._worker.run(self._look)).seq

    async def append(self, expected_seq: int, lines: Sequence[bytes]) -> None:
        """Add lines durably, all after line `expected_seq`.

        Raises:
            Conflict: the last line is another one; nothing was added.
            Fault: it failed. Some lines may have been added: read the end to find out.
            ValueError: a line has another number than its place, a newline, or is too long.
        """
        for seq, line in enumerate(lines, expected_seq + 1):
            if not fits(line, seq):
                raise ValueError(f"this is no line to stand at {seq}")
        if lines:
            data = b"\n".join((*lines, b""))
            await self._worker.run(lambda: self._append(expected_seq, len(lines), data))

    async def read(self, first_seq: int, count: int) -> list[bytes]:
        """Return up to `count` lines, at most 256, from number `first_seq` on, in order."""
        return await self._worker.run(lambda: self._read(first_seq, min(count, READ_LINES_MAX)))

    def close(self) -> None:
        """Finish what has begun; afterwards the log answers with Faults."""
        self._worker.close()

    def _prepare(self) -> None:
        if self._tail is not None or self._path.exists():
            return
        make_folder(self._path.parent)
        with opened(self._path, os.O_RDWR | os.O_CREAT):
            sync_folder(self._path.parent)

    @contextmanager
    def _held(self) -> Iterator[int]:
        self._prepare()
        with locked(self._lock), opened(self._path, os.O_RDWR | os.O_APPEND) as descriptor:
            yield descriptor

    def _look(self) -> _Tail:
        with self._held() as descriptor:
            return self._tail_of(descriptor)

    def _tail_of(self, descriptor: int) -> _Tail:
        """Return the tail as it is under the lock, repaired and durable.

        Whoever wrote a line may have died before it was synced, so nothing new is believed, and
        built upon, before it is.
        """
        size = os.fstat(descriptor).st_size
        known = self._tail
        if known is None or size != known.size:
            if known is not None and size < known.size:
                raise CorruptStore("the log became shorter while the console runs")
            if known is None:
                sync_folder(self._path.parent)
            sync_data(descriptor)
            end, seq = last_line(descriptor, size)
            if end < size:
                self._cut_off(descriptor, end, size - end)
            known = self._tail = _Tail(end, seq)
        return known

    def _cut_off(self, descriptor: int, size: int, torn_bytes: int) -> None:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
        self.repairs += 1
        if self._on_repair is not None:
            self._on_repair(torn_bytes)

    def _append(self, expected_seq: int, count: int, data: bytes) -> None:
        with self._held() as descriptor:
            tail = self._tail_of(descriptor)
            if tail.seq != expected_seq:
                raise Conflict
            try:
                write_all(descriptor, data)
                sync_data(descriptor)
            except OSError:
                # The lines are taken back, so that a full disk leaves no half of them behind;
                # if that fails too, whoever looks next repairs the end.
                with suppress(OSError):
                    os.ftruncate(descriptor, tail.size)
                    os.fsync(descriptor)
                raise
            self._tail = _Tail(tail.size + len(data), tail.seq + count)

    def _read(self, first_seq: int, count: int) -> list[bytes]:
        with self._fresh() as (descriptor, tail):
            count = min(count, tail.seq - first_seq + 1)
            if first_seq < 1 or count < 1:
                return []
            known_seq, offset = self._next
            if first_seq != known_seq:
                offset = find_line(descriptor, first_seq, tail.size)
            lines = _lines_from(descriptor, offset, tail.size, count)
        if len(lines) < count or seq_of(lines[0]) != first_seq:
            raise CorruptStore("the log's lines are not numbered without a gap")
        # Whoever reads on needs no search, and a line that is damaged elsewhere does not matter.
        self._next = (first_seq + count, offset + sum(map(len, lines)) + count)
        return lines

    @contextmanager
    def _fresh(self) -> Iterator[tuple[int, _Tail]]:
        """Give a descriptor and the tail: what lies before it can only be read, never changed."""
        tail = self._tail
        if tail is None:
            tail = self._look()
        with opened(self._path, os.O_RDONLY) as descriptor:
            if os.fstat(descriptor).st_size != tail.size:
                tail = self._look()
            yield descriptor, tail


def _lines_from(descriptor: int, offset: int, size: int, count: int) -> list[bytes]:
    """Return up to `count` whole lines from `offset` on."""
    lines: list[bytes] = []
    rest = b""
    while len(lines) < count and offset < size:
        piece = read_at(descriptor, offset, min(SCAN_BYTES, size - offset))
        offset += len(piece)
        *whole, rest = (rest + piece).split(b"\n")
        lines += whole
    return lines[:count]
