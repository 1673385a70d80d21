"""What a tick does about slots: of those since the last, only the newest may start a run.

Owns the rule of slots (contract, section 5). A slot that starts a run is told by the run; one
that starts nothing is told by an event. `slot_done` moves in the swap that fires or skips and
never moves back, so a clock that jumps back fires nothing twice. A trigger whose cron cannot be
worked out is skipped with its reason and holds up no other.
"""

from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from core_console.decide import events, firing, loopguard, runs, slots
from core_console.decide.context import Context
from core_console.decide.loopguard import Skip
from core_console.decide.outbox import OUTBOX_BYTES_MAX, entries_bytes, outbox_bytes
from core_console.decide.outcome import Accepted, Effect
from core_console.decide.record import entry, utc_seconds
from core_console.model.audit import Entry
from core_console.model.document import Document
from core_console.model.event import FIRST_CAUSE, Event, SkippedTrigger
from core_console.model.faults import InvariantError
from core_console.model.playbook import Playbook, PlaybookStatus, ScheduleTrigger, Trigger
from core_console.model.run import TriggerKind

AGENT = "schedule"
EVENT = "slot"

_BROKEN_AGAIN_AFTER = timedelta(hours=1)
"""A schedule fires at most once an hour, so a broken one is told of at most once an hour."""

_BROKEN = "cron"


class _Done(Struct, frozen=True, gc=False):
    """What was done about slots so far."""

    document: Document
    entries: tuple[Entry, ...] = ()
    effects: tuple[Effect, ...] = ()


def fire_due(document: Document, context: Context) -> Accepted:
    """Fire or skip every slot that is due, as far as the outbox has room for the records.

    What finds no room stays due: its slots are looked at again by the next tick.
    """
    done = _Done(document)
    room_bytes = OUTBOX_BYTES_MAX - outbox_bytes(document)
    for playbook_id in sorted(document.playbooks):
        for trigger in document.playbooks[playbook_id].spec.triggers:
            if room_bytes <= 0:
                break
            told = len(done.entries)
            done = _looked_at(done, playbook_id, trigger, context)
            room_bytes -= entries_bytes(done.entries[told:])
    return Accepted(done.document, None, done.entries, done.effects)


def next_slots(playbook: Playbook, *, now: datetime, count: int = 5) -> tuple[datetime, ...]:
    """Return the next `count` slots of all the playbook's schedules, whatever its status is.

    A schedule whose cron cannot be worked out has none.
    """
    found: set[datetime] = set()
    for trigger in playbook.spec.triggers:
        if isinstance(trigger.source, ScheduleTrigger):
            try:
                found.update(slots.upcoming(trigger.source.cron, now=now, count=count))
            except slots.SlotError:
                continue
    return tuple(sorted(found)[:count])


def _looked_at(done: _Done, playbook_id: str, trigger: Trigger, context: Context) -> _Done:
    playbook = done.document.playbooks[playbook_id]
    if not isinstance(trigger.source, ScheduleTrigger):
        return done
    if playbook.status is not PlaybookStatus.ACTIVE:
        return done
    since = _since(playbook, trigger, context)
    try:
        due = slots.due(trigger.source.cron, since=since, now=context.now)
    except slots.SlotError as error:
        if context.now - since < _BROKEN_AGAIN_AFTER:
            return done
        skip = Skip(f"its slots cannot be worked out ({error})", _BROKEN)
        return _skipped(done, playbook_id, trigger, context.now, skip, context)
    return done if due is None else _met(done, playbook_id, trigger, due, context)


def _since(playbook: Playbook, trigger: Trigger, context: Context) -> datetime:
    """Return after which instant slots count: a playbook that became ACTIVE starts from then."""
    state = firing.state_of(playbook, trigger)
    return state.slot_done or playbook.switched_at or context.now


def _met(
    done: _Done, playbook_id: str, trigger: Trigger, due: slots.Due, context: Context
) -> _Done:
    """Put the newest slot to the guard unless it is too old; those before it are missed."""
    if context.now - due.newest > context.catch_up:
        skip = _missed(due.count, due.first, due.newest)
        return _skipped(done, playbook_id, trigger, due.newest, skip, context)
    if due.passed is not None:
        skip = _missed(due.count - 1, due.first, due.passed)
        done = _skipped(done, playbook_id, trigger, due.passed, skip, context)
    playbook = done.document.playbooks[playbook_id]
    held = loopguard.judge(done.document, playbook, trigger, at=due.newest, chain=FIRST_CAUSE)
    if held is not None:
        return _skipped(done, playbook_id, trigger, due.newest, held, context)
    try:
        return _fired(done, playbook_id, trigger, due.newest, context)
    except InvariantError as error:
        skip = loopguard.poisoned(error)
        return _skipped(done, playbook_id, trigger, due.newest, skip, context)


def _missed(count: int, first: datetime, last: datetime) -> Skip:
    return Skip(f"missed: {count} slots, {utc_seconds(first)} to {utc_seconds(last)}")


def _fired(
    done: _Done, playbook_id: str, trigger: Trigger, slot: datetime, context: Context
) -> _Done:
    document = _with_done(done.document, playbook_id, trigger, slot)
    playbook = document.playbooks[playbook_id]
    why = runs.Start(
        trigger=TriggerKind.SCHEDULE, initiator=runs.TICKER, trigger_id=trigger.id, slot=slot
    )
    here = replace(context, sender_room=context.sender_room - len(done.effects))
    fired = firing.fire(document, playbook, trigger, why, here)
    run = fired.document.running[playbook_id]
    sentence = (
        f"slot {utc_seconds(slot)} of trigger {trigger.id} started run {run.id} of playbook "
        f"{playbook_id} at revision {playbook.revision} (spec sha256 {playbook.spec_digest})"
    )
    said = entry(context, runs.TICKER, "atlas.playbooks.run.start", runs.ids_of(run), sentence)
    return _Done(fired.document, (*done.entries, said), (*done.effects, *fired.effects))


def _skipped(
    done: _Done, playbook_id: str, trigger: Trigger, slot: datetime, skip: Skip, context: Context
) -> _Done:
    """Keep the skip as an event; the very same one again is counted on the event that it made.

    Each skipped slot is a record of its own, for each is a decision.
    """
    document = _with_done(done.document, playbook_id, trigger, slot)
    skipped = SkippedTrigger(playbook_id, trigger.id, skip.reason)
    event = _again(document, skipped, slot, skip.held_by) or Event(
        id=context.ids.new("PBE"),
        at=context.now,
        agent=AGENT,
        event=EVENT,
        raised_by=runs.TICKER,
        revision=document.revision + 1,
        subject=trigger.id,
        attributes=_attributes(slot, skip.held_by),
        skipped=(skipped,),
    )
    sentence = (
        f"slot {utc_seconds(slot)} started nothing (event {event.id}): it skipped trigger "
        f"{trigger.id} of playbook {playbook_id}: {skip.reason}"
    )
    said = entry(context, runs.TICKER, events.ACTION, (event.id, playbook_id), sentence)
    return replace(done, document=events.keep(document, event), entries=(*done.entries, said))


def _attributes(slot: datetime, held_by: str) -> dict[str, str]:
    told = {"slot": utc_seconds(slot)}
    return told | {"held_by": held_by} if held_by else told


def _again(
    document: Document, skipped: SkippedTrigger, slot: datetime, held_by: str
) -> Event | None:
    """Return the trigger's newest skip counted once more, None when another thing held it."""
    if not held_by:
        return None
    newest = next(
        (event for event in reversed(document.events.values()) if _is_skip_of(event, skipped)),
        None,
    )
    if newest is None or newest.attributes.get("held_by") != held_by:
        return None
    return replace(
        newest,
        skipped=(skipped,),
        count=newest.count + 1,
        attributes=newest.attributes | {"last_slot": utc_seconds(slot)},
        revision=document.revision + 1,
    )


def _is_skip_of(event: Event, skipped: SkippedTrigger) -> bool:
    return (
        event.agent == AGENT
        and event.subject == skipped.trigger_id
        and any(each.playbook_id == skipped.playbook_id for each in event.skipped)
    )


def _with_done(document: Document, playbook_id: str, trigger: Trigger, slot: datetime) -> Document:
    playbook = document.playbooks[playbook_id]
    state = replace(firing.state_of(playbook, trigger), slot_done=slot)
    return firing.remember(document, playbook, trigger, state)
