"""Marks: which step of which run dispatched which agent, at which chain depth.

Owns what is remembered of dispatches beyond their runs (contract, section 5). A dispatch is
outstanding from its claim until its report arrives, accepted or refused, or 6 hours pass,
whatever became of the run: an event that comes late is still told from a first cause.
"""

from datetime import datetime, timedelta

from msgspec.structs import replace

from core_console.decide.outcome import Effect, SendDispatch
from core_console.model.document import Document, Mark
from core_console.model.playbook import DispatchAgent
from core_console.model.run import Run, StepRun, StepRunStatus

MARKS_MAX = 300
"""The newest marks that are kept (contract, section 5)."""

OUTSTANDING_FOR = timedelta(hours=6)
"""The longest job that GitHub runs takes 6 hours; after that nobody reports any more."""


def with_dispatches(
    marks: tuple[Mark, ...], run: Run, effects: tuple[Effect, ...]
) -> tuple[Mark, ...]:
    """Return the marks with those of the dispatches that this move of the run claimed."""
    found = tuple(
        _mark(run, step_run)
        for effect in effects
        if isinstance(effect, SendDispatch)
        for step_run in run.steps
        if step_run.step.id == effect.step_id
    )
    return (*marks, *(each for each in found if each is not None))[-MARKS_MAX:] if found else marks


def _mark(run: Run, step_run: StepRun) -> Mark | None:
    action = step_run.step.action
    if not isinstance(action, DispatchAgent) or step_run.claimed_at is None:
        return None
    return Mark(run.id, step_run.step.id, action.agent, run.chain_depth, step_run.claimed_at)


def reported(document: Document, run_id: str, step_id: str, agent: str) -> Document:
    """Return the document with that dispatch of the agent ended; the same when it was already."""
    marks = tuple(
        replace(mark, reported=True) if _is(mark, run_id, step_id, agent) else mark
        for mark in document.marks
    )
    return replace(document, marks=marks) if marks != document.marks else document


def _is(mark: Mark, run_id: str, step_id: str, agent: str) -> bool:
    return (mark.run_id, mark.step_id, mark.agent) == (run_id, step_id, agent)


def outstanding(document: Document, agent: str, now: datetime) -> tuple[Mark, ...]:
    """Return the agent's outstanding dispatches, those of runs in flight included.

    A run in flight counts even when its mark was displaced by 300 newer ones.
    """
    marked = {(mark.run_id, mark.step_id) for mark in document.marks}
    unmarked = (
        _mark(run, step_run)
        for run in document.running.values()
        for step_run in run.steps
        if step_run.status is StepRunStatus.WAITING_AGENT
        and (run.id, step_run.step.id) not in marked
    )
    return tuple(
        mark
        for mark in (*unmarked, *document.marks)
        if mark is not None
        and mark.agent == agent
        and not mark.reported
        and now - mark.claimed_at < OUTSTANDING_FOR
    )
