"""What goes from history because of its count is told to be gone, and deletions are remembered."""

import pytest
from msgspec.structs import replace

from core_console.decide import events, runs
from core_console.decide.commands import DeletePlaybook
from core_console.decide.history import DELETIONS_MAX
from core_console.decide.runs import Moved
from core_console.model.document import Deletion, Document
from core_console.model.event import Event
from core_console.model.playbook import PlaybookStatus
from core_console.model.run import Run, RunStatus
from tests.builders import AUTHOR, NOW, a_document, a_playbook, a_run
from tests.decide.verdicts import accepted


def finished(number: int) -> Run:
    ended = {"status": RunStatus.FAILED, "finished_at": NOW}
    return a_run(a_playbook(), id=f"PBR-{number}", revision=100 + number, **ended)


def an_event(number: int) -> Event:
    return Event(f"PBE-{number}", NOW, "datagov", "x", "agent:datagov", 100 + number)


@pytest.mark.parametrize(("kept", "trimmed"), [(0, 0), (199, 0), (200, 100), (205, 105)])
def test_a_finished_run_beyond_two_hundred_is_trimmed(kept: int, trimmed: int) -> None:
    document = a_document(a_playbook(), *map(finished, range(kept)))
    ended = runs.put(document, Moved(finished(999))).document
    assert (len(ended.finished), ended.trimmed) == (min(kept + 1, 200), trimmed)


@pytest.mark.parametrize(("kept", "trimmed"), [(0, 0), (299, 0), (300, 100), (303, 103)])
def test_an_event_beyond_three_hundred_is_trimmed(kept: int, trimmed: int) -> None:
    document = a_document(events={each.id: each for each in map(an_event, range(kept))})
    after = events.keep(document, an_event(999))
    assert (len(after.events), after.trimmed) == (min(kept + 1, 300), trimmed)


def test_what_is_trimmed_never_becomes_less() -> None:
    document = a_document(a_playbook(), *map(finished, range(200)), trimmed=5_000)
    assert runs.put(document, Moved(finished(999))).document.trimmed == 5_000


def deleting(count: int) -> Document:
    """Return a document from which that many playbooks were deleted, each in its own swap."""
    books = (a_playbook(id=f"PB-{n}", status=PlaybookStatus.DRAFT) for n in range(count))
    document = a_document(*books)
    for number in range(count):
        document = accepted(document, DeletePlaybook(AUTHOR, f"PB-{number}")).document
        document = replace(document, revision=document.revision + 1)
    return document


def test_a_deletion_is_remembered_with_the_revision_that_it_made() -> None:
    document = deleting(2)
    assert document.deleted == (Deletion("PB-0", 11), Deletion("PB-1", 12))
    assert document.trimmed == 0


def test_the_oldest_deletion_beyond_a_hundred_counts_as_trimmed() -> None:
    document = deleting(DELETIONS_MAX + 2)
    assert [each.playbook_id for each in document.deleted] == [f"PB-{n}" for n in range(2, 102)]
    assert document.trimmed == 12
