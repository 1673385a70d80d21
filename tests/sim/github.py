"""A GitHub that accepts and then fails, is slow, limits, refuses, or starts one job twice.

Owns what GitHub does with a call. What its jobs do is `agents`.
"""

import asyncio
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core_console.decide.commands import CancelRun
from core_console.model.run import Call, DispatchPayload
from core_console.ports import CallOutcome, Objection, ReporterVerdict, Standing
from tests.builders import AUTHOR
from tests.sim.faults import Strike, Target

if TYPE_CHECKING:
    from random import Random

    from tests.sim.wires import Wire
    from tests.sim.world import World

_RUN = re.compile(r"run `([^`]+)`")

FIRST_ISSUE = 100
"""Each notify step of a simulated playbook has an issue of its own, which names the step."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One call: who makes it, for which run and step, and how long it may wait."""

    wire: "Wire"
    step: tuple[str, str]
    patience_s: float
    objection: Objection


def named_in(issue: int, body: str) -> tuple[str, str]:
    """Return the run and the step that a comment tells of."""
    found = _RUN.search(body)
    assert found is not None
    return found[1], f"n{issue - FIRST_ISSUE}"


class GitHub:
    """The one GitHub of a world."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._calls = 0
        self._reporters = 0

    async def dispatch(self, asked: Asked, payload: DispatchPayload) -> CallOutcome:
        """Take one repository_dispatch."""
        world, dice = self._world, self._dice()
        taken = await self._taken(asked, dice)
        if isinstance(taken, CallOutcome):
            return taken
        if taken:
            world.agents.start(payload)
            if dice.random() < world.mischief(0.08):
                world.say("GitHub starts the job of {} twice", asked.step)
                world.agents.start(payload)
        return await self._answer(dice, taken=taken)

    async def comment(self, asked: Asked) -> CallOutcome:
        """Take one comment."""
        dice = self._dice()
        taken = await self._taken(asked, dice)
        return taken if isinstance(taken, CallOutcome) else await self._answer(dice, taken=taken)

    async def reporter(self) -> ReporterVerdict:
        """Say whether a bearer is the App's, unless GitHub cannot be asked or counts too many."""
        self._reporters += 1
        dice = self._world.dice("reporter", self._reporters)
        await asyncio.sleep(dice.choice([0.0, 0.0, 0.05]))
        if dice.random() < self._world.mischief(0.06):
            return ReporterVerdict(dice.choice([Standing.UNKNOWN, Standing.LIMITED]))
        return ReporterVerdict(Standing.VALID)

    def _dice(self) -> "Random":
        """Return the next call's own chance: it does not hang on ids, which others use up too."""
        self._calls += 1
        return self._world.dice("call", self._calls)

    async def _taken(self, asked: Asked, dice: "Random") -> CallOutcome | bool:
        """Return whether the call did what it asks for, or why it certainly did not."""
        world, wire = self._world, asked.wire
        world.judged(
            world.judge.calling, asked.step, replica=wire.process.name, patience_s=asked.patience_s
        )
        armed = wire.struck(Target.CALL)
        if armed is not None and armed.strike is Strike.CRASH_BEFORE:
            await wire.crash()
        await asyncio.sleep(dice.choice([0.0, 0.05, 0.3]))
        if dice.random() < world.mischief(0.1):
            await self._limit(asked, dice)
        if why := await asked.objection():
            return CallOutcome(Call.REFUSED, f"not sent: {why}")
        fate = dice.random()
        if fate < world.mischief(0.08):
            return CallOutcome(Call.REFUSED, "GitHub refused it: grant the App what it needs")
        if fate < world.mischief(0.14):
            return False
        world.judged(
            world.judge.called, asked.step, world.loop.time(), unaware=wire.process.engine.swapping
        )
        if armed is not None:
            wire.process.die(f"after GitHub took {asked.step}")
        return True

    async def _limit(self, asked: Asked, dice: "Random") -> None:
        """Have a rate limit waited out, within the caller's patience; not everybody waits."""
        waits_s = asked.patience_s * dice.random()
        if dice.random() < 0.4:
            cancel = CancelRun(AUTHOR, asked.step[0], "it takes too long")
            self._world.spawn(self._world.ask(cancel, AUTHOR, dice))
        await asyncio.sleep(waits_s)

    async def _answer(self, dice: "Random", *, taken: bool) -> CallOutcome:
        slow = dice.random() < self._world.mischief(0.15)
        await asyncio.sleep(dice.uniform(1.0, 9.0) if slow else 0.1)
        if not taken or dice.random() < self._world.mischief(0.12):
            return CallOutcome(Call.UNKNOWN, "GitHub answered 502: it may have been accepted")
        return CallOutcome(Call.ACCEPTED)
