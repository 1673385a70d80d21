"""GET /metrics: figures for whoever watches, and nothing that somebody wrote."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace

import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from core_console.batch import METADOC
from core_console.counts import DocumentCounts, EffectCounts, TickCounts
from core_console.decide import budget
from core_console.decide.commands import CreatePlaybook, RunNow
from core_console.decide.outcome import Code
from core_console.effects import Performer
from core_console.engine import Engine, Metadoc
from core_console.governance.chain import Chain
from core_console.governance.refusals import Refusals
from core_console.metrics import Metrics, Sources
from core_console.model.audit import Entry, Outcome
from core_console.model.codec import encode
from core_console.model.document import Document
from core_console.model.event import Event
from core_console.ports import Conflict, Fault, ScanAsked, ScanFound
from core_console.recorder import Recorder
from core_console.store.memory import MemoryDocument, MemoryLog
from core_console.ticker import Ticker
from core_console.writer import Policy
from tests.builders import AUTHOR, NOW, a_document, a_playbook, a_spec, admission, approve, detect
from tests.doors.site import Bearers, Book, Site, application, listening
from tests.doors.site import Engine as NoEngine
from tests.engine.conftest import PlainGitHub
from tests.fakes import CountingIds, ManualClock

NAME = METADOC.name
Figures = Callable[..., float]


class NoScans:
    async def scan(self, asked: ScanAsked) -> ScanFound:
        raise NotImplementedError(asked.run_id)


class Watched:
    """One console in memory, with all that is measured of it."""

    def __init__(self, document: Document) -> None:
        self.clock, self.ids = ManualClock(), CountingIds()
        self.store, self.log = MemoryDocument(), MemoryLog()
        self._document = document
        chain = Chain(self.log, self.clock)
        self.recorder = Recorder(chain, NAME, self.clock)
        self.performer = Performer(github=PlainGitHub(), scanner=NoScans(), clock=self.clock)
        self.engine: Metadoc = Engine(
            METADOC,
            store=self.store,
            recorder=self.recorder,
            performer=self.performer,
            clock=self.clock,
            ids=self.ids,
            policy=Policy(admission()),
            replica="CON-1",
        )
        self.ticker = Ticker(self.engine, clock=self.clock, ids=self.ids, interval_s=30)
        self.refusals = Refusals(chain, self.clock)
        sources = Sources(
            documents={NAME: (self.engine, self.recorder)},
            performer=self.performer,
            ticker=self.ticker,
            refusals=self.refusals,
            log=SimpleNamespace(repairs=2),
        )
        self.metrics = Metrics(sources)

    async def start(self) -> None:
        await self.store.swap("", encode(self._document))
        await self.engine.start()

    def figure(self, name: str, **labels: str) -> float:
        """Return the one sample of that name and those labels."""
        found = [
            sample.value
            for family in text_string_to_metric_families(self.metrics.text().decode())
            for sample in family.samples
            if sample.name == f"core_console_{name}" and labels.items() <= sample.labels.items()
        ]
        assert len(found) == 1, (name, labels, found)
        return found[0]


@pytest.fixture
async def watched() -> AsyncIterator[Watched]:
    made = Watched(a_document(a_playbook(approve(), id="PB-A"), a_playbook(detect(), id="PB-B")))
    await made.start()
    yield made
    await made.engine.close()


async def test_the_document_is_measured_as_it_is_stored(watched: Watched) -> None:
    await watched.engine.submit(RunNow(AUTHOR, "PB-A"))
    stored = (await watched.store.load()).data
    assert watched.figure("document_bytes", document=NAME) == len(stored)
    assert watched.figure("document_revision", document=NAME) == 11
    assert watched.figure("playbooks", status="ACTIVE") == 2
    assert watched.figure("runs_in_flight") == 1
    assert watched.figure("budget_bytes") == budget.BUDGET_BYTES
    room = budget.Ledger(METADOC.codec.pieces).room(await watched.engine.snapshot())
    assert room.reserve_bytes > 0
    assert watched.figure("reserve_bytes") == room.reserve_bytes + budget.SPARE_BYTES


async def test_swaps_are_counted_with_the_commands_that_shared_them(watched: Watched) -> None:
    together = [CreatePlaybook(AUTHOR, a_spec(name=f"number {each}")) for each in range(5)]
    await asyncio.gather(*map(watched.engine.submit, together))
    await watched.engine.submit(RunNow(AUTHOR, "PB-A"))
    assert watched.figure("swaps_total", document=NAME) == 2
    assert watched.figure("answers_total", document=NAME) == 6
    assert watched.figure("swap_commands_sum", document=NAME) == 6
    assert watched.figure("swap_commands_bucket", document=NAME, le="1.0") == 1
    assert watched.figure("swap_commands_bucket", document=NAME, le="4.0") == 1
    assert watched.figure("swap_commands_bucket", document=NAME, le="8.0") == 2
    assert watched.figure("swap_commands_count", document=NAME) == 2


async def test_a_refusal_is_counted_by_its_code(watched: Watched) -> None:
    await watched.engine.submit(RunNow(AUTHOR, "PB-none"))
    assert watched.figure("refusals_total", code="NOT_FOUND") == 1
    assert watched.figure("refusals_total", code="FAILED_PRECONDITION") == 0
    assert watched.figure("swaps_total", document=NAME) == 0


async def test_lost_races_and_faults_are_counted(watched: Watched) -> None:
    watched.store.troubles.before.append(Conflict())  # type: ignore[arg-type]  # whatever is raised
    await watched.engine.submit(RunNow(AUTHOR, "PB-A"))
    watched.store.troubles.before.append(Fault("the disk is full"))
    with pytest.raises(Fault, match="the disk is full"):
        await watched.engine.submit(RunNow(AUTHOR, "PB-B"))
    assert watched.figure("swap_conflicts_total", document=NAME) == 1
    assert watched.figure("store_faults_total", document=NAME) == 1
    assert watched.figure("store_away", document=NAME) == 0


def an_event(number: int) -> Event:
    """Return an event of about 2 KiB."""
    return Event(
        id=f"PBE-{number}",
        at=NOW,
        agent="datagov",
        event="looked",
        raised_by="agent:datagov",
        revision=1,
        attributes={str(key): "x" * 250 for key in range(8)},
    )


async def test_what_was_trimmed_is_counted() -> None:
    events = {f"PBE-{number}": an_event(number) for number in range(300)}
    document = replace(a_document(a_playbook(approve(), id="PB-A")), events=events)
    room = budget.BUDGET_BYTES - budget.SPARE_BYTES - len(encode(document)) - 30_000
    padded = replace(document, taken={"x" * room: 1})
    watched = Watched(padded)
    await watched.start()
    before = len(padded.events)
    await asyncio.gather(
        *(
            watched.engine.submit(
                CreatePlaybook(
                    AUTHOR, a_spec(approve(), name=f"number {each}", description="x" * 1_900)
                )
            )
            for each in range(20)
        )
    )
    gone = before - len((await watched.engine.snapshot()).events)
    assert gone > 0
    assert watched.figure("trimmed_total", kind="events") == gone
    assert watched.figure("trimmed_total", kind="runs") == 0
    await watched.engine.close()


async def test_the_outbox_is_measured_until_the_chain_holds_it(watched: Watched) -> None:
    await watched.engine.submit(RunNow(AUTHOR, "PB-A"))
    assert watched.figure("outbox_entries", document=NAME) == 1
    watched.log.troubles.before.append(Fault("the disk is full"))
    await watched.engine.recorded()
    assert watched.figure("outbox_failing", document=NAME) == 1
    await watched.engine.recorded()
    assert watched.figure("outbox_entries", document=NAME) == 0
    assert watched.figure("outbox_failing", document=NAME) == 0


async def test_effects_are_counted_by_kind_and_result(watched: Watched) -> None:
    await watched.engine.submit(RunNow(AUTHOR, "PB-B"))
    assert watched.figure("effects_waiting") == 1
    performing = asyncio.create_task(watched.performer.run(watched.engine))
    await watched.clock.advance(1)
    performing.cancel()
    assert watched.figure("effects_waiting") == 0
    assert watched.figure("effects_total", kind="dispatch", result="accepted") == 1


async def test_ticks_tell_how_long_they_took_and_how_late_they_came(watched: Watched) -> None:
    ticking = asyncio.create_task(watched.ticker.run())
    await watched.clock.advance(61)
    ticking.cancel()
    assert watched.figure("ticks_total") == 3
    assert watched.figure("tick_failures_total") == 0
    watched.ticker.counts.began(0.25)
    watched.ticker.counts.ended(0.5)
    assert watched.figure("tick_late_seconds") == 0.25
    assert watched.figure("tick_last_seconds") == 0.5
    assert watched.figure("tick_seconds_total") == 0.5
    watched.ticker.counts.began(-1)
    assert watched.figure("tick_late_seconds") == 0, "a tick cannot come before its time"


async def test_a_failed_tick_is_counted(watched: Watched) -> None:
    watched.store.troubles.before.append(Fault("the disk is full"))
    await watched.engine.submit(RunNow(AUTHOR, "PB-none"))
    await watched.engine.close()
    await watched.ticker.tick()
    assert watched.figure("tick_failures_total") == 1


async def test_calls_that_were_turned_away_are_counted_and_those_without_a_record(
    watched: Watched,
) -> None:
    entry = Entry(NOW, AUTHOR, "x.y", "", Outcome.DENIED, "no", "x")
    watched.log.troubles.before.append(Fault("the disk is full"))
    await watched.refusals.record(entry, identified=True, peer="192.0.2.1")
    assert watched.figure("calls_turned_away_total", outcome="denied") == 1
    assert watched.figure("calls_turned_away_total", outcome="failure") == 0
    assert watched.figure("refusals_unrecorded_total") == 1
    assert watched.figure("audit_repairs_total") == 2


async def test_no_figure_names_anything(watched: Watched) -> None:
    await watched.engine.submit(CreatePlaybook(AUTHOR, a_spec(name="Payroll in Springfield")))
    await watched.engine.submit(RunNow(AUTHOR, "PB-A"))
    text = watched.metrics.text().decode()
    for word in ("Payroll", AUTHOR, "PB-A", "PBR-", "CON-1"):
        assert word not in text


def test_before_anything_is_loaded_there_are_figures_too() -> None:
    idle = Watched(a_document())
    assert idle.figure("document_revision", document=NAME) == 0
    assert idle.figure("outbox_entries", document=NAME) == 0


def test_the_counters_begin_at_nothing() -> None:
    assert (DocumentCounts().refused, EffectCounts().ended) == (Counter(), Counter())
    assert TickCounts().ticks == 0
    assert set(Code) >= set(DocumentCounts().refused)


async def test_anybody_may_read_the_figures_and_only_read() -> None:
    asgi = application(NoEngine(), Bearers(), Book(), figures=lambda: b"core_console_x 1\n")
    async with listening(asgi) as (port, _):
        door = Site(port, NoEngine(), Bearers(), Book())
        answer = await door.post(
            b"", method="GET", path="/metrics", headers={"Authorization": None}
        )
        refused = await door.post(b"", path="/metrics")
    assert (answer.status, answer.body) == (200, b"core_console_x 1\n")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert answer.headers["cache-control"] == "no-store"
    assert refused.status == 405
