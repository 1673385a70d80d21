"""Between a process and what is shared: every call can be late, lost, refused, or cut by a crash.

Owns the adapters of the ports. What is shared lies in `World`; a dead process reaches nothing,
but what it had under way may still land.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NoReturn, TypeVar

from core_console.decide.capex_commands import ClearRaised
from core_console.model.event import Raising
from core_console.model.run import DispatchPayload
from core_console.ports import (
    CallOutcome,
    Conflict,
    Fault,
    Objection,
    ReporterVerdict,
    ScanAsked,
    ScanFound,
    Stored,
)
from tests.fakes import NOON
from tests.sim.faults import Armed, Strike, Target
from tests.sim.github import Asked, named_in

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.world import World

T = TypeVar("T")

_MILLISECOND = 1_000


class MachineClock:
    """The clock of one machine: it may stand wrong, and its machine's processes share it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.offset_s = 0.0
        self._loop = loop

    def now(self) -> datetime:
        at = NOON + timedelta(seconds=self._loop.time() + self.offset_s)
        return at.replace(microsecond=at.microsecond // _MILLISECOND * _MILLISECOND)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))


class Wire:
    """One process's way to everything that is shared."""

    def __init__(self, world: "World", process: "Process") -> None:
        self.world = world
        self.process = process

    async def read(self, apply: Callable[[], T]) -> T:
        """Read something shared."""
        armed = await self._reached(Target.READ)
        if armed is not None:
            await asyncio.sleep(armed.seconds)
            if armed.strike is Strike.FAILED:
                raise Fault("the store could not be read")
        elif (lag_s := self.world.lag_s()) > 0:
            await asyncio.sleep(lag_s)
        if self.world.faults.away(Target.READ, self.world.loop.time()):
            raise Fault("the store is away")
        return apply()

    async def write(self, target: Target, apply: Callable[[bool], T]) -> T:
        """Change something shared; `apply` is told whether only half of it may land."""
        armed = await self._reached(target)
        strike = None if armed is None else armed.strike
        if strike is Strike.CRASH_BEFORE:
            await self.crash()
        if strike is Strike.FAILED or self.world.faults.away(target, self.world.loop.time()):
            await asyncio.sleep(self.world.lag_s())
            raise Fault("the store took nothing")
        if strike is Strike.CONFLICT:
            await asyncio.sleep(self.world.lag_s())
            raise Conflict
        late_s = armed.seconds if armed and strike in {Strike.STALL, Strike.GHOST} else 0.0
        reply: asyncio.Future[T] = self.world.loop.create_future()
        self.world.later(self.world.lag_s() + late_s, self._land, apply, reply, strike)
        if strike is Strike.GHOST:
            reply.cancel()
            await asyncio.sleep(self.world.lag_s())
            raise Fault("the store did not answer")
        return await reply

    def _land(
        self,
        apply: Callable[[bool], T],
        reply: "asyncio.Future[T]",
        strike: Strike | None,
    ) -> None:
        """Do it, as far as the store is concerned; the process may be dead by now."""
        if not self.process.alive and not self.world.lands_after_death():
            return
        try:
            value = apply(strike is Strike.PARTIAL)
        except (Conflict, Fault) as error:
            self._reply(strike, self._settle_badly, reply, error)
            return
        if strike in {Strike.LOST, Strike.PARTIAL}:
            self._reply(strike, self._settle_badly, reply, Fault("the reply was lost"))
        else:
            self._reply(strike, _settle, reply, value)

    def _reply(self, strike: Strike | None, settle: Callable[..., None], *args: object) -> None:
        if strike is Strike.CRASH_AFTER:
            self.process.die("between a write and its reply")
        elif self.process.alive:
            self.world.later(self.world.lag_s(), settle, *args)

    def _settle_badly(self, reply: "asyncio.Future[T]", error: Exception) -> None:
        if self.process.alive and not reply.done():
            reply.set_exception(error)
            # Its process may die before it reads this, and nobody misses it then.
            reply.exception()

    async def _reached(self, target: Target) -> Armed | None:
        if not self.process.alive:
            await never()
        return self.struck(target)

    def struck(self, target: Target) -> Armed | None:
        """Take the fault that waits for this call."""
        armed = self.world.faults.next(target, self.process.machine.number)
        if armed is None:
            return None
        self.world.say("{}'s {} {} ({} s)", self.process.name, target, armed.strike, armed.seconds)
        if armed.strike is Strike.JUMP:
            self.process.machine.clock.offset_s += armed.seconds
            return None
        return armed

    async def crash(self) -> NoReturn:
        """Die here and now."""
        self.process.die("right before a write")
        await never()
        raise AssertionError("the dead go on")


def _settle(reply: "asyncio.Future[T]", value: T) -> None:
    if not reply.done():
        reply.set_result(value)


async def never() -> None:
    """Wait until somebody cancels it."""
    await asyncio.get_running_loop().create_future()


class WiredDocument:
    """The shared document."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._world = wire.world

    async def version(self) -> str:
        return await self._wire.read(lambda: self._world.stored.version)

    async def load(self) -> Stored:
        return await self._wire.read(lambda: self._world.stored)

    async def swap(self, expected: str, data: bytes) -> str:
        replica = self._wire.process.name
        return await self._wire.write(
            Target.SWAP, lambda _half: self._world.swap(expected, data, replica)
        )


class WiredLog:
    """The shared log."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._world = wire.world

    async def last_seq(self) -> int:
        return await self._wire.read(lambda: len(self._world.judge.lines))

    async def append(self, expected_seq: int, lines: Sequence[bytes]) -> None:
        await self._wire.write(
            Target.APPEND, lambda half: self._world.append(expected_seq, lines, half=half)
        )

    async def read(self, first_seq: int, count: int) -> list[bytes]:
        return await self._wire.read(
            lambda: self._world.judge.lines[first_seq - 1 : first_seq - 1 + count]
        )


class WiredGitHub:
    """The simulated GitHub, and its simulated agents."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def dispatch(
        self, payload: DispatchPayload, patience_s: float, objection: Objection
    ) -> CallOutcome:
        asked = Asked(self._wire, (payload.run_id, payload.step_id), patience_s, objection)
        return await self._wire.world.github.dispatch(asked, payload)

    async def comment(
        self, repo: str, issue: int, body: str, patience_s: float, objection: Objection
    ) -> CallOutcome:
        del repo
        asked = Asked(self._wire, named_in(issue, body), patience_s, objection)
        return await self._wire.world.github.comment(asked)

    async def missing(self) -> tuple[str, ...]:
        return ()

    async def authorize_reporter(self, authorization: Sequence[str], peer: str) -> ReporterVerdict:
        del authorization, peer
        return await self._wire.world.github.reporter()


class WiredScanner:
    """A scanner that passes, fails, or takes its time."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def scan(self, asked: ScanAsked) -> ScanFound:
        world = self._wire.world
        world.judged(world.judge.scanned, asked.run_id)
        dice = world.dice("scan", world.judge.scans.total())
        await asyncio.sleep(dice.choice([0.0, 0.1, 5.0, 30.0]))
        scan_run_id = world.ids.new("SCN")
        failure = "no feed is loaded" if dice.random() < world.mischief(0.2) else ""
        return ScanFound(scan_run_id, {"DQ-001": dice.randrange(9)}, failure)


class WiredFeeds:
    """A document of harness events that wait for the metadoc."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def snapshot(self) -> "Waiting":
        return await self._wire.read(lambda: Waiting(tuple(self._wire.world.raising)))

    async def submit(self, command: ClearRaised) -> object:
        try:
            return await self._wire.write(
                Target.SWAP, lambda _half: self._wire.world.clear_raised(command.number)
            )
        except Conflict:
            raise Fault("other replicas kept winning") from None


class Waiting:
    """The harness events that wait."""

    def __init__(self, raising: tuple[Raising, ...]) -> None:
        self.raising = raising
