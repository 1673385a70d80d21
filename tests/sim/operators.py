"""Operators doing anything: right and wrong, on what is stored or on what was stored once.

Owns the commands that people send, each worked out from one item's own dice.
"""

from random import Random
from typing import TYPE_CHECKING

from msgspec.structs import replace

from core_console.decide.commands import (
    ActivatePlaybook,
    CancelRun,
    Command,
    CreatePlaybook,
    DecideApproval,
    Decision,
    DeletePlaybook,
    PausePlaybook,
    ResumePlaybook,
    RunNow,
    UpdatePlaybook,
)
from core_console.model.document import Document
from core_console.model.playbook import (
    AGENTS,
    AgentEventTrigger,
    CapexEventTrigger,
    Condition,
    ConditionOp,
    Playbook,
    PlaybookStatus,
    RequireApproval,
    ScheduleTrigger,
    Spec,
    Step,
    Trigger,
)
from core_console.model.run import Run
from tests.builders import (
    AUTHOR,
    SECOND,
    STRANGER,
    a_spec,
    approve,
    detect,
    notify,
    scan,
)
from tests.sim.agents import EVENTS
from tests.sim.github import FIRST_ISSUE
from tests.sim.plan import Deed

if TYPE_CHECKING:
    from tests.sim.world import World

THIRD = "third@example.com"
PEOPLE = (AUTHOR, SECOND, STRANGER, THIRD)
ADMINS = frozenset({AUTHOR, SECOND, THIRD})

_CRONS = ("5 * * * *", "30 * * * *", "15 */2 * * *", "0 13 * * *", "59 * * * 1-5")


def a_random_spec(dice: Random) -> Spec:
    """Return a small spec that may be stored, rarely one that may not."""
    steps = tuple(_a_step(dice, number) for number in range(dice.choice([1, 1, 2, 3])))
    triggers = tuple(_a_trigger(dice, number) for number in range(dice.choice([0, 1, 2])))
    name = "" if dice.random() < 0.03 else f"Watch {dice.randrange(1_000)}"
    return a_spec(*steps, name=name, triggers=triggers)


def _a_step(dice: Random, number: int) -> Step:
    match dice.choice("ddddaaansn"):
        case "d":
            agent = dice.choice(AGENTS[:2])
            return detect(f"d{number}", agent=agent, minutes=dice.choice([5, 5, 30]))
        case "a":
            approver = dice.choice(["", "", STRANGER])
            return approve(f"a{number}", approver=approver, hours=1)
        case "s":
            return scan(f"s{number}")
        case _:
            return notify(f"n{number}", issue=FIRST_ISSUE + number)


def _a_trigger(dice: Random, number: int) -> Trigger:
    cooldown = dice.choice([5, 5, 60])
    at_least = Condition("count", ConditionOp.GTE, dice.choice(["0", "2"]))
    conditions = dice.choice([(), (at_least,)])
    match dice.choice("seeec"):
        case "s":
            return Trigger(f"t{number}", ScheduleTrigger(dice.choice(_CRONS)), cooldown)
        case "e":
            source = AgentEventTrigger(dice.choice(AGENTS[:2]), dice.choice(EVENTS), conditions)
            return Trigger(f"t{number}", source, cooldown)
        case _:
            return Trigger(f"t{number}", CapexEventTrigger(conditions), cooldown)


def command_of(deed: Deed, dice: Random, world: "World") -> Command | None:
    """Return what an operator asks for, None when there is nothing to ask."""
    actor = dice.choice(PEOPLE)
    document = dice.choice([*[world.judge.document] * 4, *world.remembered])
    if deed is Deed.CREATE:
        return CreatePlaybook(actor, a_random_spec(dice))
    runs = [*document.running.values(), *list(document.finished.values())[-3:]]
    if deed is Deed.CANCEL:
        run = dice.choice(runs) if runs else None
        return None if run is None else CancelRun(actor, run.id, dice.choice(["stop", "no", ""]))
    if deed is Deed.DECIDE:
        return _decision(dice, actor, [*document.running.values()] or runs)
    if not document.playbooks:
        return None
    playbook = dice.choice(list(document.playbooks.values()))
    return _about(deed, dice, actor, playbook, document)


def _decision(dice: Random, actor: str, runs: list[Run]) -> Command | None:
    asked = [
        (run, each.step.id)
        for run in runs
        for each in run.steps
        if isinstance(each.step.action, RequireApproval)
    ]
    if not asked:
        return None
    run, step_id = dice.choice(asked)
    decision = dice.choice([Decision.APPROVE, Decision.APPROVE, Decision.REJECT])
    return DecideApproval(actor, run.id, step_id, decision, "seen")


def _about(
    deed: Deed, dice: Random, actor: str, playbook: Playbook, document: Document
) -> Command | None:
    """Return a command about a playbook."""
    match deed:
        case Deed.UPDATE:
            stale = dice.random() < 0.2
            return UpdatePlaybook(
                actor, playbook.id, playbook.revision - stale, _edited(dice, playbook)
            )
        case Deed.ACTIVATE:
            return _activation(dice, actor, playbook, document)
        case Deed.REVIEW:
            return _review(dice, document) or RunNow(actor, playbook.id)
        case Deed.PAUSE:
            return PausePlaybook(actor, playbook.id)
        case Deed.RESUME:
            return ResumePlaybook(actor, playbook.id)
        case Deed.DELETE:
            return DeletePlaybook(actor, playbook.id)
        case Deed.RUN:
            request_id = dice.choice(["", "", f"r{dice.randrange(5)}"])
            return RunNow(actor, playbook.id, request_id, dice.choice(["", "go"]))
        case _:
            return None


def _activation(
    dice: Random, actor: str, playbook: Playbook, document: Document
) -> ActivatePlaybook:
    """Have a playbook activated by anybody, its own author and editor above all."""
    drafts = _drafts(document)
    if drafts and dice.random() < 0.8:
        playbook = dice.choice(drafts)
    actor = dice.choice([actor, playbook.created_by, playbook.updated_by])
    return ActivatePlaybook(actor, playbook.id, playbook.revision - dice.choice([0, 0, 0, 1]))


def _drafts(document: Document) -> list[Playbook]:
    return [each for each in document.playbooks.values() if each.status is PlaybookStatus.DRAFT]


def _edited(dice: Random, playbook: Playbook) -> Spec:
    """Return the spec, a new one, or one with a trigger more or less."""
    match dice.choice(["same", "new", "name", "trigger"]):
        case "same":
            return playbook.spec
        case "new":
            return a_random_spec(dice)
        case "name":
            return replace(playbook.spec, name=f"Watch {dice.randrange(1_000)}")
        case _:
            triggers = playbook.spec.triggers[:-1] or (_a_trigger(dice, 0),)
            return replace(playbook.spec, triggers=triggers)


def _review(dice: Random, document: Document) -> Command | None:
    """Have a draft activated by somebody who may."""
    drafts = _drafts(document)
    if not drafts:
        return None
    draft = dice.choice(drafts)
    barred = {draft.created_by, draft.updated_by, *draft.editors, STRANGER}
    others = [each for each in PEOPLE if each not in barred]
    return ActivatePlaybook(dice.choice(others), draft.id, draft.revision) if others else None
