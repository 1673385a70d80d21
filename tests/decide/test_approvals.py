"""The first decision of an approval wins, in time, and never by who started the run."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide.commands import CancelRun, DecideApproval, Decision
from core_console.decide.outcome import Code
from core_console.model.document import Document
from core_console.model.playbook import RequireApproval
from core_console.model.run import Call, RunStatus, StepRunStatus
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    STRANGER,
    a_document,
    a_playbook,
    a_run_at,
    a_spec,
    a_step,
    approve,
    context,
    later,
    notify,
)
from tests.decide.verdicts import accepted, refused, repeated, said, the_run, the_step

PLAYBOOK = a_playbook()
APPROVE = DecideApproval(SECOND, "PBR-1", "approve", Decision.APPROVE)
REJECT = DecideApproval(SECOND, "PBR-1", "approve", Decision.REJECT, "not now")
EXPIRED = "the approval expired at 2026-12-03T12:00:00Z"


def waiting(approver: str = "", **changes: Any) -> Document:  # noqa: ANN401 -- any field of Run
    """Return a document whose run waits for the approval since now, for 72 hours."""
    playbook = a_playbook(
        spec=a_spec(approve("approve", approver=approver), notify(), approve("last"))
    )
    return a_document(playbook, a_run_at(playbook, "approve", **changes))


def test_an_approval_goes_on_to_the_next_step() -> None:
    outcome = accepted(waiting(), replace(APPROVE, note="looks\ngood"))
    step_run = the_step(outcome, "approve")
    assert (step_run.status, step_run.finished_at) == (StepRunStatus.SUCCEEDED, NOW)
    assert (step_run.decided_by, step_run.decision_note) == (SECOND, "looks\ngood")
    assert the_step(outcome, "notify").call is Call.PENDING
    assert the_run(outcome).status is RunStatus.RUNNING
    assert len(outcome.effects) == 1
    assert said(outcome) == [
        (SECOND, "atlas.playbooks.approval.decide", "PB-1/PBR-1/approve", "success")
    ]
    assert outcome.entries[0].detail == f"approved by {SECOND}: step approve of run PBR-1"


def test_the_approval_of_the_last_step_ends_the_run() -> None:
    playbook = a_playbook(spec=a_spec(approve()))
    outcome = accepted(a_document(playbook, a_run_at(playbook, "approve")), APPROVE)
    run = the_run(outcome)
    assert (run.status, run.finished_at, run.detail) == (RunStatus.SUCCEEDED, NOW, "")
    assert said(outcome)[1] == (
        "system:engine",
        "atlas.playbooks.run.end",
        "PB-1/PBR-1",
        "success",
    )


def test_a_rejection_ends_the_run() -> None:
    outcome = accepted(waiting(), REJECT)
    run = the_run(outcome)
    assert (run.status, run.detail) == (RunStatus.REJECTED, f"rejected by {SECOND}")
    assert [each.status for each in run.steps] == [
        StepRunStatus.REJECTED,
        StepRunStatus.SKIPPED,
        StepRunStatus.SKIPPED,
    ]
    assert the_step(outcome, "approve").decision_note == "not now"
    assert outcome.effects == ()
    assert outcome.entries[0].detail == f"rejected by {SECOND}: step approve of run PBR-1"
    assert "not now" not in repr(outcome.entries)


@pytest.mark.parametrize(
    ("approver", "admins", "actor", "may"),
    [
        ("", None, STRANGER, True),
        ("", {AUTHOR, SECOND}, SECOND, True),
        ("", {AUTHOR, SECOND}, STRANGER, False),
        (STRANGER, {AUTHOR, SECOND}, STRANGER, True),
        (STRANGER, {AUTHOR, SECOND}, SECOND, True),
        (" STRANGER@example.com", {AUTHOR, SECOND}, STRANGER, True),
        ("\uff33tranger@example.com", {AUTHOR, SECOND}, STRANGER, True),
        (SECOND, {AUTHOR}, STRANGER, False),
    ],
)
def test_the_named_approver_or_any_admin_decides(
    approver: str, admins: set[str] | None, actor: str, *, may: bool
) -> None:
    document, here = waiting(approver), context(admins=admins)
    for command in (replace(APPROVE, actor=actor), replace(REJECT, actor=actor)):
        if may:
            accepted(document, command, here)
        else:
            reason = f"{actor} is neither the named approver nor an Atlas admin"
            refused(document, command, Code.PERMISSION_DENIED, reason, here)


@pytest.mark.parametrize(
    ("approver", "admins", "needed"),
    [
        ("", None, "another Atlas admin must decide it"),
        ("", {AUTHOR, SECOND}, "another Atlas admin must decide it"),
        ("", {AUTHOR}, "another Atlas admin must decide it, and none is listed who may"),
        (AUTHOR, None, f"{AUTHOR} or another Atlas admin must decide it"),
    ],
)
def test_the_initiator_never_decides(approver: str, admins: set[str] | None, needed: str) -> None:
    reason = f"four eyes: {AUTHOR} started this run; {needed}"
    for command in (replace(APPROVE, actor=AUTHOR), replace(REJECT, actor=AUTHOR)):
        here = context(admins=admins)
        refused(waiting(approver), command, Code.PERMISSION_DENIED, reason, here)


def test_whoever_committed_the_ingest_that_started_the_run_is_its_initiator() -> None:
    reason = f"four eyes: {SECOND} started this run; another Atlas admin must decide it"
    refused(waiting(initiator=SECOND), APPROVE, Code.PERMISSION_DENIED, reason)
    accepted(waiting(initiator=SECOND), replace(APPROVE, actor=AUTHOR))


def test_anybody_entitled_decides_what_a_slot_started() -> None:
    accepted(waiting(initiator="system:ticker"), replace(APPROVE, actor=AUTHOR))


@pytest.mark.parametrize("command", [APPROVE, REJECT])
@pytest.mark.parametrize(
    ("now", "in_time"),
    [
        (later(hours=72, milliseconds=-1), True),
        (later(hours=72), False),
        (later(hours=72, milliseconds=1), False),
        (later(days=30), False),
    ],
)
def test_a_decision_at_the_deadline_is_too_late_even_before_a_tick_says_so(
    command: DecideApproval, now: datetime, *, in_time: bool
) -> None:
    if in_time:
        accepted(waiting(), command, context(now=now))
    else:
        refused(waiting(), command, Code.FAILED_PRECONDITION, EXPIRED, context(now=now))


def test_an_expired_approval_says_when_it_expired() -> None:
    run = a_run_at(PLAYBOOK, "approve")
    steps = tuple(
        replace(each, status=StepRunStatus.EXPIRED, finished_at=later(hours=73))
        if each.step.id == "approve"
        else each
        for each in run.steps
    )
    document = a_document(PLAYBOOK, replace(run, steps=steps, status=RunStatus.EXPIRED))
    refused(document, APPROVE, Code.FAILED_PRECONDITION, EXPIRED)


@pytest.mark.parametrize("command", [APPROVE, REJECT])
def test_the_same_decision_again_by_the_same_person_is_ok(command: DecideApproval) -> None:
    first = accepted(waiting(), command)
    again = repeated(first.document, replace(command, note="and again"), context(now=later(days=9)))
    assert again.answer == first.answer


def test_the_first_decision_wins_against_others_and_against_a_change_of_mind() -> None:
    approved = accepted(waiting(), APPROVE).document
    name, at = "step approve of run PBR-1", "2026-11-30T12:00:00Z"
    by = f"{name} is SUCCEEDED (approved by {SECOND} at {at})"
    for late in (replace(APPROVE, actor=STRANGER), replace(REJECT, actor=STRANGER), REJECT):
        refused(approved, late, Code.FAILED_PRECONDITION, by)
    rejected = accepted(waiting(), REJECT).document
    by = f"{name} is REJECTED (by {SECOND} at {at})"
    for late in (replace(APPROVE, actor=STRANGER), replace(REJECT, actor=STRANGER), APPROVE):
        refused(rejected, late, Code.FAILED_PRECONDITION, by)


def test_nobody_decides_after_a_cancellation() -> None:
    cancelled = accepted(waiting(), CancelRun(SECOND, "PBR-1", "stop")).document
    reason = f"step approve of run PBR-1 is CANCELLED (by {SECOND} at 2026-11-30T12:00:00Z)"
    for command in (APPROVE, REJECT):
        refused(cancelled, command, Code.FAILED_PRECONDITION, reason)
    reason = "step last of run PBR-1 is SKIPPED: it does not wait for a decision"
    command = replace(APPROVE, step_id="last")
    refused(cancelled, command, Code.FAILED_PRECONDITION, reason)


def test_an_approval_that_is_not_reached_yet_is_not_decided_in_advance() -> None:
    document = a_document(PLAYBOOK, a_run_at(PLAYBOOK, "detect"))
    reason = "step approve of run PBR-1 is PENDING: it does not wait for a decision"
    refused(document, APPROVE, Code.FAILED_PRECONDITION, reason)


def test_an_approval_that_was_set_aside_is_decided_by_nobody() -> None:
    run = a_run_at(PLAYBOOK, "approve")
    step_run = replace(run.steps[1], status=StepRunStatus.FAILED, finished_at=NOW)
    steps = (run.steps[0], step_run, run.steps[2])
    document = a_document(PLAYBOOK, replace(run, status=RunStatus.FAILED, steps=steps))
    reason = "step approve of run PBR-1 is FAILED: it does not wait for a decision"
    refused(document, APPROVE, Code.FAILED_PRECONDITION, reason)


@pytest.mark.parametrize("step_id", ["detect", "notify"])
def test_only_an_approval_is_decided(step_id: str) -> None:
    document = a_document(PLAYBOOK, a_run_at(PLAYBOOK, "approve"))
    reason = f"step {step_id} of run PBR-1 is not a require_approval step"
    command = replace(APPROVE, step_id=step_id)
    refused(document, command, Code.FAILED_PRECONDITION, reason)


@pytest.mark.parametrize(
    ("run_id", "step_id", "reason"),
    [
        ("PBR-9", "approve", "run PBR-9 does not exist, or is no longer kept"),
        ("gho_x", "approve", "a run of that id does not exist, or is no longer kept"),
        ("PBR-1", "nowhere", "step nowhere does not exist in run PBR-1"),
        ("PBR-1", "ghp_x", "a step of that id does not exist in run PBR-1"),
        ("PBR-1", "", "a step of that id does not exist in run PBR-1"),
    ],
)
def test_an_unknown_run_or_step_is_not_found(run_id: str, step_id: str, reason: str) -> None:
    command = replace(APPROVE, run_id=run_id, step_id=step_id)
    refused(waiting(), command, Code.NOT_FOUND, reason)


@pytest.mark.parametrize(
    ("decision", "note", "reason"),
    [
        (Decision.REJECT, "", "note: is required; write why"),
        (Decision.REJECT, " \t", "note: is required; write why"),
        (Decision.REJECT, "é" * 501, "note: has 1,002 bytes; at most 1,000"),
        (Decision.APPROVE, "n" * 1001, "note: has 1,001 bytes; at most 1,000"),
        (Decision.APPROVE, "\u202e", "note: holds a bidi control character; remove it"),
        (Decision.APPROVE, "xoxp-1", "note: holds what looks like a credential; remove it"),
    ],
)
@pytest.mark.parametrize("run_id", ["PBR-1", "PBR-9"])
def test_a_note_is_screened_first_and_required_to_reject(
    decision: Decision, note: str, reason: str, run_id: str
) -> None:
    command = DecideApproval(SECOND, run_id, "approve", decision, note)
    refused(waiting(), command, Code.INVALID_ARGUMENT, reason)


def test_a_note_may_be_as_long_as_its_bound() -> None:
    accepted(waiting(), replace(APPROVE, note="n" * 1000))
    accepted(waiting(), replace(REJECT, note="é" * 500))


def test_the_prompt_of_an_approval_is_no_part_of_any_record() -> None:
    playbook = a_playbook(spec=a_spec(a_step("approve", RequireApproval(72, "", "the prompt"))))
    document = a_document(playbook, a_run_at(playbook, "approve"))
    assert "the prompt" not in repr(accepted(document, REJECT).entries)
