"""How findings look on the screen: by rule, traced to their rows, before and after an ingest.

Owns that a rule is shown with its count over all pages, and that what counts in no figure says so.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby

import click
from runink.core.atlas.v1 import capex_pb2 as pb

from core_console.cli.capex_view import SEVERITY, feed_name, show_provenance
from core_console.cli.failure import printable
from core_console.cli.output import more, say, short_name
from core_console.cli.tables import NOTHING, Column, facts, name, prose, table
from core_console.cli.words import figure


def show_preview(response: pb.PreviewIngestResponse) -> None:
    """Print the figures before and after, and the candidate's findings."""
    before, after = response.before, response.after
    rows = [
        ("scored findings", str(before.findings), str(after.findings)),
        *(
            (severity, str(before.by_severity[severity]), str(after.by_severity[severity]))
            for severity in ("CRITICAL", "HIGH", "MEDIUM")
        ),
        ("dq", figure(before.dq), figure(after.dq)),
    ]
    columns = (Column("FIGURE"), prose("BEFORE"), prose("AFTER"))
    rows = [
        (
            title,
            old if response.HasField("before") else "",
            new if response.HasField("after") else "",
        )
        for title, old, new in rows
    ]
    table(columns, rows, empty="no figures")
    changed = sorted(
        (rule, before.by_rule[rule], after.by_rule[rule])
        for rule in {*before.by_rule, *after.by_rule}
    )
    for rule, old, new in changed:
        if old != new:
            say(f"{rule}: {old} before, {new} after")
    say("")
    show_groups(response.findings, dict(after.by_rule))
    show_provenance(response.provenance)


def show_findings(response: pb.ListFindingsResponse, totals: dict[str, int]) -> None:
    """Print a page of findings by rule, each rule with its count over all pages."""
    if not response.findings and response.provenance.source != pb.SOURCE_UNAVAILABLE:
        say("no findings")
    elif response.findings:
        say(f"{len(response.findings):,} of {response.total:,} findings")
    show_groups(response.findings, totals)
    show_provenance(response.provenance)
    more(response.next_page_token)


def show_groups(findings: Iterable[pb.Finding], totals: dict[str, int]) -> None:
    """Print findings under their rules; a rule that counts in no figure says so."""
    for rule, group in groupby(findings, lambda found: found.rule_id):
        found = list(group)
        first = found[0]
        count = totals.get(rule, len(found))
        shown = f"{count:,} finding{'' if count == 1 else 's'}"
        part = f", {len(found):,} shown" if len(found) < count else ""
        dry = ", dry run: counts in no figure" if first.dry_run else ""
        severity = short_name(SEVERITY, first.severity)
        _heading(f"{rule} {severity} {feed_name(first.sheet)}: {shown}{part}{dry}")
        table(
            (Column("FINDING"), Column("ROW"), name("KEY"), prose("MESSAGE")),
            ((each.id, each.row_number, each.row_key, each.message) for each in found),
            empty="",
        )
        say("")


def _heading(text: str) -> None:
    click.secho(printable(text), bold=True)


def show_trace(response: pb.TraceFindingResponse) -> None:
    """Print a finding with the rows that its verdict read."""
    found = response.finding
    if response.HasField("finding"):
        facts(_finding_facts(response))
        for row in response.rows:
            say("")
            _heading(f"{feed_name(row.feed)} row {row.row_number} (line {row.line})")
            facts((cell.column, cell.value or NOTHING) for cell in row.cells)
        say("")
    elif not found.id:
        say("no finding can be traced now")
    show_provenance(response.provenance)


def _finding_facts(response: pb.TraceFindingResponse) -> Iterator[tuple[str, str]]:
    found = response.finding
    yield "finding", found.id
    yield "rule", f"{found.rule_id} {short_name(SEVERITY, found.severity)}"
    yield "must hold", response.condition
    yield "but", found.message
    yield "remediation", response.remediation
    yield "counts", "in no figure (dry run)" if found.dry_run else ""
