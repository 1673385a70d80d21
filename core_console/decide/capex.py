"""The decisions about feeds: stage, commit, clear, configure, and keep a scan run.

Owns what becomes of the CapEx document. A commit, a clear and a scan bring figures along that
were worked out before: they are refused when the feeds or the settings are no longer those, so
that figures and feeds are never a mix of two. A refused command changes nothing.
"""

from collections.abc import Iterable
from datetime import timedelta
from hashlib import sha256
from typing import assert_never

from msgspec.structs import replace

from core_console.decide import record, screen, staging
from core_console.decide.capex_commands import (
    CapexCommand,
    ClearFeed,
    ClearRaised,
    CommitIngest,
    Evaluated,
    Expire,
    RecordScanRun,
    StageFeed,
    UpdateConfig,
)
from core_console.decide.context import Context
from core_console.decide.events import CAPEX, SCAN_COMMITTED
from core_console.decide.outcome import Carried, Code, Refused, invalid
from core_console.model.audit import Entry
from core_console.model.capex import Config, Feed
from core_console.model.capex_document import (
    CapexDocument,
    LoadedFeed,
    Released,
    ScanRun,
    ScanTrigger,
    StagedFeed,
)
from core_console.model.event import Raising

SUBJECT = "capex"

NOTE_BYTES = 1_000
SCANS_MAX = 50  # CapEx page, section 2

RAISING_MAX = 20
"""Events that wait for the metadoc, a kilobyte each: more means that it cannot be written."""

RELEASED_FOR = timedelta(hours=24)
RELEASED_MAX = 50
"""As many as the scan history has runs; a file that falls off is only deleted sooner."""

_EVENT_DIGITS = 16


class CapexAccepted(Carried[CapexDocument, StagedFeed | ScanRun | Config], frozen=True, gc=False):
    """A command that was carried out on the CapEx document."""


CapexOutcome = CapexAccepted | Refused


def is_new_work(command: CapexCommand) -> bool:
    """Say whether the command starts something, rather than ending what is in flight."""
    return not isinstance(command, RecordScanRun | ClearRaised | Expire)


def decide(document: CapexDocument, command: CapexCommand, context: Context) -> CapexOutcome:
    """Return what the command makes of the document; the document given is never changed."""
    match command:
        case StageFeed():
            return _stage(document, command, context)
        case CommitIngest():
            return _commit(document, command, context)
        case ClearFeed():
            return _clear(document, command, context)
        case UpdateConfig():
            return _configure(document, command, context)
        case RecordScanRun():
            return _record_scan_run(document, command, context)
        case ClearRaised():
            return _clear_raised(document, command)
        case Expire():
            return _expire(document, context)
        case _ as never:
            assert_never(never)


def _stage(document: CapexDocument, command: StageFeed, context: Context) -> CapexOutcome:
    refused = staging.objection(document, command.filename, context.now)
    if refused is not None:
        return refused
    stage = StagedFeed(
        id=context.ids.new("STG"),
        feed=command.feed,
        digest=command.digest,
        filename=command.filename,
        rows=command.rows,
        staged_by=command.actor,
        staged_at=context.now,
        expires_at=context.now + staging.STAGED_FOR,
        notes=command.notes,
    )
    sentence = (
        f"{command.actor} staged {command.feed} as {stage.id}: {stage.rows} rows "
        f"(sha256 {stage.digest})"
    )
    stages = (*staging.pending(document, context.now), stage)
    said = _entry(context, command.actor, "stage", (stage.id,), sentence)
    return CapexAccepted(replace(document, stages=stages), stage, (said,))


def _commit(document: CapexDocument, command: CommitIngest, context: Context) -> CapexOutcome:
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
    if _moved(document, command.evaluated, staging.overlaid(document, stages)):
        return _overtaken()
    return _committed(document, command, stages, context)


def _committed(
    document: CapexDocument,
    command: CommitIngest,
    stages: tuple[StagedFeed, ...],
    context: Context,
) -> CapexAccepted:
    scan = _scan_run(
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
        _released(document, [each.feed for each in stages], context),
        feeds=feeds,
        stages=tuple(each for each in staging.pending(document, context.now) if each not in stages),
        scans=_with_scan(document, scan),
        raising=(*document.raising, raising),
        raising_number=raising.number,
    )
    what = ", ".join(f"{each.feed} (sha256 {each.digest})" for each in stages)
    sentence = (
        f"{command.actor} committed {what} as scan run {scan.id}: {scan.summary.findings} findings"
    )
    ids = (scan.id, *(each.id for each in stages))
    said = _entry(context, command.actor, "commit", ids, sentence)
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


def _clear(document: CapexDocument, command: ClearFeed, context: Context) -> CapexOutcome:
    refused = note_refused(command.note)
    if refused is not None:
        return refused
    if command.feed not in document.feeds:
        return not_loaded(command.feed)
    if _moved(document, command.evaluated, staging.without(document, command.feed)):
        return _overtaken()
    scan = _scan_run(
        document,
        command.evaluated,
        context,
        trigger=ScanTrigger.CLEAR,
        actor=command.actor,
        note=command.note,
    )
    changed = replace(
        _released(document, [command.feed], context),
        feeds={feed: each for feed, each in document.feeds.items() if feed is not command.feed},
        scans=_with_scan(document, scan),
    )
    digest = document.feeds[command.feed].digest
    sentence = (
        f"{command.actor} cleared {command.feed} (sha256 {digest}) as scan run {scan.id}: "
        f"{scan.summary.findings} findings"
    )
    said = _entry(context, command.actor, "clear", (scan.id,), sentence)
    return CapexAccepted(changed, scan, (said,))


def not_loaded(feed: Feed) -> Refused:
    """Return the refusal to clear a feed that is empty already."""
    return Refused(Code.FAILED_PRECONDITION, f"{feed} is not loaded, so there is nothing to clear")


def _configure(document: CapexDocument, command: UpdateConfig, context: Context) -> CapexOutcome:
    if command.config == document.config:
        return CapexAccepted(document, command.config)
    was, now = document.config.go_live, command.config.go_live
    default = "" if command.config.go_live_date else " (the default)"
    sentence = f"{command.actor} set Go-Live to {now}{default}; it was {was}"
    said = _entry(context, command.actor, "config.update", ("config",), sentence)
    return CapexAccepted(replace(document, config=command.config), command.config, (said,))


def _record_scan_run(
    document: CapexDocument, command: RecordScanRun, context: Context
) -> CapexOutcome:
    """Keep the scan run; the run's own record tells of it, so this document says nothing."""
    if _moved(document, command.evaluated, staging.loaded(document)):
        return _overtaken()
    scan = _scan_run(
        document,
        command.evaluated,
        context,
        trigger=ScanTrigger.MANUAL,
        actor=command.run_id,
    )
    return CapexAccepted(replace(document, scans=_with_scan(document, scan)), scan)


def _clear_raised(document: CapexDocument, command: ClearRaised) -> CapexAccepted:
    left = tuple(each for each in document.raising if each.number > command.number)
    if left == document.raising:
        return CapexAccepted(document)
    return CapexAccepted(replace(document, raising=left))


def _expire(document: CapexDocument, context: Context) -> CapexAccepted:
    stages = staging.pending(document, context.now)
    released = _still_released(document.released, context)
    if (stages, released) == (document.stages, document.released):
        return CapexAccepted(document)
    return CapexAccepted(replace(document, stages=stages, released=released))


def _scan_run(
    document: CapexDocument,
    evaluated: Evaluated,
    context: Context,
    *,
    trigger: ScanTrigger,
    actor: str,
    note: str = "",
) -> ScanRun:
    return ScanRun(
        id=context.ids.new("SCAN"),
        number=document.scans[-1].number + 1 if document.scans else 1,
        at=context.now,
        trigger=trigger,
        actor=actor,
        summary=evaluated.summary,
        note=note,
    )


def _with_scan(document: CapexDocument, scan: ScanRun) -> tuple[ScanRun, ...]:
    return (*document.scans, scan)[-SCANS_MAX:]


def _released(document: CapexDocument, feeds: Iterable[Feed], context: Context) -> CapexDocument:
    """Return the document that remembers the files which those feeds are about to lose."""
    lost = [document.feeds[feed].digest for feed in feeds if feed in document.feeds]
    released = (
        *_still_released(document.released, context),
        *(Released(digest, context.now) for digest in lost),
    )
    return replace(document, released=released[-RELEASED_MAX:])


def _still_released(released: tuple[Released, ...], context: Context) -> tuple[Released, ...]:
    return tuple(each for each in released if context.now - each.at < RELEASED_FOR)


def _moved(document: CapexDocument, evaluated: Evaluated, digests: dict[Feed, str]) -> bool:
    """Say whether the figures are of other feeds or settings than would be stored with them."""
    return (evaluated.digests, evaluated.config) != (digests, document.config)


def _overtaken() -> Refused:
    return Refused(
        Code.ABORTED,
        "the feeds or the Go-Live date changed while this was evaluated; try again",
    )


def note_refused(note: str) -> Refused | None:
    """Return why the note cannot be kept, None when it can."""
    wrong = screen.text("note", note, bytes_max=NOTE_BYTES, prose=True)
    return invalid(*wrong) if wrong else None


def _entry(context: Context, actor: str, word: str, ids: tuple[str, ...], sentence: str) -> Entry:
    return record.entry(context, actor, f"atlas.capex.{word}", ids, sentence, subject=SUBJECT)
