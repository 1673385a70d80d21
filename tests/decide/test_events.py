"""An event starts what waits for it, skips what the guard holds back, and is one record."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from core_console.decide.commands import PausePlaybook, RaiseEvent, RunNow
from core_console.decide.decide import decide
from core_console.decide.outbox import entries_bytes
from core_console.decide.outcome import Accepted, Code, SendDispatch
from core_console.governance.decisions import Word, decision_of
from core_console.model.audit import AuditRecord
from core_console.model.document import Document
from core_console.model.event import Event, SkippedTrigger, StartedRun
from core_console.model.playbook import (
    AGENTS,
    AgentEventTrigger,
    CapexEventTrigger,
    Condition,
    ConditionOp,
    ManualTrigger,
    Playbook,
    PlaybookStatus,
    ScheduleTrigger,
    Trigger,
    TriggerState,
)
from core_console.model.run import Cause, StepRunStatus, TriggerKind
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    a_document,
    a_playbook,
    a_run,
    a_spec,
    context,
    detect,
    later,
)
from tests.decide.verdicts import accepted, fields, refused, repeated, said
from tests.fakes import CountingIds

FINDINGS = RaiseEvent(
    agent="datagov",
    event="findings.reported",
    subject="nightly",
    detail="3 connections",
    attributes={"fail_count": "3"},
    external_id="report-7",
)


PAUSED = PlaybookStatus.PAUSED


def on_findings(trigger_id: str = "findings", *conditions: Condition) -> Trigger:
    return Trigger(trigger_id, AgentEventTrigger("datagov", "findings.reported", conditions), 60)


def more_than(count: str) -> Condition:
    return Condition("fail_count", ConditionOp.GT, count)


def waiting(
    playbook_id: str = "PB-1",
    *triggers: Trigger,
    **changes: Any,  # noqa: ANN401 -- any field of Playbook
) -> Playbook:
    spec = replace(a_spec(detect(agent="judge")), triggers=triggers or (on_findings(),))
    return a_playbook(id=playbook_id, spec=spec, **changes)


def the_event(outcome: Accepted) -> Event:
    assert isinstance(outcome.answer, Event)
    assert outcome.document.events[outcome.answer.id] == outcome.answer
    return outcome.answer


def reasons(outcome: Accepted) -> list[tuple[str, str, str]]:
    skipped = the_event(outcome).skipped
    return [(each.playbook_id, each.trigger_id, each.reason) for each in skipped]


def raised(
    document: Document, command: RaiseEvent = FINDINGS, now: datetime = NOW, room: int = 30
) -> Accepted:
    return accepted(document, command, context(now=now, sender_room=room))


# What is kept of it, and what it starts.


def test_an_event_is_kept_as_it_was_raised() -> None:
    event = the_event(raised(a_document()))
    assert event == Event(
        id="PBE-1",
        at=NOW,
        agent="datagov",
        event="findings.reported",
        raised_by="agent:datagov",
        revision=11,
        external_id="report-7",
        subject="nightly",
        detail="3 connections",
        attributes={"fail_count": "3"},
    )


def test_a_matching_trigger_starts_its_playbook() -> None:
    outcome = raised(a_document(waiting()))
    assert the_event(outcome).started == (StartedRun("PB-1", "findings", "PBR-1"),)
    run = outcome.document.running["PB-1"]
    assert (run.trigger, run.trigger_id, run.event_id) == (
        TriggerKind.AGENT_EVENT,
        "findings",
        "PBE-1",
    )
    assert (run.initiator, run.started_at, run.revision) == ("agent:datagov", NOW, 11)
    assert (run.chain_depth, run.caused_by_run_id, run.cause, run.slot) == (0, "", None, None)
    (effect,) = outcome.effects
    assert isinstance(effect, SendDispatch)
    playbook = outcome.document.playbooks["PB-1"]
    assert playbook.trigger_states == {"findings": TriggerState(fired_at=NOW)}
    assert playbook.changed == 11


def test_the_run_knows_what_led_to_it() -> None:
    first = accepted(a_document(waiting("PB-9")), RunNow(AUTHOR, "PB-9")).document
    judged = replace(FINDINGS, agent="judge", event="judged")
    trigger = Trigger("judged", AgentEventTrigger("judge", "judged"), 60)
    document = replace(first, playbooks=first.playbooks | {"PB-1": waiting("PB-1", trigger)})
    ids = CountingIds()
    ids.new("PBR")
    for command, cause in (
        (judged, Cause.INFERRED),
        (replace(judged, caused_by_run_id="PBR-1"), Cause.NAMED),
    ):
        outcome = accepted(document, command, context(ids=ids))
        run = outcome.document.running["PB-1"]
        assert (run.chain_depth, run.caused_by_run_id, run.cause) == (1, "PBR-1", cause)
        event = the_event(outcome)
        assert (event.chain_depth, event.caused_by_run_id) == (1, command.caused_by_run_id)
        assert outcome.effects[0].run_id == run.id
        assert outcome.document.marks[-1].depth == 1


@pytest.mark.parametrize(
    "trigger",
    [
        Trigger("t", AgentEventTrigger("risk", "findings.reported"), 60),
        Trigger("t", AgentEventTrigger("datagov", "findings"), 60),
        Trigger("t", CapexEventTrigger(), 60),
        Trigger("t", ScheduleTrigger("0 * * * *"), 60),
        Trigger("t", ManualTrigger()),
        on_findings("t", more_than("3")),
        on_findings("t", more_than("2"), Condition("tenant", ConditionOp.NEQ, "x")),
    ],
)
@pytest.mark.parametrize("status", list(PlaybookStatus))
def test_a_playbook_whose_trigger_does_not_match_is_not_mentioned(
    trigger: Trigger, status: PlaybookStatus
) -> None:
    document = a_document(waiting("PB-1", trigger, status=status))
    outcome = raised(document)
    assert (the_event(outcome).started, the_event(outcome).skipped) == ((), ())
    assert outcome.document.playbooks == document.playbooks
    assert outcome.entries[0].target == "PBE-1"


@pytest.mark.parametrize("status", [PlaybookStatus.DRAFT, PlaybookStatus.PAUSED])
def test_a_matching_trigger_of_a_playbook_that_is_not_active_is_told(
    status: PlaybookStatus,
) -> None:
    outcome = raised(a_document(waiting(status=status)))
    assert reasons(outcome) == [("PB-1", "findings", f"playbook is {status.name}")]


def test_playbooks_are_judged_by_id_and_triggers_in_order() -> None:
    second = waiting("PB-2", on_findings("z"), on_findings("a"))
    outcome = raised(a_document(second, waiting("PB-10"), waiting("PB-1")))
    assert [each.playbook_id for each in the_event(outcome).started] == ["PB-1", "PB-10", "PB-2"]
    assert the_event(outcome).started[2].trigger_id == "z"
    held = "a run is in flight (PBR-3, WAITING_AGENT)"
    assert reasons(outcome) == [("PB-2", "a", held)]


def test_each_trigger_meets_the_guard() -> None:
    resting = waiting("PB-1")
    flying = waiting("PB-2")
    cooling = waiting(
        "PB-3", trigger_states={"findings": TriggerState(fired_at=later(minutes=-59))}
    )
    document = a_document(resting, flying, cooling, a_run(flying, id="PBR-7"))
    outcome = raised(document)
    assert [each.playbook_id for each in the_event(outcome).started] == ["PB-1"]
    assert reasons(outcome) == [
        ("PB-2", "findings", "a run is in flight (PBR-7, RUNNING)"),
        ("PB-3", "findings", "cooldown: trigger findings started a run at 2026-11-30T11:01:00Z"),
    ]


def test_a_cooldown_holds_from_start_to_start_and_a_run_by_hand_sets_none() -> None:
    by_hand = accepted(a_document(waiting()), RunNow(AUTHOR, "PB-1")).document
    assert by_hand.playbooks["PB-1"].trigger_states == {}
    document = raised(a_document(waiting())).document
    rested = replace(document, running={})
    other = replace(FINDINGS, external_id="")
    assert reasons(raised(rested, other, later(minutes=59)))
    assert the_event(raised(rested, other, later(minutes=60))).started


def test_a_broken_playbook_holds_up_no_other() -> None:
    broken = waiting("PB-1")
    broken = replace(broken, spec=replace(broken.spec, steps=()))
    outcome = raised(a_document(broken, waiting("PB-2")))
    assert [each.playbook_id for each in the_event(outcome).started] == ["PB-2"]
    ((playbook_id, _, reason),) = reasons(outcome)
    assert playbook_id == "PB-1"
    assert reason.startswith("set aside, for it breaks the console's own rules: run PBR-1 is RUN")


# The record.


def decision(outcome: Accepted) -> tuple[Word, str, str, str]:
    (entry,) = outcome.entries
    record = AuditRecord(
        1, "", entry.actor, entry.action, entry.target, entry.outcome, entry.detail,
        entry.subject, "atlas-playbooks", 1, "", "",
    )  # fmt: skip
    found = decision_of(record)
    assert found is not None
    return found.decision, found.event_id, found.playbook_id, found.run_id


def test_the_record_names_the_runs_that_were_started() -> None:
    outcome = raised(a_document(waiting("PB-1"), waiting("PB-2"), waiting("PB-3", status=PAUSED)))
    assert said(outcome) == [
        ("agent:datagov", "atlas.events.raise", "PBE-1/PBR-1/PBR-2", "success")
    ]
    assert outcome.entries[0].detail == (
        "agent:datagov raised findings.reported as event PBE-1: it started run PBR-1 of playbook "
        "PB-1 and 1 more; it skipped trigger findings of playbook PB-3: playbook is PAUSED"
    )
    assert decision(outcome) == (Word.RUN_STARTED, "PBE-1", "", "PBR-1")


def test_the_record_names_who_was_held_back_when_nothing_was_started() -> None:
    first = waiting("PB-1", on_findings("a"), on_findings("b"), status=PAUSED)
    outcome = raised(a_document(first, waiting("PB-2", status=PAUSED)))
    assert outcome.entries[0].target == "PBE-1/PB-1/PB-2"
    assert outcome.entries[0].detail == (
        "agent:datagov raised findings.reported as event PBE-1: it skipped trigger a of playbook "
        "PB-1: playbook is PAUSED (and 2 more skipped)"
    )
    assert decision(outcome) == (Word.SKIPPED, "PBE-1", "PB-1", "")


def test_the_record_of_an_event_that_nobody_waits_for_says_so_and_quotes_nothing() -> None:
    outcome = raised(a_document())
    assert outcome.entries[0].detail == (
        "agent:datagov raised findings.reported as event PBE-1: no playbook waits for it"
    )
    assert "nightly" not in repr(outcome.entries)
    assert "3 connections" not in repr(outcome.entries)


class LongIds(CountingIds):
    def new(self, prefix: str) -> str:
        """Return an id as long as a real one."""
        name, _, number = super().new(prefix).partition("-")
        return f"{name}-{number:0>16}"


def hundred(status: PlaybookStatus = PlaybookStatus.ACTIVE) -> Document:
    ids = (f"PB-{number:0>16}" for number in range(100))
    name = "t" * 64
    triggers = [on_findings(name[:-1] + letter) for letter in "abcd"]
    return a_document(*(waiting(each, *triggers, status=status) for each in ids))


@pytest.mark.parametrize("status", [PlaybookStatus.ACTIVE, PAUSED])
def test_an_event_that_matches_a_hundred_playbooks_is_one_record(status: PlaybookStatus) -> None:
    outcome = accepted(hundred(status), FINDINGS, context(ids=LongIds(), sender_room=30))
    (entry,) = outcome.entries
    ids = entry.target.split("/")
    assert len(ids) == len(set(ids)) == 101
    assert entries_bytes(outcome.entries) < 4_000, "the outbox counts on it"
    event, active = the_event(outcome), status is PlaybookStatus.ACTIVE
    assert (len(event.started), len(event.skipped)) == ((100, 300) if active else (0, 400))
    assert len(outcome.document.running) == len(event.started)
    assert len(outcome.effects) == (30 if active else 0)


def test_what_the_sender_has_no_room_for_waits_for_a_tick() -> None:
    document = a_document(*(waiting(f"PB-{number}") for number in range(1, 5)))
    runs = raised(document, room=2).document.running
    statuses = [run.steps[0].status for run in runs.values()]
    assert statuses.count(StepRunStatus.WAITING_AGENT) == 2
    assert statuses.count(StepRunStatus.PENDING) == 2


# How many are kept.


def test_the_newest_three_hundred_events_are_kept() -> None:
    events = {
        f"PBE-{number}": Event(f"PBE-{number}", NOW, "risk", "found", "agent:risk", 1)
        for number in range(1_000, 1_300)
    }
    document = raised(a_document(events=events)).document
    assert len(document.events) == 300
    assert next(iter(document.events)) == "PBE-1001"
    assert list(document.events)[-1] == "PBE-1"


def test_a_minute_of_two_hundred_events_a_second_stays_small() -> None:
    document, ids = a_document(waiting()), CountingIds()
    for second in range(60):
        for number in range(200):
            event = RaiseEvent(
                agent="datagov",
                event="findings.reported",
                detail="d" * 100,
                attributes={"fail_count": str(number)},
                external_id=f"{second}-{number}",
            )
            here = context(now=later(seconds=second), ids=ids)
            outcome = decide(document, event, here)
            assert isinstance(outcome, Accepted)
            document = outcome.document
    assert list(document.events)[-1] == "PBE-12000"
    assert len(document.events) == 300
    assert len(msgspec.json.encode(document)) < 786_432


# The same again.


def test_the_same_event_again_is_a_duplicate_and_starts_nothing() -> None:
    first = raised(a_document(waiting()))
    assert repeated(first.document, FINDINGS, context(now=later(days=9))).answer == first.answer


@pytest.mark.parametrize(
    "changes",
    [
        {"event": "findings"},
        {"subject": "other"},
        {"detail": ""},
        {"attributes": {"fail_count": "4"}},
        {"caused_by_run_id": "PBR-1"},
    ],
)
def test_other_content_under_the_same_id_is_refused(changes: dict[str, Any]) -> None:
    document = raised(a_document(waiting())).document
    reason = "eventId: event PBE-1 was raised under it with other content; take a new eventId"
    refused(document, replace(FINDINGS, **changes), Code.FAILED_PRECONDITION, reason)


def test_an_event_id_is_its_agents_own() -> None:
    document = raised(a_document()).document
    other = the_event(accepted(document, replace(FINDINGS, agent="risk"), context(ids=second())))
    assert other.id == "PBE-2"


def test_without_an_event_id_every_event_is_a_new_one() -> None:
    bare = replace(FINDINGS, external_id="")
    document = raised(a_document(), bare).document
    assert the_event(accepted(document, bare, context(ids=second()))).id == "PBE-2"


def test_an_event_that_is_no_longer_kept_may_be_raised_again() -> None:
    document = replace(raised(a_document()).document, events={})
    assert the_event(raised(document)).id == "PBE-1"


def second() -> CountingIds:
    ids = CountingIds()
    ids.new("PBE")
    return ids


def test_a_duplicate_needs_no_cause_any_more() -> None:
    named = replace(FINDINGS, caused_by_run_id="PBR-7")
    run = a_run(waiting("PB-7"), id="PBR-7")
    document = raised(a_document(run), named).document
    repeated(replace(document, running={}), named)


# Harness events.

ROWS = ({"control": "tls", "verdict": "warn"}, {"control": "owner", "verdict": "fail"})
HARNESS = replace(FINDINGS, external_id="", id="PBE-harness", rows=ROWS)


def verdict_of(control: str, verdict: str) -> Sequence[Condition]:
    return (
        more_than("2"),
        Condition("control", ConditionOp.EQ, control),
        Condition("verdict", ConditionOp.EQ, verdict),
    )


def test_one_row_with_the_events_own_attributes_starts_a_playbook() -> None:
    hit = waiting("PB-1", on_findings("hit", *verdict_of("owner", "fail")))
    miss = waiting("PB-2", on_findings("miss", *verdict_of("tls", "fail")))
    outcome = raised(a_document(hit, miss), HARNESS)
    event = the_event(outcome)
    assert (event.id, event.attributes) == ("PBE-harness", {"fail_count": "3"}), "rows are not kept"
    assert [each.playbook_id for each in event.started] == ["PB-1"]
    assert outcome.document.running["PB-1"].event_id == "PBE-harness"


def test_a_harness_event_is_taken_once() -> None:
    first = raised(a_document(waiting()), HARNESS)
    assert repeated(first.document, HARNESS, context(now=later(hours=9))).answer == first.answer
    repeated(first.document, replace(HARNESS, detail="told in other words"))


def test_an_agent_cannot_take_a_harness_events_id_before_it() -> None:
    document = raised(a_document(), replace(FINDINGS, external_id="PBE-harness")).document
    assert the_event(raised(document, HARNESS)).id == "PBE-harness"


def test_an_explicit_event_with_a_harness_events_name_matches_like_it() -> None:
    explicit = replace(FINDINGS, attributes={"fail_count": "3", **ROWS[1]})
    document = a_document(waiting("PB-1", on_findings("hit", *verdict_of("owner", "fail"))))
    assert the_event(raised(document, explicit)).started


COMMIT = RaiseEvent(
    agent="capex",
    event="scan.committed",
    attributes={"critical": "1", "dq": "0.9750"},
    id="PBE-ingest",
    rows=({"rule_id": "CP-001"}, {"rule_id": "CP-007"}),
    committed_by=SECOND,
)


def test_a_committed_ingest_starts_a_run_in_the_name_of_who_committed() -> None:
    conditions = (
        Condition("rule_id", ConditionOp.EQ, "CP-007"),
        Condition("dq", ConditionOp.GTE, "0.975"),
    )
    document = a_document(waiting("PB-1", Trigger("ingest", CapexEventTrigger(conditions), 60)))
    outcome = raised(document, COMMIT)
    run = outcome.document.running["PB-1"]
    assert (run.trigger, run.initiator) == (TriggerKind.CAPEX_EVENT, SECOND)
    assert (run.chain_depth, run.cause) == (0, None)
    assert the_event(outcome).raised_by == SECOND
    assert said(outcome)[0][0] == SECOND


@pytest.mark.parametrize("changes", [{"id": ""}, {"event": "scan.started"}])
def test_no_agent_speaks_for_the_capex_engine(changes: dict[str, str]) -> None:
    refused(
        a_document(), replace(COMMIT, **changes), Code.INVALID_ARGUMENT, f"agent: {NOT_OF_THE_SIX}"
    )


# Every field that is refused has its sentence.

NOT_OF_THE_SIX = f"is not one of the six agents: {', '.join(AGENTS)}"
EVENT_RULE = "is not 1 to 64 of a-z 0-9 . _ -"
CREDENTIAL = "holds what looks like a credential; remove it"
CONTROL = "holds a control character; remove it"
ID_RULE = "is not 1 to 64 of A-Z a-z 0-9 . _ - (and not . or ..)"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"agent": "capex"}, f"agent: {NOT_OF_THE_SIX}"),
        ({"agent": "schedule"}, f"agent: {NOT_OF_THE_SIX}"),
        ({"agent": ""}, f"agent: {NOT_OF_THE_SIX}"),
        ({"event": ""}, f"event: {EVENT_RULE}"),
        ({"event": "e" * 65}, f"event: {EVENT_RULE}"),
        ({"event": "Found"}, f"event: {EVENT_RULE}"),
        ({"event": "a b"}, f"event: {EVENT_RULE}"),
        ({"event": "found\n"}, f"event: {EVENT_RULE}"),
        ({"event": "ghs_x"}, f"event: {CREDENTIAL}"),
        ({"subject": "é" * 128 + "e"}, "subject: has 257 bytes; at most 256"),
        ({"subject": "a\nb"}, f"subject: {CONTROL}"),
        ({"subject": "AKIAX"}, f"subject: {CREDENTIAL}"),
        ({"detail": "d" * 501}, "detail: has 501 bytes; at most 500"),
        ({"detail": "a\u202eb"}, "detail: holds a bidi control character; remove it"),
        (
            {"attributes": {str(key): "" for key in range(17)}},
            "attributes: has 17 keys; at most 16",
        ),
        ({"attributes": {"": "x"}}, "attributes[0].key: is required"),
        ({"attributes": {"k" * 257: ""}}, "attributes[0].key: has 257 bytes; at most 256"),
        ({"attributes": {"a": "", "ghs_x": ""}}, f"attributes[1].key: {CREDENTIAL}"),
        ({"attributes": {"a": "v" * 257}}, "attributes[0].value: has 257 bytes; at most 256"),
        ({"attributes": {"a": "\0"}}, f"attributes[0].value: {CONTROL}"),
        (
            {"attributes": {"a": "\ud800"}},
            "attributes[0].value: is not valid Unicode; send it as UTF-8",
        ),
        ({"caused_by_run_id": "PBR 1"}, f"causedByRunId: {ID_RULE}"),
        ({"caused_by_run_id": "r" * 65}, f"causedByRunId: {ID_RULE}"),
        ({"caused_by_run_id": ".."}, f"causedByRunId: {ID_RULE}"),
        ({"caused_by_run_id": "ghs_x"}, f"causedByRunId: {CREDENTIAL}"),
        ({"external_id": "e" * 65}, "eventId: has 65 bytes; at most 64"),
        ({"external_id": "a\x7f"}, f"eventId: {CONTROL}"),
    ],
)
def test_a_bad_field_is_refused_by_name(changes: dict[str, Any], reason: str) -> None:
    refused(a_document(waiting()), replace(FINDINGS, **changes), Code.INVALID_ARGUMENT, reason)


def test_every_bad_field_is_told() -> None:
    bad = RaiseEvent(
        agent="x",
        event="X",
        subject="\0",
        detail="\0",
        attributes={"\0": "\0"},
        caused_by_run_id="\0",
        external_id="\0",
    )
    reason = f"agent: {NOT_OF_THE_SIX} (and 7 more)"
    outcome = refused(a_document(), bad, Code.INVALID_ARGUMENT, reason)
    assert fields(outcome) == [
        "agent",
        "event",
        "subject",
        "detail",
        "attributes[0].key",
        "attributes[0].value",
        "causedByRunId",
        "eventId",
    ]


def test_every_field_may_be_as_long_as_its_bound() -> None:
    longest = RaiseEvent(
        agent="risk",
        event="e" * 64,
        subject="s" * 256,
        detail="d" * 500,
        attributes={f"{key:0>256}": "v" * 256 for key in range(16)},
        external_id="i" * 64,
    )
    raised(a_document(), longest)


def test_an_unknown_cause_is_not_found() -> None:
    reason = "causedByRunId: run PBR-9 does not exist, or is no longer kept"
    named = replace(FINDINGS, caused_by_run_id="PBR-9")
    refused(a_document(waiting()), named, Code.NOT_FOUND, reason)


def test_a_paused_playbook_starts_nothing_until_it_is_resumed() -> None:
    paused = accepted(a_document(waiting()), PausePlaybook(AUTHOR, "PB-1")).document
    outcome = raised(paused)
    assert the_event(outcome).skipped == (SkippedTrigger("PB-1", "findings", "playbook is PAUSED"),)
