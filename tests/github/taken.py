"""Whether a door would take what an agent wrote: the doors' own readers and decisions judge it."""

from core_console.decide import agent_reports, events
from core_console.decide.agent_reports import Told
from core_console.decide.commands import RaiseEvent
from core_console.decide.outcome import Accepted
from core_console.doors import events as events_door
from core_console.doors import strict
from core_console.doors.agent_reports import BODY_BYTES as REPORT_BYTES
from core_console.doors.step_report import BODY_BYTES as EVENT_BYTES
from core_console.model.reports import DatagovReport, JudgeReport, ReconReport, Report
from tests.builders import a_document, context
from tests.github.conftest import Ended

REPORTS: dict[str, type[Report]] = {
    "datagov": DatagovReport,
    "recon": ReconReport,
    "judge": JudgeReport,
}


def told(agent: str, ended: Ended) -> Told:
    """Return what the agent's report says, and fail when its door would not take it."""
    assert ended.report is not None, ended.text
    assert len(ended.report) <= REPORT_BYTES
    found = agent_reports.read_out(strict.read(ended.report, REPORTS[agent]))
    assert isinstance(found, Told), found
    assert found.agent == agent
    return found


def raised(agent: str, ended: Ended) -> RaiseEvent:
    """Return the event that the agent raises, and fail when the door would not take it."""
    assert ended.report is not None, ended.text
    assert len(ended.report) <= EVENT_BYTES
    body = strict.read(ended.report, events_door.Body)
    events_door._check(body)
    command = events_door._command(body)
    assert command.agent == agent
    outcome = events.raise_event(a_document(), command, context())
    assert isinstance(outcome, Accepted), outcome
    return command
