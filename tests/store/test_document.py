"""What every store promises of a document: one suite, each promise on every store."""

import pytest

from core_console.ports import Conflict, Fault, Stored
from tests.store.conftest import Shop


async def test_nothing_is_stored_at_first(shop: Shop) -> None:
    document = shop.document()
    assert await document.version() == ""
    assert await document.load() == Stored("", b"")


async def test_what_was_swapped_in_is_loaded_by_everybody(shop: Shop) -> None:
    ours, theirs = shop.document(), shop.document()
    version = await ours.swap("", b'{"a": 1}')
    assert version != ""
    for document in (ours, theirs, shop.document()):
        assert await document.version() == version
        assert await document.load() == Stored(version, b'{"a": 1}')


@pytest.mark.parametrize("data", [b"", b"\n", b"\x00" * 5_000, b"x" * 1_000_000])
async def test_any_bytes_come_back_as_they_were(shop: Shop, data: bytes) -> None:
    version = await shop.document().swap("", data)
    assert await shop.document().load() == Stored(version, data)


async def test_every_swap_gives_a_new_version_even_of_the_same_bytes(shop: Shop) -> None:
    document = shop.document()
    first = await document.swap("", b"same")
    second = await document.swap(first, b"same")
    third = await document.swap(second, b"same")
    assert len({first, second, third}) == 3


async def test_a_lost_race_is_a_conflict_and_changes_nothing(shop: Shop) -> None:
    ours, theirs = shop.document(), shop.document()
    start = await ours.swap("", b"start")
    won = await theirs.swap(start, b"theirs")
    with pytest.raises(Conflict):
        await ours.swap(start, b"ours")
    assert await ours.load() == Stored(won, b"theirs")


@pytest.mark.parametrize("expected", ["", "0", "1", "nonsense", "2-0000000000000000"])
async def test_a_wrong_version_is_a_conflict_and_changes_nothing(shop: Shop, expected: str) -> None:
    document = shop.document()
    version = await document.swap("", b"stored")
    with pytest.raises(Conflict):
        await document.swap(expected, b"other")
    assert await document.load() == Stored(version, b"stored")


async def test_a_version_is_a_conflict_when_nothing_is_stored(shop: Shop) -> None:
    document = shop.document()
    with pytest.raises(Conflict):
        await document.swap("1-0000000000000000", b"other")
    assert await document.load() == Stored("", b"")


async def test_a_failed_swap_changes_nothing_and_the_next_one_works(shop: Shop) -> None:
    document = shop.document()
    version = await document.swap("", b"old")
    shop.fail_next_swap()
    with pytest.raises(Fault, match="disk is full") as caught:
        await document.swap(version, b"new")
    assert caught.value.retryable
    assert await document.load() == Stored(version, b"old")
    newer = await document.swap(version, b"new")
    assert await document.load() == Stored(newer, b"new")


async def test_a_lost_reply_is_a_fault_and_loading_tells_what_landed(shop: Shop) -> None:
    document = shop.document()
    version = await document.swap("", b"old")
    shop.lose_reply_of_next_swap()
    with pytest.raises(Fault):
        await document.swap(version, b"new")
    stored = await document.load()
    assert stored.data == b"new"
    assert stored.version not in {"", version}
    with pytest.raises(Conflict):
        await document.swap(version, b"again")
    assert await document.version() == stored.version
