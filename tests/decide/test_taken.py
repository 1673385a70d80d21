"""A harness event is taken once from the document that it waited in, whatever is kept of it."""

import pytest
from msgspec.structs import replace

from core_console.decide.commands import RaiseEvent
from core_console.decide.outcome import Code
from core_console.model.event import Chain
from core_console.model.playbook import AgentEventTrigger, Trigger
from core_console.model.run import Cause
from tests.builders import AUTHOR, a_document, a_playbook, a_spec, approve
from tests.decide.verdicts import accepted, refused, repeated

COMMITTED = RaiseEvent(
    agent="capex",
    event="scan.committed",
    id="PBE-of-the-scan",
    committed_by=AUTHOR,
    source="capex",
    number=4,
)


def test_an_event_of_another_document_is_taken_under_its_number() -> None:
    outcome = accepted(a_document(taken={"capex": 3, "reports": 9}), COMMITTED)
    assert outcome.document.taken == {"capex": 4, "reports": 9}
    assert outcome.document.events[COMMITTED.id].raised_by == AUTHOR


@pytest.mark.parametrize("number", [4, 3, 1])
def test_a_number_is_taken_once_and_none_below_it(number: int) -> None:
    after = accepted(a_document(), COMMITTED).document
    again = replace(COMMITTED, number=number)
    assert repeated(after, again).answer == after.events["PBE-of-the-scan"]
    trimmed = replace(after, events={})
    assert repeated(trimmed, again).answer is None, "even when the event is not kept any more"


def test_numbers_of_two_documents_are_not_compared() -> None:
    after = accepted(a_document(), COMMITTED).document
    other = replace(COMMITTED, id="PBE-other", source="reports", number=1)
    assert accepted(after, other).document.taken == {"capex": 4, "reports": 1}


def test_an_agents_own_event_takes_no_number() -> None:
    found = RaiseEvent(agent="datagov", event="found")
    assert accepted(a_document(), found).document.taken == {}


REPORTED = RaiseEvent(
    agent="datagov",
    event="findings.reported",
    caused_by_run_id="PBR-7",
    id="PBE-of-the-report",
    source="reports",
    number=1,
)
TRIGGER = Trigger("findings", AgentEventTrigger("datagov", "findings.reported"), 60)
WATCHER = a_playbook(spec=a_spec(approve(), triggers=(TRIGGER,)))


@pytest.mark.parametrize("cause", list(Cause))
def test_an_event_that_waited_is_judged_by_what_was_known_when_it_came(cause: Cause) -> None:
    came = Chain(3, "PBR-7", cause)
    document = accepted(a_document(WATCHER), replace(REPORTED, known=came)).document
    run = document.running["PB-1"]
    assert (run.chain_depth, run.caused_by_run_id, run.cause) == (3, "PBR-7", cause)
    assert document.events[REPORTED.id].chain_depth == 3


def test_an_event_that_waited_and_was_too_deep_when_it_came_starts_nothing() -> None:
    command = replace(REPORTED, caused_by_run_id="", known=Chain(4, "PBR-7", Cause.INFERRED))
    document = accepted(a_document(WATCHER), command).document
    assert document.running == {}
    (skip,) = document.events[REPORTED.id].skipped
    assert skip.reason == "chain depth 4 exceeds 3 (caused by run PBR-7) — refused, not run"


def test_a_named_run_that_was_never_known_is_refused_however_long_the_event_waited() -> None:
    reason = "causedByRunId: run PBR-7 does not exist, or is no longer kept"
    refused(a_document(WATCHER), REPORTED, Code.NOT_FOUND, reason)
