"""`core-console capex …`: load feeds, and read what the rules found in them.

Owns these commands; how figures look on the screen is `capex_view`'s.
"""

from pathlib import Path

import click
from runink.core.atlas.v1 import capex_pb2 as pb

from core_console.cli import capex_view as view
from core_console.cli import upload
from core_console.cli.capex_config import config
from core_console.cli.client import Connection, connected
from core_console.cli.failure import Exit, Failed
from core_console.cli.findings_view import show_findings, show_preview, show_trace
from core_console.cli.help import Group
from core_console.cli.options import choice_option, paged
from core_console.cli.output import Form, Page, enum_prefix, short_names

_FEEDS = [name.lower() for name in short_names(view.FEED)]
_SEVERITIES = short_names(view.SEVERITY)

feed_argument = click.argument(
    "feed", metavar="FEED", type=click.Choice(_FEEDS, case_sensitive=False)
)
stages_argument = click.argument("stage_ids", metavar="STAGE…", nargs=-1, required=True)


def _feed(name: str | None) -> pb.Feed.ValueType:
    return pb.Feed.Value(enum_prefix(view.FEED) + (name or "unspecified").upper())


@click.group(cls=Group)
def capex() -> None:
    """Load CapEx feeds, and read what the rules found in them.

    Example: core-console capex stage spend spend.csv
    """


capex.add_command(config)


@capex.command("stage")
@feed_argument
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@connected
def stage(connection: Connection, page: Page, feed: str, file: Path) -> None:
    """Parse one CSV file and hold it for 30 minutes; the feeds do not change.

    FEED is capital_plan, capital_request or spend. A file with faults is not staged: each fault is
    a line `file:line:column: code: message`, and the exit code is 1.

    Example: core-console capex stage capital_plan plan.csv
    """
    response = upload.stage(connection, _feed(feed), file)
    if response.errors and page.form is Form.TABLE:
        first, *rest = (view.issue_line(str(file), issue) for issue in response.errors)
        raise Failed(Exit.REFUSED, first, rest)
    page.answer(response, lambda found: view.show_stage(found.stage))
    if response.errors:
        raise Failed(Exit.REFUSED, f"{file} is not staged")
    page.hint(f"see what it would change: core-console capex preview {response.stage_id}")
    page.hint(f"make it the feed: core-console capex commit {response.stage_id}")


@capex.command("preview")
@stages_argument
@connected
def preview(connection: Connection, page: Page, stage_ids: tuple[str, ...]) -> None:
    """Evaluate staged files over the current feeds, and write nothing.

    Example: core-console capex preview STG-3m9x… STG-8p1r…
    """
    request = pb.PreviewIngestRequest(stage_ids=stage_ids)
    page.answer(connection.call(connection.capex.PreviewIngest, request), show_preview)


@capex.command("commit")
@stages_argument
@click.option("--note", default="", metavar="T", help="Why, for the record.")
@connected
def commit(connection: Connection, page: Page, stage_ids: tuple[str, ...], note: str) -> None:
    """Make staged files the feeds, and record a scan run.

    Example: core-console capex commit STG-3m9x… --note "November"
    """
    request = pb.CommitIngestRequest(stage_ids=stage_ids, note=note)
    response = connection.call(connection.capex.CommitIngest, request)
    page.answer(response, lambda found: _show_recorded(found.scan_run, found.provenance))


@capex.command("clear")
@feed_argument
@click.option("--note", required=True, metavar="T", help="Why, for the record.")
@connected
def clear(connection: Connection, page: Page, feed: str, note: str) -> None:
    """Empty one feed, and record a scan run.

    Example: core-console capex clear spend --note "wrong company"
    """
    request = pb.ClearFeedRequest(feed=_feed(feed), note=note)
    response = connection.call(connection.capex.ClearFeed, request)
    page.answer(response, lambda found: _show_recorded(found.scan_run, found.provenance))


def _show_recorded(scan: pb.ScanRun, provenance: pb.Provenance) -> None:
    view.show_scan_run(scan)
    view.show_provenance(provenance)


@capex.command("feeds")
@connected
def feeds(connection: Connection, page: Page) -> None:
    """Show the feeds that are loaded, and what is staged.

    Example: core-console capex feeds
    """
    request = pb.GetFeedsRequest()
    page.answer(connection.call(connection.capex.GetFeeds, request), view.show_feeds)


@capex.command("summary")
@connected
def summary(connection: Connection, page: Page) -> None:
    """Show the counts by severity and rule, and the dq score.

    Example: core-console capex summary
    """
    request = pb.GetSummaryRequest()
    page.answer(connection.call(connection.capex.GetSummary, request), view.show_summary)


@capex.command("findings")
@click.option("--rule", "rule_id", default="", metavar="ID", help="Only this rule's, as CP-001.")
@choice_option("--feed", _FEEDS, what="Only in this feed.")
@choice_option("--severity", _SEVERITIES, what="Only these.")
@paged
@connected
def findings(
    connection: Connection,
    page: Page,
    rule_id: str,
    feed: str | None,
    severity: str | None,
    page_size: int,
    page_token: str,
) -> None:
    """List findings by rule, each rule with its count.

    Example: core-console capex findings --severity CRITICAL --feed spend
    """
    request = pb.ListFindingsRequest(
        rule_id=rule_id.upper(),
        feed=_feed(feed),
        severity=pb.Severity.Value(enum_prefix(view.SEVERITY) + (severity or "UNSPECIFIED")),
        page_size=page_size,
        page_token=page_token,
    )
    response = connection.call(connection.capex.ListFindings, request)
    totals: dict[str, int] = {}
    if page.form is Form.TABLE and response.total > len(response.findings):
        # A filter takes all findings of a rule or none, so the summary's counts hold here too.
        summed = connection.call(connection.capex.GetSummary, pb.GetSummaryRequest())
        totals = dict(summed.summary.by_rule)
    page.answer(response, lambda found: show_findings(found, totals))


@capex.command("trace")
@click.argument("finding_id", metavar="FINDING")
@connected
def trace(connection: Connection, page: Page, finding_id: str) -> None:
    """Show the rows of each feed that one verdict read.

    Example: core-console capex trace FND-5t2w…
    """
    request = pb.TraceFindingRequest(finding_id=finding_id)
    page.answer(connection.call(connection.capex.TraceFinding, request), show_trace)


@capex.command("rules")
@connected
def rules(connection: Connection, page: Page) -> None:
    """Show the 24 rules, each with what must hold and how to mend it.

    Example: core-console capex rules
    """
    request = pb.GetRuleBookRequest()
    page.answer(connection.call(connection.capex.GetRuleBook, request), view.show_rules)


@capex.command("scans")
@paged
@connected
def scans(connection: Connection, page: Page, page_size: int, page_token: str) -> None:
    """List the newest 50 scan runs, newest first.

    Example: core-console capex scans
    """
    request = pb.ListScanRunsRequest(page_size=page_size, page_token=page_token)
    page.answer(connection.call(connection.capex.ListScanRuns, request), view.show_scans)


@capex.command("dashboard")
@connected
def dashboard(connection: Connection, page: Page) -> None:
    """Show the control effectiveness by dimension of data quality.

    Example: core-console capex dashboard
    """
    request = pb.GetDashboardRequest()
    page.answer(connection.call(connection.capex.GetDashboard, request), view.show_dashboard)
