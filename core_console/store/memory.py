"""A document and a log that live in memory, for tests and simulations.

Owns what a store promises, without a disk, and the ways in which it may break that a test asks
for. Never used by `serve`.
"""

from collections import deque
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from core_console.ports import Blob, Clock, Conflict, Fault, Stored


class Troubles:
    """The faults that the next writes meet, in order; None lets one write pass.

    `before` strikes before anything is stored, `after` once it is: the reply is lost.
    """

    def __init__(self) -> None:
        self.before: deque[Fault | None] = deque()
        self.after: deque[Fault | None] = deque()

    @staticmethod
    def strike(waiting: deque[Fault | None]) -> None:
        """Raise the next fault that waits, if any."""
        fault = waiting.popleft() if waiting else None
        if fault is not None:
            raise fault


class MemoryDocument:
    """One compare-and-swap document; replicas share the object."""

    def __init__(self) -> None:
        self.troubles = Troubles()
        self._revision = 0
        self._stored = Stored("", b"")

    async def version(self) -> str:
        """Return the stored version."""
        return self._stored.version

    async def load(self) -> Stored:
        """Return what is stored."""
        return self._stored

    async def swap(self, expected: str, data: bytes) -> str:
        """Replace what is stored at version `expected` and return the new version.

        Raises:
            Conflict: another version is stored.
            Fault: one that the test asked for.
        """
        Troubles.strike(self.troubles.before)
        if expected != self._stored.version:
            raise Conflict
        self._revision += 1
        version = f"{self._revision}-{sha256(data).hexdigest()[:16]}"
        self._stored = Stored(version, bytes(data))
        Troubles.strike(self.troubles.after)
        return version


class MemoryLog:
    """One append-only log; replicas share the object, and a test may look at `lines`."""

    def __init__(self) -> None:
        self.troubles = Troubles()
        self.lines: list[bytes] = []

    async def last_seq(self) -> int:
        """Return the number of the last line, 0 when there is none."""
        return len(self.lines)

    async def append(self, expected_seq: int, lines: Sequence[bytes]) -> None:
        """Add lines, all after line `expected_seq`.

        Raises:
            Conflict: the last line is another one.
            Fault: one that the test asked for.
        """
        Troubles.strike(self.troubles.before)
        if expected_seq != len(self.lines):
            raise Conflict
        self.lines.extend(lines)
        Troubles.strike(self.troubles.after)

    async def read(self, first_seq: int, count: int) -> list[bytes]:
        """Return up to `count` lines from number `first_seq` on, in order."""
        return self.lines[first_seq - 1 : first_seq - 1 + count] if first_seq > 0 else []


class MemoryBlobs:
    """Bytes by their own digest; a test may look at `held`."""

    def __init__(self, clock: Clock) -> None:
        self.held: dict[str, tuple[bytes, datetime]] = {}
        self._clock = clock

    async def put(self, data: bytes) -> str:
        """Keep the bytes and return their digest."""
        digest = sha256(data).hexdigest()
        self.held[digest] = (bytes(data), self._clock.now())
        return digest

    async def get(self, digest: str) -> bytes:
        """Return the bytes of that digest; raise Fault when they are gone."""
        if digest not in self.held:
            raise Fault("a blob that the document names is gone", retryable=False)
        return self.held[digest][0]

    async def kept(self) -> list[Blob]:
        """Return every blob that is kept."""
        return [Blob(digest, put_at) for digest, (_, put_at) in self.held.items()]

    async def delete(self, digest: str, *, put_before: datetime | None = None) -> None:
        """Forget a blob, unless it was put at that time or later; a missing one is no error."""
        if digest in self.held and (put_before is None or self.held[digest][1] < put_before):
            del self.held[digest]
