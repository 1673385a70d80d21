"""The reports document as a console runs it: its kind, and the blobs that nobody names any more.

Owns which blobs the document names. A report that was the latest until lately is still named: for
a day, so that a restored document finds it.
"""

from datetime import timedelta
from typing import Protocol

from core_console.batch import Kind
from core_console.decide import stored_reports
from core_console.decide.stored_reports import ReportsAccepted, ReportsCommand
from core_console.engine import Engine
from core_console.model.reports import EMPTY_REPORTS, ReportsDocument
from core_console.model.reports import REPORTS as REPORTS_CODEC
from core_console.ports import Blobs, Clock

REPORTS: Kind[ReportsDocument, ReportsCommand, ReportsAccepted] = Kind(
    name="atlas-reports",
    empty=EMPTY_REPORTS,
    codec=REPORTS_CODEC,
    decide=stored_reports.decide,
    is_new_work=stored_reports.is_new_work,
)
"""The latest reports of the agents."""

Reportsdoc = Engine[ReportsDocument, ReportsCommand, ReportsAccepted]
"""The engine of the agents' reports."""

KEPT_FOR = timedelta(hours=24)
"""A blob is put before the swap that names it, and whoever does that has a day (06, section 2)."""


class Reports(Protocol):
    """The engine, as far as the sweeper needs it."""

    async def snapshot(self) -> ReportsDocument:
        """Return the newest durable document; may raise Fault."""
        ...


class ReportSweeper:
    """A chore of the tick."""

    def __init__(self, *, reports: Reports, blobs: Blobs, clock: Clock) -> None:
        self._reports = reports
        self._blobs = blobs
        self._clock = clock

    async def sweep(self) -> None:
        """Delete what is old and unnamed; may raise Fault."""
        put_before = self._clock.now() - KEPT_FOR
        old = [each for each in await self._blobs.kept() if each.put_at < put_before]
        if not old:
            return
        # Read after the list: what was put and named in between is named here.
        named = names(await self._reports.snapshot())
        for each in old:
            if each.digest not in named:
                await self._blobs.delete(each.digest, put_before=put_before)


def names(document: ReportsDocument) -> frozenset[str]:
    """Return the digest of every blob that the document names."""
    latest = (each.digest for each in document.latest.values())
    return frozenset((*latest, *(each.digest for each in document.released)))
