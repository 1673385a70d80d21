"""A root in memory, and documents in it that hold something of everything."""

from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from msgspec.structs import replace

from core_console.batch import CAPEX, METADOC
from core_console.governance.chain import Chain
from core_console.model.audit import Entry, OutboxEntry, Outcome
from core_console.model.capex import Feed
from core_console.model.capex_document import EMPTY_CAPEX, CapexDocument, LoadedFeed, StagedFeed
from core_console.model.codec import CAPEX as CAPEX_CODEC
from core_console.model.codec import METADOC as METADOC_CODEC
from core_console.model.document import Document, Mark
from core_console.model.event import Event, Raising
from core_console.model.playbook import PlaybookStatus, ScheduleTrigger, Trigger, TriggerState
from core_console.model.reports import EMPTY_REPORTS, LatestReport, ReportsDocument
from core_console.model.reports import REPORTS as REPORTS_CODEC
from core_console.model.run import Run, RunStatus, StepRunStatus
from core_console.reports import REPORTS
from core_console.state.parts import Root
from core_console.store.memory import MemoryBlobs, MemoryDocument, MemoryLog
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    a_document,
    a_playbook,
    a_run,
    a_run_at,
    a_spec,
    approve,
    detect,
)
from tests.fakes import ManualClock

A_WEEK_AGO = NOW - timedelta(days=7)


def an_entry(action: str = "atlas.playbooks.run") -> Entry:
    return Entry(NOW, AUTHOR, action, "PB-1", Outcome.SUCCESS, "it was done", "playbook")


def an_outbox(first: int, last: int) -> tuple[OutboxEntry, ...]:
    return tuple(OutboxEntry(number, an_entry()) for number in range(first, last + 1))


def a_final_run(run: Run, status: RunStatus = RunStatus.SUCCEEDED) -> Run:
    """Return the run with every step SUCCEEDED and that status."""
    done = a_run_at(a_playbook(*[each.step for each in run.steps]), run.steps[-1].step.id)
    index = len(done.steps) - 1
    ended = replace(
        done.steps[index],
        status=StepRunStatus.SUCCEEDED,
        finished_at=NOW,
        decided_by=SECOND,
    )
    return replace(run, status=status, finished_at=NOW, steps=(*done.steps[:index], ended))


def full() -> Document:
    """Return a metadoc that holds something of everything, and keeps every promise."""
    nightly = Trigger("nightly", ScheduleTrigger("5 2 * * *"), 60)
    spec = a_spec(detect(), approve(), triggers=(nightly,))
    states = {"nightly": TriggerState(slot_done=A_WEEK_AGO, fired_at=A_WEEK_AGO)}
    playbook = a_playbook(
        id="PB-1", spec=spec, trigger_states=states, runs_finished=3, runs_succeeded=1
    )
    draft = a_playbook(id="PB-2", status=PlaybookStatus.DRAFT)
    asked = a_playbook(approve(), id="PB-3")
    done = a_final_run(a_run(playbook, id="PBR-done"))
    event = Event("PBE-1", NOW, "datagov", "looked", "agent:datagov", 3)
    return replace(
        a_document(
            playbook,
            draft,
            asked,
            a_run_at(playbook, "detect", id="PBR-1"),
            a_run_at(asked, "approve", id="PBR-3"),
            done,
        ),
        events={event.id: event},
        marks=(Mark("PBR-1", "detect", "datagov", 0, NOW),),
        taken={"capex": 2},
        outbox=an_outbox(4, 5),
        outbox_number=5,
    )


def a_raising(number: int) -> Raising:
    return Raising(number=number, id=f"PBE-c{number}", agent="capex", event="scan.committed")


@dataclass
class Site:
    """A root in memory; `kept` holds what was replaced, by the name under which it is kept."""

    clock: ManualClock = field(default_factory=ManualClock)
    log: MemoryLog = field(default_factory=MemoryLog)
    stores: dict[str, MemoryDocument] = field(
        default_factory=lambda: {
            name: MemoryDocument() for name in (CAPEX.name, REPORTS.name, METADOC.name)
        }
    )
    kept: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.blobs = {name: MemoryBlobs(self.clock) for name in (CAPEX.name, REPORTS.name)}

    @property
    def chain(self) -> Chain:
        return Chain(self.log, self.clock)

    @property
    def root(self) -> Root:
        return Root(
            stores=self.stores,
            blobs=self.blobs,
            log=self.log,
            chain=self.chain,
            replace=self._replace,
        )

    async def _replace(self, name: str, data: bytes, kept: str) -> None:
        self.kept[f"{name}.{kept}"] = (await self.stores[name].load()).data
        self.stores[name] = MemoryDocument()
        await self.stores[name].swap("", data)

    async def hold(self, name: str, data: bytes) -> None:
        await self.stores[name].swap(await self.stores[name].version(), data)

    async def metadoc(self) -> Document:
        return METADOC_CODEC.decode((await self.stores[METADOC.name].load()).data)

    async def feeds(self) -> CapexDocument:
        return CAPEX_CODEC.decode((await self.stores[CAPEX.name].load()).data)

    async def reports(self) -> ReportsDocument:
        return REPORTS_CODEC.decode((await self.stores[REPORTS.name].load()).data)


@dataclass
class Bag:
    """The pieces of a backup in memory."""

    pieces: dict[str, bytes] = field(default_factory=dict)

    def add(self, name: str, data: bytes) -> None:
        self.pieces[name] = data

    def get(self, name: str, *, bytes_max: int) -> bytes:
        data = self.pieces[name]
        assert len(data) <= bytes_max
        return data


async def a_site() -> Site:
    """Return a root with every document, its blobs, and a chain that holds their records."""
    site = Site()
    feed = await site.blobs[CAPEX.name].put(b"ItemId\n1\n")
    staged = await site.blobs[CAPEX.name].put(b"ItemId\n2\n")
    report = await site.blobs[REPORTS.name].put(b"{}")
    feeds = replace(
        EMPTY_CAPEX,
        revision=4,
        feeds={Feed.SPEND: LoadedFeed(feed, "spend.csv", 1, AUTHOR, NOW)},
        stages=(StagedFeed("STG-1", Feed.SPEND, staged, "s.csv", 1, AUTHOR, NOW, NOW),),
        raising=(a_raising(3),),
        raising_number=3,
        outbox_number=1,
    )
    latest = LatestReport(
        agent="judge", at=NOW, digest=report, size_bytes=2, items=0, attributes={}
    )
    reports = replace(EMPTY_REPORTS, revision=2, latest={"judge": latest}, outbox_number=1)
    await site.hold(CAPEX.name, CAPEX_CODEC.encode(feeds))
    await site.hold(REPORTS.name, REPORTS_CODEC.encode(reports))
    await site.hold(METADOC.name, METADOC_CODEC.encode(full()))
    await site.chain.drain(CAPEX.name, an_outbox(1, 1))
    await site.chain.drain(REPORTS.name, an_outbox(1, 1))
    await site.chain.drain(METADOC.name, an_outbox(1, 4))
    return site


@pytest.fixture
async def site() -> Site:
    return await a_site()
