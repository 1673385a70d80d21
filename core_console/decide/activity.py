"""What changed after a revision: the difference that a follower of the document is told.

Owns the order and the revision of everything that is told. Nothing is queued for anybody: a
follower is a place, and what it has not been told is worked out from the newest document, so an
object that changed many times is told once, as it is now.
"""

from collections.abc import Iterator
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from core_console.model.document import Deletion, Document
from core_console.model.event import Event
from core_console.model.playbook import Playbook
from core_console.model.run import Run

PAGE = 64
"""What is told before the document is looked at again: whoever reads slowly holds on to little."""


class Gap(Struct, frozen=True, gc=False):
    """That changes between two revisions can no longer be told."""

    after_revision: int
    up_to_revision: int


Change = Playbook | Deletion | Event | Run | Gap


class Told(Struct, frozen=True, gc=False):
    """One change, and the revision up to which the follower knows everything once it has it."""

    revision: int
    change: Change


class Place(Struct, frozen=True, gc=False):
    """How far a follower was told.

    It knows everything up to `revision`. `seen` is the newest document that it was told from.
    When it began with everything that is kept, `trimmed` is what was gone by then, and deletions
    up to `begun` are of playbooks that it never heard of.
    """

    revision: int
    seen: int = 0
    trimmed: int = 0
    begun: int = 0


class Page(Struct, frozen=True, gc=False):
    """The next changes in order, and where the follower is after them."""

    told: tuple[Told, ...]
    place: Place


def place(document: Document, after_revision: int) -> Place:
    """Return the place of a follower who knows everything up to a revision, 0 for nothing."""
    return Place(after_revision) if after_revision else _beginning(document)


def page(document: Document, place: Place) -> Page:
    """Return the next changes; with none, the follower is where the document is.

    Changes of one revision are never cut apart. Only the last of them brings the follower there:
    whoever goes on from any revision that was told misses nothing.
    """
    gap = _gap(document, place)
    if gap is not None:
        begun = _beginning(document)
        after = page(document, begun)
        return Page((Told(begun.revision, gap), *after.told), after.place)
    fresh = [each for each in _kept(document, place) if revision_of(each) > place.revision]
    fresh.sort(key=revision_of)
    here = _whole_revisions(fresh)
    reached = document.revision if len(here) == len(fresh) else revision_of(here[-1])
    told = tuple(_told(here, known=place.revision, reached=reached))
    return Page(told, replace(place, revision=reached, seen=document.revision))


def revision_of(change: Playbook | Deletion | Event | Run) -> int:
    """Return the document's revision when this last changed."""
    return change.changed if isinstance(change, Playbook) else change.revision


def _beginning(document: Document) -> Place:
    return Place(0, document.revision, document.trimmed, document.revision)


def _gap(document: Document, place: Place) -> Gap | None:
    """Return what the follower can no longer be told.

    A document that is older than what the follower knows is a backup that was restored.
    """
    if document.revision < max(place.revision, place.seen):
        return Gap(place.revision, document.revision)
    if document.trimmed > max(place.revision, place.trimmed):
        return Gap(place.revision, document.trimmed)
    return None


def _kept(document: Document, place: Place) -> Iterator[Playbook | Deletion | Event | Run]:
    """Return what there is to tell; of one revision, causes come before what they caused."""
    return chain(
        document.playbooks.values(),
        (each for each in document.deleted if each.revision > place.begun),
        document.events.values(),
        document.finished.values(),
        document.running.values(),
    )


def _whole_revisions(
    fresh: list[Playbook | Deletion | Event | Run],
) -> list[Playbook | Deletion | Event | Run]:
    """Return the first of the changes, with all that share the last one's revision."""
    if len(fresh) <= PAGE:
        return fresh
    last = revision_of(fresh[PAGE - 1])
    return [each for each in fresh if revision_of(each) <= last]


def _told(
    changes: list[Playbook | Deletion | Event | Run], *, known: int, reached: int
) -> Iterator[Told]:
    for index, change in enumerate(changes):
        own = revision_of(change)
        if index + 1 == len(changes):
            yield Told(reached, change)
            continue
        if revision_of(changes[index + 1]) > own:
            known = own
        yield Told(known, change)
