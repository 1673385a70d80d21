"""How feeds, figures and findings look on the screen.

Owns that no figure is shown without what it leaves out.
"""

from runink.core.atlas.v1 import capex_pb2 as pb

from core_console.cli.output import more, say, short_name
from core_console.cli.tables import NOTHING, Column, facts, name, prose, table
from core_console.cli.times import instant
from core_console.cli.words import figure, rate

FEED = pb.Feed.DESCRIPTOR
SEVERITY = pb.Severity.DESCRIPTOR

_FEEDS = (
    Column("FEED"),
    Column("ROWS"),
    name("FILE"),
    Column("DIGEST", rank=2),
    name("COMMITTED BY", rank=1),
    Column("COMMITTED"),
)
_STAGES = (
    Column("STAGE"),
    Column("FEED"),
    Column("ROWS"),
    name("FILE", rank=1),
    name("STAGED BY", rank=2),
    Column("EXPIRES"),
)
_RULES = (
    Column("RULE"),
    Column("SEVERITY"),
    Column("FEED", rank=1),
    Column("EFFECT", rank=3),
    Column("DIMENSION", rank=4),
    prose("MUST HOLD"),
    prose("REMEDIATION", rank=2),
)
_SCANS = (
    Column("SCAN RUN"),
    Column("AT"),
    Column("TRIGGER"),
    Column("FINDINGS"),
    Column("DQ"),
    name("ACTOR", rank=1),
    prose("NOTE", rank=2),
)
_DIMENSIONS = (
    Column("DIMENSION"),
    Column("HELD"),
    Column("JUDGED"),
    Column("EFFECTIVENESS"),
    prose("RULES"),
)


def feed_name(number: int) -> str:
    """Return a feed as a person types it, such as `capital_plan`."""
    return short_name(FEED, number).lower()


def show_provenance(found: pb.Provenance) -> None:
    """Say where the figures come from when it is not from feeds and a date that were set."""
    match found.source:
        case pb.SOURCE_DEFAULT:
            say("the Go-Live date is the default: set it with core-console capex config set")
        case pb.SOURCE_EMPTY:
            say("no feed is loaded")
        case pb.SOURCE_UNAVAILABLE:
            say("it could not be looked, so there is no figure")
        case _:
            pass
    for reason in found.unmeasured:
        say(f"not measured: {reason}")


def show_feeds(response: pb.GetFeedsResponse) -> None:
    """Print each feed, and what is staged."""
    table(
        _FEEDS,
        (
            (
                feed_name(found.feed),
                found.rows if found.loaded else "",
                found.filename if found.loaded else "not loaded",
                found.digest,
                found.committed_by,
                found.committed_at,
            )
            for found in response.feeds
        ),
        empty="no feeds",
    )
    say("")
    table(
        _STAGES,
        (
            (
                found.id,
                feed_name(found.feed),
                found.rows,
                found.filename,
                found.staged_by,
                found.expires_at,
            )
            for found in response.stages
        ),
        empty="nothing is staged",
    )
    show_provenance(response.provenance)


def issue_line(file: str, issue: pb.ParseIssue) -> str:
    """Return a fault of a file as compilers write theirs: `file:line:column: code: message`."""
    place = [file, *(str(number) for number in (issue.line, issue.column) if number)]
    return f"{':'.join(place)}: {issue.code}: {issue.message}"


def show_stage(found: pb.Stage) -> None:
    """Print what was staged, and until when it is held."""
    what = f"{found.rows:,} rows of {feed_name(found.feed)} from {found.filename}"
    say(f"{found.id}: {what}, held until {instant(found.expires_at)}")
    for note in found.notes:
        say(f"note: {note}")


def show_scan_run(scan: pb.ScanRun) -> None:
    """Print what a recorded scan came to, on one line."""
    total = f"{scan.summary.findings:,} scored findings"
    say(f"{scan.id}: {total}, dq {figure(scan.summary.dq) or NOTHING}")


def show_summary(response: pb.GetSummaryResponse) -> None:
    """Print the figures of the current feeds."""
    found = response.summary
    if response.HasField("summary"):
        facts(
            (
                ("scored findings", f"{found.findings:,}"),
                *((word.lower(), f"{found.by_severity[word]:,}") for word in found.by_severity),
                ("dry-run findings", f"{found.dry_run_findings:,}"),
                ("dq", figure(found.dq)),
            )
        )
        say("")
        columns = (Column("FEED"), Column("ROWS"), Column("FLAGGED"), Column("FINDINGS"))
        table(columns, (_state(feed) for feed in found.feeds), empty="no feeds")
        counts = sorted((rule, count) for rule, count in found.by_rule.items() if count)
        if counts:
            say("")
            table((Column("RULE"), Column("FINDINGS")), counts, empty="")
    show_provenance(response.provenance)


def _state(feed: pb.FeedState) -> tuple[str | int, ...]:
    if not feed.loaded:
        return (feed_name(feed.feed), "not loaded", "", "")
    return (feed_name(feed.feed), feed.rows, feed.rows_flagged, feed.findings)


def show_rules(response: pb.GetRuleBookResponse) -> None:
    """Print the rule book."""
    table(
        _RULES,
        (
            (
                rule.id,
                short_name(SEVERITY, rule.severity),
                feed_name(rule.sheet),
                short_name(pb.RuleEffect.DESCRIPTOR, rule.effect),
                rule.dimension,
                rule.condition,
                rule.remediation,
            )
            for rule in response.rules
        ),
        empty="no rules",
    )
    show_provenance(response.provenance)


def show_scans(response: pb.ListScanRunsResponse) -> None:
    """Print a page of scan runs."""
    table(
        _SCANS,
        (
            (
                scan.id,
                scan.at,
                short_name(pb.ScanTrigger.DESCRIPTOR, scan.trigger),
                scan.summary.findings,
                rate(scan.summary.dq),
                scan.actor,
                scan.note,
            )
            for scan in response.scan_runs
        ),
        empty="no scan runs",
    )
    show_provenance(response.provenance)
    more(response.next_page_token)


def show_dashboard(response: pb.GetDashboardResponse) -> None:
    """Print the control effectiveness by dimension."""
    table(
        _DIMENSIONS,
        (
            (
                found.dimension,
                found.held,
                found.judged,
                rate(found.effectiveness),
                ", ".join(found.rule_ids),
            )
            for found in response.dimensions
        ),
        empty="no dimensions",
    )
    say(f"overall: {figure(response.overall)}")
    show_provenance(response.provenance)


def show_config(config: pb.CapexConfig, provenance: pb.Provenance) -> None:
    """Print the Go-Live date, and whether anybody set it."""
    default = " (the default)" if provenance.source == pb.SOURCE_DEFAULT else ""
    say(f"the Go-Live date is {config.go_live_date or NOTHING}{default}")
