"""A run claims each step once before it is performed, and counts once when it ends."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide import runs
from core_console.decide.outcome import RunScan, SendComment, SendDispatch
from core_console.decide.runs import Moved, Start
from core_console.decide.status import FINAL
from core_console.model.document import Document
from core_console.model.faults import InvariantError
from core_console.model.playbook import Step
from core_console.model.run import (
    Call,
    DispatchPayload,
    Run,
    RunStatus,
    StepRun,
    StepRunStatus,
    TriggerKind,
)
from tests.builders import (
    AUTHOR,
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

BY_HAND = Start(trigger=TriggerKind.MANUAL, initiator=AUTHOR)


def started(*steps: Step, sender_room: int = 30) -> Moved:
    playbook = a_playbook(spec=a_spec(*steps))
    return runs.start(a_document(playbook), playbook, BY_HAND, context(sender_room=sender_room))


PAYLOAD = DispatchPayload("datagov", "PB-1", "PBR-1", "detect", 0)
CLAIMS: list[tuple[Step, StepRunStatus, RunStatus, Call, datetime | None, tuple[object, ...]]] = [
    (
        detect(minutes=7),
        StepRunStatus.WAITING_AGENT,
        RunStatus.WAITING_AGENT,
        Call.PENDING,
        later(minutes=7),
        (SendDispatch("PBR-1", "detect", PAYLOAD),),
    ),
    (
        approve(hours=9),
        StepRunStatus.WAITING_APPROVAL,
        RunStatus.WAITING_APPROVAL,
        Call.NONE,
        later(hours=9),
        (),
    ),
    (
        notify(),
        StepRunStatus.RUNNING,
        RunStatus.RUNNING,
        Call.PENDING,
        None,
        (SendComment("PBR-1", "notify", "core", 7),),
    ),
    (
        scan(),
        StepRunStatus.RUNNING,
        RunStatus.RUNNING,
        Call.NONE,
        None,
        (RunScan("PBR-1", "scan"),),
    ),
]


@pytest.mark.parametrize(("step", "status", "run_status", "call", "deadline", "effects"), CLAIMS)
def test_a_step_is_claimed_by_the_swap_that_asks_to_perform_it(
    step: Step,
    status: StepRunStatus,
    run_status: RunStatus,
    call: Call,
    deadline: datetime | None,
    effects: tuple[object, ...],
) -> None:
    moved = started(step, notify("later"))
    assert moved.run.status is run_status
    claimed = StepRun(step, status, call, claimed_by=REPLICA, claimed_at=NOW, deadline=deadline)
    assert moved.run.steps == (claimed, StepRun(notify("later")))
    assert (moved.effects, moved.entries) == (effects, ())
    assert runs.deadline_of(step.action, NOW) == deadline


def test_the_payload_of_a_dispatch_carries_the_depth_of_its_run() -> None:
    playbook = a_playbook(spec=a_spec(detect()))
    moved = runs.claim_next(a_run(playbook, chain_depth=2), context())
    (effect,) = moved.effects
    assert isinstance(effect, SendDispatch)
    assert effect.payload == replace(PAYLOAD, chain_depth=2)


@pytest.mark.parametrize("room", [0, -1])
@pytest.mark.parametrize("step", [detect(), notify(), scan()])
def test_a_step_stays_pending_while_the_sender_is_full(step: Step, room: int) -> None:
    moved = started(step, sender_room=room)
    assert (moved.run.status, moved.effects) == (RunStatus.RUNNING, ())
    assert moved.run.steps == (StepRun(step),)


def test_an_approval_needs_no_sender() -> None:
    assert started(approve(), sender_room=0).run.status is RunStatus.WAITING_APPROVAL


def ended(step_id: str, status: StepRunStatus, *, room: int = 30) -> Moved:
    """End that step of detect → approve → notify so, an hour after it was claimed."""
    run = a_run_at(a_playbook(), step_id)
    index = runs.step_index(run, step_id)
    assert index is not None
    done = replace(run.steps[index], status=status)
    here = context(now=later(hours=1), sender_room=room)
    return runs.end_step(run, index, done, here, why="because")


def test_the_swap_that_ends_a_step_claims_the_next() -> None:
    moved = ended("detect", StepRunStatus.SUCCEEDED)
    first, second, third = moved.run.steps
    assert (first.status, first.finished_at) == (StepRunStatus.SUCCEEDED, later(hours=1))
    assert (second.status, second.claimed_at) == (StepRunStatus.WAITING_APPROVAL, later(hours=1))
    assert second.deadline == later(hours=1 + 72)
    assert third.status is StepRunStatus.PENDING
    assert (moved.run.status, moved.run.detail) == (RunStatus.WAITING_APPROVAL, "")


def test_the_next_step_waits_when_the_sender_is_full() -> None:
    moved = ended("approve", StepRunStatus.SUCCEEDED, room=0)
    assert (moved.run.status, moved.effects) == (RunStatus.RUNNING, ())
    assert moved.run.steps[2] == StepRun(notify())


@pytest.mark.parametrize(
    ("step_id", "status"),
    [
        ("detect", StepRunStatus.FAILED),
        ("detect", StepRunStatus.TIMED_OUT),
        ("approve", StepRunStatus.REJECTED),
        ("approve", StepRunStatus.EXPIRED),
        ("notify", StepRunStatus.FAILED),
        ("notify", StepRunStatus.CANCELLED),
        ("notify", StepRunStatus.SUCCEEDED),
    ],
)
def test_a_run_ends_as_its_last_step_ended(step_id: str, status: StepRunStatus) -> None:
    moved = ended(step_id, status)
    assert moved.run.status.name == status.name
    assert (moved.run.detail, moved.run.finished_at) == ("because", later(hours=1))
    names = ["detect", "approve", "notify"]
    after = moved.run.steps[names.index(step_id) + 1 :]
    assert all(each == StepRun(each.step, StepRunStatus.SKIPPED) for each in after)
    (entry,) = moved.entries
    assert entry.detail == f"run PBR-1 of playbook PB-1 ended {status}"


@pytest.mark.parametrize(
    ("before", "status"),
    [
        (RunStatus.SUCCEEDED, StepRunStatus.CANCELLED),
        (RunStatus.CANCELLED, StepRunStatus.FAILED),
        (RunStatus.WAITING_AGENT, StepRunStatus.REJECTED),
        (RunStatus.WAITING_AGENT, StepRunStatus.EXPIRED),
        (RunStatus.WAITING_APPROVAL, StepRunStatus.TIMED_OUT),
        (RunStatus.WAITING_APPROVAL, StepRunStatus.FAILED),
        (RunStatus.RUNNING, StepRunStatus.TIMED_OUT),
    ],
)
def test_a_move_that_is_not_in_the_table_stops_before_the_swap(
    before: RunStatus, status: StepRunStatus
) -> None:
    run = replace(a_run_at(a_playbook(), "notify"), status=before)
    done = replace(run.steps[2], status=status)
    with pytest.raises(InvariantError, match=f"run PBR-1 cannot go from {before} to"):
        runs.end_step(run, 2, done, context())


def test_a_run_in_flight_is_at_its_first_step_that_has_not_succeeded() -> None:
    assert [runs.current_index(a_run_at(a_playbook(), name)) for name in _NAMES] == [0, 1, 2]
    run = a_run_at(a_playbook(), "notify")
    over = tuple(replace(each, status=StepRunStatus.SUCCEEDED) for each in run.steps)
    with pytest.raises(InvariantError, match="is RUNNING with every step SUCCEEDED"):
        runs.current_index(replace(run, steps=over))


_NAMES = ("detect", "approve", "notify")


def finished(number: int, **changes: Any) -> Run:  # noqa: ANN401 -- any field of Run
    run = a_run(a_playbook(), id=f"PBR-{number}", status=RunStatus.FAILED, finished_at=NOW)
    return replace(run, **changes)


def with_finished(count: int) -> Document:
    return a_document(a_playbook(), *(finished(number) for number in range(count)))


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 150, 198, 199])
def test_every_finished_run_is_kept_up_to_two_hundred(count: int) -> None:
    document = runs.put(with_finished(count), Moved(finished(999))).document
    assert list(document.finished) == [f"PBR-{number}" for number in (*range(count), 999)]


@pytest.mark.parametrize("count", [200, 201, 250])
def test_the_oldest_finished_runs_go_first(count: int) -> None:
    document = runs.put(with_finished(count), Moved(finished(999))).document
    kept = (*range(count - 199, count), 999)
    assert list(document.finished) == [f"PBR-{number}" for number in kept]


@pytest.mark.parametrize(
    ("status", "succeeded"),
    [(status, int(status is RunStatus.SUCCEEDED)) for status in sorted(FINAL)],
)
def test_a_run_counts_once_when_it_ends(status: RunStatus, succeeded: int) -> None:
    playbook = a_playbook(runs_finished=5, runs_succeeded=2)
    other = a_playbook(id="PB-2")
    document = a_document(playbook, other, a_run_at(playbook, "detect"))
    outcome = runs.put(document, Moved(finished(1, status=status)))
    assert outcome.document.running == {}
    assert outcome.document.playbooks == {
        "PB-1": replace(
            playbook, runs_finished=6, runs_succeeded=2 + succeeded, changed=document.revision + 1
        ),
        "PB-2": other,
    }


def test_a_run_that_goes_on_counts_nothing_and_carries_the_revision() -> None:
    document = a_document(a_playbook())
    outcome = runs.put(document, started(detect()))
    assert outcome.document.playbooks == document.playbooks
    assert outcome.document.running["PB-1"].revision == document.revision + 1
    assert outcome.answer == outcome.document.running["PB-1"]


def test_a_run_is_found_in_flight_and_finished() -> None:
    flying = a_run_at(a_playbook(), "detect", id="PBR-7")
    document = a_document(a_playbook(), flying, finished(3))
    assert runs.find(document, "PBR-7") == flying
    assert runs.find(document, "PBR-3") == finished(3)
    assert runs.find(document, "PB-1") is None
    assert runs.step_index(flying, "notify") == 2
    assert runs.step_index(flying, "nowhere") is None


def test_a_run_ends_even_when_its_playbook_is_gone() -> None:
    document = a_document(a_run_at(a_playbook(), "detect"), a_playbook(id="PB-2"))
    outcome = runs.put(document, Moved(finished(1)))
    assert outcome.document.playbooks == document.playbooks
    assert (outcome.document.running, list(outcome.document.finished)) == ({}, ["PBR-1"])
