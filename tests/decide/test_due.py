"""A tick ends what is overdue or abandoned and claims what waits, and else changes nothing."""

from datetime import datetime, timedelta, timezone

import pytest
from msgspec.structs import replace

from core_console.decide.commands import RecordCall, Tick
from core_console.decide.due import is_abandoned
from core_console.decide.outcome import RunScan, SendComment, SendDispatch
from core_console.model.document import Document
from core_console.model.playbook import Step
from core_console.model.run import Call, DispatchPayload, Run, RunStatus, StepRun, StepRunStatus
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
    scan,
)
from tests.decide.verdicts import accepted, said, unchanged

MS = timedelta(milliseconds=1)
ABANDONED = "abandoned: the process that claimed it recorded no outcome; it is not tried again"
ENDED = ("system:engine", "atlas.playbooks.run.end", "PB-1/PBR-1", "success")


def at(step: Step, *, call: Call | None = None) -> Document:
    """Return a document whose run has this step claimed now, with another one to come."""
    playbook = a_playbook(spec=a_spec(step, notify("later")))
    run = a_run_at(playbook, step.id)
    first = run.steps[0] if call is None else replace(run.steps[0], call=call)
    return a_document(playbook, replace(run, steps=(first, *run.steps[1:])))


def ticked(document: Document, now: datetime) -> tuple[Run, list[tuple[str, str, str, str]]]:
    """Return the run that a tick ended, and what was said of it."""
    outcome = accepted(document, Tick(), context(now=now))
    assert (outcome.answer, outcome.effects) == (None, ())
    assert outcome.document.running == {}
    run = outcome.document.finished["PBR-1"]
    assert run.revision == 11
    assert outcome.document.playbooks["PB-1"].runs_finished == 1
    return run, said(outcome)


def test_a_tick_with_nothing_to_do_changes_nothing() -> None:
    unchanged(a_document(), Tick())
    unchanged(a_document(a_playbook()), Tick(), context(now=later(days=900)))


@pytest.mark.parametrize("minutes", [5, 60, 240])
@pytest.mark.parametrize("call", [Call.ACCEPTED, Call.UNKNOWN])
def test_a_step_without_a_report_times_out_at_its_deadline(minutes: int, call: Call) -> None:
    document = at(detect(minutes=minutes), call=call)
    due = later(minutes=minutes)
    unchanged(document, Tick(), context(now=due - MS))
    run, entries = ticked(document, due)
    when = due.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (run.status, run.finished_at) == (RunStatus.TIMED_OUT, due)
    assert run.detail == f"step detect: no report came by {when}"
    assert run.steps[0].status is StepRunStatus.TIMED_OUT
    assert (run.steps[0].detail, run.steps[0].call) == (f"no report came by {when}", call)
    assert run.steps[1].status is StepRunStatus.SKIPPED
    timeout = ("system:ticker", "atlas.playbooks.run.timeout", "PB-1/PBR-1/detect", "success")
    assert entries == [timeout, ENDED]


@pytest.mark.parametrize("hours", [1, 72, 168])
def test_an_approval_expires_at_its_deadline(hours: int) -> None:
    document = at(approve(hours=hours))
    due = later(hours=hours)
    unchanged(document, Tick(), context(now=due - MS))
    run, entries = ticked(document, due)
    when = due.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (run.status, run.steps[0].status) == (RunStatus.EXPIRED, StepRunStatus.EXPIRED)
    assert run.detail == f"step approve: the approval expired at {when}"
    assert run.steps[0].detail == f"the approval expired at {when}"
    expire = ("system:ticker", "atlas.playbooks.run.expire", "PB-1/PBR-1/approve", "success")
    assert entries == [expire, ENDED]


@pytest.mark.parametrize(
    ("step", "after", "action", "call"),
    [
        (detect(), timedelta(minutes=2), "dispatch", Call.UNKNOWN),
        (detect(minutes=5), timedelta(minutes=2), "dispatch", Call.UNKNOWN),
        (notify(), timedelta(minutes=2), "notify", Call.UNKNOWN),
        (scan(), timedelta(minutes=10), "scan", Call.NONE),
    ],
)
def test_a_claim_without_an_outcome_is_abandoned(
    step: Step, after: timedelta, action: str, call: Call
) -> None:
    document = at(step)
    unchanged(document, Tick(), context(now=NOW + after - MS))
    for now in (NOW + after, NOW + after + MS, later(days=30)):
        run, entries = ticked(document, now)
        assert (run.status, run.finished_at) == (RunStatus.FAILED, now)
        assert run.detail == f"step {step.id}: {ABANDONED}"
        step_run = run.steps[0]
        assert (step_run.status, step_run.call) == (StepRunStatus.FAILED, call)
        assert step_run.detail == ABANDONED
        assert run.steps[1].status is StepRunStatus.SKIPPED
        target = f"PB-1/PBR-1/{step.id}"
        said_so = ("system:ticker", f"atlas.playbooks.run.{action}", target, "failure")
        assert entries == [said_so, ENDED]


def test_a_claim_is_abandoned_whoever_made_it() -> None:
    accepted(at(notify()), Tick(), context(now=later(minutes=2), replica="console-2"))


def test_a_claim_counts_from_itself_and_not_from_the_runs_start() -> None:
    playbook = a_playbook(spec=a_spec(notify("first"), notify("second")))
    document = a_document(playbook, a_run_at(playbook, "first"))
    posted = RecordCall("PBR-1", "first", REPLICA, Call.ACCEPTED, "")
    moved = accepted(document, posted, context(now=later(seconds=90))).document
    unchanged(moved, Tick(), context(now=later(seconds=209)))
    accepted(moved, Tick(), context(now=later(seconds=210)))


@pytest.mark.parametrize(
    ("step_run", "expected"),
    [
        (StepRun(notify()), False),
        (StepRun(approve(), StepRunStatus.WAITING_APPROVAL, claimed_at=NOW), False),
        (StepRun(notify(), StepRunStatus.RUNNING, Call.PENDING, claimed_at=NOW), True),
        (StepRun(notify(), StepRunStatus.CANCELLED, Call.PENDING, claimed_at=NOW), False),
        (StepRun(detect(), StepRunStatus.WAITING_AGENT, Call.ACCEPTED, claimed_at=NOW), False),
        (StepRun(scan(), StepRunStatus.RUNNING, claimed_at=NOW), True),
        (StepRun(scan(), StepRunStatus.SUCCEEDED, claimed_at=NOW), False),
    ],
)
def test_only_an_open_claim_whose_outcome_is_missing_is_abandoned(
    step_run: StepRun, *, expected: bool
) -> None:
    assert is_abandoned(step_run, context(now=later(days=1))) is expected


PAYLOAD = DispatchPayload("datagov", "PB-1", "PBR-1", "detect", 0)


@pytest.mark.parametrize(
    ("step", "effect", "status"),
    [
        (detect(), SendDispatch("PBR-1", "detect", PAYLOAD), RunStatus.WAITING_AGENT),
        (notify(), SendComment("PBR-1", "notify", "core", 7), RunStatus.RUNNING),
        (scan(), RunScan("PBR-1", "scan"), RunStatus.RUNNING),
    ],
)
def test_a_step_that_waits_is_claimed_when_there_is_room(
    step: Step, effect: object, status: RunStatus
) -> None:
    playbook = a_playbook(spec=a_spec(step))
    document = a_document(playbook, a_run(playbook))
    now = later(minutes=30)
    for room in (0, -1):
        unchanged(document, Tick(), context(now=now, sender_room=room))
    outcome = accepted(document, Tick(), context(now=now, sender_room=1))
    assert outcome.effects == (effect,)
    run = outcome.document.running["PB-1"]
    assert (run.status, run.steps[0].claimed_at, run.steps[0].claimed_by) == (status, now, REPLICA)


def test_a_tick_claims_no_more_than_there_is_room_for() -> None:
    playbooks = [a_playbook(id=f"PB-{number}", spec=a_spec(notify())) for number in range(5)]
    waiting = [a_run(each, id=f"PBR-{each.id}") for each in playbooks]
    document = a_document(*playbooks, *waiting)
    outcome = accepted(document, Tick(), context(sender_room=3))
    assert [effect.run_id for effect in outcome.effects] == [run.id for run in waiting[:3]]
    rest = accepted(outcome.document, Tick(), context(sender_room=3))
    assert [effect.run_id for effect in rest.effects] == [run.id for run in waiting[3:]]


def test_one_tick_does_everything_that_is_due() -> None:
    now = later(hours=2)
    steps = [detect(), approve(hours=1), notify(), scan(), approve(hours=3), notify("pending")]
    playbooks = [
        a_playbook(id=f"PB-{number}", spec=a_spec(step)) for number, step in enumerate(steps)
    ]
    made = [
        a_run_at(playbook, playbook.spec.steps[0].id, id=f"PBR-{number}")
        for number, playbook in enumerate(playbooks)
    ]
    answered = replace(made[0], steps=(replace(made[0].steps[0], call=Call.ACCEPTED),))
    pending = a_run(playbooks[5], id="PBR-5")
    document = a_document(*playbooks, answered, *made[1:5], pending)
    outcome = accepted(document, Tick(), context(now=now))
    assert {run.id: run.status for run in outcome.document.finished.values()} == {
        "PBR-0": RunStatus.TIMED_OUT,
        "PBR-1": RunStatus.EXPIRED,
        "PBR-2": RunStatus.FAILED,
        "PBR-3": RunStatus.FAILED,
    }
    assert outcome.document.running["PB-4"] == document.running["PB-4"]
    assert outcome.effects == (SendComment("PBR-5", "pending", "core", 7),)
    assert len(outcome.entries) == 8
    unchanged(outcome.document, Tick(), context(now=now))


def poisoned(run: Run) -> list[Run]:
    """Return runs in flight that no decision can leave behind."""
    over = tuple(
        replace(each, status=StepRunStatus.SUCCEEDED, finished_at=NOW) for each in run.steps
    )
    return [
        replace(run, steps=over),
        replace(run, status=RunStatus.WAITING_APPROVAL, steps=run.steps),
    ]


@pytest.mark.parametrize(("which", "why"), [(0, "with every step SUCCEEDED"), (1, "to TIMED_OUT")])
def test_a_poisoned_run_is_set_aside_with_its_reason_and_the_tick_goes_on(
    which: int, why: str
) -> None:
    playbooks = [a_playbook(id=f"PB-{number}", spec=a_spec(detect())) for number in (1, 2)]
    made = [a_run_at(each, "detect", id=f"PBR-{each.id}") for each in playbooks]
    answered = [replace(run, steps=(replace(run.steps[0], call=Call.ACCEPTED),)) for run in made]
    bad = poisoned(answered[0])[which]
    document = a_document(*playbooks, bad, answered[1])
    now = context(now=later(minutes=60))
    outcome = accepted(document, Tick(), now)
    aside = outcome.document.finished["PBR-PB-1"]
    assert aside.status is RunStatus.FAILED
    assert aside.finished_at == later(minutes=60)
    assert aside.detail.startswith("set aside, for it breaks the console's own rules: run PBR-PB-1")
    assert aside.detail.endswith(why)
    assert {each.status for each in aside.steps} <= {StepRunStatus.SUCCEEDED, StepRunStatus.FAILED}
    assert all(each.finished_at for each in aside.steps)
    assert outcome.document.finished["PBR-PB-2"].status is RunStatus.TIMED_OUT
    set_aside = ("system:ticker", "atlas.playbooks.run.end", "PB-1/PBR-PB-1", "failure")
    assert said(outcome)[0] == set_aside
    assert (
        outcome.entries[0].detail == f"run PBR-PB-1 of playbook PB-1 ended FAILED: {aside.detail}"
    )
    unchanged(outcome.document, Tick(), now)


def test_a_run_whose_times_cannot_be_worked_with_is_set_aside_and_the_others_go_on() -> None:
    poisoned = a_playbook(approve(), id="PB-1")
    healthy = a_playbook(approve(hours=1), id="PB-2")
    bad = a_run_at(poisoned, "approve", id="PBR-1")
    never = datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    step = replace(bad.steps[0], claimed_at=never, deadline=never)
    bad = replace(bad, steps=(step,))
    good = a_run_at(healthy, "approve", id="PBR-2")
    outcome = accepted(
        a_document(poisoned, healthy, bad, good), Tick(), context(now=later(hours=1))
    )
    ended = {run.id: run.status for run in outcome.document.finished.values()}
    assert ended == {"PBR-1": RunStatus.FAILED, "PBR-2": RunStatus.EXPIRED}
