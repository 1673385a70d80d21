"""The decisions that change a feed: a commit replaces feeds, a clear empties one.

Owns what becomes of the feeds, their scan history and the event that a commit brings about. Both
bring figures along that were worked out before: they are refused when the feeds or the settings
are no longer those, so that figures and feeds are never a mix of two.
"""

from hashlib import sha256

from msgspec.structs import replace

from core_console.decide import scan_runs, screen, staging
from core_console.decide.capex_commands import ClearFeed, CommitIngest
from core_console.decide.context import Context
from core_console.decide.events import CAPEX, SCAN_COMMITTED
from core_console.decide.outcome import CapexAccepted, CapexOutcome, Code, Refused, invalid
from core_console.decide.record import capex_entry
from core_console.model.capex import Feed
from core_console.model.capex_document import (
    CapexDocument,
    LoadedFeed,
    ScanRun,
    ScanTrigger,
    StagedFeed,
)
from core_console.model.event import Raising

NOTE_BYTES = 1_000

RAISING_MAX = 20
"""Events that wait for the metadoc, a kilobyte each: more means that it cannot be written."""

_EVENT_DIGITS = 16


def commit(document: CapexDocument, command: CommitIngest, context: Context) -> CapexOutcome:
    """Replace each staged feed, use the stages up and keep the event to raise."""
    refused = note_refused(command.note)
    if refused is not None:
        return refused
    stages = staging.chosen(document, command.stage_ids, context.now)
    if isinstance(stages, Refused):
        return stages
    if len(document.raising) >= RAISING_MAX:
        return Refused(
            Code.UNAVAILABLE,
            f"the events of {len(document.raising)} earlier commits wait to be raised; "
            "try again later",
        )
    if scan_runs.moved(document, command.evaluated, staging.overlaid(document, stages)):
        return scan_runs.overtaken()
    return _committed(document, command, stages, context)


def _committed(
    document: CapexDocument,
    command: CommitIngest,
    stages: tuple[StagedFeed, ...],
    context: Context,
) -> CapexAccepted:
    scan = scan_runs.made(
        document,
        command.evaluated,
        context,
        trigger=ScanTrigger.UPLOAD,
        actor=command.actor,
        note=command.note,
    )
    feeds = document.feeds | {each.feed: _loaded(each, command.actor, context) for each in stages}
    raising = _raising(document, command, scan)
    changed = replace(
        scan_runs.released(document, [each.feed for each in stages], context),
        feeds=feeds,
        stages=tuple(each for each in staging.pending(document, context.now) if each not in stages),
        scans=scan_runs.with_scan(document, scan),
        raising=(*document.raising, raising),
        raising_number=raising.number,
    )
    what = ", ".join(f"{each.feed} (sha256 {each.digest})" for each in stages)
    sentence = (
        f"{command.actor} committed {what} as scan run {scan.id}: {scan.summary.findings} findings"
    )
    ids = (scan.id, *(each.id for each in stages))
    said = capex_entry(context, command.actor, "commit", ids, sentence)
    return CapexAccepted(changed, scan, (said,))


def _loaded(stage: StagedFeed, actor: str, context: Context) -> LoadedFeed:
    return LoadedFeed(
        digest=stage.digest,
        filename=stage.filename,
        rows=stage.rows,
        committed_by=actor,
        committed_at=context.now,
        notes=stage.notes,
    )


def _raising(document: CapexDocument, command: CommitIngest, scan: ScanRun) -> Raising:
    """Return the event to raise; its id follows from the scan run that the same swap stores."""
    return Raising(
        number=document.raising_number + 1,
        id=f"PBE-{sha256(scan.id.encode()).hexdigest()[:_EVENT_DIGITS]}",
        agent=CAPEX,
        event=SCAN_COMMITTED,
        subject=scan.id,
        attributes=command.attributes,
        rows=command.rows,
        committed_by=command.actor,
    )


def clear(document: CapexDocument, command: ClearFeed, context: Context) -> CapexOutcome:
    """Empty one feed."""
    refused = note_refused(command.note)
    if refused is not None:
        return refused
    if command.feed not in document.feeds:
        return not_loaded(command.feed)
    if scan_runs.moved(document, command.evaluated, staging.without(document, command.feed)):
        return scan_runs.overtaken()
    scan = scan_runs.made(
        document,
        command.evaluated,
        context,
        trigger=ScanTrigger.CLEAR,
        actor=command.actor,
        note=command.note,
    )
    changed = replace(
        scan_runs.released(document, [command.feed], context),
        feeds={feed: each for feed, each in document.feeds.items() if feed is not command.feed},
        scans=scan_runs.with_scan(document, scan),
    )
    digest = document.feeds[command.feed].digest
    sentence = (
        f"{command.actor} cleared {command.feed} (sha256 {digest}) as scan run {scan.id}: "
        f"{scan.summary.findings} findings"
    )
    said = capex_entry(context, command.actor, "clear", (scan.id,), sentence)
    return CapexAccepted(changed, scan, (said,))


def not_loaded(feed: Feed) -> Refused:
    """Return the refusal to clear a feed that is empty already."""
    return Refused(Code.FAILED_PRECONDITION, f"{feed} is not loaded, so there is nothing to clear")


def note_refused(note: str) -> Refused | None:
    """Return why the note cannot be kept, None when it can."""
    wrong = screen.text("note", note, bytes_max=NOTE_BYTES, prose=True)
    return invalid(*wrong) if wrong else None
