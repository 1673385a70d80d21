"""The event of a report that has to wait is never judged at a lower depth than it came with."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide.outbox import OUTBOX_BYTES_MAX, outbox_bytes
from core_console.model.audit import Entry, OutboxEntry, Outcome
from core_console.model.codec import encode
from core_console.model.document import Document, Mark
from core_console.model.event import FIRST_CAUSE, Chain, Event
from core_console.model.run import Cause
from core_console.ports import Fault
from core_console.store.memory import MemoryDocument
from tests.builders import NOW, a_document, a_playbook, a_run, a_run_at
from tests.doors.house import House, waits_for
from tests.doors.site import REPORT, Answer, Site

DATAGOV = "/api/data-governance-findings"
FINDINGS = {
    "agent": "datagov",
    "connectionsAssessed": 1,
    "findings": [{"control": "tls", "verdict": "fail", "domain": "sales", "connection": "lake"}],
}
DISPATCHING = a_playbook(id="PB-1")
WATCHER = waits_for("datagov", "findings.reported", id="PB-2")

_ENTRY = Entry(NOW, "system:ticker", "atlas.tests", "PB-1", Outcome.SUCCESS, "d" * 500, "playbook")
FULL = tuple(OutboxEntry(number, _ENTRY) for number in range(1, 151))


def dispatched(depth: int) -> tuple[Any, dict[str, Any]]:
    """Return a run of that depth whose datagov has not reported yet, and its mark."""
    run = a_run_at(DISPATCHING, "detect", chain_depth=depth)
    return run, {"marks": (Mark("PBR-1", "detect", "datagov", depth, NOW),)}


def a_house(store: MemoryDocument | None = None) -> House:
    house = House(store=store)
    house.ids.new("PBR")  # the run that these tests begin with has the first
    return house


async def forget_runs(house: House) -> None:
    document = replace(await house.engine.snapshot(), running={}, finished={})
    await house.store.swap(await house.store.version(), encode(document))


async def findings(door: Site, **more: str) -> Answer:
    return await door.post(FINDINGS | more, path=DATAGOV)


async def waiting(house: House) -> list[Chain]:
    return [each.chain for each in (await house.reports.snapshot()).raising]


async def the_event(house: House) -> Event:
    (event,) = await house.events()
    return event


def test_the_outbox_of_these_tests_is_full() -> None:
    assert outbox_bytes(a_document(outbox=FULL)) > OUTBOX_BYTES_MAX


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
async def test_a_dispatch_that_ends_while_the_metadoc_takes_no_new_work_still_gives_its_depth(
    depth: int,
) -> None:
    house = a_house()
    run, mark = dispatched(depth)
    full = {"outbox": FULL, "outbox_number": len(FULL)}
    house.log.troubles.before.extend(Fault("the log's disk is full") for _ in range(99))
    async with house.open(DISPATCHING, run, WATCHER, **mark, **full) as door:
        assert (await findings(door)).json == {"accepted": True}
        assert (await door.post(REPORT)).json == {"accepted": True}
        ended: Document = await house.engine.snapshot()
        assert ([mark.reported for mark in ended.marks], ended.events) == ([True], {})
        assert await waiting(house) == [Chain(depth + 1, "PBR-1", Cause.INFERRED)]
        house.log.troubles.before.clear()
        await house.raiser.move()

        event = await the_event(house)
        assert event.chain_depth == depth + 1
        started = (await house.engine.snapshot()).running.get("PB-2")
        if depth < 3:
            assert started is not None
            assert (started.chain_depth, started.caused_by_run_id) == (depth + 1, "PBR-1")
            assert started.cause is Cause.INFERRED
        else:
            assert started is None
            (skip,) = event.skipped
            assert skip.reason == "chain depth 4 exceeds 3 (caused by run PBR-1) — refused, not run"
        assert await waiting(house) == []


async def test_a_step_report_that_overtakes_the_storing_of_a_report_lowers_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    house = a_house()
    run, mark = dispatched(3)
    put = house.blobs.put
    async with house.open(DISPATCHING, run, WATCHER, **mark) as door:

        async def slowly(data: bytes) -> str:
            assert (await door.post(REPORT)).status == 200
            return await put(data)

        monkeypatch.setattr(house.blobs, "put", slowly)
        assert (await findings(door)).status == 200

        event = await the_event(house)
        assert (event.chain_depth, event.started) == (4, ())


async def test_a_run_that_a_report_named_may_be_forgotten_while_its_event_waits() -> None:
    house = a_house()
    named = a_run(DISPATCHING, id="PBR-7", chain_depth=1)
    async with house.open(DISPATCHING, named, WATCHER) as door:
        house.store.troubles.before.append(Fault("the disk is full"))
        assert (await findings(door, causedByRunId="PBR-7")).status == 200
        assert await waiting(house) == [Chain(2, "PBR-7", Cause.NAMED)]
        await forget_runs(house)
        await house.raiser.move()

        event = await the_event(house)
        assert (event.chain_depth, event.caused_by_run_id) == (2, "PBR-7")
        assert len(event.started) == 1


async def test_what_nothing_led_to_waits_as_a_first_cause() -> None:
    house = a_house()
    async with house.open(WATCHER) as door:
        house.store.troubles.before.append(Fault("the disk is full"))
        await findings(door)
        assert await waiting(house) == [FIRST_CAUSE]


class Away(MemoryDocument):
    """A store that can be asked nothing until it is back: it fails, or it hangs."""

    def __init__(self, *, fails: bool) -> None:
        super().__init__()
        self.back = asyncio.Event()
        self.back.set()
        self._fails = fails

    async def version(self) -> str:
        if self._fails and not self.back.is_set():
            raise Fault("the disk is away")
        await self.back.wait()
        return await super().version()


@pytest.mark.parametrize("fails", [True, False])
async def test_a_report_whose_causes_cannot_be_looked_up_is_503_and_may_come_again(
    monkeypatch: pytest.MonkeyPatch, *, fails: bool
) -> None:
    monkeypatch.setattr("core_console.engine.STORE_PATIENCE_S", 0.05)
    store = Away(fails=fails)
    house = a_house(store)
    run, mark = dispatched(3)
    async with house.open(DISPATCHING, run, WATCHER, **mark) as door:
        store.back.clear()
        answer = await findings(door)
        store.back.set()
        await house.clock.advance(1)

        assert (answer.status, "retry-after" in answer.headers) == (503, True)
        assert house.blobs.held == {}
        stored = await house.reports.snapshot()
        assert (stored.latest, stored.raising) == ({}, ())
        assert (await findings(door)).json == {"accepted": True}
        assert (await the_event(house)).chain_depth == 4
