"""From the contract's messages to commands.

Owns the shape of a request: enums that exist, a oneof that is set, defaults for what is left out.
What a text or a number may be is `decide`'s to judge. Unknown fields of a message are ignored, as
every gRPC server does, so that a newer client is understood.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from runink.core.atlas.v1 import playbook_pb2

from core_console.decide import commands, screen
from core_console.decide import spec as specs
from core_console.decide.outcome import Code, Refused, Violation, invalid
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
from core_console.rpc import enums, server_managed
from core_console.rpc.errors import RefusedError, invalid_field

# What is stored when a field is left out (contract, sections 4 and 5).
TIMEOUT_MINUTES = 60
TIMEOUT_HOURS = 72
COOLDOWN_MINUTES = 60

_STATUSES_MAX = 32
"""More than any enum has members: a longer filter only repeats itself."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = range(-62_135_596_800, 253_402_300_800)
"""The years 1 to 9999, which is what a Timestamp may hold."""
_NANOS = range(1_000_000_000)

_Faults = list[Violation]
_Item = TypeVar("_Item")
_Member = TypeVar("_Member")


def known_id(value: str) -> str:
    """Return the id, "" for a text that is none or looks like a credential.

    No id is empty, so nothing is found, and an odd text is repeated in no answer and no record.
    """
    return value if specs.is_id(value) and not screen.flaws("id", value) else ""


def create(request: playbook_pb2.CreatePlaybookRequest, *, actor: str) -> commands.CreatePlaybook:
    """Return the command; raise RefusedError for a bad shape or a server-managed field."""
    if not request.HasField("playbook"):
        raise invalid_field("playbook", "is required")
    faults = server_managed.set_in_create(request.playbook)
    spec = _spec(request.playbook, faults)
    _refuse(faults)
    return commands.CreatePlaybook(actor, spec)


def update(
    request: playbook_pb2.UpdatePlaybookRequest,
    stored: playbook_pb2.Playbook | None,
    *,
    actor: str,
) -> commands.UpdatePlaybook:
    """Return the command; raise RefusedError for a bad shape or a differing server-managed field.

    `stored` is the playbook as it is shown now, None when there is none of that id or revision:
    then the command itself says so.
    """
    if not request.HasField("playbook"):
        raise invalid_field("playbook", "is required: the whole spec")
    faults: _Faults = []
    if stored is not None:
        faults += server_managed.differing_in_update(request.playbook, stored)
    spec = _spec(request.playbook, faults)
    _refuse(faults)
    return commands.UpdatePlaybook(actor, known_id(request.id), request.revision, spec)


def run_now(request: playbook_pb2.RunNowRequest, *, actor: str) -> commands.RunNow:
    """Return the command."""
    return commands.RunNow(actor, known_id(request.playbook_id), request.request_id, request.note)


def decide_approval(
    request: playbook_pb2.DecideApprovalRequest, *, actor: str
) -> commands.DecideApproval:
    """Return the command; raise RefusedError unless it approves or rejects."""
    faults: _Faults = []
    decision = _member("decision", request.decision, enums.DECISION_OF, faults)
    if decision is None:
        raise RefusedError(invalid(*faults))
    return commands.DecideApproval(
        actor, known_id(request.run_id), known_id(request.step_id), decision, request.note
    )


def statuses(numbers: Sequence[int], members: Mapping[int, _Member]) -> frozenset[_Member]:
    """Return the statuses of a filter; raise RefusedError for one that does not exist."""
    faults: _Faults = []
    shown = _at_most("statuses", numbers, _STATUSES_MAX, faults)
    found = [
        _member(f"statuses[{index}]", number, members, faults) for index, number in enumerate(shown)
    ]
    _refuse(faults)
    return frozenset(each for each in found if each is not None)


def instant(field: str, at: Timestamp) -> datetime:
    """Return the instant in UTC; raise RefusedError for one that no calendar has."""
    if at.seconds not in _SECONDS or at.nanos not in _NANOS:
        raise invalid_field(field, "is not an instant between the years 1 and 9999")
    return _EPOCH + timedelta(seconds=at.seconds, microseconds=at.nanos // 1_000)


def _refuse(faults: Sequence[Violation]) -> None:
    if not faults:
        return
    for fault in faults:
        if fault.field == server_managed.STATUS_FIELD:
            # This one sentence is the contract's own, word for word.
            raise RefusedError(Refused(Code.INVALID_ARGUMENT, fault.description, tuple(faults)))
    raise RefusedError(invalid(*faults))


def _spec(message: playbook_pb2.Playbook, faults: _Faults) -> Spec:
    """Return the spec; what could not be read has a stand-in there and a fault in `faults`."""
    steps = _at_most("playbook.steps", message.steps, specs.STEPS_MAX, faults)
    triggers = _at_most("playbook.triggers", message.triggers, specs.TRIGGERS_MAX, faults)
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


def _at_most(field: str, items: Sequence[_Item], most: int, faults: _Faults) -> Sequence[_Item]:
    """Return the items, cut to `most` with a fault: a message may hold a million of them."""
    if len(items) > most:
        faults.append(Violation(field, f"has {len(items)} items; it takes at most {most}"))
    return items[:most]


def _member(
    field: str, number: int, members: Mapping[int, _Member], faults: _Faults
) -> _Member | None:
    found = members.get(number)
    if found is None:
        names = ", ".join(str(each) for each in members.values())
        said = f"is {number}, which is unknown" if number else "is required"
        faults.append(Violation(field, f"{said}: it takes {names}"))
    return found


def _unset(field: str, names: Collection[str], faults: _Faults) -> None:
    faults.append(Violation(field, f"takes exactly one of {', '.join(names)}"))


def _step(path: str, message: playbook_pb2.Step, faults: _Faults) -> Step:
    kind = _member(f"{path}.kind", message.kind, enums.STEP_KIND_OF, faults)
    return Step(
        id=message.id,
        kind=kind or next(iter(enums.STEP_KIND_OF.values())),
        action=_action(path, message, faults),
        title=message.title,
    )


def _action(path: str, message: playbook_pb2.Step, faults: _Faults) -> Action:
    match message.WhichOneof("action"):
        case "dispatch_agent":
            dispatch = message.dispatch_agent
            given = dispatch.HasField("timeout_minutes")
            minutes = dispatch.timeout_minutes if given else TIMEOUT_MINUTES
            return DispatchAgent(dispatch.agent, minutes)
        case "capex_scan":
            scan = message.capex_scan
            field = f"{path}.capex_scan.rule_ids"
            rule_ids = _at_most(field, scan.rule_ids, specs.RULES_MAX, faults)
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


def _trigger(path: str, message: playbook_pb2.Trigger, faults: _Faults) -> Trigger:
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


def _source(path: str, message: playbook_pb2.Trigger, faults: _Faults) -> TriggerSource:
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
    field: str, messages: Sequence[playbook_pb2.Condition], faults: _Faults
) -> tuple[Condition, ...]:
    found = []
    for index, each in enumerate(_at_most(field, messages, specs.CONDITIONS_MAX, faults)):
        op = _member(f"{field}[{index}].op", each.op, enums.CONDITION_OP_OF, faults)
        if op is not None:
            found.append(Condition(each.attribute, op, each.value))
    return tuple(found)
