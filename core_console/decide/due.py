"""What time made due: overdue deadlines, abandoned claims, steps that wait, slots.

Owns the tick's decision. It looks at the runs in flight, at most one a playbook, and then at the
slots, so a tick is bounded by the number of playbooks and their triggers. Slots come last: a run
that is overdue ends first and is in no slot's way.
"""

from datetime import timedelta

from msgspec.structs import replace

from core_console.decide import runs, schedule
from core_console.decide.commands import Tick
from core_console.decide.context import Context
from core_console.decide.outcome import Accepted, Effect
from core_console.decide.record import entry, utc_seconds
from core_console.decide.status import OPEN_STEPS
from core_console.model.audit import Entry
from core_console.model.audit import Outcome as Recorded
from core_console.model.document import Document
from core_console.model.faults import InvariantError
from core_console.model.playbook import CapexScan, DispatchAgent, RequireApproval
from core_console.model.run import Call, Run, RunStatus, StepRun, StepRunStatus

CALL_ABANDONED_AFTER = timedelta(minutes=2)
"""A claim may be performed for 60 s; a call answers within 10 s more, so after two minutes
nobody is performing it (contract, section 4)."""

SCAN_ABANDONED_AFTER = timedelta(minutes=10)
"""The same for a scan, which works for seconds on the largest feeds."""


_POISON = (TypeError, ValueError, OverflowError)
"""What arithmetic with a value that no command could have stored may raise: a time in year 1."""


def tick(document: Document, command: Tick, context: Context) -> Accepted:
    """Return the document after everything that is due; the very same one when nothing is."""
    entries: list[Entry] = []
    effects: list[Effect] = []
    for run in tuple(document.running.values()):
        here = replace(context, sender_room=context.sender_room - len(effects))
        try:
            moved = _due(run, here)
        except (InvariantError, *_POISON) as error:
            moved = _set_aside(run, error, here)
        if moved is None:
            continue
        done = runs.put(document, moved)
        document = done.document
        entries += done.entries
        effects += done.effects
    if not command.starts:
        return Accepted(document, None, tuple(entries), tuple(effects))
    here = replace(context, sender_room=context.sender_room - len(effects))
    fired = schedule.fire_due(document, here)
    return Accepted(fired.document, None, (*entries, *fired.entries), (*effects, *fired.effects))


def _due(run: Run, context: Context) -> runs.Moved | None:
    index = runs.current_index(run)
    step_run = run.steps[index]
    if step_run.status is StepRunStatus.PENDING:
        claimed = runs.claim_next(run, context)
        return claimed if claimed.run != run else None
    if is_abandoned(step_run, context):
        return _abandon(run, index, context)
    if step_run.deadline is not None and context.now >= step_run.deadline:
        return _overdue(run, index, context)
    return None


def _set_aside(run: Run, error: Exception, context: Context) -> runs.Moved:
    """End a run that breaks our own rules: it can never move, and must not hold up the others."""
    told = str(error) if isinstance(error, InvariantError) else type(error).__name__
    reason = f"set aside, for it breaks the console's own rules: {told}"
    steps = tuple(
        step_run
        if step_run.status is StepRunStatus.SUCCEEDED
        else replace(step_run, status=StepRunStatus.FAILED, finished_at=context.now)
        for step_run in run.steps
    )
    failed = replace(
        run, status=RunStatus.FAILED, finished_at=context.now, steps=steps, detail=reason
    )
    said = entry(
        context,
        runs.TICKER,
        "atlas.playbooks.run.end",
        runs.ids_of(run),
        f"run {run.id} of playbook {run.playbook_id} ended FAILED: {reason}",
        outcome=Recorded.FAILURE,
    )
    return runs.Moved(failed, (said,))


def is_abandoned(step_run: StepRun, context: Context) -> bool:
    """Say whether a claim's outcome will not be recorded any more: its process died."""
    if step_run.claimed_at is None or step_run.status not in OPEN_STEPS:
        return False
    age = context.now - step_run.claimed_at
    if isinstance(step_run.step.action, CapexScan):
        return age >= SCAN_ABANDONED_AFTER
    return step_run.call is Call.PENDING and age >= CALL_ABANDONED_AFTER


def _abandon(run: Run, index: int, context: Context) -> runs.Moved:
    step_run = run.steps[index]
    detail = "abandoned: the process that claimed it recorded no outcome; it is not tried again"
    calls = step_run.call is Call.PENDING
    failed = replace(
        step_run,
        status=StepRunStatus.FAILED,
        call=Call.UNKNOWN if calls else step_run.call,
        detail=detail,
    )
    moved = runs.end_step(run, index, failed, context, why=f"step {step_run.step.id}: {detail}")
    said = entry(
        context,
        runs.TICKER,
        _action_name(step_run),
        runs.ids_of(run, step_run.step.id),
        f"the claim of step {step_run.step.id} of run {run.id} was abandoned: no outcome was "
        "recorded in time, and it is not tried again",
        outcome=Recorded.FAILURE,
    )
    return replace(moved, entries=(said, *moved.entries))


def _action_name(step_run: StepRun) -> str:
    if isinstance(step_run.step.action, DispatchAgent):
        return "atlas.playbooks.run.dispatch"
    scans = isinstance(step_run.step.action, CapexScan)
    return "atlas.playbooks.run.scan" if scans else "atlas.playbooks.run.notify"


def _overdue(run: Run, index: int, context: Context) -> runs.Moved:
    step_run = run.steps[index]
    approval = isinstance(step_run.step.action, RequireApproval)
    when = "" if step_run.deadline is None else utc_seconds(step_run.deadline)
    status = StepRunStatus.EXPIRED if approval else StepRunStatus.TIMED_OUT
    detail = f"the approval expired at {when}" if approval else f"no report came by {when}"
    ended = replace(step_run, status=status, detail=detail)
    moved = runs.end_step(run, index, ended, context, why=f"step {step_run.step.id}: {detail}")
    said = entry(
        context,
        runs.TICKER,
        "atlas.playbooks.run.expire" if approval else "atlas.playbooks.run.timeout",
        runs.ids_of(run, step_run.step.id),
        f"step {step_run.step.id} of run {run.id} is {status}: {detail}",
    )
    return replace(moved, entries=(said, *moved.entries))
