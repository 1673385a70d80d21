"""Whether a spec may be stored: every bound of the contract's sections 2, 4 and 5.

Owns the checks of a playbook's content. Violations carry proto paths, such as
`playbook.steps[2].dispatch_agent.timeout_minutes`, so that a client can point at the field.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import assert_never

from core_console.decide import cron, screen
from core_console.decide.identity import Admission, SignIn, is_admitted, normalise
from core_console.decide.outcome import Violation
from core_console.model.playbook import (
    AGENTS,
    AgentEventTrigger,
    CapexEventTrigger,
    CapexScan,
    Condition,
    DispatchAgent,
    ManualTrigger,
    Notify,
    RequireApproval,
    ScheduleTrigger,
    Spec,
    Step,
    Trigger,
)

# The bounds are the contract's (sections 2, 4, 5 and 9).
STEPS_MAX = 10
TRIGGERS_MAX = 4
CONDITIONS_MAX = 8
NAME_CHARACTERS = 120
DESCRIPTION_CHARACTERS = 2_000
TITLE_CHARACTERS = 120
PROMPT_BYTES = 1_000
APPROVER_BYTES = 254
ATTRIBUTE_BYTES = 256
EVENT_CHARACTERS = 64
AGENT_MINUTES = range(5, 241)
APPROVAL_HOURS = range(1, 169)
COOLDOWN_MINUTES = range(5, 43_201)
# GitHub numbers issues with 32 bits in some of its own clients; beyond that it is a typo.
ISSUE_MAX = 2**31 - 1
# The rule book has 24 rules; a list that names more than all of them repeats itself.
RULES_MAX = 24

# Nobody decides a run that they started.
_STARTER_AND_DECIDER = 2

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_EVENT = re.compile(r"[a-z0-9._-]{1,64}")
_REPO = re.compile(r"[A-Za-z0-9._-]{1,100}")
_RULE = re.compile(r"[A-Z]{2}-[0-9]{3}")
_DOTS = (".", "..")

ID_RULE = "is not 1 to 64 of A-Z a-z 0-9 . _ - (and not . or ..)"


def is_id(value: str) -> bool:
    """Say whether `value` may be the id of a step or a trigger."""
    return _ID.fullmatch(value) is not None and value not in _DOTS


def named(kind: str, value: str) -> str:
    """Return `kind` and the id as a sentence shows them; an odd or secret-like id is left out."""
    plain = is_id(value) and not screen.flaws("id", value)
    return f"{kind} {value}" if plain else f"a {kind} of that id"


def violations(spec: Spec, *, admission: Admission, now: datetime) -> tuple[Violation, ...]:
    """Return everything that keeps `spec` from being stored; empty when it may be."""
    return (
        *screen.characters("playbook.name", spec.name, least=1, most=NAME_CHARACTERS),
        *screen.characters(
            "playbook.description",
            spec.description,
            least=0,
            most=DESCRIPTION_CHARACTERS,
            prose=True,
        ),
        *_count("playbook.steps", len(spec.steps), 1, STEPS_MAX),
        *_count("playbook.triggers", len(spec.triggers), 0, TRIGGERS_MAX),
        *_repeated("playbook.steps", (step.id for step in spec.steps[:STEPS_MAX])),
        *_repeated("playbook.triggers", (each.id for each in spec.triggers[:TRIGGERS_MAX])),
        *_all_steps(spec.steps[:STEPS_MAX], admission),
        *_all_triggers(spec.triggers[:TRIGGERS_MAX], now),
    )


def _count(field: str, count: int, least: int, most: int) -> Iterator[Violation]:
    if not least <= count <= most:
        yield Violation(field, f"has {count} items; it takes {least} to {most}")


def _repeated(field: str, ids: Iterable[str]) -> Iterator[Violation]:
    seen: set[str] = set()
    for number, name in enumerate(ids):
        if name in seen:
            yield Violation(f"{field}[{number}].id", "repeats an earlier id; ids are unique")
        seen.add(name)


def _id(field: str, value: str) -> Iterable[Violation]:
    # Screened only once its length is known to be small: screening is work.
    return screen.flaws(field, value) if is_id(value) else (Violation(field, ID_RULE),)


def _all_steps(steps: Sequence[Step], admission: Admission) -> Iterator[Violation]:
    for number, step in enumerate(steps):
        path = f"playbook.steps[{number}]"
        yield from _id(f"{path}.id", step.id)
        yield from screen.characters(f"{path}.title", step.title, least=0, most=TITLE_CHARACTERS)
        yield from _action(step, path, admission)
        yield from _comparison(steps[:number], step, path)


def _action(step: Step, path: str, admission: Admission) -> Iterable[Violation]:
    match step.action:
        case DispatchAgent() as action:
            return _dispatch_agent(action, f"{path}.dispatch_agent")
        case CapexScan() as action:
            return _capex_scan(action, f"{path}.capex_scan")
        case RequireApproval() as action:
            return _require_approval(action, f"{path}.require_approval", admission)
        case Notify() as action:
            return _notify(action, f"{path}.notify")
        case _ as never:
            assert_never(never)


def _dispatch_agent(action: DispatchAgent, path: str) -> Iterator[Violation]:
    yield from agent_violations(f"{path}.agent", action.agent)
    yield from _within(f"{path}.timeout_minutes", action.timeout_minutes, AGENT_MINUTES)


def agent_violations(field: str, agent: str) -> Iterator[Violation]:
    """Yield the violation of a name that is none of the six agents."""
    if agent not in AGENTS:
        yield Violation(field, f"is not one of the six agents: {', '.join(AGENTS)}")


def _within(field: str, value: int, bounds: range) -> Iterator[Violation]:
    if value not in bounds:
        yield Violation(field, f"is {value}; it takes {bounds[0]} to {bounds[-1]}")


def _capex_scan(action: CapexScan, path: str) -> Iterator[Violation]:
    yield from _count(f"{path}.rule_ids", len(action.rule_ids), 0, RULES_MAX)
    for number, rule_id in enumerate(action.rule_ids[:RULES_MAX]):
        if not _RULE.fullmatch(rule_id):
            yield Violation(f"{path}.rule_ids[{number}]", "is not a rule id such as CP-001")
    if len(set(action.rule_ids)) < len(action.rule_ids):
        yield Violation(f"{path}.rule_ids", "names a rule twice")


def _comparison(earlier: Sequence[Step], step: Step, path: str) -> Iterator[Violation]:
    compares = isinstance(step.action, CapexScan) and step.action.compare_to_first_scan
    if compares and not any(isinstance(before.action, CapexScan) for before in earlier):
        yield Violation(
            f"{path}.capex_scan.compare_to_first_scan",
            "compares with the run's first scan, and no earlier step is a capex_scan",
        )


def _require_approval(
    action: RequireApproval, path: str, admission: Admission
) -> Iterator[Violation]:
    yield from _within(f"{path}.timeout_hours", action.timeout_hours, APPROVAL_HOURS)
    yield from screen.text(f"{path}.prompt", action.prompt, bytes_max=PROMPT_BYTES, prose=True)
    yield from screen.text(f"{path}.approver", action.approver, bytes_max=APPROVER_BYTES)
    if action.approver and normalise(action.approver) is None:
        yield Violation(f"{path}.approver", "is not an e-mail address in ASCII")
    elif _nobody_can_decide(action.approver, admission):
        yield Violation(
            f"{path}.approver",
            "leaves nobody able to decide: the only Atlas admin would also start the runs",
        )


def _nobody_can_decide(approver: str, admission: Admission) -> bool:
    """Say whether an operator who can start a run would leave nobody to decide.

    Only an Atlas admin can start a run by hand, and nobody decides a run that they started; so
    the admins and the named approver, as far as they are admitted, must be two people together.
    While CORE_ATLAS_ADMINS is unset every admitted operator is an admin, and how many those are
    is not known.
    """
    if admission.admins is None:
        return False
    named_too = {normalise(approver) or approver} if approver else set()
    able = {
        each
        for each in admission.admins | named_too
        if is_admitted(each, admission, sign_in=SignIn.LOCAL)
    }
    return len(able) < _STARTER_AND_DECIDER


def _notify(action: Notify, path: str) -> Iterator[Violation]:
    if not _REPO.fullmatch(action.repo) or action.repo in _DOTS:
        yield Violation(
            f"{path}.repo",
            "is not a repository NAME (1 to 100 of A-Z a-z 0-9 . _ -): no owner, no URL",
        )
    else:
        yield from screen.flaws(f"{path}.repo", action.repo)
    if not 0 < action.issue <= ISSUE_MAX:
        yield Violation(f"{path}.issue", "is not an issue number above 0")


def _all_triggers(triggers: Sequence[Trigger], now: datetime) -> Iterator[Violation]:
    for number, trigger in enumerate(triggers):
        path = f"playbook.triggers[{number}]"
        yield from _id(f"{path}.id", trigger.id)
        yield from _cooldown(trigger, f"{path}.cooldown_minutes")
        yield from _source(trigger, path, now)


def _cooldown(trigger: Trigger, field: str) -> Iterable[Violation]:
    if not isinstance(trigger.source, ManualTrigger):
        return _within(field, trigger.cooldown_minutes, COOLDOWN_MINUTES)
    if trigger.cooldown_minutes:
        return (Violation(field, "is refused on a manual trigger: RunNow ignores cooldowns"),)
    return ()


def _source(trigger: Trigger, path: str, now: datetime) -> Iterator[Violation]:
    match trigger.source:
        case ManualTrigger():
            pass
        case ScheduleTrigger(cron=text):
            if wrong := cron.fault(text, now=now):
                yield Violation(f"{path}.schedule.cron", wrong)
        case AgentEventTrigger() as source:
            yield from agent_violations(f"{path}.agent_event.agent", source.agent)
            yield from event_violations(f"{path}.agent_event.event", source.event)
            yield from _conditions(f"{path}.agent_event.conditions", source.conditions)
        case CapexEventTrigger() as source:
            yield from _conditions(f"{path}.capex_event.conditions", source.conditions)
        case _ as never:
            assert_never(never)


def event_violations(field: str, event: str) -> Iterator[Violation]:
    """Yield the faults of an event's name."""
    if not _EVENT.fullmatch(event):
        yield Violation(field, f"is not 1 to {EVENT_CHARACTERS} of a-z 0-9 . _ -")
    else:
        yield from screen.flaws(field, event)


def _conditions(field: str, conditions: Sequence[Condition]) -> Iterator[Violation]:
    yield from _count(field, len(conditions), 0, CONDITIONS_MAX)
    for number, condition in enumerate(conditions[:CONDITIONS_MAX]):
        path = f"{field}[{number}]"
        if not condition.attribute:
            yield Violation(f"{path}.attribute", "is required")
        yield from screen.text(f"{path}.attribute", condition.attribute, bytes_max=ATTRIBUTE_BYTES)
        yield from screen.text(f"{path}.value", condition.value, bytes_max=ATTRIBUTE_BYTES)
