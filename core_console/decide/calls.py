"""What became of a claimed deed: a dispatch, a comment, a scan.

Owns how an outcome is taken. It counts once, and only in the name of the process that claimed
the step; anything later changes nothing.
"""

from msgspec.structs import replace

from core_console.decide import runs
from core_console.decide.commands import RecordCall, RecordScan
from core_console.decide.context import Context
from core_console.decide.outcome import Accepted, Outcome
from core_console.decide.record import entry
from core_console.decide.status import OPEN_STEPS
from core_console.model.audit import Entry
from core_console.model.audit import Outcome as Recorded
from core_console.model.document import Document
from core_console.model.playbook import DispatchAgent
from core_console.model.run import Call, Run, ScanResult, StepRun, StepRunStatus

MAYBE_POSTED = "the comment may have been posted: not sent again"


def record_call(document: Document, command: RecordCall, context: Context) -> Outcome:
    """Take the outcome of a dispatch or a comment, if it is still awaited."""
    found = _claimed(document, command)
    if found is None or found[0].steps[found[1]].call is not Call.PENDING:
        return Accepted(document)
    run, index = found
    command = _settled(run.steps[index], command)
    step_run = replace(run.steps[index], call=command.call)
    said = _said(run, step_run, command, context)
    if step_run.status not in OPEN_STEPS:
        return _noted(document, run, index, step_run, said)
    if isinstance(step_run.step.action, DispatchAgent) and command.call is not Call.REFUSED:
        waiting = replace(step_run, detail=command.detail)
        return _noted(document, run, index, waiting, said)
    return runs.put(document, _called(run, index, step_run, command, context), said)


def _settled(step_run: StepRun, command: RecordCall) -> RecordCall:
    """Return the outcome, settled by the report if one came before an answer that is ambiguous."""
    reported = bool(step_run.conclusion) and command.call is Call.UNKNOWN
    return replace(command, call=Call.ACCEPTED) if reported else command


def _called(
    run: Run, index: int, step_run: StepRun, command: RecordCall, context: Context
) -> runs.Moved:
    """End a step whose call was refused, or a notify step whose call was answered."""
    if command.call is Call.ACCEPTED:
        done = replace(step_run, status=StepRunStatus.SUCCEEDED, detail=command.detail)
        return runs.end_step(run, index, done, context)
    detail = MAYBE_POSTED if command.call is Call.UNKNOWN else command.detail
    failed = replace(step_run, status=StepRunStatus.FAILED, detail=detail)
    why = f"step {step_run.step.id}: {detail}"
    return runs.end_step(run, index, failed, context, why=why)


def _claimed(document: Document, command: RecordCall | RecordScan) -> tuple[Run, int] | None:
    """Return the run and step that this process claimed under that name."""
    run = runs.find(document, command.run_id)
    index = None if run is None else runs.step_index(run, command.step_id)
    if run is None or index is None or run.steps[index].claimed_by != command.claimed_by:
        return None
    return run, index


def _noted(document: Document, run: Run, index: int, step_run: StepRun, said: Entry) -> Accepted:
    """Keep the call's outcome on a step that goes on waiting, or that ended meanwhile."""
    steps = (*run.steps[:index], step_run, *run.steps[index + 1 :])
    noted = replace(run, steps=steps, revision=document.revision + 1)
    if run.id in document.finished:
        changed = replace(document, finished=document.finished | {run.id: noted})
    else:
        changed = replace(document, running=document.running | {run.playbook_id: noted})
    return Accepted(changed, noted, (said,))


_WORDS = {
    Call.ACCEPTED: "was accepted by GitHub",
    Call.REFUSED: "was refused or not sent",
    Call.UNKNOWN: "may or may not have been accepted, and is never sent again",
}


def _said(run: Run, step_run: StepRun, command: RecordCall, context: Context) -> Entry:
    match step_run.step.action:
        case DispatchAgent(agent=agent):
            action, deed = "atlas.playbooks.run.dispatch", f"the dispatch of {agent}"
        case _:
            action, deed = "atlas.playbooks.run.notify", "the comment"
    return entry(
        context,
        command.actor,
        action,
        runs.ids_of(run, command.step_id),
        f"{deed} for step {command.step_id} of run {run.id} {_WORDS[command.call]}",
        outcome=Recorded.SUCCESS if command.call is Call.ACCEPTED else Recorded.FAILURE,
    )


def record_scan(document: Document, command: RecordScan, context: Context) -> Outcome:
    """Take the outcome of a claimed capex_scan, if it is still awaited."""
    found = _claimed(document, command)
    if found is None or found[0].steps[found[1]].status is not StepRunStatus.RUNNING:
        return Accepted(document)
    run, index = found
    step_run = replace(
        run.steps[index],
        status=StepRunStatus.FAILED if command.failure else StepRunStatus.SUCCEEDED,
        detail=command.failure or command.detail,
        scan=_result(command),
    )
    why = f"step {command.step_id}: {command.failure}" if command.failure else ""
    recorded_as = f" as {command.scan_run_id}" if command.scan_run_id else ""
    result = f"failed{recorded_as}: {command.failure}"
    if not command.failure:
        result = f"was recorded{recorded_as}"
    said = entry(
        context,
        command.actor,
        "atlas.playbooks.run.scan",
        runs.ids_of(run, command.step_id),
        f"the scan for step {command.step_id} of run {run.id} {result}",
        outcome=Recorded.FAILURE if command.failure else Recorded.SUCCESS,
    )
    return runs.put(document, runs.end_step(run, index, step_run, context, why=why), said)


def _result(command: RecordScan) -> ScanResult | None:
    """Return what the step found, None when nothing was scanned."""
    if not command.scan_run_id:
        return None
    return ScanResult(command.scan_run_id, command.findings, command.baseline, command.basis)
