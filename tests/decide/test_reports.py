"""A step takes one report, from the agent that it awaits, before its deadline."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide.commands import CancelRun, RecordCall, ReportStep, RunNow, Tick
from core_console.decide.outcome import Code, Refused
from core_console.model.document import Document
from core_console.model.playbook import AGENTS
from core_console.model.run import Call, RunStatus, StepRunStatus
from tests.builders import (
    AUTHOR,
    NOW,
    REPLICA,
    RUN_URL,
    SECOND,
    a_document,
    a_playbook,
    a_run,
    a_run_at,
    a_spec,
    context,
    detect,
    later,
    notify,
)
from tests.decide.verdicts import (
    accepted,
    fields,
    refused,
    repeated,
    said,
    the_run,
    the_step,
)

PLAYBOOK = a_playbook()
REPORT = ReportStep("datagov", "PBR-1", "detect", "success", "3 findings", RUN_URL)
NAME = "step detect of run PBR-1"
ENDED = ("system:engine", "atlas.playbooks.run.end", "PB-1/PBR-1", "success")
REPORTED = ("agent:datagov", "atlas.playbooks.run.report", "PB-1/PBR-1/detect", "success")


def awaiting(call: Call = Call.ACCEPTED, minutes: int = 60) -> Document:
    """Return a document whose run awaits datagov's report, the dispatch answered so."""
    playbook = a_playbook(spec=a_spec(detect(minutes=minutes), detect("next"), notify()))
    run = a_run_at(playbook, "detect")
    first = replace(run.steps[0], call=call)
    return a_document(playbook, replace(run, steps=(first, *run.steps[1:])))


def test_success_goes_on() -> None:
    outcome = accepted(awaiting(), REPORT)
    assert the_step(outcome, "detect") == replace(
        awaiting().running["PB-1"].steps[0],
        status=StepRunStatus.SUCCEEDED,
        finished_at=NOW,
        conclusion="success",
        detail="3 findings",
        github_run_url=RUN_URL,
    )
    assert the_step(outcome, "next").status is StepRunStatus.WAITING_AGENT
    assert the_run(outcome).status is RunStatus.WAITING_AGENT
    assert said(outcome) == [REPORTED]
    assert outcome.entries[0].detail == "datagov reported success for step detect of run PBR-1"
    assert "3 findings" not in repr(outcome.entries)


@pytest.mark.parametrize("conclusion", ["failure", "cancelled", "skipped"])
def test_anything_else_fails_the_step_and_the_run(conclusion: str) -> None:
    outcome = accepted(awaiting(), replace(REPORT, conclusion=conclusion))
    run = the_run(outcome)
    assert (run.status, run.finished_at) == (RunStatus.FAILED, NOW)
    assert run.detail == f"step detect: datagov reported {conclusion}"
    assert [each.status for each in run.steps] == [
        StepRunStatus.FAILED,
        StepRunStatus.SKIPPED,
        StepRunStatus.SKIPPED,
    ]
    assert the_step(outcome, "detect").conclusion == conclusion
    assert outcome.effects == ()
    assert said(outcome) == [REPORTED, ENDED]


def test_the_report_of_the_last_step_ends_the_run() -> None:
    playbook = a_playbook(spec=a_spec(detect()))
    outcome = accepted(a_document(playbook, a_run_at(playbook, "detect")), REPORT)
    assert the_run(outcome).status is RunStatus.SUCCEEDED
    assert outcome.document.playbooks["PB-1"].runs_succeeded == 1


def test_a_report_before_the_dispatch_was_answered_is_accepted_and_proves_no_dispatch() -> None:
    outcome = accepted(awaiting(Call.PENDING), REPORT)
    assert the_step(outcome, "detect").call is Call.PENDING
    assert said(outcome) == [REPORTED]
    late = RecordCall("PBR-1", "detect", REPLICA, Call.REFUSED, "not sent")
    after = accepted(outcome.document, late)
    assert the_step(after, "detect").call is Call.REFUSED
    assert the_step(after, "detect").conclusion == "success"


def test_an_ambiguous_answer_that_comes_after_the_report_is_settled_by_it() -> None:
    reported = accepted(awaiting(Call.PENDING), REPORT).document
    late = RecordCall("PBR-1", "detect", REPLICA, Call.UNKNOWN, "GitHub did not answer")
    outcome = accepted(reported, late)
    assert the_step(outcome, "detect").call is Call.ACCEPTED
    assert outcome.entries[0].outcome == "success"


def test_a_report_settles_a_dispatch_that_nobody_knew_to_be_accepted() -> None:
    outcome = accepted(awaiting(Call.UNKNOWN), REPORT)
    assert the_step(outcome, "detect").call is Call.ACCEPTED
    assert said(outcome) == [REPORTED]


@pytest.mark.parametrize("conclusion", ["success", "failure"])
def test_the_very_same_report_again_is_a_duplicate(conclusion: str) -> None:
    report = replace(REPORT, conclusion=conclusion)
    first = accepted(awaiting(), report)
    again = replace(report, detail="told in other words")
    assert repeated(first.document, again).answer == first.answer


def test_a_duplicate_stays_one_after_the_run_ended_and_the_deadline_passed() -> None:
    reported = accepted(awaiting(), REPORT).document
    cancelled = accepted(reported, CancelRun(SECOND, "PBR-1", "stop")).document
    assert "PBR-1" in cancelled.finished
    repeated(cancelled, REPORT, context(now=later(days=90)))


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"conclusion": "failure"}, "success"),
        ({"github_run_url": RUN_URL + "8"}, "success"),
        ({"conclusion": "success"}, "failure"),
    ],
)
def test_a_conflicting_report_is_refused(changes: dict[str, str], reported: str) -> None:
    first = accepted(awaiting(), replace(REPORT, conclusion=reported)).document
    reason = f"{NAME} was already reported {reported}; another report conflicts"
    other = replace(REPORT, **changes)
    refused(first, other, Code.FAILED_PRECONDITION, reason, context(now=later(days=9)))


@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "datagov"])
def test_only_the_awaited_agent_reports(agent: str) -> None:
    reason = f"{NAME} awaits datagov, not {agent}"
    refused(awaiting(), replace(REPORT, agent=agent), Code.FAILED_PRECONDITION, reason)


def test_another_agents_copy_of_an_accepted_report_is_no_duplicate() -> None:
    first = accepted(awaiting(), REPORT).document
    reason = f"{NAME} awaits datagov, not risk"
    refused(first, replace(REPORT, agent="risk"), Code.FAILED_PRECONDITION, reason)


@pytest.mark.parametrize("call", [Call.PENDING, Call.ACCEPTED, Call.UNKNOWN])
@pytest.mark.parametrize("conclusion", ["success", "failure"])
@pytest.mark.parametrize(
    ("now", "in_time"),
    [
        (later(minutes=5, milliseconds=-1), True),
        (later(minutes=5), False),
        (later(minutes=5, milliseconds=1), False),
    ],
)
def test_a_report_at_the_deadline_is_too_late_even_before_a_tick_says_so(
    call: Call, conclusion: str, now: datetime, *, in_time: bool
) -> None:
    document, report = awaiting(call, minutes=5), replace(REPORT, conclusion=conclusion)
    if in_time:
        accepted(document, report, context(now=now))
        return
    reason = f"{NAME} was due at 2026-11-30T12:05:00Z: the report is too late"
    refused(document, report, Code.FAILED_PRECONDITION, reason, context(now=now))


def test_no_report_is_taken_after_the_step_timed_out() -> None:
    late = context(now=later(minutes=60))
    timed_out = accepted(awaiting(), Tick(), late).document
    assert timed_out.finished["PBR-1"].status is RunStatus.TIMED_OUT
    reason = f"{NAME} is TIMED_OUT: it awaits no report"
    refused(timed_out, REPORT, Code.FAILED_PRECONDITION, reason, late)
    refused(timed_out, REPORT, Code.FAILED_PRECONDITION, reason, context())


def test_a_refused_report_ends_its_dispatch_and_nothing_else() -> None:
    """A dispatch that was reported is over, so later events of its agent are no echo of it."""
    document = accepted(a_document(PLAYBOOK), RunNow(AUTHOR, "PB-1")).document
    late, reason = context(now=later(minutes=60)), f"{NAME} was due at 2026-11-30T13:00:00Z"
    outcome = accepted(document, REPORT, late)
    assert outcome.refused == Refused(Code.FAILED_PRECONDITION, f"{reason}: the report is too late")
    assert [mark.reported for mark in document.marks] == [False]
    assert [mark.reported for mark in outcome.document.marks] == [True]
    assert replace(outcome.document, marks=document.marks) == document
    assert (outcome.answer, outcome.effects) == (None, ())
    assert said(outcome) == [(*REPORTED[:3], "failure")]
    assert outcome.entries[0].detail == (
        f"the report of datagov was refused ({reason}: the report is too late); "
        "its dispatch is over all the same"
    )
    again = f"{reason}: the report is too late"
    refused(outcome.document, REPORT, Code.FAILED_PRECONDITION, again, late)


@pytest.mark.parametrize("conclusion", ["success", "failure"])
def test_an_accepted_report_ends_its_dispatch_too(conclusion: str) -> None:
    document = accepted(a_document(PLAYBOOK), RunNow(AUTHOR, "PB-1")).document
    outcome = accepted(document, replace(REPORT, conclusion=conclusion))
    assert [mark.reported for mark in outcome.document.marks] == [True]


def test_no_report_is_taken_after_the_run_was_cancelled() -> None:
    cancelled = accepted(awaiting(), CancelRun(SECOND, "PBR-1", "stop")).document
    reason = f"{NAME} is CANCELLED: it awaits no report"
    refused(cancelled, REPORT, Code.FAILED_PRECONDITION, reason)
    reason = "step next of run PBR-1 is SKIPPED: it awaits no report"
    report = replace(REPORT, step_id="next")
    refused(cancelled, report, Code.FAILED_PRECONDITION, reason)


def test_no_report_is_taken_after_the_claim_was_abandoned() -> None:
    abandoned = accepted(awaiting(Call.PENDING), Tick(), context(now=later(minutes=2))).document
    reason = f"{NAME} is FAILED: it awaits no report"
    refused(abandoned, REPORT, Code.FAILED_PRECONDITION, reason)


def test_a_step_that_is_not_claimed_awaits_nothing() -> None:
    reason = f"{NAME} is PENDING: it awaits no report"
    refused(a_document(PLAYBOOK, a_run(PLAYBOOK)), REPORT, Code.FAILED_PRECONDITION, reason)
    reason = "step next of run PBR-1 is PENDING: it awaits no report"
    refused(awaiting(), replace(REPORT, step_id="next"), Code.FAILED_PRECONDITION, reason)


@pytest.mark.parametrize("step_id", ["approve", "notify"])
def test_a_step_that_dispatches_no_agent_awaits_no_report(step_id: str) -> None:
    document = a_document(PLAYBOOK, a_run_at(PLAYBOOK, step_id))
    reason = f"step {step_id} of run PBR-1 dispatches no agent: it awaits no report"
    report = replace(REPORT, step_id=step_id)
    refused(document, report, Code.FAILED_PRECONDITION, reason)


@pytest.mark.parametrize(
    ("run_id", "step_id", "reason"),
    [
        ("PBR-9", "detect", "run PBR-9 does not exist, or is no longer kept"),
        ("ghs_x", "detect", "a run of that id does not exist, or is no longer kept"),
        ("PBR-1", "nowhere", "step nowhere does not exist in run PBR-1"),
        ("PBR-1", "ghs_x", "a step of that id does not exist in run PBR-1"),
    ],
)
def test_an_unknown_run_or_step_is_not_found(run_id: str, step_id: str, reason: str) -> None:
    report = replace(REPORT, run_id=run_id, step_id=step_id)
    refused(awaiting(), report, Code.NOT_FOUND, reason)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (
            {"agent": "capex"},
            "agent: is not one of the six agents: datagov, compliance, risk, judge, recon, curator",
        ),
        (
            {"conclusion": "neutral"},
            "conclusion: is not one of cancelled, failure, skipped, success",
        ),
        ({"conclusion": ""}, "conclusion: is not one of cancelled, failure, skipped, success"),
        (
            {"conclusion": "SUCCESS"},
            "conclusion: is not one of cancelled, failure, skipped, success",
        ),
        ({"detail": "é" * 250 + "e"}, "detail: has 501 bytes; at most 500"),
        ({"detail": "two\nlines"}, "detail: holds a control character; remove it"),
        ({"detail": "ghs_x"}, "detail: holds what looks like a credential; remove it"),
        ({"github_run_url": "u" * 301}, "githubRunUrl: has 301 bytes; at most 300"),
        ({"github_run_url": "\u202e"}, "githubRunUrl: holds a bidi control character; remove it"),
    ],
)
@pytest.mark.parametrize("run_id", ["PBR-1", "PBR-9"])
def test_a_malformed_report_is_refused_before_anything_is_looked_up(
    changes: dict[str, Any], reason: str, run_id: str
) -> None:
    report = replace(REPORT, run_id=run_id, **changes)
    refused(awaiting(), report, Code.INVALID_ARGUMENT, reason)


def test_every_fault_of_a_report_is_told() -> None:
    report = ReportStep("x", "PBR-1", "detect", "x", "\0", "\0")
    outcome = refused(
        awaiting(),
        report,
        Code.INVALID_ARGUMENT,
        "agent: is not one of the six agents: datagov, compliance, risk, judge, recon, curator "
        "(and 3 more)",
    )
    assert fields(outcome) == ["agent", "conclusion", "detail", "githubRunUrl"]


def test_a_detail_may_be_empty_or_as_long_as_its_bound() -> None:
    accepted(awaiting(), replace(REPORT, detail=""))
    accepted(awaiting(), replace(REPORT, detail="é" * 250, github_run_url="u" * 300))
