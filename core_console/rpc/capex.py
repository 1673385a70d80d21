"""CapexService: each RPC reads its request, asks the CapEx engine and shows the answer.

Owns no rule. A read that could not look is answered all the same: with UNAVAILABLE, the reason,
and no figure. A write that cannot be written is an error.
"""

# ruff: noqa: N802 -- the contract names the methods

import asyncio
from datetime import date
from typing import TypeVar

from runink.core.atlas.v1 import capex_pb2 as pb
from runink.core.atlas.v1.capex_pb2_grpc import CapexServiceServicer

from core_console.capex.dashboard import dashboard, overall
from core_console.capex.dates import day
from core_console.capex.findings import Filter, Findings
from core_console.capex.looking import Seen, Unseen
from core_console.capex.rules.book import RULE_BOOK, RULES
from core_console.capex.service import Capex
from core_console.capex.trace import ROWS_MAX, trace
from core_console.decide.outcome import Code, Refused, Violation, invalid
from core_console.model.capex import Config, Feed, Figure, ParseIssue, Provenance, Source
from core_console.model.capex_document import ScanRun, StagedFeed
from core_console.ports import Clock
from core_console.rpc import caller, enums, pages
from core_console.rpc import capex_to_proto as to_proto
from core_console.rpc.errors import RefusedError, invalid_field
from core_console.rpc.from_proto import known_id
from core_console.rpc.gate import Context
from core_console.rpc.pages import Position
from core_console.rpc.spec_from_proto import Faults, member

_Answer = TypeVar("_Answer")


class Feeds(CapexServiceServicer):
    """The servicer. Every error is raised and answered by the gate."""

    def __init__(self, capex: Capex, clock: Clock) -> None:
        self._capex = capex
        self._clock = clock

    async def GetFeeds(
        self, _request: pb.GetFeedsRequest, _context: Context
    ) -> pb.GetFeedsResponse:
        """Read the state of each feed, and what is staged."""
        found = await self._capex.eyes.stored()
        told = to_proto.provenance(found.provenance)
        if isinstance(found, Unseen):
            return pb.GetFeedsResponse(provenance=told)
        return pb.GetFeedsResponse(
            feeds=to_proto.feeds(found.document),
            stages=to_proto.stages(found.document, self._clock.now()),
            provenance=told,
        )

    async def StageFeed(
        self, request: pb.StageFeedRequest, _context: Context
    ) -> pb.StageFeedResponse:
        """Parse one file and hold it; a file's own faults are an answer."""
        staged = await self._capex.stage(
            actor=_actor(), feed=_feed(request.feed), filename=request.filename, csv=request.csv
        )
        if isinstance(staged, Refused):
            raise RefusedError(staged)
        if isinstance(staged, StagedFeed):
            return pb.StageFeedResponse(stage_id=staged.id, stage=to_proto.stage(staged))
        caller.current().fault = _not_staged(staged)
        return pb.StageFeedResponse(errors=map(to_proto.issue, staged))

    async def PreviewIngest(
        self, request: pb.PreviewIngestRequest, _context: Context
    ) -> pb.PreviewIngestResponse:
        """Evaluate the staged files over the current feeds; write nothing."""
        preview = _carried_out(await self._capex.preview(request.stage_ids))
        before, after = preview.before, preview.after
        shown = pb.PreviewIngestResponse(provenance=to_proto.provenance(after.provenance))
        if isinstance(before, Seen):
            shown.before.CopyFrom(to_proto.seen_summary(before))
        else:
            told = (f"before: {reason}" for reason in before.provenance.unmeasured)
            shown.provenance.unmeasured.extend(told)
        if isinstance(after, Seen):
            found = Findings(after.evaluation)
            shown.after.CopyFrom(to_proto.seen_summary(after))
            shown.findings.extend(map(to_proto.finding, found[:ROWS_MAX]))
            if (left := len(found) - ROWS_MAX) > 0:
                shown.provenance.unmeasured.append(f"{left:,} more findings are not listed")
        return shown

    async def CommitIngest(
        self, request: pb.CommitIngestRequest, _context: Context
    ) -> pb.CommitIngestResponse:
        """Replace each staged feed wholesale."""
        recorded = _carried_out(
            await self._capex.commit(actor=_actor(), stage_ids=request.stage_ids, note=request.note)
        )
        return pb.CommitIngestResponse(
            scan_run=to_proto.scan_run(recorded.scan),
            provenance=to_proto.provenance(recorded.provenance),
        )

    async def ClearFeed(
        self, request: pb.ClearFeedRequest, _context: Context
    ) -> pb.ClearFeedResponse:
        """Empty one feed."""
        recorded = _carried_out(
            await self._capex.clear(actor=_actor(), feed=_feed(request.feed), note=request.note)
        )
        return pb.ClearFeedResponse(
            scan_run=to_proto.scan_run(recorded.scan),
            provenance=to_proto.provenance(recorded.provenance),
        )

    async def GetConfig(
        self, _request: pb.GetConfigRequest, _context: Context
    ) -> pb.GetConfigResponse:
        """Read the settings."""
        found = await self._capex.eyes.stored()
        if isinstance(found, Unseen):
            return pb.GetConfigResponse(provenance=to_proto.provenance(found.provenance))
        config = found.document.config
        return pb.GetConfigResponse(config=to_proto.config(config), provenance=_source_of(config))

    async def UpdateConfig(
        self, request: pb.UpdateConfigRequest, _context: Context
    ) -> pb.UpdateConfigResponse:
        """Set the Go-Live date, or take the default again."""
        config = _config(request.go_live_date)
        outcome = _carried_out(await self._capex.configure(actor=_actor(), config=config))
        caller.current().unchanged = not outcome.entries
        return pb.UpdateConfigResponse(
            config=to_proto.config(config), provenance=_source_of(config)
        )

    async def GetSummary(
        self, _request: pb.GetSummaryRequest, _context: Context
    ) -> pb.GetSummaryResponse:
        """Read the figures of the current feeds."""
        found = await self._capex.eyes.look()
        told = to_proto.provenance(found.provenance)
        if isinstance(found, Unseen):
            return pb.GetSummaryResponse(provenance=told)
        return pb.GetSummaryResponse(summary=to_proto.seen_summary(found), provenance=told)

    async def ListFindings(
        self, request: pb.ListFindingsRequest, _context: Context
    ) -> pb.ListFindingsResponse:
        """List findings, by rule as in the book, then by row."""
        taken = _filter(request)
        found = await self._capex.eyes.look()
        told = to_proto.provenance(found.provenance)
        if isinstance(found, Unseen):
            return pb.ListFindingsResponse(provenance=told)
        page = pages.read(
            "findings",
            (taken.feed, taken.rule_id, taken.severity),
            page_size=request.page_size,
            page_token=request.page_token,
            basis=_basis(found),
        )
        findings = Findings(found.evaluation, taken)
        start = 0 if page.after is None else max(0, page.after[0])
        end = start + page.size
        more = pages.token_after(page, (end, "", "")) if end < len(findings) else ""
        return pb.ListFindingsResponse(
            findings=map(to_proto.finding, findings[start:end]),
            next_page_token=more,
            total=len(findings),
            provenance=told,
        )

    async def TraceFinding(
        self, request: pb.TraceFindingRequest, _context: Context
    ) -> pb.TraceFindingResponse:
        """Read the rows that a verdict read."""
        found = await self._capex.eyes.look()
        if isinstance(found, Unseen):
            return pb.TraceFindingResponse(provenance=to_proto.provenance(found.provenance))
        finding_id = known_id(request.finding_id)
        # It may have to look through a million findings.
        traced = await asyncio.to_thread(trace, found.evaluation, finding_id)
        if traced is None:
            raise RefusedError(_no_finding(finding_id))
        return pb.TraceFindingResponse(
            finding=to_proto.finding(traced.finding),
            condition=traced.condition,
            remediation=traced.remediation,
            rows=map(to_proto.traced_row, traced.rows),
            provenance=to_proto.provenance(found.provenance, *traced.unmeasured),
        )

    async def GetRuleBook(
        self, _request: pb.GetRuleBookRequest, _context: Context
    ) -> pb.GetRuleBookResponse:
        """Read the 24 rules; they are the program's own, whatever can be looked at."""
        found = await self._capex.eyes.stored()
        scope = self._capex.eyes.scope()
        return pb.GetRuleBookResponse(
            rules=(to_proto.rule(rule, scope) for rule in RULE_BOOK),
            provenance=to_proto.provenance(found.provenance),
        )

    async def ListScanRuns(
        self, request: pb.ListScanRunsRequest, _context: Context
    ) -> pb.ListScanRunsResponse:
        """List scan runs, newest first."""
        page = pages.read(
            "scan_runs", (), page_size=request.page_size, page_token=request.page_token
        )
        found = await self._capex.eyes.stored()
        told = to_proto.provenance(found.provenance)
        if isinstance(found, Unseen):
            return pb.ListScanRunsResponse(provenance=told)
        shown, token = pages.cut(found.document.scans, page, _by_number, newest_first=True)
        return pb.ListScanRunsResponse(
            scan_runs=map(to_proto.scan_run, shown),
            next_page_token=token,
            provenance=told,
        )

    async def GetDashboard(
        self, _request: pb.GetDashboardRequest, _context: Context
    ) -> pb.GetDashboardResponse:
        """Read the control effectiveness by dimension."""
        found = await self._capex.eyes.look()
        told = to_proto.provenance(found.provenance)
        if isinstance(found, Unseen):
            absent = to_proto.figure(Figure(None, found.provenance.unmeasured[0]))
            return pb.GetDashboardResponse(overall=absent, provenance=told)
        scores = dashboard(found.evaluation)
        return pb.GetDashboardResponse(
            dimensions=map(to_proto.dimension, scores),
            overall=to_proto.figure(overall(scores)),
            provenance=told,
        )


def _actor() -> str:
    return caller.current().actor


def _carried_out(outcome: _Answer | Refused) -> _Answer:
    if isinstance(outcome, Refused):
        raise RefusedError(outcome)
    return outcome


def _feed(number: int) -> Feed:
    faults: Faults = []
    feed = member("feed", number, enums.FEED_OF, faults)
    if feed is None:
        raise RefusedError(invalid(*faults))
    return feed


def _filter(request: pb.ListFindingsRequest) -> Filter:
    """Return the filter; a value that no finding can have is refused rather than counted as 0."""
    faults: Faults = []
    feed = member("feed", request.feed, enums.FEED_OF, faults) if request.feed else None
    severity = None
    if request.severity:
        severity = member("severity", request.severity, enums.SEVERITY_OF, faults)
    if request.rule_id and request.rule_id not in RULES:
        faults.append(Violation("rule_id", "is no rule of the book, such as CP-001"))
    if faults:
        raise RefusedError(invalid(*faults))
    return Filter(feed, request.rule_id or None, severity)


def _config(go_live_date: str) -> Config:
    if not go_live_date:
        return Config()
    ordinal = day(go_live_date)
    if ordinal is None:
        raise invalid_field("go_live_date", "is no date of the calendar as YYYY-MM-DD")
    return Config(date.fromordinal(ordinal))


def _source_of(config: Config) -> pb.Provenance:
    """Return where the settings themselves come from, whatever feeds are loaded."""
    source = Source.DEFAULT if config.go_live_date is None else Source.LIVE
    return to_proto.provenance(Provenance(source))


def _basis(seen: Seen) -> dict[str, object]:
    """Return what a list of findings is made from, by the words that tell of a change."""
    return {
        "the feeds": seen.inputs.digests,
        "the Go-Live date": seen.inputs.go_live,
        "the rules": seen.inputs.scope,
    }


def _no_finding(finding_id: str) -> Refused:
    of_that = f"finding {finding_id}" if finding_id else "a finding of that id"
    return Refused(Code.NOT_FOUND, f"{of_that} is not among the current findings")


def _not_staged(issues: tuple[ParseIssue, ...]) -> str:
    """Return what the record says of a file that has faults: their codes, and no cell of it."""
    codes = ", ".join(sorted({str(each.code) for each in issues}))
    return f"the file was not staged: it has {len(issues)} issues ({codes})"


def _by_number(scan: ScanRun) -> Position:
    return scan.number, "", scan.id
