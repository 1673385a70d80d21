"""How a run moves: it starts, claims a step, ends a step, and ends.

Owns every change of a run. A step is claimed by the swap before it is performed, so a crash can
leave a claim without a deed, never a deed without a claim. A final status never changes.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from core_console.decide import history, marks
from core_console.decide.context import Context
from core_console.decide.outcome import (
    Accepted,
    Effect,
    RunScan,
    SendComment,
    SendDispatch,
)
from core_console.decide.record import entry
from core_console.decide.status import FINAL, RUN_MOVES, RUN_OF_STEP
from core_console.model.audit import Entry
from core_console.model.document import Document
from core_console.model.faults import InvariantError
from core_console.model.playbook import (
    Action,
    CapexScan,
    DispatchAgent,
    Notify,
    Playbook,
    RequireApproval,
)
from core_console.model.run import (
    Call,
    Cause,
    DispatchPayload,
    Run,
    RunStatus,
    StepRun,
    StepRunStatus,
    TriggerKind,
)

FINISHED_MAX = 200
"""The newest finished runs that are kept (contract, section 9)."""

ENGINE = "system:engine"
TICKER = "system:ticker"


class Start(Struct, frozen=True, gc=False, kw_only=True):
    """Why and for whom a run starts; `slot` is a schedule's, the depth and cause an event's."""

    trigger: TriggerKind
    initiator: str
    request_id: str = ""
    note: str = ""
    trigger_id: str = ""
    event_id: str = ""
    slot: datetime | None = None
    chain_depth: int = 0
    caused_by_run_id: str = ""
    cause: Cause | None = None


class Moved(Struct, frozen=True, gc=False):
    """A run after a move, with what the move says and what it asks to perform."""

    run: Run
    entries: tuple[Entry, ...] = ()
    effects: tuple[Effect, ...] = ()


def start(document: Document, playbook: Playbook, why: Start, context: Context) -> Moved:
    """Return a new run of the playbook with its first step claimed."""
    run = Run(
        id=context.ids.new("PBR"),
        playbook_id=playbook.id,
        playbook_name=playbook.spec.name,
        playbook_revision=playbook.revision,
        spec_digest=playbook.spec_digest,
        status=RunStatus.RUNNING,
        trigger=why.trigger,
        initiator=why.initiator,
        started_at=context.now,
        steps=tuple(StepRun(step=step) for step in playbook.spec.steps),
        revision=document.revision + 1,
        trigger_id=why.trigger_id,
        event_id=why.event_id,
        slot=why.slot,
        request_id=why.request_id,
        chain_depth=why.chain_depth,
        caused_by_run_id=why.caused_by_run_id,
        cause=why.cause,
        note=why.note,
    )
    return claim_next(run, context)


def current_index(run: Run) -> int:
    """Return the index of the step that a run in flight is at."""
    for index, step_run in enumerate(run.steps):
        if step_run.status is not StepRunStatus.SUCCEEDED:
            return index
    raise InvariantError(f"run {run.id} is {run.status} with every step SUCCEEDED")


def claim_next(run: Run, context: Context) -> Moved:
    """Claim the first PENDING step, or leave it PENDING while this replica's sender is full."""
    index = current_index(run)
    action = run.steps[index].step.action
    if context.sender_room <= 0 and not isinstance(action, RequireApproval):
        return Moved(_with_status(run, RunStatus.RUNNING))
    claimed, effects = _claim(run, index, context)
    return Moved(
        _with_status(_with_step(run, index, claimed), RUN_OF_STEP[claimed.status]), (), effects
    )


def _claim(run: Run, index: int, context: Context) -> tuple[StepRun, tuple[Effect, ...]]:
    step_run = replace(run.steps[index], claimed_by=context.replica, claimed_at=context.now)
    step = step_run.step
    match step.action:
        case DispatchAgent() as action:
            payload = DispatchPayload(
                action.agent, run.playbook_id, run.id, step.id, run.chain_depth
            )
            waiting = replace(
                step_run,
                status=StepRunStatus.WAITING_AGENT,
                call=Call.PENDING,
                deadline=deadline_of(action, context.now),
            )
            return waiting, (SendDispatch(run.id, step.id, payload),)
        case RequireApproval() as action:
            asked = replace(
                step_run,
                status=StepRunStatus.WAITING_APPROVAL,
                deadline=deadline_of(action, context.now),
            )
            return asked, ()
        case Notify() as action:
            sending = replace(step_run, status=StepRunStatus.RUNNING, call=Call.PENDING)
            return sending, (SendComment(run.id, step.id, action.repo, action.issue),)
        case CapexScan():
            return replace(step_run, status=StepRunStatus.RUNNING), (RunScan(run.id, step.id),)
        case _ as never:
            assert_never(never)


def deadline_of(action: Action, claimed_at: datetime) -> datetime | None:
    """Return when a step claimed then is overdue, None for one that waits for nobody."""
    match action:
        case DispatchAgent(timeout_minutes=minutes):
            return claimed_at + timedelta(minutes=minutes)
        case RequireApproval(timeout_hours=hours):
            return claimed_at + timedelta(hours=hours)
        case CapexScan() | Notify():
            return None
        case _ as never:
            assert_never(never)


def end_step(run: Run, index: int, ended: StepRun, context: Context, *, why: str = "") -> Moved:
    """Put the ended step in place; go on after SUCCEEDED, end the run after anything else.

    `why` is the run's detail when the run ends here.
    """
    run = _with_step(run, index, replace(ended, finished_at=context.now))
    if ended.status is not StepRunStatus.SUCCEEDED:
        return _end(run, RUN_OF_STEP[ended.status], why, context)
    if index + 1 == len(run.steps):
        return _end(run, RunStatus.SUCCEEDED, why, context)
    return claim_next(run, context)


def _end(run: Run, status: RunStatus, why: str, context: Context) -> Moved:
    ended = replace(
        _with_status(run, status),
        finished_at=context.now,
        detail=why,
        steps=tuple(
            replace(step_run, status=StepRunStatus.SKIPPED)
            if step_run.status is StepRunStatus.PENDING
            else step_run
            for step_run in run.steps
        ),
    )
    sentence = f"run {run.id} of playbook {run.playbook_id} ended {status}"
    record = entry(context, ENGINE, "atlas.playbooks.run.end", ids_of(run), sentence)
    return Moved(ended, (record,))


def put(document: Document, moved: Moved, *entries: Entry) -> Accepted:
    """Return the document with the moved run in its place; `entries` come before the move's."""
    run = replace(moved.run, revision=document.revision + 1)
    marked = marks.with_dispatches(document.marks, run, moved.effects)
    document = replace(document, marks=marked)
    running = dict(document.running)
    said = (*entries, *moved.entries)
    if run.status not in FINAL:
        running[run.playbook_id] = run
        return Accepted(replace(document, running=running), run, said, moved.effects)
    running.pop(run.playbook_id, None)
    finished = _with_finished(document.finished, run)
    # History goes from its old end, so that this looks at one run and not at two hundred.
    gone = takewhile(lambda each: each.id not in finished, document.finished.values())
    ended = replace(
        document,
        running=running,
        finished=finished,
        playbooks=_counted(document, run),
        trimmed=history.trimmed(document, gone),
    )
    return Accepted(ended, run, said, moved.effects)


def _with_finished(finished: dict[str, Run], run: Run) -> dict[str, Run]:
    kept = finished | {run.id: run}
    for oldest in list(kept)[: max(0, len(kept) - FINISHED_MAX)]:
        del kept[oldest]
    return kept


def _counted(document: Document, run: Run) -> dict[str, Playbook]:
    playbook = document.playbooks.get(run.playbook_id)
    if playbook is None:
        # A playbook with a run in flight is never deleted; a run without one must end all the same.
        return document.playbooks
    counted = replace(
        playbook,
        runs_finished=playbook.runs_finished + 1,
        runs_succeeded=playbook.runs_succeeded + (run.status is RunStatus.SUCCEEDED),
        changed=document.revision + 1,
    )
    return document.playbooks | {playbook.id: counted}


def find(document: Document, run_id: str) -> Run | None:
    """Return the run of that id, in flight or finished."""
    finished = document.finished.get(run_id)
    if finished is not None:
        return finished
    return next((run for run in document.running.values() if run.id == run_id), None)


def step_index(run: Run, step_id: str) -> int | None:
    """Return where the step of that id stands in the run."""
    for index, step_run in enumerate(run.steps):
        if step_run.step.id == step_id:
            return index
    return None


def ids_of(run: Run, *step_ids: str) -> Sequence[str]:
    """Return a run's ids from the outside in, as records hold them."""
    return (run.playbook_id, run.id, *step_ids)


def _with_step(run: Run, index: int, step_run: StepRun) -> Run:
    return replace(run, steps=(*run.steps[:index], step_run, *run.steps[index + 1 :]))


def _with_status(run: Run, status: RunStatus) -> Run:
    if status not in RUN_MOVES[run.status]:
        raise InvariantError(f"run {run.id} cannot go from {run.status} to {status}")
    return replace(run, status=status)
