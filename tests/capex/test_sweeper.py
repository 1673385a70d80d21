"""A blob goes a day after it was put, once nobody names it, and never with its commit."""

from core_console.app.feeds import FeedParts
from core_console.store.memory import MemoryBlobs
from tests.builders import AUTHOR
from tests.capex.house import CLEAN, PLAN, House, committed, faulty_plan, plans, staged

HOUR_S = 3_600


async def digest_of(house: House) -> str:
    return (await house.stored()).feeds[PLAN].digest


async def test_a_file_that_was_replaced_is_kept_for_a_day_and_then_goes(
    house: House, feeds: FeedParts
) -> None:
    await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
    old = await digest_of(house)
    house.clock.jump(72 * HOUR_S)
    await feeds.sweeper.sweep()
    assert old in house.blobs.held, "a feed stays, however old"
    await committed(feeds.capex, {PLAN: faulty_plan()})
    await feeds.sweeper.sweep()
    assert old in house.blobs.held, "never in the tick of the commit that replaced it"
    house.clock.jump(24 * HOUR_S - 1)
    await feeds.sweeper.sweep()
    assert old in house.blobs.held
    house.clock.jump(1)
    await feeds.sweeper.sweep()
    assert list(house.blobs.held) == [await digest_of(house)]


async def test_a_file_that_was_cleared_is_kept_for_a_day(house: House, feeds: FeedParts) -> None:
    await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
    house.clock.jump(72 * HOUR_S)
    await feeds.capex.clear(actor=AUTHOR, feed=PLAN, note="")
    await feeds.sweeper.sweep()
    assert len(house.blobs.held) == 1
    house.clock.jump(24 * HOUR_S)
    await feeds.sweeper.sweep()
    assert house.blobs.held == {}


async def test_an_expired_stage_is_dropped_by_the_next_tick_and_its_file_a_day_later(
    house: House, feeds: FeedParts
) -> None:
    await staged(feeds.capex, PLAN, CLEAN[PLAN])
    house.clock.jump(HOUR_S / 2)
    await feeds.sweeper.sweep()
    assert (await house.stored()).stages == ()
    assert len(house.blobs.held) == 1
    house.clock.jump(24 * HOUR_S)
    await feeds.sweeper.sweep()
    assert house.blobs.held == {}


async def test_a_blob_that_no_swap_ever_named_goes_after_a_day(
    house: House, feeds: FeedParts
) -> None:
    await house.blobs.put(b"its process died before the swap")
    house.clock.jump(24 * HOUR_S)
    await feeds.sweeper.sweep()
    assert len(house.blobs.held) == 1
    house.clock.jump(1)
    await feeds.sweeper.sweep()
    assert house.blobs.held == {}


async def test_a_tick_without_anything_to_sweep_writes_nothing(
    house: House, feeds: FeedParts
) -> None:
    await committed(feeds.capex, CLEAN)
    version = await house.document.version()
    await feeds.sweeper.sweep()
    assert await house.document.version() == version


async def test_a_file_that_is_staged_again_at_that_moment_is_not_deleted() -> None:
    house = House()

    class StagedMeanwhile(MemoryBlobs):
        """Another replica stages the same old bytes between the sweeper's reads and its delete."""

        async def delete(self, digest: str, **conditions: object) -> None:
            await staged(other.capex, PLAN, old)
            await super().delete(digest, **conditions)  # type: ignore[arg-type]  # passed on as they are

    house.kept = house.blobs = StagedMeanwhile(house.clock)
    old = plans("IT-old")
    async with house.replica() as one, house.replica() as other:
        await house.blobs.put(old)
        house.clock.jump(25 * HOUR_S)
        await one.sweeper.sweep()
        (stage,) = (await house.stored()).stages
        assert await house.blobs.get(stage.digest) == old
