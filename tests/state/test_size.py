"""What takes the room, to the byte, and who holds what."""

from msgspec.structs import replace

from core_console.batch import CAPEX, METADOC
from core_console.decide import budget
from core_console.model.codec import encode
from core_console.model.document import EMPTY
from core_console.reports import REPORTS
from core_console.state import parts, show, size
from tests.builders import NOW, REPLICA, a_document, a_playbook, a_run, a_run_at, approve
from tests.state.conftest import Site, full


def test_the_kinds_come_to_the_stored_size_exactly() -> None:
    document = full()
    stored = len(encode(document))
    found = size.measure(document, stored)
    assert sum(kind.size_bytes for kind in found.kinds) == stored == found.size_bytes
    assert found.revision == document.revision
    items = {kind.kind: kind.items for kind in found.kinds}
    assert items == {
        "playbooks": 3,
        "runs in flight": 2,
        "finished runs": 1,
        "events": 1,
        "marks": 1,
        "outbox": 2,
        "keys and the rest": 1,
    }


def test_the_largest_items_come_first() -> None:
    wordy = a_playbook(approve(), id="PB-wordy")
    wordy = replace(wordy, spec=replace(wordy.spec, description="x" * 500))
    others = [a_playbook(approve(), id=f"PB-{number}") for number in range(4)]
    document = a_document(*others, wordy)
    (playbooks, *_) = size.measure(document, len(encode(document))).kinds
    assert [item.id for item in playbooks.largest] == ["PB-wordy", "PB-0", "PB-1"]
    assert playbooks.largest[0].size_bytes > playbooks.largest[1].size_bytes + 499


def test_the_reserve_and_what_is_free_are_those_of_the_rules() -> None:
    document = full()
    stored = len(encode(document))
    found = size.measure(document, stored)
    room = budget.Ledger(METADOC.codec.pieces).room(document)
    assert found.reserve_bytes == room.reserve_bytes > 0
    assert found.free_bytes == budget.BUDGET_BYTES - room.needed_bytes
    assert size.measure(EMPTY, 0).free_bytes == budget.BUDGET_BYTES - budget.SPARE_BYTES


async def test_a_root_is_shown_at_a_glance(site: Site) -> None:
    found = {name: await parts.read(site.root, name) for name in parts.NAMES}
    told = show.shown(found[METADOC.name], 4)
    assert (told.name, told.revision, told.waiting) == (METADOC.name, 10, 1)
    assert told.holds == ("3 playbooks (2 ACTIVE, 1 DRAFT), 2 runs in flight, 1 finished, 1 events")
    assert told.size_bytes == len(found[METADOC.name].data)
    feeds = show.shown(found[CAPEX.name], 1)
    assert feeds.holds == "1 feeds, 1 staged files, 0 scan runs, 1 events to raise"
    assert show.shown(found[REPORTS.name], 1).holds == "1 reports, 0 events to raise"


def test_who_holds_which_run_is_shown_oldest_first() -> None:
    waiting = a_playbook(approve(), id="PB-2")
    run = a_run(waiting, id="PBR-2", started_at=NOW.replace(hour=11))
    document = a_document(a_playbook(), waiting, a_run_at(a_playbook(), "detect"), run)
    first, second = show.claims(document)
    assert (first.run_id, first.status, first.held_by, first.since) == (
        "PBR-2",
        "PENDING",
        "",
        None,
    )
    assert (second.run_id, second.step_id, second.held_by) == ("PBR-1", "detect", REPLICA)
    assert second.since == NOW
    assert second.deadline is not None
