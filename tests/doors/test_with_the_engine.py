"""The step report's door with the real engine, store and chain behind it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from core_console.batch import METADOC
from core_console.decide.commands import CancelRun, Tick
from core_console.decide.identity import Admission
from core_console.decide.outcome import Effect
from core_console.engine import Engine, Metadoc
from core_console.governance.chain import Chain
from core_console.model.codec import encode
from core_console.model.document import Mark
from core_console.model.run import RunStatus
from core_console.ports import Fault
from core_console.recorder import Recorder
from core_console.store.memory import MemoryDocument, MemoryLog
from core_console.writer import Policy
from tests.builders import AUTHOR, NOW, SECOND, a_document, a_playbook, a_run_at
from tests.doors.site import (
    REPORT,
    Auditor,
    Bearers,
    Book,
    Site,
    application,
    audit_doors,
    listening,
)
from tests.doors.site import Engine as Unasked
from tests.fakes import CountingIds, ManualClock


class Idle:
    """Performs nothing: no effect of these runs leaves the process."""

    room = 30

    def take(self, effects: Sequence[Effect]) -> None:
        """Leave them."""


class House:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryDocument()
        self.log = MemoryLog()
        self.engine: Metadoc = Engine(
            METADOC,
            store=self.store,
            recorder=Recorder(Chain(self.log, self.clock), "atlas-playbooks", self.clock),
            performer=Idle(),
            clock=self.clock,
            ids=CountingIds(),
            policy=Policy(Admission()),
            replica="CON-1",
        )
        self.bearers, self.book = Bearers(), Book()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Site]:
        playbook = a_playbook()
        mark = Mark("PBR-1", "detect", "datagov", 0, NOW)
        document = a_document(playbook, a_run_at(playbook, "detect"), marks=(mark,))
        await self.store.swap("", encode(document))
        await self.engine.start()
        try:
            audit = audit_doors(
                Auditor(),
                log=self.log,
                recorded=self.engine.recorded,
                auditors=frozenset({SECOND}),
            )
            served = application(self.engine, self.bearers, self.book, audit=audit)
            async with listening(served) as (port, _):
                yield Site(port, Unasked(), self.bearers, self.book)
        finally:
            await self.engine.close()


@pytest.fixture
def house() -> House:
    return House()


async def test_a_report_moves_the_run_and_the_same_again_changes_nothing(house: House) -> None:
    async with house.open() as door:
        first = await door.post()
        moved = await house.engine.snapshot()
        second = await door.post()

        assert (first.status, first.json) == (200, {"accepted": True})
        assert moved.running["PB-1"].status is RunStatus.WAITING_APPROVAL
        assert second.json == {"accepted": True, "duplicate": True}
        assert await house.engine.snapshot() is moved


async def test_what_the_swap_decided_is_in_the_chain_once(house: House) -> None:
    async with house.open() as door:
        await door.post()
        await house.engine.recorded()

        reported = [line for line in house.log.lines if b'"atlas.playbooks.run.report"' in line]
        assert len(reported) == 1
        assert b'"agent:datagov"' in reported[0]
        assert door.book.entries == []


async def test_who_reports_and_then_looks_finds_it_in_the_trail(house: House) -> None:
    async with house.open() as door:
        await door.post()
        answer = await door.post(
            b"", method="GET", path="/api/audit?action=atlas.playbooks.run.report"
        )

        (record,) = answer.json["records"]
        assert (record["actor"], record["outcome"]) == ("agent:datagov", "success")


async def test_conflicting_late_and_misdirected_reports_are_409(house: House) -> None:
    async with house.open() as door:
        assert (await door.post({**REPORT, "agent": "risk"})).status == 409
        assert (await door.post({**REPORT, "stepId": "approve"})).status == 409
        assert (await door.post()).status == 200
        conflict = await door.post({**REPORT, "conclusion": "failure"})

        assert conflict.status == 409
        assert "success" in conflict.error


@pytest.mark.parametrize("ticked", [True, False])
async def test_a_report_at_the_deadline_is_409_whether_or_not_a_tick_wrote_it(
    house: House, *, ticked: bool
) -> None:
    async with house.open() as door:
        await house.clock.advance(3600)
        if ticked:
            await house.engine.submit(Tick())

        assert (await door.post()).status == 409


async def test_a_report_after_the_run_was_cancelled_is_409(house: House) -> None:
    async with house.open() as door:
        await house.engine.submit(CancelRun(AUTHOR, "PBR-1", "not now"))

        assert (await door.post()).status == 409


async def test_a_refused_report_that_ends_its_dispatch_is_recorded_by_the_swap(
    house: House,
) -> None:
    async with house.open() as door:
        await house.engine.submit(CancelRun(AUTHOR, "PBR-1", "not now"))

        assert (await door.post()).status == 409
        await house.engine.recorded()
        (reported,) = (line for line in house.log.lines if b'"atlas.playbooks.run.report"' in line)
        assert b'"outcome":"failure"' in reported
        assert door.book.entries == []
        assert (await door.post()).status == 409
        assert len(door.book.entries) == 1, "it changed nothing, so the door records it"


async def test_an_unknown_run_or_step_is_404(house: House) -> None:
    async with house.open() as door:
        assert (await door.post({**REPORT, "runId": "PBR-9"})).status == 404
        assert (await door.post({**REPORT, "stepId": "none"})).status == 404


async def test_a_store_that_fails_is_503_and_the_report_may_come_again(house: House) -> None:
    async with house.open() as door:
        house.store.troubles.before.append(Fault("the disk is full"))
        failed = await door.post()

        assert (failed.status, failed.error) == (503, "the disk is full")
        assert "retry-after" in failed.headers
        assert (await door.post()).json == {"accepted": True}


async def test_a_console_that_stops_answers_503(house: House) -> None:
    async with house.open() as door:
        await house.engine.close()

        assert (await door.post()).status == 503
