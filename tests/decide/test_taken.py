"""A harness event is taken once from the document that it waited in, whatever is kept of it."""

import pytest
from msgspec.structs import replace

from core_console.decide.commands import RaiseEvent
from tests.builders import AUTHOR, a_document
from tests.decide.verdicts import accepted, repeated

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
