"""Each of the 24 rules: holds, fails, its boundary, a blank and an unreadable input.

The tables give the cells that differ from a clean row. UNJUDGED means that the rule says nothing
of the row, because another rule reports the gap.
"""

from collections.abc import Mapping
from enum import Enum

import pytest

from core_console.capex.rules.book import RULE_BOOK, RULES
from core_console.model.capex import Severity, Thresholds
from tests.capex.rows import PLAN, REQUEST, SPEND, Row, all_found, found, verdicts, with_changes


class Verdict(Enum):
    HOLDS = True
    FAILS = False
    UNJUDGED = None


HOLDS, FAILS, UNJUDGED = Verdict
Case = tuple[str, Row, Row, Row, Verdict]
NO: Row = {}


def plan(label: str, verdict: Verdict, **cells: str) -> Case:
    return label, cells, NO, NO, verdict


def request(label: str, verdict: Verdict, **cells: str) -> Case:
    return label, NO, cells, NO, verdict


def spend(label: str, verdict: Verdict, **cells: str) -> Case:
    return label, NO, NO, cells, verdict


TABLES: Mapping[str, tuple[Case, ...]] = {
    "CP-001": (
        plan("holds", HOLDS),
        plan("blank", FAILS, ItemId=""),
        plan("only white space", FAILS, ItemId=" \u00a0"),
        plan("odd but there", HOLDS, ItemId="?"),
    ),
    "CP-002": (
        plan("holds", HOLDS),
        plan("64 characters", HOLDS, ItemId="a_" * 32),
        plan("65 characters", FAILS, ItemId="a" * 65),
        plan("a space inside", FAILS, ItemId="IT 1"),
        plan("letters of another script", FAILS, ItemId="ИТ-1"),
        plan("full-width digits", FAILS, ItemId="IT-\uff11"),
        plan("blank", UNJUDGED, ItemId=""),
    ),
    "CP-003": (
        plan("holds", HOLDS),
        plan("3 letters", HOLDS, Description="Jig"),
        plan("2 letters", FAILS, Description="Ji"),
        plan("letters apart", HOLDS, Description="A B C"),
        plan("digits are no letters", FAILS, Description="12345"),
        plan("a generic word", FAILS, Description="Tool"),
        plan("in any case, with its stop", FAILS, Description=" EQUIPMENT. "),
        plan("in the plural", FAILS, Description="items"),
        plan("with a number", FAILS, Description="Item #4"),
        plan("n/a", FAILS, Description="n/a"),
        plan("a generic word among others", HOLDS, Description="Test bench"),
        plan("a generic word before another", HOLDS, Description="NA, 7 kW"),
        plan("another script", HOLDS, Description="工作台"),
    ),
    "CP-004": (
        plan("Manufacturing", HOLDS, Type="Manufacturing"),
        plan("Testing", HOLDS, Type="Testing"),
        plan("another word", FAILS, Type="Tooling"),
        plan("another case", FAILS, Type="tools"),
        plan("blank", FAILS, Type=""),
    ),
    "CP-005": (
        plan("Non-Capital", HOLDS, Category="Non-Capital"),
        plan("another word", FAILS, Category="Expense"),
        plan("blank", FAILS, Category=""),
    ),
    "CP-006": (
        plan("exactly the threshold", HOLDS, PricePerUnit="500.00"),
        plan("a cent below", FAILS, PricePerUnit="499.99"),
        plan("a hair below, of 30 digits", FAILS, PricePerUnit="499." + "9" * 27),
        plan("nothing", FAILS, PricePerUnit="0"),
        plan("below, and Non-Capital", HOLDS, PricePerUnit="5", Category="Non-Capital"),
        plan("above, and Non-Capital", HOLDS, PricePerUnit="5000", Category="Non-Capital"),
        plan("blank price", UNJUDGED, PricePerUnit=""),
        plan("blank category", UNJUDGED, PricePerUnit="5", Category=""),
        plan("unknown category", UNJUDGED, PricePerUnit="5", Category="capital"),
    ),
    "CP-007": (
        plan("on the day", HOLDS),
        plan("14 days before", HOLDS, PurchaseDate="2027-01-06"),
        plan("15 days before", FAILS, PurchaseDate="2027-01-05"),
        plan("14 days after", HOLDS, PurchaseDate="2027-02-03"),
        plan("15 days after", FAILS, PurchaseDate="2027-02-04"),
        plan("no lead time", HOLDS, Lead_time_in_weeks="0", PurchaseDate="2027-03-31"),
        plan("a lead time beyond the calendar", FAILS, Lead_time_in_weeks="999999"),
        plan("blank lead time", UNJUDGED, Lead_time_in_weeks=""),
        plan("blank date", UNJUDGED, PurchaseDate=""),
        plan("no date", UNJUDGED, PurchaseDate="20-01-2027"),
    ),
    "CR-001": (request("holds", HOLDS), request("blank", FAILS, ItemId="")),
    "CR-002": (
        request("holds", HOLDS),
        request("unknown item", FAILS, ItemId="IT-2"),
        request("another case", FAILS, ItemId="it-1"),
        request("blank", UNJUDGED, ItemId=""),
    ),
    "CR-003": (request("holds", HOLDS), request("blank", FAILS, ApprovalId="")),
    "CR-004": (request("holds", HOLDS), request("blank", FAILS, Vendor=" ")),
    "CR-005": (
        request("holds", HOLDS),
        request("the same day", HOLDS, RequestDate="2027-01-20"),
        request("a day after", FAILS, RequestDate="2027-01-21"),
        request("blank", UNJUDGED, RequestDate=""),
        request("no date", UNJUDGED, RequestDate="2027-02-30"),
        request("unknown item", UNJUDGED, ItemId="IT-2"),
        request("blank item", UNJUDGED, ItemId=""),
        plan("no date in the plan", UNJUDGED, PurchaseDate="soon"),
    ),
    "CR-006": (
        request("14 days before", HOLDS, RequestDate="2027-01-06"),
        request("15 days before", FAILS, RequestDate="2027-01-05"),
        request("14 days after", HOLDS, RequestDate="2027-02-03"),
        request("15 days after", FAILS, RequestDate="2027-02-04"),
        request("blank", UNJUDGED, RequestDate=""),
        request("no date", UNJUDGED, RequestDate="20270113"),
        request("unknown item", UNJUDGED, ItemId="IT-2"),
        plan("no date in the plan", UNJUDGED, PurchaseDate=""),
    ),
    "CR-007": (
        request("3 days", HOLDS, ApprovalDate="2027-01-16"),
        request("2 days", FAILS, ApprovalDate="2027-01-15"),
        request("before the request", FAILS, ApprovalDate="2026-12-31"),
        request("blank approval", UNJUDGED, ApprovalDate=""),
        request("no date", UNJUDGED, RequestDate="13 January"),
    ),
    "CR-008": (
        plan("holds", HOLDS),
        plan("nobody asked", FAILS, ItemId="IT-2"),
        plan("blank item", UNJUDGED, ItemId=""),
        plan("malformed item", UNJUDGED, ItemId="IT 2"),
    ),
    "CR-009": (
        request("exactly 5 % more", HOLDS, Amount="1050.00"),
        request("a cent above", FAILS, Amount="1050.01"),
        request("exactly 5 % less", HOLDS, Amount="950"),
        request("a cent below", FAILS, Amount="949.99"),
        request("a hair above, of 30 digits", FAILS, Amount="1050." + "0" * 25 + "1"),
        ("nothing of nothing", {"Amount": "0"}, {"Amount": "0.00"}, NO, HOLDS),
        ("something of nothing", {"Amount": "0"}, {"Amount": "0.01"}, NO, FAILS),
        ("a credit, 5 % off", {"Amount": "-100"}, {"Amount": "-105"}, NO, HOLDS),
        ("a credit, further off", {"Amount": "-100"}, {"Amount": "-106"}, NO, FAILS),
        request("unknown item", UNJUDGED, ItemId="IT-2"),
        request("blank item", UNJUDGED, ItemId=""),
    ),
    "SP-001": (
        spend("holds", HOLDS),
        spend("blank approval", FAILS, ApprovalId=""),
        spend("blank item", FAILS, ItemId=""),
        spend("blank type", FAILS, Type=""),
        spend("all blank", FAILS, ApprovalId="", ItemId="", Type=""),
    ),
    "SP-002": (
        spend("after", HOLDS),
        spend("the same day", HOLDS, PODate="2027-01-18"),
        spend("a day before", FAILS, PODate="2027-01-17"),
        spend("blank", UNJUDGED, PODate=""),
        spend("no date", UNJUDGED, PODate="18.01.2027"),
        spend("unknown approval", UNJUDGED, ApprovalId="AP-2"),
        spend("blank approval", UNJUDGED, ApprovalId=""),
        request("no date in the request", UNJUDGED, ApprovalDate="approved"),
    ),
    "SP-003": (
        spend("exactly x 1.10", HOLDS, Amount="1100.00"),
        spend("a cent above", FAILS, Amount="1100.01"),
        spend("a hair above, of 30 digits", FAILS, Amount="1100." + "0" * 25 + "1"),
        spend("unknown approval", UNJUDGED, ApprovalId="AP-2"),
        spend("blank approval", UNJUDGED, ApprovalId=""),
        ("nothing approved", NO, {"Amount": "0"}, {"Amount": "0.01"}, FAILS),
        ("nothing spent", NO, {"Amount": "0"}, {"Amount": "0"}, HOLDS),
    ),
    "SP-004": (
        spend("holds", HOLDS),
        spend("unknown approval", FAILS, ApprovalId="AP-2"),
        spend("blank", UNJUDGED, ApprovalId=""),
    ),
    "SP-005": (
        spend("holds", HOLDS),
        spend("another type", FAILS, Type="Testing"),
        spend("blank", UNJUDGED, Type=""),
        spend("unknown item", UNJUDGED, ItemId="IT-2"),
        plan("blank in the plan", UNJUDGED, Type=""),
        plan("no such type in the plan", UNJUDGED, Type="Tooling"),
    ),
    "CP-008": (
        plan("holds", HOLDS),
        plan("a leap day", HOLDS, PurchaseDate="2028-02-29"),
        plan("no leap year", FAILS, PurchaseDate="2027-02-29"),
        plan("blank", FAILS, PurchaseDate=""),
        plan("day first", FAILS, PurchaseDate="20/01/2027"),
        plan("with a time", FAILS, PurchaseDate="2027-01-20T00:00"),
        plan("full-width digits", FAILS, PurchaseDate="\uff12\uff10\uff12\uff17-01-20"),
        plan("the year 0", FAILS, PurchaseDate="0000-01-01"),
    ),
    "CR-010": (
        request("holds", HOLDS),
        request("bad request date", FAILS, RequestDate="2027-1-13"),
        request("bad approval date", FAILS, ApprovalDate="2027-W03-1"),
        request("both blank", FAILS, RequestDate="", ApprovalDate=""),
    ),
    "SP-006": (
        spend("holds", HOLDS),
        spend("blank", FAILS, PODate=""),
        spend("no such month", FAILS, PODate="2027-13-01"),
    ),
}

CASES = [
    pytest.param(rule_id, *case[1:], id=f"{rule_id}: {case[0]}")
    for rule_id, cases in TABLES.items()
    for case in cases
]


@pytest.mark.parametrize(
    ("rule_id", "plan_cells", "request_cells", "spend_cells", "verdict"), CASES
)
def test_a_rule_judges_a_row(
    rule_id: str,
    plan_cells: Row,
    request_cells: Row,
    spend_cells: Row,
    verdict: Verdict,
) -> None:
    evaluation = with_changes(plan_cells, request_cells, spend_cells)
    assert verdicts(evaluation, rule_id) == [verdict.value]
    findings = found(evaluation, rule_id)
    assert len(findings) == (1 if verdict is FAILS else 0)
    for each in findings:
        assert (each.sheet, each.severity) == (RULES[rule_id].sheet, RULES[rule_id].severity)
        assert each.row_number == 1
        assert not each.dry_run
        assert each.message


def test_every_rule_has_its_table_and_its_failing_case() -> None:
    assert TABLES.keys() == RULES.keys()
    for rule_id, cases in TABLES.items():
        assert {HOLDS, FAILS} <= {case[-1] for case in cases}, rule_id


CRITICAL, HIGH, MEDIUM = Severity
BOOK = (
    ("CP-001", PLAN, CRITICAL), ("CP-002", PLAN, CRITICAL), ("CP-003", PLAN, MEDIUM),
    ("CP-004", PLAN, HIGH), ("CP-005", PLAN, HIGH), ("CP-006", PLAN, CRITICAL),
    ("CP-007", PLAN, CRITICAL), ("CR-001", REQUEST, CRITICAL), ("CR-002", REQUEST, CRITICAL),
    ("CR-003", REQUEST, CRITICAL), ("CR-004", REQUEST, HIGH), ("CR-005", REQUEST, CRITICAL),
    ("CR-006", REQUEST, MEDIUM), ("CR-007", REQUEST, HIGH), ("CR-008", PLAN, CRITICAL),
    ("CR-009", REQUEST, HIGH), ("SP-001", SPEND, CRITICAL), ("SP-002", SPEND, CRITICAL),
    ("SP-003", SPEND, CRITICAL), ("SP-004", SPEND, CRITICAL), ("SP-005", SPEND, HIGH),
    ("CP-008", PLAN, CRITICAL), ("CR-010", REQUEST, CRITICAL), ("SP-006", SPEND, CRITICAL),
)  # fmt: skip


def test_the_book_has_the_24_rules_in_their_order() -> None:
    assert tuple((rule.id, rule.sheet, rule.severity) for rule in RULE_BOOK) == BOOK


def test_a_rule_says_its_condition_with_the_thresholds_in_force() -> None:
    moved = Thresholds(tolerance_days=21)
    assert "within 14 days of Go-Live" in RULES["CP-007"].words(Thresholds())
    assert "within 21 days of Go-Live" in RULES["CP-007"].words(moved)
    for rule in RULE_BOOK:
        assert "{" not in rule.words(moved)
        assert rule.remediation.endswith(".")


@pytest.mark.parametrize(
    ("plan_cells", "request_cells", "spend_cells", "only"),
    [
        ({"PurchaseDate": "soon"}, NO, NO, {"CP-008"}),
        ({"PurchaseDate": ""}, NO, NO, {"CP-008"}),
        ({"Type": "Tooling"}, NO, NO, {"CP-004"}),
        ({"Category": "?", "PricePerUnit": "5"}, NO, NO, {"CP-005"}),
        ({"Lead_time_in_weeks": ""}, NO, NO, set()),
        (NO, {"RequestDate": "soon", "ApprovalDate": ""}, NO, {"CR-010"}),
        (NO, NO, {"ApprovalId": ""}, {"SP-001"}),
        (NO, NO, {"ApprovalId": "AP-9"}, {"SP-004"}),
        (NO, NO, {"PODate": "0000-00-00"}, {"SP-006"}),
        (NO, NO, {"Type": ""}, {"SP-001"}),
    ],
)
def test_one_fault_is_one_finding(
    plan_cells: Row, request_cells: Row, spend_cells: Row, only: set[str]
) -> None:
    assert all_found(with_changes(plan_cells, request_cells, spend_cells)) == only
