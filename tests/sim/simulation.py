"""One seed played from its first step to its rest.

Owns the course of a simulation: the deeds at their times, then calm: faults stop, time runs on,
and everything must come to its end.
"""

import asyncio
import logging
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

import structlog

from core_console.decide.commands import PausePlaybook
from core_console.model.playbook import PlaybookStatus
from tests.sim.broken import BrokenError, hold
from tests.sim.deeds import do
from tests.sim.loop import run_virtually
from tests.sim.plan import Item, Plan
from tests.sim.process import task_of_a_process
from tests.sim.world import World

_PATIENCE_S = 7_200.0
_REST_TICK_S = 900.0
_REST_STEP_S = 1_800.0
_REST_STEPS = 48
"""A day: an approval of an hour that a clock six hours ahead asked for is long over."""


@dataclass(frozen=True, slots=True)
class Played:
    """What a plan came to."""

    plan: Plan
    hours: float
    swaps: int
    records: int
    broken: BrokenError | None
    history: list[str]


def play(plan: Plan, *, telling: bool = False) -> Played:
    """Play the plan; the history is told only when it broke something, or when asked for."""
    before = structlog.get_config()
    try:
        return run_virtually(_played(plan, telling=telling))
    finally:
        structlog.configure(**before)


async def _played(plan: Plan, *, telling: bool) -> Played:
    loop = asyncio.get_running_loop()
    loop.set_task_factory(task_of_a_process)
    world = World(plan, loop)
    _listen(world)
    loop.set_exception_handler(
        lambda _loop, told: world.fail(BrokenError("no bug is met", f"{told}"))
    )
    course = world.spawn(_course(world))
    await asyncio.wait((course, world.over), return_when=asyncio.FIRST_COMPLETED)
    return Played(
        plan=plan,
        hours=loop.time() / 3_600.0,
        swaps=world.swaps,
        records=len(world.judge.lines),
        broken=world.broken,
        history=world.history() if world.broken or telling else [],
    )


def _listen(world: World) -> None:
    """Take an error in the product's own log for what it is: a bug that was met."""

    def heard(
        _logger: object, _method: str, event: MutableMapping[str, Any]
    ) -> MutableMapping[str, Any]:
        world.fail(BrokenError("no bug is met", str(dict(event))))
        raise structlog.DropEvent

    structlog.configure(
        processors=[structlog.processors.format_exc_info, heard],
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )


async def _course(world: World) -> None:
    for machine in world.machines:
        machine.boot()
    callers = [world.spawn(_at_its_time(item, world)) for item in world.plan.items]
    await asyncio.sleep(world.plan.hours * 3_600.0)
    await _all_answered(callers)
    await _calm_down(world)
    await _come_to_rest(world)
    snapshots = {}
    for process in world.processes():
        found = await process.read()
        assert found is not None
        snapshots[process.name] = found
    world.judged(world.judge.ended, snapshots, world.refusals)


async def _all_answered(callers: list["asyncio.Task[None]"]) -> None:
    """Wait for whoever asked something; an agent's last try comes within minutes."""
    if not callers:
        return
    _, waiting = await asyncio.wait(callers, timeout=_PATIENCE_S)
    hold(not waiting, "every caller is answered", "{} still wait", len(waiting))


async def _at_its_time(item: Item, world: World) -> None:
    await asyncio.sleep(item.at_s)
    await do(item, world)


async def _calm_down(world: World) -> None:
    """Let everything work from now on, with clocks that are right."""
    world.say("all faults end")
    world.calm = True
    world.faults.end()
    world.tick_s = _REST_TICK_S
    for machine in world.machines:
        machine.clock.offset_s = 0.0
        machine.boot()
        if machine.process is not None:
            machine.process.ticker._interval_s = _REST_TICK_S


async def _come_to_rest(world: World) -> None:
    """Let nothing start any more, and wait until all that started has ended."""
    dice = world.dice("rest")
    for _ in range(_REST_STEPS):
        await asyncio.sleep(_REST_STEP_S)
        active = [
            each.id
            for each in world.judge.document.playbooks.values()
            if each.status is PlaybookStatus.ACTIVE
        ]
        for playbook_id in active:
            await world.ask(PausePlaybook("author@example.com", playbook_id), "author", dice)
        drained = world.judge.recorded == world.judge.document.outbox_number
        if not active and not world.judge.document.running and drained:
            return
