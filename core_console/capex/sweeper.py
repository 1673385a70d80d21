"""Blobs that nobody names any more: deleted a day after they were put.

Owns which blobs the CapEx document names. A file that was a feed until lately is still named: for
a day, so that a restored document finds it, and so never goes in the tick of the commit that
replaced it.
"""

from datetime import timedelta

from core_console.capex.writer import Writer
from core_console.decide.capex_commands import Expire
from core_console.model.capex_document import CapexDocument
from core_console.ports import Blobs, Clock

KEPT_FOR = timedelta(hours=24)
"""A blob is put before the swap that names it, and whoever does that has a day (06, section 2)."""


class Sweeper:
    """A chore of the tick."""

    def __init__(self, *, writer: Writer, blobs: Blobs, clock: Clock) -> None:
        self._writer = writer
        self._blobs = blobs
        self._clock = clock

    async def sweep(self) -> None:
        """Drop expired stages, then delete what is old and unnamed; may raise Fault."""
        await self._writer.submit(Expire())
        put_before = self._clock.now() - KEPT_FOR
        old = [each for each in await self._blobs.kept() if each.put_at < put_before]
        if not old:
            return
        # Read after the list: what was put and named in between is named here.
        named = names(await self._writer.snapshot())
        for each in old:
            if each.digest not in named:
                await self._blobs.delete(each.digest, put_before=put_before)


def names(document: CapexDocument) -> frozenset[str]:
    """Return the digest of every blob that the document names."""
    return frozenset(
        (
            *(each.digest for each in document.feeds.values()),
            *(each.digest for each in document.stages),
            *(each.digest for each in document.released),
        )
    )
