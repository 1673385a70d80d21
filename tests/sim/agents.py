"""Agents that report late, early, twice, wrongly or never, and raise events of their own.

Owns what the jobs do that GitHub started. They know what their payload says, and ask whichever
replica answers.
"""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from core_console.decide.commands import RaiseEvent, ReportStep
from core_console.model.playbook import AGENTS
from core_console.model.run import DispatchPayload

if TYPE_CHECKING:
    from tests.sim.world import World

EVENTS = ("found", "checked")

RUN_URL = "https://github.com/example/core/actions/runs/"
"""What the address of a job's run begins with."""

_CONCLUSIONS = ("failure", "cancelled", "skipped")
_TRIES = 6


class Agents:
    """Every job that GitHub runs."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._jobs = 0

    def start(self, payload: DispatchPayload) -> None:
        """Run one job."""
        self._jobs += 1
        self._world.spawn(self._job(payload, self._jobs))

    async def _job(self, payload: DispatchPayload, number: int) -> None:
        world = self._world
        dice = world.dice("job", number)
        await asyncio.sleep(self._takes_s(dice))
        if dice.random() < 0.25:
            await self.raise_event(dice, payload.agent, payload.run_id)
        if dice.random() < world.mischief(0.12):
            return
        url = f"{RUN_URL}{number}"
        report = _report(dice, payload, url, wrong=dice.random() < world.mischief(0.15))
        await self.send(report, dice)
        while dice.random() < world.mischief(0.25):
            again = dice.random() < 0.5
            await asyncio.sleep(dice.choice([0.0, 1.0, 400.0]))
            await self.send(report if again else _report(dice, payload, url, wrong=True), dice)

    def _takes_s(self, dice: Random) -> float:
        """Return how long the job takes: it may report before the dispatch call returned."""
        fate = dice.random()
        if fate < 0.1:
            return dice.uniform(0.0, 0.1)
        if fate < 1.0 - self._world.mischief(0.2):
            return dice.uniform(20.0, 250.0)
        return dice.choice([299.9, 300.0, 300.1, 310.0, 1_500.0, 9_000.0])

    async def send(self, report: ReportStep, dice: Random) -> None:
        """Send a report as the script does: again for as long as nobody could judge it."""
        sent = (report.agent, report.run_id, report.step_id, report.conclusion)
        self._world.judge.reports.add(sent)
        for _ in range(_TRIES):
            if await self._world.ask(report, report.actor, dice):
                return
            await asyncio.sleep(dice.uniform(2.0, 30.0))

    async def raise_event(self, dice: Random, agent: str, run_id: str) -> None:
        """Raise an event that names its cause rightly, wrongly, or not at all."""
        runs = [*self._world.judge.starts.depths, "PBR-unknown"]
        cause = dice.choice([run_id, run_id, "", "", dice.choice(runs)])
        event = RaiseEvent(
            agent=agent,
            event=dice.choice(EVENTS),
            subject="rows",
            attributes={"count": str(dice.randrange(4))},
            caused_by_run_id=cause,
            external_id=f"e{dice.randrange(6)}" if dice.random() < 0.3 else "",
        )
        for _ in range(_TRIES):
            if await self._world.ask(event, event.actor, dice):
                return
            await asyncio.sleep(dice.uniform(2.0, 30.0))


def _report(dice: Random, payload: DispatchPayload, url: str, *, wrong: bool) -> ReportStep:
    """Return what the job says of its step, or something else about something else."""
    agent, run_id, step_id, conclusion = payload.agent, payload.run_id, payload.step_id, "success"
    if wrong:
        agent = dice.choice([agent, dice.choice(AGENTS)])
        step_id = dice.choice([step_id, step_id, "d0", "nowhere"])
        run_id = dice.choice([run_id, run_id, run_id, "PBR-unknown"])
        conclusion = dice.choice(_CONCLUSIONS)
        url = dice.choice([url, url + "0"])
    return ReportStep(agent, run_id, step_id, conclusion, "", url)


def stray(dice: Random, run_ids: list[str]) -> ReportStep:
    """Return a report that no job has reason to send."""
    payload = DispatchPayload(dice.choice(AGENTS), "PB-1", dice.choice(run_ids), "d0", 0)
    return _report(dice, payload, f"{RUN_URL}0", wrong=True)
