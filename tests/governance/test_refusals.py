"""Refusals: recorded, bounded against floods, and never in the way of their own answer."""

import asyncio
import json
from collections.abc import Sequence

import pytest
from structlog.testing import capture_logs

from core_console.governance.chain import Chain
from core_console.governance.refusals import Refusals
from core_console.model.audit import Entry, Outcome
from core_console.ports import Fault
from core_console.store.memory import MemoryLog
from tests.fakes import ManualClock
from tests.governance.records import chain_on, entry

PEER = "192.0.2.7"


def refused(text: str = "missing bearer token", target: str = "") -> Entry:
    return entry(text, actor="anonymous", target=target, outcome=Outcome.DENIED)


def details(log: MemoryLog) -> list[str]:
    return [json.loads(line)["detail"] for line in log.lines]


class HangingLog(MemoryLog):
    """A log whose appends wait until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()

    async def append(self, expected_seq: int, lines: Sequence[bytes]) -> None:
        await self.gate.wait()
        await super().append(expected_seq, lines)


async def test_every_refusal_of_a_known_caller_is_recorded() -> None:
    log = MemoryLog()
    refusals = Refusals(chain_on(log), ManualClock())
    for at in range(100):
        await refusals.record(entry(f"refusal {at}"), identified=True, peer=PEER)
    assert details(log) == [f"refusal {at}" for at in range(100)]
    assert refusals.unrecorded == 0


async def test_a_flood_of_one_peer_becomes_a_few_records_and_one_sum() -> None:
    log, clock = MemoryLog(), ManualClock()
    refusals = Refusals(chain_on(log), clock)
    for _ in range(10_000):
        await refusals.record(refused(), identified=False, peer=PEER)
    assert len(log.lines) == 5
    await refusals.flush()
    assert len(log.lines) == 5
    await clock.advance(60)
    await refusals.flush()
    assert len(log.lines) == 6
    total = json.loads(log.lines[-1])
    assert total["detail"] == (f"9995 more calls without an identity were refused ({PEER}: 9995)")
    assert (total["outcome"], total["action"]) == ("denied", "identity.refused")
    assert refusals.unrecorded == 0


async def test_a_flood_from_many_peers_is_bounded_too() -> None:
    log, clock = MemoryLog(), ManualClock()
    refusals = Refusals(chain_on(log), clock)
    for at in range(5_000):
        await refusals.record(refused(), identified=False, peer=f"2001:db8::{at:x}")
    assert len(log.lines) == 20
    assert len(refusals._summed) <= 1_001
    await clock.advance(60)
    await refusals.flush()
    assert details(log)[-1].startswith("4980 more calls without an identity were refused (other")
    assert len(log.lines[-1]) < 1_500


async def test_a_flood_does_not_silence_a_known_caller() -> None:
    log = MemoryLog()
    refusals = Refusals(chain_on(log), ManualClock())
    for at in range(100):
        await refusals.record(refused(), identified=False, peer=str(at))
    await refusals.record(entry("four eyes: no"), identified=True, peer=PEER)
    assert details(log)[-1] == "four eyes: no"


async def test_every_minute_a_peer_has_its_records_again() -> None:
    log, clock = MemoryLog(), ManualClock()
    refusals = Refusals(chain_on(log), clock)
    for _ in range(3):
        for _ in range(5):
            await refusals.record(refused(), identified=False, peer=PEER)
        await clock.advance(60)
    await refusals.flush()
    assert details(log) == ["missing bearer token"] * 15


async def test_closing_records_the_sum_before_its_minute_is_over() -> None:
    log = MemoryLog()
    refusals = Refusals(chain_on(log), ManualClock())
    for _ in range(7):
        await refusals.record(refused(), identified=False, peer=PEER)
    await refusals.flush(closing=True)
    await refusals.flush(closing=True)
    assert details(log)[5:] == [f"2 more calls without an identity were refused ({PEER}: 2)"]


async def test_a_refusal_that_cannot_be_recorded_is_counted_and_logged_without_its_text() -> None:
    log = MemoryLog()
    refusals = Refusals(chain_on(log), ManualClock())
    log.troubles.before.append(Fault("the disk is full"))
    with capture_logs() as logged:
        await refusals.record(refused("gh" + "s_secret"), identified=True, peer=PEER)
    assert refusals.unrecorded == 1
    assert [line["reason"] for line in logged] == ["the disk is full"]
    assert "s_secret" not in str(logged)


async def test_a_sum_that_cannot_be_recorded_counts_all_its_refusals() -> None:
    log = MemoryLog()
    refusals = Refusals(chain_on(log), ManualClock())
    for _ in range(25):
        await refusals.record(refused(), identified=False, peer=PEER)
    log.troubles.before.append(Fault("the disk is full"))
    await refusals.flush(closing=True)
    assert refusals.unrecorded == 20


async def test_a_store_that_hangs_holds_an_answer_up_for_two_seconds_only() -> None:
    log, clock = HangingLog(), ManualClock()
    refusals = Refusals(Chain(log, clock), clock)
    waiting = asyncio.create_task(refusals.record(entry(), identified=True, peer=PEER))
    await clock.advance(1.9)
    assert not waiting.done()
    await clock.advance(0.1)
    assert waiting.done()
    log.gate.set()
    await clock.advance()
    assert len(log.lines) == 1
    assert refusals.unrecorded == 0


async def test_a_store_that_hangs_holds_a_bounded_number_of_refusals() -> None:
    log, clock = HangingLog(), ManualClock()
    refusals = Refusals(Chain(log, clock), clock)
    waiting = [
        asyncio.create_task(refusals.record(entry(), identified=True, peer=PEER))
        for _ in range(300)
    ]
    await clock.advance(2)
    assert all(task.done() for task in waiting)
    assert refusals.unrecorded == 300 - 256
    log.gate.set()
    await clock.advance()
    assert len(log.lines) == 256


async def test_nobody_is_left_asleep_after_a_quick_answer() -> None:
    clock = ManualClock()
    refusals = Refusals(chain_on(MemoryLog()), clock)
    await refusals.record(entry(), identified=True, peer=PEER)
    await clock.advance()
    assert clock.sleepers == 0


async def test_a_caller_that_goes_away_leaves_its_record() -> None:
    log, clock = HangingLog(), ManualClock()
    refusals = Refusals(Chain(log, clock), clock)
    waiting = asyncio.create_task(refusals.record(entry(), identified=True, peer=PEER))
    await clock.advance()
    waiting.cancel()
    log.gate.set()
    await clock.advance()
    assert waiting.cancelled()
    assert len(log.lines) == 1


@pytest.mark.parametrize("text", ["x" * 5_000_000, "é" * 600])
async def test_an_over_long_text_is_left_out_and_said_so(text: str) -> None:
    log = MemoryLog()
    refusals = Refusals(chain_on(log), ManualClock())
    await refusals.record(refused(target=text), identified=True, peer=PEER)
    record = json.loads(log.lines[0])
    assert record["target"] == f"(left out: {len(text.encode())} bytes)"
    assert record["detail"] == "missing bearer token"


async def test_text_that_is_not_unicode_is_counted_and_nothing_is_raised() -> None:
    refusals = Refusals(chain_on(MemoryLog()), ManualClock())
    with capture_logs():
        await refusals.record(refused("\ud800"), identified=True, peer=PEER)
    assert refusals.unrecorded == 1
