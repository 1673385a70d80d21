"""Time and chance that a test holds in its hand: doubles of the ports `Clock` and `Ids`.

Owns the shared doubles. They behave like the real thing, except that nothing moves by itself: no
test ever waits for the product's time.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
"""Where every manual clock starts: a Monday, at a whole hour."""

_TURNS = 50
"""How often the event loop turns after somebody woke: enough for a chain of awaits that does no
real I/O to come to rest."""


class ManualClock:
    """A clock that stands still until `advance` is told to move it.

    `sleep` waits for `advance`. Work that uses threads or sockets is not finished when `advance`
    returns; await it by itself.
    """

    def __init__(self, start: datetime = NOON) -> None:
        self._start = start
        self._elapsed_s = 0.0
        self._jumped_s = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Return the time in UTC."""
        return self._start + timedelta(seconds=self._elapsed_s + self._jumped_s)

    def monotonic(self) -> float:
        """Return the seconds that `advance` moved; a jump of the wall clock is not in it."""
        return self._elapsed_s

    @property
    def sleepers(self) -> int:
        """How many are asleep now."""
        return sum(not future.done() for _, _, future in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        """Wait until `advance` has moved the clock by that much; 0 only lets others go first."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed_s + seconds, next(self._order), future))
        await future

    async def advance(self, seconds: float = 0.0) -> None:
        """Move the time on, waking each sleeper at its own instant, the earliest first.

        What a sleeper does when it wakes, sleeping again included, happens before the clock
        moves further. 0 lets everybody who can go on do so.
        """
        until = self._elapsed_s + seconds
        await _turn()
        while self._sleepers and self._sleepers[0][0] <= until:
            at, _, future = heapq.heappop(self._sleepers)
            if future.done():
                continue
            self._elapsed_s = at
            future.set_result(None)
            await _turn()
        self._elapsed_s = until

    def jump(self, seconds: float) -> None:
        """Move the wall clock alone, as a machine's clock is set: nobody wakes."""
        self._jumped_s += seconds


async def _turn() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)


class CountingIds:
    """Ids that count: `PB-1`, `PB-2`, `PBR-1`; jitter is 1.0 or the next of a script."""

    def __init__(self, jitters: Iterable[float] = ()) -> None:
        self._counts: Counter[str] = Counter()
        self._jitters = iter(jitters)

    def new(self, prefix: str) -> str:
        """Return the prefix with the next number of that prefix."""
        self._counts[prefix] += 1
        return f"{prefix}-{self._counts[prefix]}"

    def jitter(self, spread: float) -> float:
        """Return the next factor of the script, 1.0 when it is at its end."""
        factor = next(self._jitters, 1.0)
        assert 1 - spread <= factor <= 1 + spread, f"{factor} is beyond a spread of {spread}"
        return factor


async def nobody_objects() -> str:
    """Let every call leave: what a sender asks right before it sends."""
    return ""
