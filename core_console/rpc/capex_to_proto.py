"""From the CapEx engine to the contract's messages.

Owns how feeds, figures and findings are shown. Never invents a figure: one that is absent says
why, and what could not be looked at is left out altogether.
"""

from collections.abc import Iterable
from datetime import datetime

from runink.core.atlas.v1 import capex_pb2 as pb
from runink.core.atlas.v1 import common_pb2

from core_console.capex.dashboard import DimensionScore
from core_console.capex.feeds import CONTRACTS
from core_console.capex.looking import Seen
from core_console.capex.rules.rule import Rule
from core_console.capex.scope import Scope
from core_console.capex.trace import TracedRow
from core_console.decide import staging
from core_console.model.capex import (
    Config,
    Effect,
    Feed,
    Figure,
    Finding,
    ParseIssue,
    Provenance,
)
from core_console.model.capex_document import (
    CapexDocument,
    FeedCounts,
    LoadedFeed,
    ScanRun,
    ScanSummary,
    StagedFeed,
)
from core_console.rpc import enums
from core_console.rpc.to_proto import instant, timestamp


def provenance(told: Provenance, *more: str) -> pb.Provenance:
    """Return where figures come from; `more` is what this answer leaves out beyond that."""
    return pb.Provenance(source=enums.SOURCE[told.source], unmeasured=(*told.unmeasured, *more))


def figure(told: Figure) -> common_pb2.Figure:
    """Return the figure, or why there is none."""
    if told.value is None:
        return common_pb2.Figure(absent_reason=told.absent_reason)
    return common_pb2.Figure(value=float(told.value))


def feeds(document: CapexDocument) -> Iterable[pb.FeedState]:
    """Return the state of every feed, loaded or not."""
    for feed in Feed:
        shown = _contract(feed)
        if feed in document.feeds:
            _show_loaded(shown, document.feeds[feed])
        yield shown


def stages(document: CapexDocument, now: datetime) -> Iterable[pb.Stage]:
    """Return what is staged, oldest first."""
    return map(stage, staging.pending(document, now))


def stage(staged: StagedFeed) -> pb.Stage:
    """Return a staged file."""
    return pb.Stage(
        id=staged.id,
        feed=enums.FEED[staged.feed],
        filename=staged.filename,
        rows=staged.rows,
        digest=staged.digest,
        staged_by=staged.staged_by,
        staged_at=timestamp(staged.staged_at),
        expires_at=timestamp(staged.expires_at),
        notes=staged.notes,
    )


def issue(found: ParseIssue) -> pb.ParseIssue:
    """Return a fault of a file."""
    return pb.ParseIssue(
        code=found.code, message=found.message, line=found.line, column=found.column
    )


def seen_summary(seen: Seen) -> pb.Summary:
    """Return the figures of feeds as they were evaluated, with who committed what is loaded."""
    shown = summary(seen.summary)
    for each, feed in zip(shown.feeds, Feed, strict=True):
        loaded = seen.document.feeds.get(feed)
        if loaded is not None and loaded.digest == each.digest:
            _show_loaded(each, loaded)
    return shown


def summary(told: ScanSummary) -> pb.Summary:
    """Return the figures."""
    return pb.Summary(
        findings=told.findings,
        by_severity={str(severity): count for severity, count in told.by_severity.items()},
        by_rule=told.by_rule,
        dry_run_findings=told.dry_run_findings,
        dq=figure(told.dq),
        feeds=(_counted(feed, told.feeds.get(feed)) for feed in Feed),
    )


def _counted(feed: Feed, counts: FeedCounts | None) -> pb.FeedState:
    shown = _contract(feed)
    if counts is not None:
        shown.loaded = True
        shown.rows, shown.digest = counts.rows, counts.digest
        shown.rows_flagged, shown.findings = counts.rows_flagged, counts.findings
    return shown


def _contract(feed: Feed) -> pb.FeedState:
    contract = CONTRACTS[feed]
    told = pb.FeedContract(columns=contract.columns, must_not_be_blank=contract.not_blank)
    return pb.FeedState(feed=enums.FEED[feed], contract=told)


def _show_loaded(shown: pb.FeedState, loaded: LoadedFeed) -> None:
    shown.loaded = True
    shown.rows, shown.digest = loaded.rows, loaded.digest
    shown.filename, shown.committed_by = loaded.filename, loaded.committed_by
    shown.committed_at.CopyFrom(instant(loaded.committed_at))


def scan_run(scan: ScanRun) -> pb.ScanRun:
    """Return a scan run as it was recorded."""
    return pb.ScanRun(
        id=scan.id,
        at=timestamp(scan.at),
        trigger=enums.SCAN_TRIGGER[scan.trigger],
        actor=scan.actor,
        note=scan.note,
        summary=summary(scan.summary),
    )


def config(stored: Config) -> pb.CapexConfig:
    """Return the settings that are in force."""
    return pb.CapexConfig(go_live_date=stored.go_live.isoformat())


def finding(found: Finding) -> pb.Finding:
    """Return a finding."""
    return pb.Finding(
        id=found.id,
        rule_id=found.rule_id,
        sheet=enums.FEED[found.sheet],
        severity=enums.SEVERITY[found.severity],
        row_key=found.row_key,
        row_number=found.row_number,
        message=found.message,
        dry_run=found.dry_run,
    )


def traced_row(row: TracedRow) -> pb.TracedRow:
    """Return a row that a verdict read."""
    return pb.TracedRow(
        feed=enums.FEED[row.feed],
        row_number=row.number,
        line=row.line,
        cells=(pb.Cell(column=column, value=value) for column, value in row.cells),
    )


def rule(of_book: Rule, scope: Scope) -> pb.Rule:
    """Return a rule with the thresholds that are in force."""
    return pb.Rule(
        id=of_book.id,
        sheet=enums.FEED[of_book.sheet],
        severity=enums.SEVERITY[of_book.severity],
        condition=of_book.words(scope.thresholds),
        remediation=of_book.remediation,
        dimension=of_book.dimension or "",
        effect=enums.RULE_EFFECT[scope.effects().get(of_book.id, Effect.SCORED)],
    )


def dimension(score: DimensionScore) -> pb.DimensionScore:
    """Return a dimension's figure with the checks behind it."""
    return pb.DimensionScore(
        dimension=score.dimension,
        rule_ids=score.rule_ids,
        judged=score.checks,
        held=score.checks - score.failures,
        effectiveness=figure(score.effectiveness),
    )
