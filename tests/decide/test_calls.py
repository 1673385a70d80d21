"""The outcome of a claimed call or scan counts once, and only in the claim's own name."""

from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide.calls import MAYBE_POSTED
from core_console.decide.commands import CancelRun, RecordCall, RecordScan, ReportStep, Tick
from core_console.decide.outcome import SendComment
from core_console.model.capex import DEFAULT_GO_LIVE, Basis, Feed, Thresholds
from core_console.model.document import Document
from core_console.model.playbook import Step
from core_console.model.run import Call, RunStatus, ScanResult, StepRunStatus
from tests.builders import (
    NOW,
    REPLICA,
    RUN_URL,
    SECOND,
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
    scan,
)
from tests.decide.verdicts import accepted, said, the_run, the_step, unchanged

DISPATCH = RecordCall("PBR-1", "detect", REPLICA, Call.ACCEPTED, "")
COMMENT = RecordCall("PBR-1", "notify", REPLICA, Call.ACCEPTED, "")
SCAN = RecordScan("PBR-1", "scan", REPLICA, "SCAN-1", {"CP-001": 3}, "")
ENDED = ("system:engine", "atlas.playbooks.run.end", "PB-1/PBR-1", "success")


def at(step_id: str, *steps: Step) -> Document:
    """Return a document whose run has that step claimed now."""
    playbook = a_playbook(spec=a_spec(*(steps or (detect(), scan(), notify(), approve()))))
    return a_document(playbook, a_run_at(playbook, step_id))


def dispatched(result: str) -> tuple[str, str, str, str]:
    return ("system:engine", "atlas.playbooks.run.dispatch", "PB-1/PBR-1/detect", result)


def notified(result: str) -> tuple[str, str, str, str]:
    return ("system:engine", "atlas.playbooks.run.notify", "PB-1/PBR-1/notify", result)


def scanned(result: str) -> tuple[str, str, str, str]:
    return ("system:engine", "atlas.playbooks.run.scan", "PB-1/PBR-1/scan", result)


@pytest.mark.parametrize(
    ("call", "detail", "words"),
    [
        (Call.ACCEPTED, "", "was accepted by GitHub"),
        (
            Call.UNKNOWN,
            "GitHub answered 502: it may have been accepted",
            "may or may not have been accepted, and is never sent again",
        ),
    ],
)
def test_a_dispatch_that_may_have_been_accepted_waits_for_its_report(
    call: Call, detail: str, words: str
) -> None:
    document = at("detect")
    outcome = accepted(document, replace(DISPATCH, call=call, detail=detail))
    before = document.running["PB-1"]
    assert the_step(outcome, "detect") == replace(before.steps[0], call=call, detail=detail)
    steps = (the_step(outcome, "detect"), *before.steps[1:])
    assert the_run(outcome) == replace(before, steps=steps, revision=11)
    assert the_run(outcome).status is RunStatus.WAITING_AGENT
    assert outcome.effects == ()
    assert said(outcome) == [dispatched("success" if call is Call.ACCEPTED else "failure")]
    assert outcome.entries[0].detail == (
        f"the dispatch of datagov for step detect of run PBR-1 {words}"
    )
    report = ReportStep("datagov", "PBR-1", "detect", "success", "", RUN_URL)
    accepted(outcome.document, report)


def test_a_refused_dispatch_fails_the_step_and_the_run() -> None:
    detail = "GitHub answered 404: install the App on the agents repository"
    outcome = accepted(at("detect"), replace(DISPATCH, call=Call.REFUSED, detail=detail))
    step_run = the_step(outcome, "detect")
    assert (step_run.status, step_run.call) == (StepRunStatus.FAILED, Call.REFUSED)
    assert (step_run.detail, step_run.finished_at) == (detail, NOW)
    run = the_run(outcome)
    assert (run.status, run.detail) == (RunStatus.FAILED, f"step detect: {detail}")
    assert {each.status for each in run.steps[1:]} == {StepRunStatus.SKIPPED}
    assert said(outcome) == [dispatched("failure"), ENDED]
    assert outcome.entries[0].detail == (
        "the dispatch of datagov for step detect of run PBR-1 was refused or not sent"
    )


def test_a_posted_comment_ends_its_step() -> None:
    outcome = accepted(at("notify"), replace(COMMENT, detail="posted as comment 5"))
    step_run = the_step(outcome, "notify")
    assert step_run.detail == "posted as comment 5"
    assert (step_run.status, step_run.call) == (StepRunStatus.SUCCEEDED, Call.ACCEPTED)
    assert the_run(outcome).status is RunStatus.WAITING_APPROVAL
    assert said(outcome) == [notified("success")]
    assert outcome.entries[0].detail == (
        "the comment for step notify of run PBR-1 was accepted by GitHub"
    )


def test_a_comment_that_may_have_been_posted_fails_and_is_never_sent_again() -> None:
    outcome = accepted(at("notify"), replace(COMMENT, call=Call.UNKNOWN, detail="a timeout"))
    step_run = the_step(outcome, "notify")
    assert MAYBE_POSTED == "the comment may have been posted: not sent again"
    assert (step_run.status, step_run.call, step_run.detail) == (
        StepRunStatus.FAILED,
        Call.UNKNOWN,
        MAYBE_POSTED,
    )
    run = the_run(outcome)
    assert (run.status, run.detail) == (RunStatus.FAILED, f"step notify: {MAYBE_POSTED}")
    assert outcome.effects == ()
    assert said(outcome) == [notified("failure"), ENDED]


def test_a_refused_comment_fails_with_what_to_fix() -> None:
    outcome = accepted(at("notify"), replace(COMMENT, call=Call.REFUSED, detail="not sent"))
    step_run = the_step(outcome, "notify")
    assert (step_run.status, step_run.detail) == (StepRunStatus.FAILED, "not sent")
    assert the_run(outcome).detail == "step notify: not sent"


@pytest.mark.parametrize("call", [Call.ACCEPTED, Call.REFUSED, Call.UNKNOWN])
@pytest.mark.parametrize("command", [DISPATCH, COMMENT])
def test_an_outcome_counts_once(command: RecordCall, call: Call) -> None:
    document = at(command.step_id)
    first = accepted(document, replace(command, call=call, detail="first"))
    for again in (Call.ACCEPTED, Call.REFUSED, Call.UNKNOWN):
        unchanged(first.document, replace(command, call=again, detail="second"))


@pytest.mark.parametrize(
    "changes",
    [
        {"claimed_by": "console-2"},
        {"claimed_by": ""},
        {"run_id": "PBR-9"},
        {"step_id": "nowhere"},
        {"step_id": "approve"},
        {"step_id": "notify"},
    ],
)
def test_an_outcome_that_nobody_awaits_changes_nothing(changes: dict[str, Any]) -> None:
    unchanged(at("detect"), replace(DISPATCH, **changes))
    unchanged(at("detect"), replace(replace(SCAN, step_id="detect"), **changes))


def test_nobody_speaks_for_a_step_that_is_not_claimed() -> None:
    playbook = a_playbook()
    document = a_document(playbook, a_run(playbook))
    unchanged(document, replace(DISPATCH, claimed_by=""))


@pytest.mark.parametrize("command", [DISPATCH, COMMENT])
@pytest.mark.parametrize("call", [Call.ACCEPTED, Call.REFUSED, Call.UNKNOWN])
def test_the_outcome_of_a_cancelled_steps_call_is_kept_and_moves_nothing(
    command: RecordCall, call: Call
) -> None:
    cancelled = accepted(at(command.step_id), CancelRun(SECOND, "PBR-1", "stop")).document
    before = cancelled.finished["PBR-1"]
    outcome = accepted(cancelled, replace(command, call=call, detail="late"))
    run = outcome.document.finished["PBR-1"]
    step_run = the_step(outcome, command.step_id)
    index = before.steps.index(
        next(each for each in before.steps if each.step.id == command.step_id)
    )
    assert step_run == replace(before.steps[index], call=call)
    assert (run.status, run.finished_at) == (RunStatus.CANCELLED, before.finished_at)
    assert outcome.document.playbooks == cancelled.playbooks
    assert len(outcome.entries) == 1
    unchanged(outcome.document, replace(command, call=call))


def test_an_outcome_after_the_claim_was_abandoned_is_ignored() -> None:
    for command in (DISPATCH, COMMENT):
        late = context(now=later(minutes=2))
        abandoned = accepted(at(command.step_id), Tick(), late).document
        unchanged(abandoned, command, late)


def test_an_outcome_never_reaches_the_next_step_of_the_run() -> None:
    document = at("first", notify("first"), notify("second"))
    first = accepted(document, replace(COMMENT, step_id="first"))
    assert first.effects == (SendComment("PBR-1", "second", "core", 7),)
    unchanged(first.document, replace(COMMENT, step_id="first"))
    assert the_step(first, "second").call is Call.PENDING


def test_a_scan_keeps_what_it_found_and_goes_on() -> None:
    outcome = accepted(at("scan"), SCAN)
    step_run = the_step(outcome, "scan")
    assert (step_run.status, step_run.detail) == (StepRunStatus.SUCCEEDED, "")
    assert step_run.scan == ScanResult("SCAN-1", {"CP-001": 3})
    assert (the_run(outcome).status, the_run(outcome).detail) == (RunStatus.RUNNING, "")
    assert outcome.effects == (SendComment("PBR-1", "notify", "core", 7),)
    assert said(outcome) == [scanned("success")]
    assert outcome.entries[0].detail == "the scan for step scan of run PBR-1 was recorded as SCAN-1"


@pytest.mark.parametrize("scan_run_id", ["", "SCAN-1"])
def test_a_failed_scan_fails_the_step_and_the_run(scan_run_id: str) -> None:
    failure = "no CapEx feed is loaded"
    outcome = accepted(at("scan"), replace(SCAN, scan_run_id=scan_run_id, failure=failure))
    step_run = the_step(outcome, "scan")
    assert (step_run.status, step_run.detail) == (StepRunStatus.FAILED, failure)
    assert (step_run.scan is None) is (scan_run_id == "")
    run = the_run(outcome)
    assert (run.status, run.detail) == (RunStatus.FAILED, f"step scan: {failure}")
    assert said(outcome) == [scanned("failure"), ENDED]
    known = f" as {scan_run_id}" if scan_run_id else ""
    sentence = f"the scan for step scan of run PBR-1 failed{known}: {failure}"
    assert outcome.entries[0].detail == sentence


def test_a_scan_that_compared_keeps_what_it_was_compared_with_and_on_what_basis() -> None:
    basis = Basis(DEFAULT_GO_LIVE, Thresholds(), (Feed.SPEND,))
    compared = replace(SCAN, detail="they did not rise", baseline={"CP-001": 4}, basis=basis)
    step_run = the_step(accepted(at("scan"), compared), "scan")
    assert step_run.detail == "they did not rise"
    assert step_run.scan == ScanResult("SCAN-1", {"CP-001": 3}, {"CP-001": 4}, basis)


def test_a_scan_counts_once_and_never_after_its_run_ended() -> None:
    for end in (
        accepted(at("scan"), SCAN),
        accepted(at("scan"), replace(SCAN, failure="it failed")),
        accepted(at("scan"), CancelRun(SECOND, "PBR-1", "stop")),
        accepted(at("scan"), Tick(), context(now=later(minutes=10))),
    ):
        unchanged(end.document, SCAN)


def test_a_calls_outcome_is_not_taken_for_a_scans_or_the_other_way() -> None:
    unchanged(at("scan"), replace(DISPATCH, step_id="scan"))
    unchanged(at("approve"), replace(DISPATCH, step_id="approve"))
    unchanged(at("detect"), replace(SCAN, step_id="detect"))
