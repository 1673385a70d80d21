"""An operator's answer to an approval: the first decision wins.

Owns DecideApproval: who may decide, when it is too late, and what follows.
"""

from msgspec.structs import replace

from core_console.decide import foureyes, runs, screen
from core_console.decide.commands import DecideApproval, Decision
from core_console.decide.context import Context
from core_console.decide.operators import NOTE_BYTES, unknown_run
from core_console.decide.outcome import Accepted, Code, Outcome, Refused, invalid
from core_console.decide.record import entry, utc_seconds
from core_console.decide.spec import named
from core_console.model.document import Document
from core_console.model.playbook import RequireApproval
from core_console.model.run import Run, StepRun, StepRunStatus

_RESULT = {
    Decision.APPROVE: StepRunStatus.SUCCEEDED,
    Decision.REJECT: StepRunStatus.REJECTED,
}
_WORD = {Decision.APPROVE: "approved", Decision.REJECT: "rejected"}


def decide_approval(document: Document, command: DecideApproval, context: Context) -> Outcome:
    """Approve or reject a step that waits for a decision."""
    wrong = screen.text(
        "note",
        command.note,
        bytes_max=NOTE_BYTES,
        prose=True,
        required=command.decision is Decision.REJECT,
    )
    if wrong:
        return invalid(*wrong)
    run = runs.find(document, command.run_id)
    if run is None:
        return unknown_run(command.run_id)
    index = runs.step_index(run, command.step_id)
    if index is None:
        return unknown_step(run, command.step_id)
    step_run = run.steps[index]
    action = step_run.step.action
    if not isinstance(action, RequireApproval):
        return Refused(
            Code.FAILED_PRECONDITION,
            f"step {command.step_id} of run {run.id} is not a require_approval step",
        )
    if step_run.decided_by == command.actor and step_run.status is _RESULT[command.decision]:
        return Accepted(document, run, duplicate=True)
    refusal = _objection(run, action, command, context) or _too_late(run, step_run, context)
    return refusal or _decided(document, run, index, command, context)


def _objection(
    run: Run, action: RequireApproval, command: DecideApproval, context: Context
) -> Refused | None:
    if not foureyes.may_decide(command.actor, action, context.admission):
        return Refused(
            Code.PERMISSION_DENIED,
            f"{command.actor} is neither the named approver nor an Atlas admin",
        )
    objection = foureyes.approval(run, action, context.admission).objection(command.actor)
    return Refused(Code.PERMISSION_DENIED, objection) if objection else None


def _too_late(run: Run, step_run: StepRun, context: Context) -> Refused | None:
    name = f"step {step_run.step.id} of run {run.id}"
    expired = (
        f"the approval expired at {utc_seconds(step_run.deadline)}" if step_run.deadline else ""
    )
    if step_run.status is StepRunStatus.WAITING_APPROVAL:
        if step_run.deadline is None or context.now < step_run.deadline:
            return None
        return Refused(Code.FAILED_PRECONDITION, expired)
    if step_run.status is StepRunStatus.EXPIRED:
        return Refused(Code.FAILED_PRECONDITION, expired)
    if step_run.decided_by and step_run.finished_at:
        word = "approved by" if step_run.status is StepRunStatus.SUCCEEDED else "by"
        when = utc_seconds(step_run.finished_at)
        return Refused(
            Code.FAILED_PRECONDITION,
            f"{name} is {step_run.status} ({word} {step_run.decided_by} at {when})",
        )
    return Refused(
        Code.FAILED_PRECONDITION, f"{name} is {step_run.status}: it does not wait for a decision"
    )


def _decided(
    document: Document, run: Run, index: int, command: DecideApproval, context: Context
) -> Accepted:
    step_run = replace(
        run.steps[index],
        status=_RESULT[command.decision],
        decided_by=command.actor,
        decision_note=command.note,
    )
    word = _WORD[command.decision]
    why = "" if command.decision is Decision.APPROVE else f"rejected by {command.actor}"
    moved = runs.end_step(run, index, step_run, context, why=why)
    sentence = f"{word} by {command.actor}: step {command.step_id} of run {run.id}"
    ids = runs.ids_of(run, command.step_id)
    record = entry(context, command.actor, "atlas.playbooks.approval.decide", ids, sentence)
    return runs.put(document, moved, record)


def unknown_step(run: Run, step_id: str) -> Refused:
    """Return the refusal of a step that the run does not have."""
    return Refused(Code.NOT_FOUND, f"{named('step', step_id)} does not exist in run {run.id}")
