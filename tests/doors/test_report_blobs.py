"""The blobs of the reports: kept while they are named or young, and deleted after that."""

import pytest

from core_console.reports import ReportSweeper
from tests.doors.house import House, get
from tests.doors.test_agent_reports import JUDGE, post

DAY_S = 24 * 3600


@pytest.fixture
def house() -> House:
    return House()


def sweeper(house: House) -> ReportSweeper:
    return ReportSweeper(reports=house.reports, blobs=house.blobs, clock=house.clock)


async def test_the_latest_report_is_kept_for_ever(house: House) -> None:
    async with house.open() as door:
        await post(door, JUDGE)
        await house.clock.advance(400 * DAY_S)
        await sweeper(house).sweep()

        assert (await get(door, JUDGE)).status == 200


async def test_a_report_that_was_replaced_is_deleted_a_day_later(house: House) -> None:
    async with house.open() as door:
        await post(door, JUDGE)
        (first,) = house.blobs.held
        await house.clock.advance(30 * DAY_S)
        await post(door, JUDGE, {"judgements": []})
        await sweeper(house).sweep()
        assert first in house.blobs.held, "never at once: a restored document finds it"

        await house.clock.advance(DAY_S)
        await post(door, JUDGE, {"judgements": [{"id": "c", "outcome": "concur"}]})
        await sweeper(house).sweep()
        assert first not in house.blobs.held
        assert (await get(door, JUDGE)).status == 200


async def test_a_blob_that_no_swap_ever_named_is_deleted_after_a_day(house: House) -> None:
    async with house.open():
        digest = await house.blobs.put(b"{}")
        await house.clock.advance(DAY_S)
        await sweeper(house).sweep()
        assert digest in house.blobs.held

        await house.clock.advance(1)
        await sweeper(house).sweep()
        assert house.blobs.held == {}
