"""The machine's time and chance, in the form that everything else relies on."""

import re
from datetime import UTC, timedelta

from core_console.clock import RandomIds, SystemClock


def test_now_is_utc_in_whole_milliseconds() -> None:
    now = SystemClock().now()
    assert now.tzinfo is UTC
    assert now.microsecond % 1000 == 0


async def test_sleeping_and_pausing_take_the_time_that_they_say() -> None:
    clock = SystemClock()
    before, at = clock.monotonic(), clock.now()
    await clock.sleep(0.002)
    clock.pause(0.002)
    assert clock.monotonic() - before >= 0.004
    assert clock.now() - at >= timedelta(milliseconds=3)


def test_ids_have_their_prefix_and_never_repeat() -> None:
    ids = {RandomIds().new("PB") for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch("PB-[0-9a-hjkmnp-tv-z]{16}", found) for found in ids)


def test_jitter_stays_within_its_spread_and_moves() -> None:
    factors = [RandomIds().jitter(0.2) for _ in range(1000)]
    assert all(0.8 <= factor <= 1.2 for factor in factors)
    assert min(factors) < 0.9
    assert max(factors) > 1.1
