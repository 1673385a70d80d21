"""An agent's report of its step.

Owns the step report of the contract's section 7: what is accepted, what is a duplicate, and what
conflicts. Only `success` goes on; nothing else is ever taken for it.
"""

from msgspec.structs import replace

from core_console.decide import marks, runs, screen
from core_console.decide.approvals import unknown_step
from core_console.decide.commands import ReportStep
from core_console.decide.context import Context
from core_console.decide.operators import unknown_run
from core_console.decide.outcome import Accepted, Code, Outcome, Refused, Violation, invalid
from core_console.decide.record import entry, utc_seconds
from core_console.decide.spec import agent_violations
from core_console.model.audit import Outcome as Recorded
from core_console.model.document import Document
from core_console.model.playbook import DispatchAgent
from core_console.model.run import Call, Conclusion, Run, StepRun, StepRunStatus

DETAIL_BYTES = 500
URL_BYTES = 300


def report_step(document: Document, command: ReportStep, context: Context) -> Outcome:
    """Take a report if the step awaits it from this agent; the very same again is a duplicate."""
    wrong = _violations(command)
    if wrong:
        return invalid(*wrong)
    run = runs.find(document, command.run_id)
    if run is None:
        return unknown_run(command.run_id)
    index = runs.step_index(run, command.step_id)
    if index is None:
        return unknown_step(run, command.step_id)
    step_run = run.steps[index]
    if _is_same(step_run, command):
        return Accepted(document, run, duplicate=True)
    conflict = _conflict(run, step_run, command, context)
    if conflict:
        return _refused(document, run, command, conflict, context)
    return _reported(document, run, index, command, context)


def _violations(command: ReportStep) -> tuple[Violation, ...]:
    known = {conclusion.value for conclusion in Conclusion}
    return (
        *agent_violations("agent", command.agent),
        *(
            ()
            if command.conclusion in known
            else (Violation("conclusion", f"is not one of {', '.join(sorted(known))}"),)
        ),
        *screen.text("detail", command.detail, bytes_max=DETAIL_BYTES),
        *screen.text("githubRunUrl", command.github_run_url, bytes_max=URL_BYTES),
    )


def _is_same(step_run: StepRun, command: ReportStep) -> bool:
    """Say whether this report was accepted before; `detail` is not compared."""
    action = step_run.step.action
    return (
        isinstance(action, DispatchAgent)
        and action.agent == command.agent
        and step_run.conclusion == command.conclusion
        and step_run.github_run_url == command.github_run_url
    )


def _conflict(run: Run, step_run: StepRun, command: ReportStep, context: Context) -> str:
    """Return why the step does not take this report, "" when it does."""
    name = f"step {command.step_id} of run {run.id}"
    action = step_run.step.action
    if not isinstance(action, DispatchAgent):
        return f"{name} dispatches no agent: it awaits no report"
    if action.agent != command.agent:
        return f"{name} awaits {action.agent}, not {command.agent}"
    if step_run.conclusion:
        return f"{name} was already reported {step_run.conclusion}; another report conflicts"
    if step_run.status is not StepRunStatus.WAITING_AGENT:
        return f"{name} is {step_run.status}: it awaits no report"
    if step_run.deadline is not None and context.now >= step_run.deadline:
        return f"{name} was due at {utc_seconds(step_run.deadline)}: the report is too late"
    return ""


def _reported(
    document: Document, run: Run, index: int, command: ReportStep, context: Context
) -> Accepted:
    success = command.conclusion == Conclusion.SUCCESS
    before = run.steps[index]
    step_run = replace(
        before,
        status=StepRunStatus.SUCCEEDED if success else StepRunStatus.FAILED,
        call=_settled(before.call),
        conclusion=command.conclusion,
        detail=command.detail,
        github_run_url=command.github_run_url,
    )
    why = (
        "" if success else f"step {command.step_id}: {command.agent} reported {command.conclusion}"
    )
    moved = runs.end_step(run, index, step_run, context, why=why)
    ids = runs.ids_of(run, command.step_id)
    sentence = (
        f"{command.agent} reported {command.conclusion} for step {command.step_id} of run {run.id}"
    )
    record = entry(context, command.actor, "atlas.playbooks.run.report", ids, sentence)
    ended = marks.reported(document, run.id, command.step_id, command.agent)
    return runs.put(ended, moved, record)


def _settled(call: Call) -> Call:
    """Return what the report makes of the dispatch: it settles an answer that was ambiguous.

    An answer that is not recorded yet comes by itself, and may still be that nothing was sent.
    """
    return Call.ACCEPTED if call is Call.UNKNOWN else call


def _refused(
    document: Document, run: Run, command: ReportStep, conflict: str, context: Context
) -> Outcome:
    """Refuse a report that nothing awaits; it ends the agent's dispatch all the same.

    A dispatch that was reported is no longer outstanding, so it gives no event its depth.
    """
    refused = Refused(Code.FAILED_PRECONDITION, conflict)
    ended = marks.reported(document, run.id, command.step_id, command.agent)
    if ended is document:
        return refused
    sentence = (
        f"the report of {command.agent} was refused ({conflict}); its dispatch is over all the same"
    )
    ids = runs.ids_of(run, command.step_id)
    record = entry(
        context,
        command.actor,
        "atlas.playbooks.run.report",
        ids,
        sentence,
        outcome=Recorded.FAILURE,
    )
    return Accepted(ended, None, (record,), refused=refused)
