"""A follower is told every change once, in order, and whoever goes on from any message misses none.

The last part is a small world of its own: a follower who keeps what it is told must hold what the
document holds, whatever is changed, deleted and trimmed meanwhile, and wherever it is cut off.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from core_console.decide import activity
from core_console.decide.activity import PAGE, Gap, Place, Told
from core_console.model.document import Deletion, Document
from core_console.model.event import Event
from core_console.model.playbook import Playbook
from core_console.model.run import Run, RunStatus
from tests.builders import NOW, a_document, a_playbook, a_run

Items = Playbook | Run | Event


def book(number: int, changed: int) -> Playbook:
    return a_playbook(id=f"PB-{number}", changed=changed)


def in_flight(number: int, revision: int) -> Run:
    return a_run(a_playbook(id=f"PB-{number}"), id=f"PBR-{number}", revision=revision)


def ended(number: int, revision: int) -> Run:
    return replace(in_flight(number, revision), status=RunStatus.FAILED, finished_at=NOW)


def event(number: int, revision: int) -> Event:
    return Event(f"PBE-{number}", NOW, "datagov", "x", "agent:datagov", revision)


def document(*items: Items, revision: int, **changes: Any) -> Document:  # noqa: ANN401 -- any field
    raised = {each.id: each for each in items if isinstance(each, Event)}
    others = [each for each in items if not isinstance(each, Event)]
    return replace(a_document(*others, events=raised), revision=revision, **changes)


def named(told: tuple[Told, ...]) -> list[tuple[int, str]]:
    """Return what was told: the revision it brings to, and the id or what else it is."""
    return [(each.revision, name_of(each)) for each in told]


def name_of(told: Told) -> str:
    match told.change:
        case Deletion(playbook_id=playbook_id):
            return f"-{playbook_id}"
        case Gap(after_revision=after, up_to_revision=up_to):
            return f"gap {after}..{up_to}"
        case Playbook() | Run() | Event() as item:
            return item.id


def told_after(found: Document, after_revision: int) -> list[tuple[int, str]]:
    return named(activity.page(found, activity.place(found, after_revision)).told)


EVERYTHING = document(
    book(1, 3), book(2, 9), in_flight(2, 9), ended(1, 7), event(1, 9), event(2, 4), revision=12
)


def test_everything_that_is_kept_comes_in_the_order_in_which_it_changed() -> None:
    assert [name for _, name in told_after(EVERYTHING, 0)] == [
        "PB-1",
        "PBE-2",
        "PBR-1",
        "PB-2",
        "PBE-1",
        "PBR-2",
    ]


def test_only_the_last_of_one_revision_brings_the_reader_there() -> None:
    assert [revision for revision, _ in told_after(EVERYTHING, 0)] == [3, 4, 7, 7, 7, 12]


def test_the_last_message_brings_the_reader_to_the_document() -> None:
    assert told_after(EVERYTHING, 7)[-1] == (12, "PBR-2")
    page = activity.page(EVERYTHING, activity.place(EVERYTHING, 9))
    assert page == activity.Page((), Place(12, seen=12)), "nobody is behind for lack of a change"
    assert activity.page(EVERYTHING, page.place).told == ()


@pytest.mark.parametrize("after", range(1, 13))
def test_after_a_revision_comes_exactly_what_changed_later(after: int) -> None:
    changed = {"PB-1": 3, "PBE-2": 4, "PBR-1": 7, "PB-2": 9, "PBE-1": 9, "PBR-2": 9}
    assert [name for _, name in told_after(EVERYTHING, after)] == [
        name for name, revision in changed.items() if revision > after
    ]


def test_a_deletion_is_told_to_whoever_may_know_the_playbook() -> None:
    found = document(book(1, 5), revision=8, deleted=(Deletion("PB-7", 4), Deletion("PB-8", 6)))
    assert told_after(found, 3) == [(4, "-PB-7"), (5, "PB-1"), (8, "-PB-8")]
    assert told_after(found, 4) == [(5, "PB-1"), (8, "-PB-8")]
    assert told_after(found, 0) == [(8, "PB-1")], "whoever knows nothing has nothing to forget"


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (0, [(4, "PB-1"), (20, "PBE-1")]),
        (10, [(0, "gap 10..11"), (4, "PB-1"), (20, "PBE-1")]),
        (11, [(20, "PBE-1")]),
        (20, []),
        (21, [(0, "gap 21..20"), (4, "PB-1"), (20, "PBE-1")]),
    ],
    ids=["everything kept", "trimmed between", "told by then", "nothing new", "from the future"],
)
def test_what_cannot_be_told_any_more_is_a_gap_and_then_everything_kept(
    after: int, told: list[tuple[int, str]]
) -> None:
    found = document(book(1, 4), event(1, 15), revision=20, trimmed=11)
    assert told_after(found, after) == told


def test_a_gap_in_a_document_with_nothing_brings_the_reader_to_it() -> None:
    found = document(revision=5, trimmed=4, deleted=(Deletion("PB-1", 3),))
    page = activity.page(found, Place(2))
    assert (named(page.told), page.place.revision) == ([(0, "gap 2..4")], 5)


def test_pages_are_short_but_never_cut_one_revision_apart() -> None:
    many = [event(n, n + 1) for n in range(PAGE - 1)]
    swap = [event(1_000 + n, PAGE) for n in range(200)]
    found = document(*many, *swap, event(9_999, PAGE + 1), revision=500)
    page = activity.page(found, activity.place(found, 0))
    assert len(page.told) == PAGE - 1 + 200
    assert (page.told[-2].revision, page.told[-1].revision) == (PAGE - 1, PAGE)
    assert named(activity.page(found, page.place).told) == [(500, "PBE-9999")]


def long_history(revision: int = 500, **changes: Any) -> Document:  # noqa: ANN401 -- any field
    return document(*(event(n, n + 1) for n in range(100)), revision=revision, **changes)


def test_what_goes_while_a_reader_reads_is_told_as_a_gap() -> None:
    first = activity.page(long_history(trimmed=3), activity.place(long_history(trimmed=3), 0))
    later = long_history(501, trimmed=90)
    assert named(activity.page(later, first.place).told)[0] == (0, f"gap {PAGE}..90")
    unread = long_history(501, trimmed=PAGE)
    assert named(activity.page(unread, first.place).told)[0] == (PAGE + 1, f"PBE-{PAGE}")


def test_a_playbook_deleted_while_a_reader_reads_is_told_as_deleted() -> None:
    first = activity.page(long_history(), activity.place(long_history(), 0))
    later = long_history(501, deleted=(Deletion("PB-1", 400), Deletion("PB-2", 501)))
    assert named(activity.page(later, first.place).told)[-1] == (501, "-PB-2")


def test_a_backup_restored_while_a_reader_reads_is_told_as_a_gap() -> None:
    first = activity.page(long_history(), activity.place(long_history(), 0))
    assert first.place.revision == PAGE
    restored = long_history(400)
    assert named(activity.page(restored, first.place).told)[0] == (0, f"gap {PAGE}..400")


@dataclass
class Follower:
    """Keeps what it is told, as a client does, and goes on from the last message it has."""

    revision: int = 0
    known: dict[str, int] = field(default_factory=dict)

    def asks(self, document: Document) -> Place:
        """Open a stream; who asks after 0 begins anew, for no deletion is told then."""
        if not self.revision:
            self.known.clear()
        return activity.place(document, self.revision)

    def hears(self, told: Told) -> None:
        change = told.change
        if isinstance(change, Gap):
            self.known.clear()
        elif isinstance(change, Deletion):
            self.known.pop(change.playbook_id, None)
        elif isinstance(change, Playbook):
            self.known[change.id] = change.changed
        else:
            self.known[change.id] = change.revision
        self.revision = told.revision


@dataclass
class Swaps:
    """A document that changes as the console's does, with a memory of two deletions."""

    now: Document = field(default_factory=lambda: document(revision=0))
    gone: set[str] = field(default_factory=set)

    def swap(self, changes: list[tuple[str, int]]) -> None:
        revision = self.now.revision + 1
        for what, number in changes:
            self._change(what, number, revision)
        self.now = replace(self.now, revision=revision)

    def _change(self, what: str, number: int, revision: int) -> None:
        now = self.now
        match what:
            case "playbook" if f"PB-{number}" not in self.gone:  # ids never come again
                fresh = book(number, revision)
                self.now = replace(now, playbooks=now.playbooks | {fresh.id: fresh})
            case "event":
                raised = event(number, revision)
                self.now = replace(now, events=now.events | {raised.id: raised})
            case "delete" if f"PB-{number}" in now.playbooks:
                self.gone.add(f"PB-{number}")
                rest = {k: v for k, v in now.playbooks.items() if k not in self.gone}
                deleted = (*now.deleted, Deletion(f"PB-{number}", revision))
                gone = [each.revision for each in deleted[:-2]]
                trimmed = max((now.trimmed, *gone))
                self.now = replace(now, playbooks=rest, deleted=deleted[-2:], trimmed=trimmed)
            case "trim" if now.events:
                oldest = min(now.events.values(), key=activity.revision_of)
                rest_of = {k: v for k, v in now.events.items() if k != oldest.id}
                trimmed = max(now.trimmed, oldest.revision)
                self.now = replace(now, events=rest_of, trimmed=trimmed)
            case _:
                return

    def kept(self) -> dict[str, int]:
        items: list[Playbook | Event] = [*self.now.playbooks.values(), *self.now.events.values()]
        return {each.id: activity.revision_of(each) for each in items}


CHANGES = st.tuples(st.sampled_from(["playbook", "event", "delete", "trim"]), st.integers(0, 5))
ROUNDS = st.lists(
    st.tuples(
        st.lists(st.lists(CHANGES, max_size=4), max_size=6),
        st.integers(0, 12),
        st.booleans(),
    ),
    max_size=12,
)


def hear(follower: Follower, swaps: Swaps, place: Place, most: int) -> Place | None:
    """Tell up to `most` messages; return the place, None when the reader was cut off before."""
    heard = 0
    while place.revision != swaps.now.revision or place.seen < swaps.now.revision:
        page = activity.page(swaps.now, place)
        for told in page.told:
            if heard == most:
                return None
            follower.hears(told)
            heard += 1
        place = page.place
    return place


@given(ROUNDS)
@example([([[("playbook", 1), ("playbook", 0)]], 1, False), ([[("delete", 1)]], 0, False)])
def test_a_follower_ends_up_with_all_that_is_kept_wherever_it_was_cut_off(
    rounds: list[tuple[list[list[tuple[str, int]]], int, bool]],
) -> None:
    swaps, follower = Swaps(), Follower()
    place: Place | None = None
    for changes, most, stays in rounds:
        for each in changes:
            swaps.swap(each)
        if place is None or not stays:
            place = follower.asks(swaps.now)
        place = hear(follower, swaps, place, most)
    hear(follower, swaps, follower.asks(swaps.now), 10_000)
    kept = swaps.kept()
    # What was trimmed after it was told is no business of a follower's; a playbook is.
    alive = {k: v for k, v in follower.known.items() if k in kept or k.startswith("PB-")}
    assert alive == kept
