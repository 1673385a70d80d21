"""What each item of a plan does to the world when its time comes.

Owns faults and bad times, and hands what people do to `operators` and `agents`.
"""

import asyncio
from random import Random
from typing import TYPE_CHECKING

from core_console.decide.commands import PausePlaybook, ResumePlaybook
from core_console.model.event import Raising
from core_console.model.playbook import PlaybookStatus
from core_console.model.run import StepRunStatus
from tests.builders import AUTHOR
from tests.fakes import NOON
from tests.sim.agents import stray
from tests.sim.faults import Armed, Strike, Target
from tests.sim.operators import command_of
from tests.sim.plan import Deed, Item

if TYPE_CHECKING:
    from tests.sim.process import Process
    from tests.sim.world import World

_PAUSES_S = (0.0, 30.0, 900.0)
_AROUND_S = (-1.0, -0.05, 0.0, 0.05, 1.0, 10.0, 60.0)
_WAIT_MAX_S = 3_700.0
"""An approval's hour; a clock that is ahead sets deadlines that nobody waits for."""

_STALLS_S = (3.0, 20.0, 70.0, 200.0)
_AWAY_S = (5.0, 40.0, 200.0, 1_200.0)
_JUMPS_S = (-21_600.0, -3_600.0, -300.0, -50.0, -1.0, 1.0, 50.0, 300.0, 3_600.0, 21_600.0)
_STRIKES: dict[Deed, tuple[Target, list[Strike]]] = {
    Deed.SWAP: (Target.SWAP, [each for each in Strike if each is not Strike.PARTIAL]),
    Deed.APPEND: (Target.APPEND, list(Strike)),
    Deed.READ: (Target.READ, [Strike.FAILED, Strike.STALL, Strike.JUMP]),
    Deed.CALL: (Target.CALL, [Strike.CRASH_BEFORE, Strike.CRASH_AFTER, Strike.JUMP]),
}
_AWAY = {
    Deed.DISK_FULL: (Target.SWAP, Target.APPEND),
    Deed.LOG_AWAY: (Target.APPEND,),
    Deed.STORE_AWAY: (Target.SWAP, Target.APPEND, Target.READ),
}


async def do(item: Item, world: "World") -> None:
    """Do one item."""
    dice = Random(item.seed)
    match item.deed:
        case Deed.SWAP | Deed.APPEND | Deed.READ | Deed.CALL:
            target, strikes = _STRIKES[item.deed]
            machine = dice.choice([0, dice.randint(1, world.plan.replicas)])
            strike = dice.choice(strikes)
            seconds = dice.choice(_JUMPS_S if strike is Strike.JUMP else _STALLS_S)
            world.faults.armed.append(Armed(target, strike, machine, seconds))
        case Deed.DISK_FULL | Deed.LOG_AWAY | Deed.STORE_AWAY:
            seconds = dice.choice(_AWAY_S)
            world.say("{} for {} s", item.deed, seconds)
            for target in _AWAY[item.deed]:
                world.faults.away_until[target] = world.loop.time() + seconds
        case Deed.CRASH | Deed.STOP | Deed.JUMP:
            await _to_a_machine(item.deed, dice, world)
        case _:
            await _by_somebody(item.deed, dice, world)


async def _to_a_machine(deed: Deed, dice: Random, world: "World") -> None:
    machine = dice.choice(world.machines)
    if deed is Deed.JUMP:
        machine.clock.offset_s = dice.choice([0.0, machine.clock.offset_s]) + dice.choice(_JUMPS_S)
        world.say("the clock of {} is off by {} s", machine.number, machine.clock.offset_s)
        if machine.process is not None and machine.process.ready:
            await _paused_for_a_while(dice, world, machine.process)
    elif machine.process is None:
        return
    elif deed is Deed.CRASH:
        machine.process.die("at some moment")
    elif machine.process.ready:
        machine.process.spawn(machine.process.stop())


async def _paused_for_a_while(dice: Random, world: "World", process: "Process") -> None:
    """Have an operator pause and resume a playbook where the clock has just been set."""
    active = [
        each.id
        for each in world.judge.document.playbooks.values()
        if each.status is PlaybookStatus.ACTIVE
    ]
    if active:
        playbook_id = dice.choice(active)
        for command in (PausePlaybook(AUTHOR, playbook_id), ResumePlaybook(AUTHOR, playbook_id)):
            world.say("{} of {} at {}", type(command).__name__, playbook_id, process.name)
            await process.ask(command, actor=AUTHOR)


def _until_a_deadline_s(dice: Random, world: "World") -> float:
    """Return how long it is until an approval's deadline, or a moment before or after it."""
    waiting = [
        step.deadline
        for run in world.judge.document.running.values()
        for step in run.steps
        if step.status is StepRunStatus.WAITING_APPROVAL and step.deadline is not None
    ]
    if not waiting:
        return 0.0
    left_s = (dice.choice(waiting) - NOON).total_seconds() - world.loop.time()
    return min(max(0.0, left_s + dice.choice(_AROUND_S)), _WAIT_MAX_S)


async def _by_somebody(deed: Deed, dice: Random, world: "World") -> None:
    match deed:
        case Deed.EVENT:
            agent = dice.choice(["datagov", "datagov", "compliance"])
            runs = [*world.judge.starts.depths, ""]
            await world.agents.raise_event(dice, agent, dice.choice(runs))
        case Deed.STRAY:
            await world.agents.send(stray(dice, [*world.judge.starts.depths, "PBR-none"]), dice)
        case Deed.LOOK:
            serving = world.processes()
            if serving:
                dice.choice(serving).look()
        case Deed.INGEST:
            world.raised += 1
            world.raising.append(
                Raising(
                    number=world.raised,
                    id=f"PBE-scan{world.raised}",
                    agent="capex",
                    event="scan.committed",
                    attributes={"count": str(dice.randrange(4))},
                    committed_by="committer@example.com",
                )
            )
        case _:
            if deed is Deed.DECIDE and dice.random() < 0.4:
                await asyncio.sleep(_until_a_deadline_s(dice, world))
            command = command_of(deed, dice, world)
            if command is None:
                return
            await world.ask(command, command.actor, dice)
            if isinstance(command, PausePlaybook) and dice.random() < 0.6:
                await asyncio.sleep(dice.choice(_PAUSES_S))
                await world.ask(ResumePlaybook(command.actor, command.id), command.actor, dice)
