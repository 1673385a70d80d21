"""The offline verifier at work on the live log.

Owns the stream of bytes between the two: the log as an export of it would read, up to the record
that was the last when the verification began. Never judges.
"""

import asyncio
import io

from core_console.governance.verify import Verification, verify
from core_console.ports import Fault, Log

_PIECE = 256
"""Lines a read, about 100 KiB: a batch of the writer at most waits behind it."""

_READ_S = 30.0
"""A store that takes longer for a piece does not answer, and a thread must not wait for ever."""


async def verify_log(log: Log) -> Verification:
    """Return what the log is worth; raise Fault when it cannot be read.

    It works in a thread, for a long log takes seconds of it.
    """
    last_seq = await log.last_seq()
    lines = _Lines(log, last_seq, asyncio.get_running_loop())
    return await asyncio.to_thread(verify, io.BufferedReader(lines))


class _Lines(io.RawIOBase):
    """The log's lines as bytes, read in a thread from a log that lives in the loop."""

    def __init__(self, log: Log, last_seq: int, loop: asyncio.AbstractEventLoop) -> None:
        self._log = log
        self._last_seq = last_seq
        self._loop = loop
        self._next_seq = 1
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Say that bytes come out of this."""
        return True

    def readinto(self, buffer: object) -> int:
        """Fill the buffer; return how many bytes, 0 at the end."""
        if not self._rest:
            self._rest = memoryview(self._piece())
        target = memoryview(buffer).cast("B")  # type: ignore[arg-type]  # io types it as object
        size = min(len(target), len(self._rest))
        target[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _piece(self) -> bytes:
        count = min(_PIECE, self._last_seq - self._next_seq + 1)
        if count <= 0:
            return b""
        reading = asyncio.run_coroutine_threadsafe(
            self._log.read(self._next_seq, count), self._loop
        )
        try:
            lines = reading.result(_READ_S)
        except TimeoutError:
            reading.cancel()
            raise Fault("the audit log does not answer") from None
        self._next_seq += count
        return b"".join(line + b"\n" for line in lines)
