"""What takes the room of the metadoc: by kind, with the largest items, and what is reserved.

Owns the figures alone. Their sum is the stored size exactly, for the rest has a row of its own.
"""

from collections.abc import Callable, Iterable, Mapping

import msgspec
from msgspec import Struct

from core_console.decide.budget import BUDGET_BYTES, SPARE_BYTES, Ledger
from core_console.model.document import Document
from core_console.model.pieces import Pieces

LARGEST = 3
"""Shown of each kind: enough to see whether one item or the number of them takes the room."""


class Item(Struct, frozen=True, gc=False):
    """One item and its stored bytes."""

    id: str
    size_bytes: int


class Room(Struct, frozen=True, gc=False):
    """What one kind of item takes: how many there are, and the largest of them."""

    kind: str
    items: int
    size_bytes: int
    largest: tuple[Item, ...] = ()


class Size(Struct, frozen=True, gc=False):
    """What a document takes of its budget; `free_bytes` is what new work may still take.

    `free_bytes` is below zero when the runs in flight have reserved what history takes now.
    """

    revision: int
    size_bytes: int
    reserve_bytes: int
    spare_bytes: int
    budget_bytes: int
    free_bytes: int
    kinds: tuple[Room, ...]


def measure(document: Document, size_bytes: int) -> Size:
    """Return what takes the room of a document of that stored size."""
    kinds = [
        _room("playbooks", document.playbooks),
        _room("runs in flight", {run.id: run for run in document.running.values()}),
        _room("finished runs", document.finished),
        _room("events", document.events),
        _listed("marks", document.marks, lambda each: f"{each.run_id}/{each.step_id}"),
        _listed("outbox", document.outbox, lambda each: str(each.number)),
    ]
    rest = size_bytes - sum(kind.size_bytes for kind in kinds)
    reserve = Ledger(Pieces()).room(document).reserve_bytes
    return Size(
        revision=document.revision,
        size_bytes=size_bytes,
        reserve_bytes=reserve,
        spare_bytes=SPARE_BYTES,
        budget_bytes=BUDGET_BYTES,
        free_bytes=BUDGET_BYTES - size_bytes - reserve - SPARE_BYTES,
        kinds=(*kinds, Room("keys and the rest", 1, rest)),
    )


def _room(kind: str, items: Mapping[str, Struct]) -> Room:
    return _of(kind, (Item(key, len(msgspec.json.encode(item))) for key, item in items.items()))


def _listed(kind: str, items: Iterable[Struct], name: Callable[..., str]) -> Room:
    return _of(kind, (Item(name(each), len(msgspec.json.encode(each))) for each in items))


def _of(kind: str, items: Iterable[Item]) -> Room:
    by_size = sorted(items, key=lambda item: (-item.size_bytes, item.id))
    total = sum(item.size_bytes for item in by_size)
    return Room(kind, len(by_size), total, tuple(by_size[:LARGEST]))
