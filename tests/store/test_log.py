"""What every store promises of a log: one suite, each promise on every store."""

import json

import pytest

from core_console.ports import Conflict, Fault
from tests.store.conftest import Shop


def line(seq: int, text: str = "") -> bytes:
    return json.dumps({"seq": seq, "text": text}).encode()


def lines(first: int, last: int) -> list[bytes]:
    return [line(seq) for seq in range(first, last + 1)]


async def test_a_new_log_is_empty(shop: Shop) -> None:
    log = shop.log()
    assert await log.last_seq() == 0
    assert await log.read(1, 10) == []


async def test_lines_are_read_in_order_by_everybody(shop: Shop) -> None:
    ours, theirs = shop.log(), shop.log()
    await ours.append(0, lines(1, 3))
    await theirs.append(3, lines(4, 5))
    for log in (ours, theirs, shop.log()):
        assert await log.last_seq() == 5
        assert await log.read(1, 10) == lines(1, 5)


@pytest.mark.parametrize(("first", "count", "last"), [(1, 1, 1), (3, 2, 4), (5, 9, 5), (6, 1, 0)])
async def test_a_read_gives_what_was_asked_for_as_far_as_it_goes(
    shop: Shop, first: int, count: int, last: int
) -> None:
    log = shop.log()
    await log.append(0, lines(1, 5))
    assert await log.read(first, count) == lines(first, last)


async def test_a_lost_race_is_a_conflict_and_adds_nothing(shop: Shop) -> None:
    ours, theirs = shop.log(), shop.log()
    assert await ours.last_seq() == await theirs.last_seq() == 0
    await theirs.append(0, [line(1, "theirs")])
    with pytest.raises(Conflict):
        await ours.append(0, [line(1, "ours")])
    assert await ours.last_seq() == 1
    assert await ours.read(1, 5) == [line(1, "theirs")]


@pytest.mark.parametrize("expected", [1, 3, 99])
async def test_a_wrong_place_is_a_conflict_and_adds_nothing(shop: Shop, expected: int) -> None:
    log = shop.log()
    await log.append(0, lines(1, 2))
    with pytest.raises(Conflict):
        await log.append(expected, [line(expected + 1)])
    assert await log.read(1, 9) == lines(1, 2)


async def test_a_failed_append_adds_nothing_and_the_next_one_works(shop: Shop) -> None:
    log = shop.log()
    await log.append(0, lines(1, 2))
    shop.fail_next_append()
    with pytest.raises(Fault, match="disk is full"):
        await log.append(2, lines(3, 4))
    assert await log.last_seq() == 2
    await log.append(2, lines(3, 4))
    assert await log.read(1, 9) == lines(1, 4)


async def test_a_lost_reply_is_a_fault_and_the_end_tells_what_landed(shop: Shop) -> None:
    log = shop.log()
    await log.append(0, lines(1, 2))
    shop.lose_reply_of_next_append()
    with pytest.raises(Fault):
        await log.append(2, lines(3, 4))
    assert await log.last_seq() == 4
    assert await shop.log().read(1, 9) == lines(1, 4)
    with pytest.raises(Conflict):
        await log.append(2, lines(3, 4))


async def test_appending_no_lines_changes_nothing(shop: Shop) -> None:
    log = shop.log()
    await log.append(0, [])
    assert await log.last_seq() == 0
