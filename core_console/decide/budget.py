"""The room in the metadoc: what is taken, what is reserved, and what may still be admitted.

Owns the budget (contract, section 9). Every run in flight has reserved the most that its remaining
steps can add, so whatever is in flight can always be finished, cancelled, reported and expired.
New work that does not fit has history trimmed for it, item by item; then it is refused by name.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress, count
from operator import is_not
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from core_console.decide.commands import Command, Tick
from core_console.decide.outbox import entries_bytes, is_new_work
from core_console.decide.outcome import Accepted, Code, Refused
from core_console.decide.reserve import MARK_BYTES, size_at_most
from core_console.model.audit import Entry
from core_console.model.document import Document
from core_console.model.event import Event
from core_console.model.pieces import Pieces
from core_console.model.run import Run

BUDGET_BYTES = 786_432
"""768 KiB as stored: what one swap can write in about a millisecond (contract, section 9)."""

SPARE_BYTES = 65_536
"""Kept free beside the runs' reserve: the entries of what ends work grow into it."""

EVENTS_KEPT = 50
FINISHED_KEPT = 20
"""The newest history, which is trimmed only when nothing else is left to trim."""

Item = TypeVar("Item", bound=Struct)

_Change = tuple[str, Item | None, Item | None]
"""A key with its item before and after; None is for one that is not there."""


class Room(Struct, frozen=True, gc=False):
    """What the document takes, and what its runs in flight may still add."""

    size_bytes: int
    reserve_bytes: int

    @property
    def needed_bytes(self) -> int:
        """All that the document may come to without new work."""
        return self.size_bytes + self.reserve_bytes + SPARE_BYTES


class Ledger:
    """Keeps account of the metadoc's room while a batch is decided.

    It remembers what it measured, by the identity of the frozen items; it decides the same
    without the memory, only slower.
    """

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._reserves: dict[int, tuple[Run, int]] = {}
        self._summed: tuple[Mapping[str, Run], int] = ({}, 0)

    def room(self, document: Document) -> Room:
        """Return the room of a document."""
        if document.running is not self._summed[0]:
            kept = {id(run): (run, self._reserve(run)) for run in document.running.values()}
            self._reserves = kept
            self._summed = (document.running, sum(reserve for _, reserve in kept.values()))
        return Room(self._pieces.size(document), self._summed[1])

    def moved(
        self, room: Room, before: Document, after: Document, entries: Sequence[Entry] = ()
    ) -> Room:
        """Return the room after a command, looking only at the items that it changed."""
        running = _differences(before.running, after.running)
        changes = [running, *map(_differences, _kept(before), _kept(after))]
        size = room.size_bytes + sum(map(self._grown, chain.from_iterable(changes)))
        for kind in ("marks", "taken", "deleted"):
            was, now = getattr(before, kind), getattr(after, kind)
            if was is not now:
                size += (len(now) - len(was)) * MARK_BYTES
        size += entries_bytes(entries)
        return Room(size, room.reserve_bytes + sum(map(self._reserved, running)))

    def _grown(self, change: _Change[Any]) -> int:
        key, before, after = change
        kept = len(key) + len('"":,')
        now = 0 if after is None else kept + self._size(after)
        return now - (0 if before is None else kept + self._size(before))

    def _reserved(self, change: _Change[Run]) -> int:
        _, before, after = change
        now = 0 if after is None else self._reserve(after)
        return now - (0 if before is None else self._reserve(before))

    def _reserve(self, run: Run) -> int:
        known = self._reserves.get(id(run))
        if known is not None and known[0] is run:
            return known[1]
        reserve = size_at_most(run) - self._size(run)
        self._reserves[id(run)] = (run, reserve)
        return reserve

    def _size(self, item: Struct) -> int:
        return len(self._pieces.of(item))

    def admit(
        self, before: Document, room: Room, command: Command, outcome: Accepted
    ) -> tuple[Accepted | Refused, Room]:
        """Return the outcome, with history trimmed for it or refused, and the room after it.

        What ends work is always admitted: its room was reserved.
        """
        after = self.moved(room, before, outcome.document, outcome.entries)
        starts = command.starts if isinstance(command, Tick) else is_new_work(command)
        if fits(after) or not starts:
            return outcome, after
        document, after = self._trimmed(outcome.document, after)
        if fits(after):
            return replace(outcome, document=document), after
        return refusal(after), room

    def _trimmed(self, document: Document, room: Room) -> tuple[Document, Room]:
        """Return the document with as little history gone as makes it fit, or with none left."""
        for shorter in _trims(document):
            room = self.moved(room, document, shorter)
            document = shorter
            if room.needed_bytes <= BUDGET_BYTES:
                break
        return document, room


def _differences(was: Mapping[str, Item], now: Mapping[str, Item]) -> list[_Change[Item]]:
    """Return each key whose item is another object; an item never changes its key.

    A command changes one item of hundreds, so they are compared without a line of Python each.
    """
    if was is now:
        return []
    if len(was) == len(now):
        others = list(compress(now, map(is_not, was.values(), now.values())))
        if len(others) == 1 and others[0] in was:
            return [(others[0], was[others[0]], now[others[0]])]
    return _moved(was, now)


def _moved(was: Mapping[str, Item], now: Mapping[str, Item]) -> list[_Change[Item]]:
    """Return the differences where items came, went or moved up.

    Only what lies between the common beginning and the common end is looked at by key.
    """
    before, after = list(was.values()), list(now.values())
    if len(before) == len(after) and not any(map(is_not, before[1:], after)):
        # History at its bound: the oldest goes, one comes.
        return [(next(iter(was)), before[0], None), (list(now)[-1], None, after[-1])]
    shorter = min(len(before), len(after))
    same = _common(before, after, shorter)
    same_at_end = min(_common(before[::-1], after[::-1], shorter), shorter - same)
    gone = list(was)[same : len(was) - same_at_end]
    come = list(now)[same : len(now) - same_at_end]
    return [
        (key, was.get(key), now.get(key))
        for key in dict.fromkeys((*gone, *come))
        if was.get(key) is not now.get(key)
    ]


def _common(left: Sequence[Item], right: Sequence[Item], most: int) -> int:
    """Return how many of the first items are the very same objects."""
    return next(compress(count(), map(is_not, left, right)), most)


def fits(room: Room) -> bool:
    """Say whether new work may be admitted."""
    return room.needed_bytes <= BUDGET_BYTES


def refusal(room: Room) -> Refused:
    """Return the refusal of new work that does not fit even without any history."""
    return Refused(
        Code.RESOURCE_EXHAUSTED,
        f"there is no room: the document would have {room.size_bytes:,} bytes, and the runs in "
        f"flight reserve {room.reserve_bytes + SPARE_BYTES:,} more, of {BUDGET_BYTES:,}; wait for "
        "runs to end, or delete a playbook",
    )


def _kept(document: Document) -> tuple[Mapping[str, Any], ...]:
    return (document.playbooks, document.finished, document.events)


def _trims(document: Document) -> Iterator[Document]:
    """Yield the document with one more item of history gone each time, in the contract's order."""
    for events_kept, finished_kept in ((EVENTS_KEPT, FINISHED_KEPT), (0, 0)):
        while len(document.events) > events_kept:
            document = _without_event(document, next(iter(document.events.values())))
            yield document
        while len(document.finished) > finished_kept and (run := _oldest(document)):
            document = _without_run(document, run)
            yield document


def _oldest(document: Document) -> Run | None:
    """Return the oldest run that may go, None when there is none.

    What changes in this very swap stays: an end that nobody could see is a run that vanished.
    """
    finished = document.finished.values()
    return next((run for run in finished if run.revision <= document.revision), None)


def _without_event(document: Document, event: Event) -> Document:
    trimmed = max(document.trimmed, event.revision)
    return replace(document, events=_without(document.events, event.id), trimmed=trimmed)


def _without_run(document: Document, run: Run) -> Document:
    trimmed = max(document.trimmed, run.revision)
    return replace(document, finished=_without(document.finished, run.id), trimmed=trimmed)


def _without(items: dict[str, Item], gone: str) -> dict[str, Item]:
    return {key: item for key, item in items.items() if key != gone}
