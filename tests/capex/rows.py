"""Rows of the three feeds that hold every rule, to change in the one respect a test is about.

Owns the builders of this folder. Feeds are written as CSV and parsed: the tests walk the way that
an upload walks. Go-Live is the default, 2027-03-31; ten weeks before it is 2027-01-20.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence

from core_console.capex.evaluation import Evaluation, evaluate
from core_console.capex.feeds import CONTRACTS, Table
from core_console.capex.findings import Filter, Findings
from core_console.capex.parsing import Parsed, parse
from core_console.capex.rules.book import RULES
from core_console.model.capex import Config, Effect, Feed, Finding, Thresholds

Row = Mapping[str, str]

PLAN, REQUEST, SPEND = Feed.CAPITAL_PLAN, Feed.CAPITAL_REQUEST, Feed.SPEND

CLEAN: Mapping[Feed, Row] = {
    PLAN: {
        "ItemId": "IT-1",
        "Description": "Torque station",
        "Type": "Tools",
        "Category": "Capital",
        "Lead_time_in_weeks": "10",
        "PurchaseDate": "2027-01-20",
        "Units": "2",
        "PricePerUnit": "500",
        "Amount": "1,000.00",
    },
    REQUEST: {
        "ID": "RQ-1",
        "RequestDate": "2027-01-13",
        "ItemId": "IT-1",
        "ApprovalDate": "2027-01-18",
        "ApprovalId": "AP-1",
        "Vendor": "Example Tools",
        "Amount": "1000",
    },
    SPEND: {
        "PoNo": "PO-1",
        "PODate": "2027-01-19",
        "Amount": "1000",
        "ApprovalId": "AP-1",
        "ItemId": "IT-1",
        "Type": "Tools",
    },
}


def a_row(feed: Feed, **changes: str) -> Row:
    """Return a clean row with some cells changed."""
    assert changes.keys() <= CLEAN[feed].keys()
    return {**CLEAN[feed], **changes}


def as_csv(feed: Feed, rows: Iterable[Row]) -> bytes:
    """Return the rows as a file."""
    out = io.StringIO()
    writer = csv.DictWriter(out, [str(column) for column in CONTRACTS[feed].columns])
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def a_table(feed: Feed, rows: Iterable[Row]) -> Table:
    """Return the rows as they are parsed; they must have no fault."""
    parsed = parse(feed, as_csv(feed, rows))
    assert isinstance(parsed, Parsed), parsed
    return parsed.table


def evaluated(
    *,
    plan: Sequence[Row] | None = None,
    requests: Sequence[Row] | None = None,
    spend: Sequence[Row] | None = None,
    thresholds: Thresholds | None = None,
    config: Config | None = None,
    effects: Mapping[str, Effect] | None = None,
) -> Evaluation:
    """Evaluate the given feeds; a feed that is None is not loaded."""
    given = zip(Feed, (plan, requests, spend), strict=True)
    feeds = {feed: a_table(feed, rows) for feed, rows in given if rows is not None}
    return evaluate(
        feeds,
        config=config or Config(),
        thresholds=thresholds or Thresholds(),
        effects=effects or {},
    )


def with_changes(
    plan: Row | None = None, request: Row | None = None, spend: Row | None = None
) -> Evaluation:
    """Evaluate one row of each feed, with these cells changed."""
    return evaluated(
        plan=[a_row(PLAN, **(plan or {}))],
        requests=[a_row(REQUEST, **(request or {}))],
        spend=[a_row(SPEND, **(spend or {}))],
    )


def verdicts(evaluation: Evaluation, rule_id: str) -> list[bool | None]:
    """Return what the rule says of each row of its sheet."""
    return RULES[rule_id].holds(evaluation.case)


def found(evaluation: Evaluation, rule_id: str) -> list[Finding]:
    """Return the findings of a rule."""
    return Findings(evaluation, Filter(rule_id=rule_id))[:]


def all_found(evaluation: Evaluation) -> set[str]:
    """Return the rules that have a finding."""
    return {each.rule_id for each in Findings(evaluation)}
