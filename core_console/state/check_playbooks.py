"""Does a stored playbook keep the contract's bounds, and four eyes?

Owns the judgement of one playbook. It shares the model's types and nothing else.
"""

import re
from collections import Counter
from collections.abc import Iterator
from typing import assert_never

from core_console.model.codec import spec_digest
from core_console.model.playbook import (
    AGENTS,
    AgentEventTrigger,
    CapexEventTrigger,
    CapexScan,
    Condition,
    DispatchAgent,
    ManualTrigger,
    Notify,
    Playbook,
    PlaybookStatus,
    RequireApproval,
    ScheduleTrigger,
    Spec,
    Step,
    Trigger,
)
from core_console.state.check_words import backwards, is_id, longer

# The contract's (sections 1, 2, 4 and 5), written a second time on purpose.
NAME_CHARACTERS = range(1, 121)
DESCRIPTION_CHARACTERS = 2_000
TITLE_CHARACTERS = 120
STEPS = range(1, 11)
TRIGGERS_MAX = 4
CONDITIONS_MAX = 8
AGENT_MINUTES = range(5, 241)
APPROVAL_HOURS = range(1, 169)
COOLDOWN_MINUTES = range(5, 43_201)

_EVENT = re.compile(r"[a-z0-9._-]{1,64}")
_REPO = re.compile(r"[A-Za-z0-9._-]{1,100}")
_CRON = re.compile(r"\s*[0-9]{1,2}(\s+\S+){4}\s*", re.ASCII)
"""Five fields, the minute ONE number; which slots they mean is the schedule's business."""


def of(playbook: Playbook) -> Iterator[str]:
    """Yield every promise that the playbook breaks."""
    name = f"playbook {playbook.id}"
    yield from _spec(name, playbook.spec)
    if spec_digest(playbook.spec) != playbook.spec_digest:
        yield f"{name} has a spec digest that is not its spec's"
    if not 1 <= playbook.activated_revision <= playbook.revision and playbook.activated_by:
        yield f"{name} is at revision {playbook.revision}, activated at another"
    if playbook.revision < 1 or not 0 <= playbook.runs_succeeded <= playbook.runs_finished:
        yield f"{name} has a revision or a counter that no swap writes"
    if unknown := playbook.trigger_states.keys() - {each.id for each in playbook.spec.triggers}:
        yield f"{name} remembers {len(unknown)} triggers that it does not have"
    yield from backwards(name, playbook.created_at, playbook.updated_at)
    if playbook.status is not PlaybookStatus.DRAFT:
        yield from _activated(name, playbook)


def _activated(name: str, playbook: Playbook) -> Iterator[str]:
    if not playbook.activated_by or playbook.activated_at is None:
        yield f"{name} is {playbook.status}, and nobody activated it"
    elif playbook.activated_by in {playbook.created_by, playbook.updated_by}:
        yield f"{name} is {playbook.status}, activated by its author or last editor: four eyes"


def _spec(name: str, spec: Spec) -> Iterator[str]:
    if len(spec.name) not in NAME_CHARACTERS or len(spec.description) > DESCRIPTION_CHARACTERS:
        yield f"{name} has a name or a description of another length than it may"
    if len(spec.steps) not in STEPS or len(spec.triggers) > TRIGGERS_MAX:
        yield f"{name} has {len(spec.steps)} steps and {len(spec.triggers)} triggers"
    for kind, ids in (
        ("step", [step.id for step in spec.steps]),
        ("trigger", [trigger.id for trigger in spec.triggers]),
    ):
        if not all(map(is_id, ids)) or max(Counter(ids).values(), default=1) > 1:
            yield f"{name} has a {kind} id that is none, or is there twice"
    for number, step in enumerate(spec.steps):
        yield from step_faults(f"{name}, step {number + 1},", step)
    for number, trigger in enumerate(spec.triggers):
        yield from _trigger(f"{name}, trigger {number + 1},", trigger)


def step_faults(name: str, step: Step) -> Iterator[str]:
    """Yield what is wrong with a step, of a playbook or as a run copied it."""
    if len(step.title) > TITLE_CHARACTERS:
        yield f"{name} has a title of {len(step.title)} characters"
    holds = True
    match step.action:
        case DispatchAgent(agent=agent, timeout_minutes=minutes):
            holds = agent in AGENTS and minutes in AGENT_MINUTES
        case RequireApproval(timeout_hours=hours, approver=approver, prompt=prompt):
            holds = hours in APPROVAL_HOURS
            texts = (("prompt", prompt, 1_000), ("approver", approver, 254))
            yield from longer(name, texts)
        case Notify(repo=repo, issue=issue):
            named = _REPO.fullmatch(repo) is not None and repo not in {".", ".."}
            holds = named and issue > 0
        case CapexScan():
            pass
        case _ as never:
            assert_never(never)
    if not holds:
        yield f"{name} has an action beyond its bounds"


def _trigger(name: str, trigger: Trigger) -> Iterator[str]:
    conditions: tuple[Condition, ...] = ()
    holds = trigger.cooldown_minutes in COOLDOWN_MINUTES
    match trigger.source:
        case ManualTrigger():
            holds = trigger.cooldown_minutes == 0
        case ScheduleTrigger(cron=cron):
            holds = holds and _CRON.fullmatch(cron) is not None
        case AgentEventTrigger(agent=agent, event=event, conditions=conditions):
            holds = holds and agent in AGENTS and _EVENT.fullmatch(event) is not None
        case CapexEventTrigger(conditions=conditions):
            pass
        case _ as never:
            assert_never(never)
    if not holds:
        yield f"{name} is beyond its bounds"
    if len(conditions) > CONDITIONS_MAX:
        yield f"{name} has {len(conditions)} conditions, and {CONDITIONS_MAX} is the most"
    for condition in conditions:
        texts = (("attribute", condition.attribute, 256), ("value", condition.value, 256))
        yield from longer(name, texts)
