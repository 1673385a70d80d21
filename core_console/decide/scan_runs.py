"""Scan runs: the figures of an evaluation, kept beside the feeds that they are figures of.

Owns the scan history, when figures are too old to be kept, and for how long a file that was a
feed is still named.
"""

from collections.abc import Iterable
from datetime import timedelta

from msgspec.structs import replace

from core_console.decide.capex_commands import Evaluated
from core_console.decide.context import Context
from core_console.decide.outcome import Code, Refused
from core_console.model.capex import Feed
from core_console.model.capex_document import CapexDocument, Released, ScanRun, ScanTrigger

SCANS_MAX = 50  # CapEx page, section 2

RELEASED_FOR = timedelta(hours=24)
RELEASED_MAX = 50
"""As many as the scan history has runs; a file that falls off is only deleted sooner."""


def made(
    document: CapexDocument,
    evaluated: Evaluated,
    context: Context,
    *,
    trigger: ScanTrigger,
    actor: str,
    note: str = "",
) -> ScanRun:
    """Return a new scan run with these figures."""
    return ScanRun(
        id=context.ids.new("SCAN"),
        number=document.scans[-1].number + 1 if document.scans else 1,
        at=context.now,
        trigger=trigger,
        actor=actor,
        summary=evaluated.summary,
        note=note,
    )


def with_scan(document: CapexDocument, scan: ScanRun) -> tuple[ScanRun, ...]:
    """Return the history with the scan run; the oldest beyond the newest 50 goes."""
    return (*document.scans, scan)[-SCANS_MAX:]


def released(document: CapexDocument, feeds: Iterable[Feed], context: Context) -> CapexDocument:
    """Return the document that remembers the files which those feeds are about to lose."""
    lost = [document.feeds[feed].digest for feed in feeds if feed in document.feeds]
    named = (
        *still_released(document, context),
        *(Released(digest, context.now) for digest in lost),
    )
    return replace(document, released=named[-RELEASED_MAX:])


def still_released(document: CapexDocument, context: Context) -> tuple[Released, ...]:
    """Return the files that are still named although they are no feed any more."""
    return tuple(each for each in document.released if context.now - each.at < RELEASED_FOR)


def moved(document: CapexDocument, evaluated: Evaluated, digests: dict[Feed, str]) -> bool:
    """Say whether the figures are of other feeds or settings than would be stored with them."""
    return (evaluated.digests, evaluated.config) != (digests, document.config)


def overtaken() -> Refused:
    """Return the refusal of figures that are of other feeds or settings."""
    return Refused(
        Code.ABORTED,
        "the feeds or the Go-Live date changed while this was evaluated; try again",
    )
