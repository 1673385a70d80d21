"""A slot fires once, late at most by the catch-up, and every slot that starts nothing is told."""

from datetime import UTC, datetime, timedelta
from random import Random  # noqa: TID251 -- seeded: the jitter of a simulated year
from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide import outbox, schedule, slots
from core_console.decide.commands import (
    RecordCall,
    Tick,
)
from core_console.decide.decide import decide
from core_console.decide.outcome import Accepted
from core_console.governance.decisions import Word, decision_of
from core_console.model.audit import AuditRecord, Entry
from core_console.model.document import Document
from core_console.model.event import Event, SkippedTrigger
from core_console.model.playbook import (
    AgentEventTrigger,
    ManualTrigger,
    Playbook,
    PlaybookStatus,
    ScheduleTrigger,
    Trigger,
    TriggerState,
)
from core_console.model.run import Call, RunStatus, StepRunStatus, TriggerKind
from tests.builders import (
    NOW,
    REPLICA,
    a_document,
    a_playbook,
    a_run,
    a_run_at,
    a_spec,
    approve,
    context,
    detect,
    later,
    notify,
)
from tests.decide.verdicts import accepted, decided, said, unchanged
from tests.fakes import CountingIds

TICKER = "system:ticker"
STARTED = (TICKER, "atlas.playbooks.run.start", "PB-1/PBR-1", "success")


def hourly(trigger_id: str = "hourly", cron: str = "0 * * * *", cooldown: int = 60) -> Trigger:
    return Trigger(trigger_id, ScheduleTrigger(cron), cooldown)


def scheduled(
    *triggers: Trigger,
    id: str = "PB-1",  # noqa: A002 -- the field's own name
    done: datetime = NOW,
    **changes: Any,  # noqa: ANN401 -- any field of Playbook
) -> Playbook:
    """Return an ACTIVE playbook whose schedules have seen every slot up to `done`."""
    triggers = triggers or (hourly(),)
    states = {
        each.id: TriggerState(slot_done=done)
        for each in triggers
        if isinstance(each.source, ScheduleTrigger)
    }
    spec = replace(a_spec(notify()), triggers=triggers)
    return replace(a_playbook(id=id, spec=spec, trigger_states=states), **changes)


def ticked(
    document: Document,
    now: datetime,
    *,
    ids: CountingIds | None = None,
    **changes: Any,  # noqa: ANN401 -- any field of Context
) -> Accepted:
    return accepted(document, Tick(), replace(context(now=now, ids=ids), **changes))


def the_events(document: Document) -> list[Event]:
    return list(document.events.values())


def reasons(document: Document) -> list[str]:
    return [each.reason for event in the_events(document) for each in event.skipped]


def state(document: Document, trigger_id: str = "hourly") -> TriggerState:
    return document.playbooks["PB-1"].trigger_states[trigger_id]


def rested(document: Document) -> Document:
    """Return the document with its runs over and gone."""
    return replace(document, running={})


# A slot that starts a run.


def test_a_slot_starts_a_run_and_the_run_tells_of_it() -> None:
    document = a_document(scheduled())
    unchanged(document, Tick(), context(now=later(minutes=59, seconds=59)))
    outcome = ticked(document, later(hours=1, seconds=17))
    run = outcome.document.running["PB-1"]
    assert (run.trigger, run.trigger_id, run.slot) == (
        TriggerKind.SCHEDULE,
        "hourly",
        later(hours=1),
    )
    assert (run.initiator, run.started_at) == (TICKER, later(hours=1, seconds=17))
    assert (run.chain_depth, run.event_id, run.cause) == (0, "", None)
    assert run.steps[0].status is StepRunStatus.RUNNING
    assert len(outcome.effects) == 1
    assert outcome.document.events == {}
    assert state(outcome.document) == TriggerState(later(hours=1), later(hours=1))
    assert outcome.document.playbooks["PB-1"].changed == 11
    assert said(outcome) == [STARTED]
    assert outcome.entries[0].detail == (
        "slot 2026-11-30T13:00:00Z of trigger hourly started run PBR-1 of playbook PB-1 at "
        f"revision 2 (spec sha256 {run.spec_digest})"
    )
    assert word(outcome.entries[0]) is Word.RUN_STARTED


def word(entry: Entry) -> Word | None:
    record = AuditRecord(
        1, "", entry.actor, entry.action, entry.target, entry.outcome, entry.detail,
        entry.subject, "atlas-playbooks", 1, "", "",
    )  # fmt: skip
    found = decision_of(record)
    return found.decision if found else None


def test_a_slot_fires_once() -> None:
    outcome = ticked(a_document(scheduled()), later(hours=1))
    for seconds in (0, 1, 30, 3_599):
        unchanged(rested(outcome.document), Tick(), context(now=later(hours=1, seconds=seconds)))


@pytest.mark.parametrize("status", [PlaybookStatus.DRAFT, PlaybookStatus.PAUSED])
def test_only_the_slots_of_active_playbooks_are_looked_at(status: PlaybookStatus) -> None:
    unchanged(a_document(scheduled(status=status)), Tick(), context(now=later(days=9)))


def test_only_schedules_have_slots() -> None:
    triggers = (
        Trigger("by-hand", ManualTrigger()),
        Trigger("event", AgentEventTrigger("risk", "found"), 60),
    )
    unchanged(a_document(scheduled(*triggers)), Tick(), context(now=later(days=9)))


def test_what_the_sender_has_no_room_for_waits() -> None:
    ids = [f"PB-{number}" for number in range(1, 4)]
    document = a_document(*(scheduled(id=each) for each in ids))
    outcome = ticked(document, later(hours=1), sender_room=2)
    found = [outcome.document.running[each].steps[0].status for each in ids]
    assert found == [StepRunStatus.RUNNING, StepRunStatus.RUNNING, StepRunStatus.PENDING]


def test_playbooks_are_looked_at_by_id() -> None:
    document = a_document(scheduled(id="PB-2"), scheduled(id="PB-1"))
    outcome = ticked(document, later(hours=1), sender_room=1)
    assert [effect.run_id for effect in outcome.effects] == ["PBR-1"]
    assert outcome.document.running["PB-1"].id == "PBR-1"


def test_steps_that_wait_go_before_slots_where_the_sender_has_room_for_one() -> None:
    waiting = scheduled(Trigger("by-hand", ManualTrigger()), id="PB-2")
    document = a_document(scheduled(id="PB-1"), waiting, a_run(waiting, id="PBR-9"))
    outcome = ticked(document, later(hours=1), sender_room=1)
    assert [effect.run_id for effect in outcome.effects] == ["PBR-9"]
    assert outcome.document.running["PB-1"].steps[0].status is StepRunStatus.PENDING


def test_an_overdue_run_ends_before_the_slots_are_looked_at() -> None:
    playbook = scheduled(spec=replace(a_spec(detect(minutes=60)), triggers=(hourly(),)))
    run = a_run_at(playbook, "detect", id="PBR-9")
    run = replace(run, steps=(replace(run.steps[0], call=Call.ACCEPTED),))
    outcome = ticked(a_document(playbook, run), later(hours=1))
    assert outcome.document.finished["PBR-9"].status is RunStatus.TIMED_OUT
    assert outcome.document.running["PB-1"].slot == later(hours=1)


# A slot that starts nothing.


def test_a_slot_that_the_guard_holds_back_is_an_event() -> None:
    playbook = scheduled()
    run = a_run_at(playbook, "notify", id="PBR-7")
    run = replace(run, steps=(replace(run.steps[0], claimed_at=later(hours=1)),))
    outcome = ticked(a_document(playbook, run), later(hours=1))
    (event,) = the_events(outcome.document)
    assert event == Event(
        id="PBE-1",
        at=later(hours=1),
        agent="schedule",
        event="slot",
        raised_by=TICKER,
        revision=11,
        subject="hourly",
        attributes={"slot": "2026-11-30T13:00:00Z", "held_by": "PBR-7"},
        skipped=(SkippedTrigger("PB-1", "hourly", "a run is in flight (PBR-7, RUNNING)"),),
    )
    assert state(outcome.document) == TriggerState(slot_done=later(hours=1))
    assert said(outcome) == [(TICKER, "atlas.events.raise", "PBE-1/PB-1", "success")]
    assert outcome.entries[0].detail == (
        "slot 2026-11-30T13:00:00Z started nothing (event PBE-1): it skipped trigger hourly of "
        "playbook PB-1: a run is in flight (PBR-7, RUNNING)"
    )
    assert word(outcome.entries[0]) is Word.SKIPPED


def waiting_for_approval(playbook: Playbook, run_id: str = "PBR-7") -> Document:
    run = a_run(playbook, id=run_id, status=RunStatus.WAITING_APPROVAL)
    step_run = replace(run.steps[0], step=approve(), status=StepRunStatus.WAITING_APPROVAL)
    return a_document(playbook, replace(run, steps=(step_run,)))


def test_the_same_skip_again_is_one_event_with_a_count() -> None:
    document, ids = waiting_for_approval(scheduled()), CountingIds()
    entries: list[Entry] = []
    for hour in (1, 2, 3):
        outcome = ticked(document, later(hours=hour), ids=ids)
        document, entries = outcome.document, [*entries, *outcome.entries]
    (event,) = the_events(document)
    assert (event.id, event.count, event.at) == ("PBE-1", 3, later(hours=1))
    assert event.attributes == {
        "slot": "2026-11-30T13:00:00Z",
        "last_slot": "2026-11-30T15:00:00Z",
        "held_by": "PBR-7",
    }
    assert [entry.target for entry in entries] == ["PBE-1/PB-1"] * 3, "each slot is a decision"
    other = replace(document, running=waiting_for_approval(scheduled(), "PBR-8").running)
    after = ticked(other, later(hours=4), ids=ids).document
    assert [event.count for event in the_events(after)] == [3, 1]
    back = replace(after, running=document.running)
    counted = ticked(back, later(hours=5), ids=ids).document
    assert [event.count for event in the_events(counted)] == [3, 1, 1], "another thing was between"


def test_the_same_skip_of_another_trigger_is_another_event() -> None:
    playbook = scheduled(hourly("a"), hourly("b"))
    document = ticked(waiting_for_approval(playbook), later(hours=1)).document
    assert [(event.subject, event.count) for event in the_events(document)] == [("a", 1), ("b", 1)]
    other = scheduled(hourly("a"), id="PB-2", done=later(hours=1))
    run = waiting_for_approval(other, "PBR-7").running["PB-2"]
    both = replace(
        document,
        playbooks=document.playbooks | {"PB-2": other},
        running=document.running | {"PB-2": run},
    )
    ids = CountingIds()
    _ = [ids.new("PBE") for _ in "ab"]
    after = ticked(both, later(hours=2), ids=ids).document
    assert [event.count for event in the_events(after)] == [2, 2, 1]


def test_the_newest_status_of_the_run_that_holds_is_told() -> None:
    document = ticked(waiting_for_approval(scheduled()), later(hours=1)).document
    flying = replace(document.running["PB-1"], status=RunStatus.WAITING_AGENT)
    moved = replace(document, running={"PB-1": flying})
    after = ticked(moved, later(hours=2)).document
    assert reasons(after) == ["a run is in flight (PBR-7, WAITING_AGENT)"]


def test_two_schedules_of_one_playbook_start_one_run() -> None:
    playbook = scheduled(hourly("a"), hourly("b"))
    outcome = ticked(a_document(playbook), later(hours=1))
    assert outcome.document.running["PB-1"].trigger_id == "a"
    assert reasons(outcome.document) == ["a run is in flight (PBR-1, RUNNING)"]
    assert state(outcome.document, "b").slot_done == later(hours=1)


@pytest.mark.parametrize(
    ("cooldown", "fired"),
    [(5, [1, 2, 3, 4, 5, 6]), (60, [1, 2, 3, 4, 5, 6]), (61, [1, 3, 5]), (121, [1, 4])],
)
def test_a_cooldown_counts_from_slot_to_slot_and_equal_passes(
    cooldown: int, fired: list[int]
) -> None:
    document, ids, found = a_document(scheduled(hourly(cooldown=cooldown))), CountingIds(), []
    for hour in range(1, 7):
        late = later(hours=hour, minutes=1 if hour % 2 else 3)  # when it is met says nothing
        document = ticked(rested(document), late, ids=ids).document
        found += [hour] if document.running else []
    assert found == fired
    expected = [
        "cooldown: trigger hourly started a run at "
        f"{later(hours=max(each for each in fired if each < hour)):%Y-%m-%dT%H:%M:%SZ}"
        for hour in range(2, 7)
        if hour not in fired
    ]
    assert reasons(document) == list(dict.fromkeys(expected)), "one event per run that it waits for"
    assert sum(event.count for event in the_events(document)) == len(expected)


# Slots that were missed.


@pytest.mark.parametrize(
    ("late", "fires"),
    [
        (timedelta(0), True),
        (timedelta(minutes=60), True),
        (timedelta(minutes=60, milliseconds=1), False),
    ],
)
def test_a_slot_may_be_late_by_the_catch_up_and_no_more(late: timedelta, *, fires: bool) -> None:
    document = a_document(scheduled(hourly(cron="0 6 * * *")))
    outcome = ticked(document, later(hours=18) + late)
    assert bool(outcome.document.running) is fires
    missed = "missed: 1 slots, 2026-12-01T06:00:00Z to 2026-12-01T06:00:00Z"
    assert reasons(outcome.document) == ([] if fires else [missed])
    assert state(outcome.document).slot_done == later(hours=18)


def test_the_catch_up_is_a_setting() -> None:
    document = a_document(scheduled(hourly(cron="0 6 * * *")))
    late = later(hours=18, minutes=5)
    assert not ticked(document, late, catch_up=timedelta(minutes=4)).document.running
    assert ticked(document, late, catch_up=timedelta(minutes=5)).document.running


def test_of_the_slots_since_then_only_the_newest_may_fire() -> None:
    outcome = ticked(a_document(scheduled()), later(hours=7, minutes=20))
    assert outcome.document.running["PB-1"].slot == later(hours=7)
    assert reasons(outcome.document) == [
        "missed: 6 slots, 2026-11-30T13:00:00Z to 2026-11-30T18:00:00Z"
    ]
    assert [entry.action for entry in outcome.entries] == [
        "atlas.events.raise",
        "atlas.playbooks.run.start",
    ]
    assert state(outcome.document) == TriggerState(later(hours=7), later(hours=7))


def test_slots_that_are_all_too_old_are_one_skip() -> None:
    document = a_document(scheduled(hourly(cron="0 6 * * *")))
    outcome = ticked(document, later(days=4))
    assert not outcome.document.running
    assert reasons(outcome.document) == [
        "missed: 4 slots, 2026-12-01T06:00:00Z to 2026-12-04T06:00:00Z"
    ]
    (event,) = the_events(outcome.document)
    assert event.attributes == {"slot": "2026-12-04T06:00:00Z"}
    unchanged(outcome.document, Tick(), context(now=later(days=4)))


def test_what_is_missed_twice_is_two_events() -> None:
    document, ids = a_document(scheduled(hourly(cron="0 6 * * *"))), CountingIds()
    for days in (1, 2):
        document = ticked(document, later(days=days), ids=ids).document
    assert [event.count for event in the_events(document)] == [1, 1]


# A clock that jumps.


def test_a_clock_that_jumps_back_an_hour_fires_nothing_twice() -> None:
    document = ticked(a_document(scheduled()), later(hours=2)).document
    fired = []
    for minute in range(60, 4 * 60):
        outcome = decided(rested(document), Tick(), context(now=later(minutes=minute)))
        assert isinstance(outcome, Accepted)
        document = outcome.document
        fired += [run.slot for run in document.running.values()]
    assert fired == [later(hours=3)]


def test_a_clock_that_jumps_forward_a_day_fires_each_schedule_once() -> None:
    crons = {"PB-1": "0 * * * *", "PB-2": "30 11 * * *", "PB-3": "0 0 * * *"}
    document = a_document(
        *(scheduled(hourly(cron=cron), id=playbook_id) for playbook_id, cron in crons.items())
    )
    after = ticked(document, later(days=1)).document
    fired = {playbook_id: run.slot for playbook_id, run in after.running.items()}
    assert fired == {"PB-1": later(days=1), "PB-2": later(hours=23.5)}
    unchanged(rested(after), Tick(), context(now=later(days=1)))


def test_a_schedule_fires_every_hour_of_a_year() -> None:
    start, end = datetime(2027, 1, 1, tzinfo=UTC), datetime(2028, 1, 1, tzinfo=UTC)
    chance, ids = Random(2027), CountingIds()
    document = a_document(scheduled(hourly(), done=start - timedelta(seconds=1)))
    now, fired = start - timedelta(seconds=1), []
    while True:
        # Every 150 s instead of 30 s, so that the year passes quickly; the jitter is the ticker's.
        now += timedelta(seconds=150 * chance.uniform(0.8, 1.2))
        if chance.random() < 0.003:
            now += timedelta(minutes=chance.uniform(0, 56))
        if now >= end:
            break
        outcome = decide(document, Tick(), context(now=now, ids=ids))
        assert isinstance(outcome, Accepted)
        document = outcome.document
        if document.running:
            run = document.running["PB-1"]
            fired.append(run.slot)
            done = RecordCall(run.id, "notify", REPLICA, Call.ACCEPTED, "")
            ended = decide(document, done, context(now=now, ids=ids))
            assert isinstance(ended, Accepted)
            document = ended.document
    assert fired == [start + timedelta(hours=hour) for hour in range(8_760)]
    assert document.playbooks["PB-1"].runs_succeeded == 8_760
    assert document.events == {}


# A poisoned trigger, and a chain that cannot be written.


def test_a_cron_that_cannot_be_worked_out_holds_up_no_other() -> None:
    poisoned = scheduled(hourly("bad", "61 * * * *"), id="PB-1")
    fine = scheduled(id="PB-2")
    document, ids = a_document(poisoned, fine), CountingIds()
    outcome = ticked(document, later(hours=1), ids=ids)
    assert list(outcome.document.running) == ["PB-2"]
    (reason,) = reasons(outcome.document)
    assert reason == (
        "its slots cannot be worked out (cron: the minute field must be ONE number 0-59 — "
        "a schedule fires at most once an hour)"
    )
    alone = replace(outcome.document, playbooks={"PB-1": outcome.document.playbooks["PB-1"]})
    alone = replace(alone, running={})
    unchanged(alone, Tick(), context(now=later(hours=1, minutes=59)))
    again = ticked(alone, later(hours=2), ids=ids).document
    assert [event.count for event in the_events(again)] == [2], "told at most once an hour"


def test_a_library_that_breaks_is_a_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("*")

    monkeypatch.setattr(slots, "croniter", broken)
    document = a_document(scheduled(hourly(cron="43 7 * * *")))
    assert reasons(ticked(document, later(hours=9)).document) == [
        "its slots cannot be worked out (cron: has no slot within 8 years)"
    ]


def test_a_broken_playbook_holds_up_no_other() -> None:
    broken = scheduled(id="PB-1")
    broken = replace(broken, spec=replace(broken.spec, steps=()))
    outcome = ticked(a_document(broken, scheduled(id="PB-2")), later(hours=1))
    assert list(outcome.document.running) == ["PB-2"]
    (reason,) = reasons(outcome.document)
    assert reason.startswith("set aside, for it breaks the console's own rules: run PBR-1 is RUN")


def full(document: Document, bytes_free: int) -> Document:
    one = Entry(NOW, TICKER, "a", "t", "success", "d" * 1_000, "playbook")  # type: ignore[arg-type]  # its text
    while outbox.OUTBOX_BYTES_MAX - outbox.outbox_bytes(document) > bytes_free:
        document = outbox.with_entries(document, [one])
    return document


def test_while_the_log_cannot_be_written_slots_wait_and_are_caught_up() -> None:
    document = full(a_document(scheduled()), 0)
    unchanged(document, Tick(), context(now=later(hours=1)))
    emptied = replace(document, outbox=())
    assert ticked(emptied, later(hours=1, minutes=50)).document.running["PB-1"].slot == later(
        hours=1
    )


def test_a_tick_fires_no_more_than_the_outbox_takes() -> None:
    playbooks = [scheduled(id=f"PB-{number:0>3}") for number in range(100)]
    document = full(a_document(*playbooks), 8_000)
    left = outbox.OUTBOX_BYTES_MAX - outbox.outbox_bytes(document)
    outcome = ticked(document, later(hours=1), sender_room=100)
    first = len(outcome.document.running)
    assert 0 < first < 100
    assert outbox.entries_bytes(outcome.entries[:-1]) < left
    emptied = replace(outcome.document, outbox=())
    later_on = ticked(emptied, later(hours=1, seconds=30), sender_room=100)
    assert len(later_on.document.running) == 100
    assert len(later_on.entries) == 100 - first


# What is shown.


def test_the_next_slots_are_those_of_all_schedules() -> None:
    triggers = (
        hourly("a", "30 14 * * *"),
        hourly("b", "15 */8 * * *"),
        hourly("c", "30 14 * * mon"),
        hourly("bad", "61 * * * *"),
        Trigger("by-hand", ManualTrigger()),
    )
    expected = (
        later(hours=2.5),
        later(hours=4.25),
        later(hours=12.25),
        later(hours=20.25),
        later(hours=26.5),
    )
    for status in PlaybookStatus:
        playbook = scheduled(*triggers, status=status)
        assert schedule.next_slots(playbook, now=NOW) == expected
        assert schedule.next_slots(playbook, now=NOW, count=2) == expected[:2]
    assert schedule.next_slots(scheduled(Trigger("by-hand", ManualTrigger())), now=NOW) == ()
