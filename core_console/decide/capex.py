"""The one door to the decisions about feeds, and those that change no feed.

Owns which rule decides which command, and staging, the settings, a playbook's scan run and what
time has ended. A refused command changes nothing.
"""

from typing import assert_never

from msgspec.structs import replace

from core_console.decide import ingest, scan_runs, staging
from core_console.decide.capex_commands import (
    CapexCommand,
    ClearFeed,
    ClearRaised,
    CommitIngest,
    Expire,
    RecordScanRun,
    StageFeed,
    UpdateConfig,
)
from core_console.decide.context import Context
from core_console.decide.outcome import CapexAccepted, CapexOutcome
from core_console.decide.record import capex_entry
from core_console.model.capex_document import CapexDocument, ScanTrigger, StagedFeed


def is_new_work(command: CapexCommand) -> bool:
    """Say whether the command starts something, rather than ending what is in flight."""
    return not isinstance(command, RecordScanRun | ClearRaised | Expire)


def decide(document: CapexDocument, command: CapexCommand, context: Context) -> CapexOutcome:
    """Return what the command makes of the document; the document given is never changed."""
    match command:
        case StageFeed():
            return _stage(document, command, context)
        case CommitIngest():
            return ingest.commit(document, command, context)
        case ClearFeed():
            return ingest.clear(document, command, context)
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
    said = capex_entry(context, command.actor, "stage", (stage.id,), sentence)
    return CapexAccepted(replace(document, stages=stages), stage, (said,))


def _configure(document: CapexDocument, command: UpdateConfig, context: Context) -> CapexOutcome:
    if command.config == document.config:
        return CapexAccepted(document, command.config)
    was, now = document.config.go_live, command.config.go_live
    default = "" if command.config.go_live_date else " (the default)"
    sentence = f"{command.actor} set Go-Live to {now}{default}; it was {was}"
    said = capex_entry(context, command.actor, "config.update", ("config",), sentence)
    return CapexAccepted(replace(document, config=command.config), command.config, (said,))


def _record_scan_run(
    document: CapexDocument, command: RecordScanRun, context: Context
) -> CapexOutcome:
    """Keep the scan run; the run's own record tells of it, so this document says nothing."""
    if scan_runs.moved(document, command.evaluated, staging.loaded(document)):
        return scan_runs.overtaken()
    scan = scan_runs.made(
        document,
        command.evaluated,
        context,
        trigger=ScanTrigger.MANUAL,
        actor=command.run_id,
    )
    return CapexAccepted(replace(document, scans=scan_runs.with_scan(document, scan)), scan)


def _clear_raised(document: CapexDocument, command: ClearRaised) -> CapexAccepted:
    left = tuple(each for each in document.raising if each.number > command.number)
    if left == document.raising:
        return CapexAccepted(document)
    return CapexAccepted(replace(document, raising=left))


def _expire(document: CapexDocument, context: Context) -> CapexAccepted:
    stages = staging.pending(document, context.now)
    released = scan_runs.still_released(document, context)
    if (stages, released) == (document.stages, document.released):
        return CapexAccepted(document)
    return CapexAccepted(replace(document, stages=stages, released=released))
