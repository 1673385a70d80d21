"""The tick: about every 30 s, with jitter, do what time made due.

Owns the loop and nothing of what is due. A tick that fails is told and the next one comes.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import structlog

from core_console.counts import TickCounts
from core_console.decide.commands import Command, Tick
from core_console.decide.outcome import Outcome
from core_console.ports import Clock, Fault, Ids

_log = structlog.get_logger(__name__)

SPREAD = 0.2
"""Replicas that were started together must not tick together for ever."""


class Console(Protocol):
    """The engine, as far as the ticker needs it."""

    async def submit(self, command: Command) -> Outcome:
        """Return the command's outcome once it is durable."""
        ...

    async def recorded(self) -> None:
        """Wait until what is decided is in the chain, as far as the chain can be written."""
        ...


class Ticker:
    """Ticks for as long as the process lives; `interval_s` is the time between two ticks."""

    def __init__(
        self,
        console: Console,
        *,
        clock: Clock,
        ids: Ids,
        interval_s: float,
        chores: tuple[Callable[[], Awaitable[None]], ...] = (),
    ) -> None:
        self.counts = TickCounts()
        self._console = console
        self._clock = clock
        self._ids = ids
        self._interval_s = interval_s
        self._chores = chores

    async def run(self) -> None:
        """Tick at once, for a crash may have left something, and then at the interval."""
        while True:
            await self.tick()
            pause_s = self._interval_s * self._ids.jitter(SPREAD)
            due_s = self._clock.monotonic() + pause_s
            await self._clock.sleep(pause_s)
            self.counts.began(self._clock.monotonic() - due_s)

    async def tick(self) -> None:
        """Do what is due, have it recorded, and do the chores; never raises."""
        began_s = self._clock.monotonic()
        for work in (self._due, *self._chores):
            await self._done(work)
        self.counts.ended(self._clock.monotonic() - began_s)

    async def _due(self) -> None:
        await self._console.submit(Tick())
        await self._console.recorded()

    async def _done(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do one thing; what keeps it from being done keeps the others from nothing."""
        try:
            await work()
        except Fault as fault:
            self.counts.failures += 1
            _log.warning("tick_failed", reason=fault.message)
        except Exception:
            self.counts.failures += 1
            # A bug met by one tick must not end all ticks: deadlines depend on them.
            _log.exception("tick_failed")
