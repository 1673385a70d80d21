"""The one door to the decisions: a command in, an outcome out.

Owns which rule decides which command, checked exhaustive by the type checker.
"""

from typing import assert_never

from core_console.decide import approvals, calls, due, events, lifecycle, operators, reports
from core_console.decide.commands import (
    ActivatePlaybook,
    CancelRun,
    Command,
    CreatePlaybook,
    DecideApproval,
    DeletePlaybook,
    DraftPlaybook,
    PausePlaybook,
    RaiseEvent,
    RecordCall,
    RecordScan,
    ReportStep,
    ResumePlaybook,
    RunNow,
    Tick,
    UpdatePlaybook,
)
from core_console.decide.context import Context
from core_console.decide.outcome import Outcome
from core_console.model.document import Document


def decide(document: Document, command: Command, context: Context) -> Outcome:  # noqa: C901, PLR0912 -- one flat line per command
    """Return what the command makes of the document; the document given is never changed."""
    match command:
        case CreatePlaybook() | DraftPlaybook():
            return lifecycle.create(document, command, context)
        case UpdatePlaybook():
            return lifecycle.update(document, command, context)
        case DeletePlaybook():
            return lifecycle.delete(document, command, context)
        case ActivatePlaybook():
            return lifecycle.activate(document, command, context)
        case PausePlaybook():
            return lifecycle.pause(document, command, context)
        case ResumePlaybook():
            return lifecycle.resume(document, command, context)
        case RunNow():
            return operators.run_now(document, command, context)
        case CancelRun():
            return operators.cancel_run(document, command, context)
        case DecideApproval():
            return approvals.decide_approval(document, command, context)
        case ReportStep():
            return reports.report_step(document, command, context)
        case RaiseEvent():
            return events.raise_event(document, command, context)
        case RecordCall():
            return calls.record_call(document, command, context)
        case RecordScan():
            return calls.record_scan(document, command, context)
        case Tick():
            return due.tick(document, command, context)
        case _ as never:
            assert_never(never)
