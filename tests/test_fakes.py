"""The shared doubles behave, or every test that leans on them proves nothing."""

import asyncio

import pytest

from tests.fakes import NOON, CountingIds, ManualClock


async def test_sleepers_wake_in_the_order_of_their_time() -> None:
    clock, woke = ManualClock(), list[tuple[str, float]]()

    async def sleeper(name: str, seconds: float) -> None:
        for _ in range(2):
            await clock.sleep(seconds)
            woke.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("slow", 3), ("first", 2), ("second", 2)):
            group.create_task(sleeper(name, seconds))
        await clock.advance(1.9)
        assert (woke, clock.sleepers) == ([], 3)
        await clock.advance(4.1)
    assert woke == [
        ("first", 2),
        ("second", 2),
        ("slow", 3),
        ("first", 4),
        ("second", 4),
        ("slow", 6),
    ]
    assert (clock.now() - NOON).total_seconds() == clock.monotonic() == 6


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.advance()
    assert clock.sleepers == 1
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert clock.sleepers == 0
    await clock.advance(10)
    assert clock.monotonic() == 10


async def test_a_jump_of_the_wall_clock_wakes_nobody() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.advance()
    clock.jump(-3600)
    await clock.advance()
    assert not task.done()
    assert (clock.now() - NOON).total_seconds() == -3600
    assert clock.monotonic() == 0
    await clock.advance(5)
    assert task.done()


async def test_a_sleep_of_nothing_needs_nobody_to_move_the_clock() -> None:
    clock = ManualClock()
    await clock.sleep(0)
    assert clock.monotonic() == 0


def test_ids_count_per_prefix() -> None:
    ids = CountingIds()
    assert [ids.new(prefix) for prefix in ("PB", "PBR", "PB")] == ["PB-1", "PBR-1", "PB-2"]


def test_jitter_follows_its_script_and_stays_within_the_spread() -> None:
    ids = CountingIds([0.8, 1.3])
    assert ids.jitter(0.2) == 0.8
    with pytest.raises(AssertionError, match="beyond a spread"):
        ids.jitter(0.2)
    assert ids.jitter(0.2) == 1.0
