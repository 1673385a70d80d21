"""Putting a document together from its items gives the very bytes of encoding it whole."""

import msgspec
import pytest
from msgspec.structs import replace

from core_console.model.capex_document import EMPTY_CAPEX
from core_console.model.document import EMPTY, Document, Versioned
from core_console.model.pieces import _MEASURED_MAX, Pieces
from tests.builders import a_document, a_playbook, a_run_at, approve

SOME = a_document(
    a_playbook(approve(), id="PB-1"),
    a_playbook(approve(), id='PB-"2"'),
    a_run_at(a_playbook(approve()), "approve"),
)


@pytest.mark.parametrize(
    "document",
    [EMPTY, EMPTY_CAPEX, SOME, replace(SOME, taken={"capex": 3}, trimmed=7)],
    ids=["empty", "another kind", "items", "no defaults"],
)
def test_the_bytes_are_those_of_encoding_the_whole(document: Versioned) -> None:
    pieces = Pieces()
    whole = msgspec.json.encode(document)
    assert pieces.document(document) == whole
    assert pieces.document(document) == whole, "and again, from memory"
    assert pieces.size(document) == len(whole)


def test_an_item_that_is_replaced_is_encoded_again() -> None:
    pieces = Pieces()
    pieces.document(SOME)
    renamed = replace(SOME.playbooks["PB-1"], revision=99)
    changed: Document = replace(SOME, playbooks=SOME.playbooks | {"PB-1": renamed})
    assert pieces.document(changed) == msgspec.json.encode(changed)


def test_an_item_that_moves_to_another_key_is_written_with_that_key() -> None:
    pieces = Pieces()
    pieces.document(SOME)
    item = SOME.playbooks["PB-1"]
    for playbooks in ({"PB-9": item}, {"PB-9": item, "PB-1": item}):
        moved: Document = replace(SOME, playbooks=playbooks)
        assert pieces.document(moved) == msgspec.json.encode(moved)


def test_what_is_gone_is_forgotten() -> None:
    pieces = Pieces()
    pieces.document(SOME)
    assert set(pieces._items["playbooks"]._bytes) == set(SOME.playbooks)
    fewer: Document = replace(SOME, playbooks={"PB-1": SOME.playbooks["PB-1"]})
    pieces.document(fewer)
    assert set(pieces._items["playbooks"]._bytes) == {"PB-1"}


def test_what_is_measured_is_remembered_up_to_a_bound() -> None:
    pieces = Pieces()
    item = SOME.playbooks["PB-1"]
    for revision in range(_MEASURED_MAX + 1):
        pieces.of(replace(item, revision=revision))
    assert len(pieces._measured) == 1
    assert pieces.of(item) == msgspec.json.encode(item)
