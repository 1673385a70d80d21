"""Operators start runs by hand and cancel them, each once."""

from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide.commands import CancelRun, DecideApproval, Decision, RunNow
from core_console.decide.operators import ended
from core_console.decide.outcome import Code
from core_console.model.playbook import PlaybookStatus, Step
from core_console.model.run import Call, RunStatus, StepRunStatus, TriggerKind
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    STRANGER,
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
from tests.decide.verdicts import accepted, fields, refused, repeated, said, the_run, the_step
from tests.fakes import CountingIds

PLAYBOOK = a_playbook()
ACTIVE = a_document(PLAYBOOK)
START = RunNow(AUTHOR, "PB-1", "req-1", "for the audit")
CANCEL = CancelRun(SECOND, "PBR-1", "wrong data")
GOES_ON = "a job that has already started at GitHub goes on"


def test_a_run_starts_with_a_copy_of_the_steps_and_its_first_claimed() -> None:
    outcome = accepted(ACTIVE, START)
    run = the_run(outcome)
    expected = a_run(
        PLAYBOOK, status=RunStatus.WAITING_AGENT, revision=11, note=START.note, request_id="req-1"
    )
    assert replace(run, steps=expected.steps) == expected
    assert (run.trigger, run.initiator, run.chain_depth) == (TriggerKind.MANUAL, AUTHOR, 0)
    assert tuple(each.step for each in run.steps) == PLAYBOOK.spec.steps
    assert the_step(outcome, "detect").claimed_at == NOW
    assert outcome.document.running == {"PB-1": run}
    assert said(outcome) == [(AUTHOR, "atlas.playbooks.run", "PB-1/PBR-1", "success")]
    assert outcome.entries[0].detail == (
        f"{AUTHOR} started run PBR-1 of playbook PB-1 at revision 2 "
        f"(spec sha256 {PLAYBOOK.spec_digest})"
    )


def test_a_run_by_hand_needs_no_trigger_and_no_note() -> None:
    assert PLAYBOOK.spec.triggers == ()
    accepted(ACTIVE, RunNow(AUTHOR, "PB-1"))


@pytest.mark.parametrize("status", [PlaybookStatus.DRAFT, PlaybookStatus.PAUSED])
def test_only_an_active_playbook_runs(status: PlaybookStatus) -> None:
    document = a_document(a_playbook(status=status))
    reason = f"playbook PB-1 is {status}; only an ACTIVE playbook runs"
    refused(document, START, Code.FAILED_PRECONDITION, reason)


def test_one_run_is_in_flight_at_a_time() -> None:
    document = a_document(PLAYBOOK, a_run_at(PLAYBOOK, "approve"))
    reason = "playbook PB-1 has a run in flight (PBR-1, WAITING_APPROVAL)"
    refused(document, START, Code.FAILED_PRECONDITION, reason)


def test_an_unknown_playbook_does_not_run() -> None:
    command = RunNow(AUTHOR, "PB-9", "req-1")
    refused(ACTIVE, command, Code.NOT_FOUND, "playbook PB-9 does not exist")


@pytest.mark.parametrize(
    "changes",
    [{"request_id": "r" * 64, "note": "é" * 500}, {"note": "two\nlines"}, {"request_id": ""}],
)
def test_the_texts_of_a_start_may_be_as_long_as_their_bounds(changes: dict[str, str]) -> None:
    accepted(ACTIVE, replace(START, **changes))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"request_id": "r" * 65}, "request_id: has 65 bytes; at most 64"),
        ({"request_id": "a\n"}, "request_id: holds a control character; remove it"),
        ({"note": "é" * 500 + "e"}, "note: has 1,001 bytes; at most 1,000"),
        ({"note": "ghp_x"}, "note: holds what looks like a credential; remove it"),
        (
            {"request_id": "AKIA", "note": "\0"},
            "request_id: holds what looks like a credential; remove it (and 1 more)",
        ),
    ],
)
@pytest.mark.parametrize("playbook_id", ["PB-1", "PB-9"])
def test_the_texts_of_a_start_are_screened_before_anything_else(
    changes: dict[str, str], reason: str, playbook_id: str
) -> None:
    command = replace(START, playbook_id=playbook_id, **changes)
    outcome = refused(ACTIVE, command, Code.INVALID_ARGUMENT, reason)
    assert fields(outcome) == list(changes)


def test_the_same_request_again_answers_the_same_run_in_flight_or_finished() -> None:
    started = accepted(ACTIVE, START)
    assert repeated(started.document, START).answer == started.answer
    cancelled = accepted(started.document, CANCEL)
    assert repeated(cancelled.document, START).answer == cancelled.answer


def test_the_same_request_again_is_ok_whatever_became_of_the_playbook() -> None:
    document = accepted(ACTIVE, START).document
    paused = replace(document, playbooks={"PB-1": a_playbook(status=PlaybookStatus.PAUSED)})
    repeated(paused, START)


@pytest.mark.parametrize(
    "changes", [{"playbook_id": "PB-2"}, {"note": "another"}, {"actor": SECOND}]
)
def test_a_request_id_is_not_used_again_for_something_else(changes: dict[str, Any]) -> None:
    document = accepted(a_document(PLAYBOOK, a_playbook(id="PB-2")), START).document
    reason = (
        "request_id: run PBR-1 was started under it with another playbook, note or caller; "
        "take a new request_id"
    )
    refused(document, replace(START, **changes), Code.FAILED_PRECONDITION, reason)


def test_without_a_request_id_each_call_is_a_new_run() -> None:
    ids = CountingIds()
    bare = RunNow(AUTHOR, "PB-1")
    first = accepted(ACTIVE, bare, context(ids=ids))
    ended_first = accepted(first.document, CANCEL)
    second = accepted(ended_first.document, bare, context(ids=ids))
    assert the_run(second).id == "PBR-2"


@pytest.mark.parametrize("step_id", ["detect", "approve", "notify"])
def test_cancelling_ends_the_current_step_and_skips_the_later_ones(step_id: str) -> None:
    before = a_run_at(PLAYBOOK, step_id)
    outcome = accepted(a_document(PLAYBOOK, before), CANCEL, context(now=later(days=30)))
    run = the_run(outcome)
    index = [each.step.id for each in run.steps].index(step_id)
    assert (run.status, run.finished_at) == (RunStatus.CANCELLED, later(days=30))
    assert run.detail == f"cancelled by {SECOND}; {GOES_ON}"
    assert run.steps[:index] == before.steps[:index]
    assert run.steps[index] == replace(
        before.steps[index],
        status=StepRunStatus.CANCELLED,
        finished_at=later(days=30),
        decided_by=SECOND,
        decision_note="wrong data",
    )
    assert {each.status for each in run.steps[index + 1 :]} <= {StepRunStatus.SKIPPED}
    assert said(outcome) == [
        (SECOND, "atlas.playbooks.run.cancel", f"PB-1/PBR-1/{step_id}", "success"),
        ("system:engine", "atlas.playbooks.run.end", "PB-1/PBR-1", "success"),
    ]
    assert outcome.entries[0].detail == (
        f"{SECOND} cancelled run PBR-1 of playbook PB-1; {GOES_ON}"
    )
    assert outcome.effects == ()
    assert (outcome.document.running, list(outcome.document.finished)) == ({}, ["PBR-1"])


def test_a_run_whose_step_is_not_claimed_yet_can_be_cancelled() -> None:
    outcome = accepted(a_document(PLAYBOOK, a_run(PLAYBOOK)), CANCEL)
    assert the_step(outcome, "detect").status is StepRunStatus.CANCELLED
    assert the_step(outcome, "detect").claimed_by == ""


@pytest.mark.parametrize(
    ("note", "reason"),
    [
        ("", "note: is required; write why"),
        (" \n", "note: is required; write why"),
        ("n" * 1001, "note: has 1,001 bytes; at most 1,000"),
        ("ghs_x", "note: holds what looks like a credential; remove it"),
    ],
)
@pytest.mark.parametrize("run_id", ["PBR-1", "PBR-9"])
def test_a_cancellation_says_why(note: str, reason: str, run_id: str) -> None:
    document = a_document(PLAYBOOK, a_run_at(PLAYBOOK, "detect"))
    refused(document, CancelRun(SECOND, run_id, note), Code.INVALID_ARGUMENT, reason)


@pytest.mark.parametrize(
    ("run_id", "shown"),
    [("PBR-9", "run PBR-9"), ("", "a run of that id"), ("ghp_x", "a run of that id")],
)
def test_an_unknown_run_is_not_found(run_id: str, shown: str) -> None:
    reason = f"{shown} does not exist, or is no longer kept"
    refused(ACTIVE, replace(CANCEL, run_id=run_id), Code.NOT_FOUND, reason)


def test_a_cancellation_may_be_told_in_lines() -> None:
    document = a_document(PLAYBOOK, a_run_at(PLAYBOOK, "detect"))
    outcome = accepted(document, replace(CANCEL, note="two\nlines" + "é" * 495))
    assert the_step(outcome, "detect").decision_note.startswith("two\nlines")


def test_the_same_person_may_cancel_twice() -> None:
    document = accepted(a_document(PLAYBOOK, a_run_at(PLAYBOOK, "notify")), CANCEL).document
    repeated(document, replace(CANCEL, note="in other words"))


def test_another_person_is_told_who_cancelled_and_when() -> None:
    document = accepted(a_document(PLAYBOOK, a_run_at(PLAYBOOK, "notify")), CANCEL).document
    reason = f"run PBR-1 is CANCELLED (by {SECOND} at 2026-11-30T12:00:00Z)"
    refused(document, replace(CANCEL, actor=STRANGER), Code.FAILED_PRECONDITION, reason)


def test_a_cancelled_run_is_not_taken_for_the_approvers_repetition() -> None:
    """The second operator approved a step of it; the stranger cancelled the run."""
    document = a_document(PLAYBOOK, a_run_at(PLAYBOOK, "notify"))
    cancelled = accepted(document, replace(CANCEL, actor=STRANGER)).document
    reason = f"run PBR-1 is CANCELLED (by {STRANGER} at 2026-11-30T12:00:00Z)"
    refused(cancelled, CANCEL, Code.FAILED_PRECONDITION, reason)


def test_whoever_rejected_has_not_cancelled() -> None:
    reject = DecideApproval(SECOND, "PBR-1", "approve", Decision.REJECT, "no")
    document = accepted(a_document(PLAYBOOK, a_run_at(PLAYBOOK, "approve")), reject).document
    reason = f"run PBR-1 is REJECTED (by {SECOND} at 2026-11-30T12:00:00Z)"
    refused(document, CANCEL, Code.FAILED_PRECONDITION, reason)


@pytest.mark.parametrize(
    ("step_id", "changes", "who"),
    [
        ("detect", {"status": StepRunStatus.FAILED, "conclusion": "failure"}, "agent:datagov"),
        ("detect", {"status": StepRunStatus.FAILED, "call": Call.REFUSED}, "system:engine"),
        ("detect", {"status": StepRunStatus.TIMED_OUT}, "system:ticker"),
        ("approve", {"status": StepRunStatus.EXPIRED}, "system:ticker"),
        ("approve", {"status": StepRunStatus.REJECTED, "decided_by": SECOND}, SECOND),
        ("notify", {"status": StepRunStatus.SUCCEEDED}, "system:engine"),
    ],
)
def test_a_finished_run_tells_who_ended_it_and_when(
    step_id: str, changes: dict[str, Any], who: str
) -> None:
    run = a_run_at(PLAYBOOK, step_id)
    steps = tuple(
        replace(each, finished_at=NOW, **changes) if each.step.id == step_id else each
        for each in run.steps
    )
    finished = replace(run, steps=steps, status=RunStatus.FAILED, finished_at=NOW)
    assert ended(finished) == f"by {who} at 2026-11-30T12:00:00Z"
    reason = f"run PBR-1 is FAILED (by {who} at 2026-11-30T12:00:00Z)"
    refused(a_document(PLAYBOOK, finished), CANCEL, Code.FAILED_PRECONDITION, reason)


@pytest.mark.parametrize(("step", "overdue"), [(detect(minutes=5), 5), (approve(hours=1), 60)])
def test_an_overdue_run_can_be_cancelled_until_its_end_is_written(step: Step, overdue: int) -> None:
    playbook = a_playbook(spec=a_spec(step, notify()))
    document = a_document(playbook, a_run_at(playbook, step.id))
    outcome = accepted(document, CANCEL, context(now=later(minutes=overdue)))
    assert the_run(outcome).status is RunStatus.CANCELLED
