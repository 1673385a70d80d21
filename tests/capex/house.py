"""The CapEx engine of one or several replicas in memory: the real writer, evaluator and chain.

Owns how a test starts replicas, and the short ways to stage and commit. Evaluations run in real
threads: a test awaits them and never advances the clock for them.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from core_console.app.feeds import FeedParts
from core_console.capex.looking import Seen
from core_console.capex.service import Capex, Recorded
from core_console.governance.chain import Chain, decode
from core_console.model.audit import AuditRecord
from core_console.model.capex import Feed
from core_console.model.capex_document import CapexDocument, StagedFeed
from core_console.model.codec import CAPEX
from core_console.ports import Blobs, Document
from core_console.store.memory import MemoryBlobs, MemoryDocument, MemoryLog
from core_console.writer import Policy
from tests.builders import AUTHOR, admission
from tests.capex.rows import PLAN, REQUEST, SPEND, a_row, as_csv
from tests.fakes import CountingIds, ManualClock


class House:
    """What replicas share: the document, the blobs, the log, time and ids."""

    def __init__(self) -> None:
        self.clock, self.ids, self.log = ManualClock(), CountingIds(), MemoryLog()
        self.document = MemoryDocument()
        self.store: Document = self.document
        self.blobs = MemoryBlobs(self.clock)
        self.kept: Blobs = self.blobs
        self.raised = 0

    async def _raise(self) -> None:
        self.raised += 1

    @asynccontextmanager
    async def replica(self) -> AsyncIterator[FeedParts]:
        """Run one more replica."""
        parts = FeedParts(
            document=self.store,
            blobs=self.kept,
            chain=Chain(self.log, self.clock),
            clock=self.clock,
            ids=self.ids,
            policy=Policy(admission()),
            raise_events=self._raise,
        )
        await parts.engine.start()
        try:
            yield parts
        finally:
            await parts.engine.close()
            parts.close()

    async def stored(self) -> CapexDocument:
        """Return the document as it is stored."""
        return CAPEX.decode((await self.document.load()).data)

    async def records(self, parts: FeedParts) -> list[AuditRecord]:
        """Return what the chain holds."""
        await parts.engine.recorded()
        return [decode(line) for line in self.log.lines]


CLEAN = {feed: as_csv(feed, [a_row(feed)]) for feed in Feed}
"""A file of each feed with one row that every rule is content with."""


def plans(*items: str) -> bytes:
    """Return a plan with a row for each of these ItemIds."""
    return as_csv(PLAN, [a_row(PLAN, ItemId=item) for item in items])


def faulty_plan(rows: int = 1) -> bytes:
    """Return a plan of so many rows, each without its ItemId: a finding of CP-001 each."""
    return as_csv(PLAN, [a_row(PLAN, ItemId="", Description=f"Press {n}x") for n in range(rows)])


async def staged(capex: Capex, feed: Feed, csv: bytes) -> StagedFeed:
    """Stage a file that has no fault."""
    found = await capex.stage(actor=AUTHOR, feed=feed, filename=f"{feed}.csv", csv=csv)
    assert isinstance(found, StagedFeed), found
    return found


async def committed(capex: Capex, files: dict[Feed, bytes], note: str = "") -> Recorded:
    """Stage these files and commit them together."""
    ids = [(await staged(capex, feed, csv)).id for feed, csv in files.items()]
    found = await capex.commit(actor=AUTHOR, stage_ids=ids, note=note)
    assert isinstance(found, Recorded), found
    return found


async def counts(capex: Capex) -> dict[str, int]:
    """Return the current findings by rule, those without any left out."""
    found = await capex.eyes.look()
    assert isinstance(found, Seen), found
    return {rule: count for rule, count in found.summary.by_rule.items() if count}


__all__ = [
    "CLEAN", "PLAN", "REQUEST", "SPEND", "House", "committed", "counts", "faulty_plan", "plans",
    "staged",
]  # fmt: skip
