"""An event is raised: what it starts, what it skips, and why.

Owns RaiseEvent (contract, sections 5 to 7): an agent's explicit event, or a harness event of the
console's own with its rows. Attributes are matched, never executed, and rows are not kept.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from core_console.decide import depth, firing, history, loopguard, runs, screen
from core_console.decide.commands import RaiseEvent
from core_console.decide.conditions import Facts
from core_console.decide.context import Context
from core_console.decide.outcome import (
    Accepted,
    Code,
    Effect,
    Outcome,
    Refused,
    Violation,
    invalid,
)
from core_console.decide.record import entry
from core_console.decide.spec import ID_RULE, agent_violations, event_violations, is_id
from core_console.model.audit import Entry
from core_console.model.document import Document
from core_console.model.event import Chain, Event, SkippedTrigger, StartedRun
from core_console.model.faults import InvariantError
from core_console.model.playbook import AgentEventTrigger, CapexEventTrigger, Trigger
from core_console.model.run import TriggerKind

ACTION = "atlas.events.raise"

EVENTS_MAX = 300
"""The newest events that are kept (contract, section 9)."""

# The bounds are the contract's (sections 2 and 7).
SUBJECT_BYTES = 256
DETAIL_BYTES = 500
ATTRIBUTES_MAX = 16
ATTRIBUTE_BYTES = 256
EVENT_ID_BYTES = 64

CAPEX = "capex"
SCAN_COMMITTED = "scan.committed"
"""The only event of the CapEx engine, and the only one that is not an agent's."""

_NAMED_MAX = 100
"""The most ids in one record: one for every playbook that there can be, about 2 KiB."""


class _Raised(Struct, frozen=True, gc=False):
    """What an event has come to so far."""

    document: Document
    started: tuple[StartedRun, ...] = ()
    skipped: tuple[SkippedTrigger, ...] = ()
    effects: tuple[Effect, ...] = ()


def raise_event(document: Document, command: RaiseEvent, context: Context) -> Outcome:
    """Keep the event and start what waits for it, as far as the loop guard lets it."""
    wrong = tuple(_violations(command))
    if wrong:
        return invalid(*wrong)
    earlier = _earlier(document, command)
    if _was_taken(document, command):
        return Accepted(document, earlier, duplicate=True)
    if earlier is not None:
        return _raised_before(document, earlier, command)
    chain = depth.of_event(
        document, command.agent, command.caused_by_run_id, context.now, known=command.known
    )
    if isinstance(chain, Refused):
        return chain
    event_id = command.id or context.ids.new("PBE")
    raised = _judged(document, command, event_id, chain, context)
    event = Event(
        id=event_id,
        at=context.now,
        agent=command.agent,
        event=command.event,
        raised_by=command.actor,
        revision=document.revision + 1,
        external_id=command.external_id,
        subject=command.subject,
        detail=command.detail,
        attributes=command.attributes,
        caused_by_run_id=command.caused_by_run_id,
        chain_depth=chain.depth,
        started=raised.started,
        skipped=raised.skipped,
    )
    said = _said(event, context)
    kept = _taken(keep(raised.document, event), command)
    return Accepted(kept, event, (said,), raised.effects)


def _was_taken(document: Document, command: RaiseEvent) -> bool:
    """Say whether this event was taken before from the document that it waited in.

    Unlike the event itself, which may be trimmed, the number of the last one is always kept.
    """
    return bool(command.source) and command.number <= document.taken.get(command.source, 0)


def _taken(document: Document, command: RaiseEvent) -> Document:
    if not command.source:
        return document
    return replace(document, taken=document.taken | {command.source: command.number})


def keep(document: Document, event: Event) -> Document:
    """Return the document with the event; the oldest beyond the newest 300 go."""
    events = document.events | {event.id: event}
    oldest = list(events)[: max(0, len(events) - EVENTS_MAX)]
    gone = [events.pop(each) for each in oldest]
    return replace(document, events=events, trimmed=history.trimmed(document, gone))


def _violations(command: RaiseEvent) -> Iterator[Violation]:
    if not (command.id and (command.agent, command.event) == (CAPEX, SCAN_COMMITTED)):
        yield from agent_violations("agent", command.agent)
    yield from event_violations("event", command.event)
    yield from screen.text("subject", command.subject, bytes_max=SUBJECT_BYTES)
    yield from screen.text("detail", command.detail, bytes_max=DETAIL_BYTES)
    yield from _attribute_violations(command.attributes)
    if command.caused_by_run_id:
        yield from _run_id_violations(command.caused_by_run_id)
    yield from screen.text("eventId", command.external_id, bytes_max=EVENT_ID_BYTES)


def _attribute_violations(attributes: dict[str, str]) -> Iterator[Violation]:
    if len(attributes) > ATTRIBUTES_MAX:
        yield Violation("attributes", f"has {len(attributes)} keys; at most {ATTRIBUTES_MAX}")
        return
    # A field names the place, not the key: the key may be the very secret.
    for number, (key, value) in enumerate(attributes.items()):
        if not key:
            yield Violation(f"attributes[{number}].key", "is required")
        yield from screen.text(f"attributes[{number}].key", key, bytes_max=ATTRIBUTE_BYTES)
        yield from screen.text(f"attributes[{number}].value", value, bytes_max=ATTRIBUTE_BYTES)


def _run_id_violations(run_id: str) -> tuple[Violation, ...]:
    if not is_id(run_id):
        return (Violation("causedByRunId", ID_RULE),)
    return screen.flaws("causedByRunId", run_id)


def _earlier(document: Document, command: RaiseEvent) -> Event | None:
    """Return the kept event that was raised under the same id."""
    if command.id:
        return document.events.get(command.id)
    if not command.external_id:
        return None
    key = (command.agent, command.external_id)
    kept = document.events.values()
    return next((event for event in kept if (event.agent, event.external_id) == key), None)


def _raised_before(document: Document, event: Event, command: RaiseEvent) -> Outcome:
    # A harness event's id is derived from what was stored, so its content is the same.
    if command.id or _content(event) == _content(command):
        return Accepted(document, event, duplicate=True)
    return Refused(
        Code.FAILED_PRECONDITION,
        f"eventId: event {event.id} was raised under it with other content; take a new eventId",
    )


def _content(raised: Event | RaiseEvent) -> tuple[object, ...]:
    return (
        raised.event,
        raised.subject,
        raised.detail,
        raised.attributes,
        raised.caused_by_run_id,
    )


def _judged(
    document: Document, command: RaiseEvent, event_id: str, chain: Chain, context: Context
) -> _Raised:
    """Judge every matching trigger, each against the state that the one before it left."""
    raised = _Raised(document)
    facts = Facts(command.attributes, command.rows)
    for playbook_id in sorted(document.playbooks):
        for trigger in document.playbooks[playbook_id].spec.triggers:
            kind = _matched(trigger, command, facts)
            if kind is not None:
                why = runs.Start(
                    trigger=kind,
                    initiator=command.actor,
                    trigger_id=trigger.id,
                    event_id=event_id,
                    chain_depth=chain.depth,
                    caused_by_run_id=chain.run_id,
                    cause=chain.cause,
                )
                raised = _met(raised, playbook_id, trigger, why, chain, context)
    return raised


def _matched(trigger: Trigger, command: RaiseEvent, facts: Facts) -> TriggerKind | None:
    match trigger.source:
        case AgentEventTrigger(agent=agent, event=event, conditions=conditions):
            same = (agent, event) == (command.agent, command.event)
            return TriggerKind.AGENT_EVENT if same and facts.meet(conditions) else None
        case CapexEventTrigger(conditions=conditions):
            same = (command.agent, command.event) == (CAPEX, SCAN_COMMITTED)
            return TriggerKind.CAPEX_EVENT if same and facts.meet(conditions) else None
        case _:
            return None


def _met(
    raised: _Raised,
    playbook_id: str,
    trigger: Trigger,
    why: runs.Start,
    chain: Chain,
    context: Context,
) -> _Raised:
    """Start the playbook, or note why not."""
    document = raised.document
    playbook = document.playbooks[playbook_id]
    skip = loopguard.judge(document, playbook, trigger, at=context.now, chain=chain)
    if skip is not None:
        return _held_back(raised, playbook_id, trigger, skip)
    here = replace(context, sender_room=context.sender_room - len(raised.effects))
    try:
        done = firing.fire(document, playbook, trigger, why, here)
    except InvariantError as error:
        return _held_back(raised, playbook_id, trigger, loopguard.poisoned(error))
    run_id = done.document.running[playbook_id].id
    return replace(
        raised,
        document=done.document,
        started=(*raised.started, StartedRun(playbook_id, trigger.id, run_id)),
        effects=(*raised.effects, *done.effects),
    )


def _held_back(
    raised: _Raised, playbook_id: str, trigger: Trigger, skip: loopguard.Skip
) -> _Raised:
    skipped = SkippedTrigger(playbook_id, trigger.id, skip.reason)
    return replace(raised, skipped=(*raised.skipped, skipped))


def _said(event: Event, context: Context) -> Entry:
    """Return the one record of the event, with the runs it started, else who was held back."""
    started = [each.run_id for each in event.started]
    held = list(dict.fromkeys(each.playbook_id for each in event.skipped))
    ids = (started or held)[:_NAMED_MAX]
    sentence = f"{event.raised_by} raised {event.event} as event {event.id}: {_came_to(event)}"
    return entry(context, event.raised_by, ACTION, (event.id, *ids), sentence)


def _came_to(event: Event) -> str:
    parts = []
    if event.started:
        first = event.started[0]
        others = len(event.started) - 1
        more = f" and {others} more" if others else ""
        parts.append(f"it started run {first.run_id} of playbook {first.playbook_id}{more}")
    if event.skipped:
        skip = event.skipped[0]
        others = len(event.skipped) - 1
        more = f" (and {others} more skipped)" if others else ""
        name = f"trigger {skip.trigger_id} of playbook {skip.playbook_id}"
        parts.append(f"it skipped {name}: {skip.reason}{more}")
    return "; ".join(parts) or "no playbook waits for it"
