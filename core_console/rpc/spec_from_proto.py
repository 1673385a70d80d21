"""From the contract's playbook to the spec.

Owns the shape of a playbook: enums that exist, a oneof that is set, defaults for what is left out.
What could not be read has a stand-in in the result and a fault beside it, so that every fault is
told at once; a result with faults is never stored.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from runink.core.atlas.v1 import playbook_pb2

from core_console.decide import spec as specs
from core_console.decide.outcome import Violation
from core_console.model.playbook import (
    Action,
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
    TriggerSource,
)
from core_console.rpc import enums

# What is stored when a field is left out (contract, sections 4 and 5).
TIMEOUT_MINUTES = 60
TIMEOUT_HOURS = 72
COOLDOWN_MINUTES = 60

Faults = list[Violation]
_Item = TypeVar("_Item")
_Member = TypeVar("_Member")


def read_spec(message: playbook_pb2.Playbook, faults: Faults) -> Spec:
    """Return the spec; what could not be read has a stand-in there and a fault in `faults`."""
    steps = at_most("playbook.steps", message.steps, specs.STEPS_MAX, faults)
    triggers = at_most("playbook.triggers", message.triggers, specs.TRIGGERS_MAX, faults)
    return Spec(
        name=message.name,
        description=message.description,
        steps=tuple(
            _step(f"playbook.steps[{index}]", each, faults) for index, each in enumerate(steps)
        ),
        triggers=tuple(
            _trigger(f"playbook.triggers[{index}]", each, faults)
            for index, each in enumerate(triggers)
        ),
    )


def at_most(field: str, items: Sequence[_Item], most: int, faults: Faults) -> Sequence[_Item]:
    """Return the items, cut to `most` with a fault: a message may hold a million of them."""
    if len(items) > most:
        faults.append(Violation(field, f"has {len(items)} items; it takes at most {most}"))
    return items[:most]


def member(
    field: str, number: int, members: Mapping[int, _Member], faults: Faults
) -> _Member | None:
    """Return the member of an enum that a request names by number, None with a fault for none."""
    found = members.get(number)
    if found is None:
        names = ", ".join(str(each) for each in members.values())
        said = f"is {number}, which is unknown" if number else "is required"
        faults.append(Violation(field, f"{said}: it takes {names}"))
    return found


def _unset(field: str, names: Collection[str], faults: Faults) -> None:
    faults.append(Violation(field, f"takes exactly one of {', '.join(names)}"))


def _step(path: str, message: playbook_pb2.Step, faults: Faults) -> Step:
    kind = member(f"{path}.kind", message.kind, enums.STEP_KIND_OF, faults)
    return Step(
        id=message.id,
        kind=kind or next(iter(enums.STEP_KIND_OF.values())),
        action=_action(path, message, faults),
        title=message.title,
    )


def _action(path: str, message: playbook_pb2.Step, faults: Faults) -> Action:
    match message.WhichOneof("action"):
        case "dispatch_agent":
            dispatch = message.dispatch_agent
            given = dispatch.HasField("timeout_minutes")
            minutes = dispatch.timeout_minutes if given else TIMEOUT_MINUTES
            return DispatchAgent(dispatch.agent, minutes)
        case "capex_scan":
            scan = message.capex_scan
            field = f"{path}.capex_scan.rule_ids"
            rule_ids = at_most(field, scan.rule_ids, specs.RULES_MAX, faults)
            return CapexScan(scan.compare_to_first_scan, tuple(rule_ids))
        case "require_approval":
            approval = message.require_approval
            given = approval.HasField("timeout_hours")
            hours = approval.timeout_hours if given else TIMEOUT_HOURS
            return RequireApproval(hours, approval.approver, approval.prompt)
        case "notify":
            return Notify(message.notify.repo, message.notify.issue)
        case None:
            names = ("dispatch_agent", "capex_scan", "require_approval", "notify")
            _unset(f"{path}.action", names, faults)
            return CapexScan()


def _trigger(path: str, message: playbook_pb2.Trigger, faults: Faults) -> Trigger:
    source = _source(path, message, faults)
    given = message.HasField("cooldown_minutes")
    if not isinstance(source, ManualTrigger):
        minutes = message.cooldown_minutes if given else COOLDOWN_MINUTES
        return Trigger(message.id, source, minutes)
    if given and not message.cooldown_minutes:
        # Stored, an explicit 0 here would be the same as none; any other value decide refuses.
        faults.append(
            Violation(f"{path}.cooldown_minutes", "is refused on a manual trigger; leave it out")
        )
    return Trigger(message.id, source, message.cooldown_minutes)


def _source(path: str, message: playbook_pb2.Trigger, faults: Faults) -> TriggerSource:
    match message.WhichOneof("kind"):
        case "manual":
            return ManualTrigger()
        case "schedule":
            return ScheduleTrigger(message.schedule.cron)
        case "agent_event":
            event = message.agent_event
            field = f"{path}.agent_event.conditions"
            return AgentEventTrigger(
                event.agent, event.event, _conditions(field, event.conditions, faults)
            )
        case "capex_event":
            field = f"{path}.capex_event.conditions"
            return CapexEventTrigger(_conditions(field, message.capex_event.conditions, faults))
        case None:
            names = ("manual", "schedule", "agent_event", "capex_event")
            _unset(f"{path}.kind", names, faults)
            return ManualTrigger()


def _conditions(
    field: str, messages: Sequence[playbook_pb2.Condition], faults: Faults
) -> tuple[Condition, ...]:
    found = []
    for index, each in enumerate(at_most(field, messages, specs.CONDITIONS_MAX, faults)):
        op = member(f"{field}[{index}].op", each.op, enums.CONDITION_OP_OF, faults)
        if op is not None:
            found.append(Condition(each.attribute, op, each.value))
    return tuple(found)
