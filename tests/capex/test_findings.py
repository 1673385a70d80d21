"""Findings are written out as they are read, in one order, and found again by their ids."""

import pytest

from core_console.capex.findings import Filter, Findings, find
from core_console.capex.trace import ROWS_MAX, trace
from core_console.model.capex import Column, Effect, Feed, Severity
from tests.capex.rows import (
    CLEAN,
    PLAN,
    REQUEST,
    SPEND,
    a_row,
    evaluated,
    found,
    with_changes,
)

BAD_PLAN = [a_row(PLAN, Type="?", Category="?", ItemId=f"IT-{n}") for n in range(3)]


def test_a_finding_says_what_and_where() -> None:
    evaluation = evaluated(plan=[CLEAN[PLAN], a_row(PLAN, ItemId="IT-2", PricePerUnit="499.99")])
    (finding,) = Findings(evaluation)
    assert finding.id.startswith("CP-006.")
    assert (finding.rule_id, finding.sheet, finding.severity) == (
        "CP-006",
        PLAN,
        Severity.CRITICAL,
    )
    assert (finding.row_key, finding.row_number, finding.dry_run) == ("IT-2", 2, False)
    assert finding.message == "Category is Capital, and PricePerUnit 499.99 is below 500"


def test_the_order_is_the_book_and_then_the_file() -> None:
    findings = Findings(evaluated(plan=BAD_PLAN))
    assert [(each.rule_id, each.row_number) for each in findings] == [
        ("CP-004", 1), ("CP-004", 2), ("CP-004", 3), ("CP-005", 1), ("CP-005", 2), ("CP-005", 3),
    ]  # fmt: skip


def test_a_page_is_the_same_as_the_findings_one_by_one() -> None:
    findings = Findings(evaluated(plan=BAD_PLAN))
    assert len(findings) == 6
    assert findings[2:5] == [findings[2], findings[3], findings[4]]
    assert findings[4:99] == list(findings)[4:]
    assert findings[-1] == findings[5]
    assert findings[6:] == []
    with pytest.raises(IndexError):
        findings[6]


def test_a_filter_takes_what_it_names() -> None:
    evaluation = evaluated(plan=BAD_PLAN, requests=[a_row(REQUEST, Vendor="", ItemId="IT-1")])

    def rules(taken: Filter) -> set[str]:
        return {each.rule_id for each in Findings(evaluation, taken)}

    assert rules(Filter()) == {"CP-004", "CP-005", "CR-004", "CR-008"}
    assert rules(Filter(feed=PLAN)) == {"CP-004", "CP-005", "CR-008"}
    assert rules(Filter(rule_id="CP-005")) == {"CP-005"}
    assert rules(Filter(severity=Severity.CRITICAL)) == {"CR-008"}
    assert rules(Filter(feed=SPEND)) == rules(Filter(feed=REQUEST, rule_id="CP-005")) == set()


def test_an_id_outlives_new_rows_other_columns_and_another_order() -> None:
    (before,) = found(evaluated(plan=[a_row(PLAN, Type="?")]), "CP-004")
    (after,) = found(
        evaluated(
            plan=[a_row(PLAN, ItemId="IT-9"), a_row(PLAN, Type=" ? ")],
            requests=[CLEAN[REQUEST], a_row(REQUEST, ItemId="IT-9", ApprovalId="AP-9")],
        ),
        "CP-004",
    )
    assert after.id == before.id


def test_another_content_or_rule_has_another_id() -> None:
    one = Findings(with_changes({"Type": "?"}))[0].id
    other = Findings(with_changes({"Type": "!"}))[0].id
    both = [each.id for each in Findings(with_changes({"Type": "?", "Category": ""}))]
    assert len({one, other, *both}) == 4


def test_cells_do_not_run_into_one_another() -> None:
    one = Findings(with_changes(spend={"PODate": "a", "ApprovalId": "", "ItemId": "b"}))[0].id
    other = Findings(with_changes(spend={"PODate": "a,", "ApprovalId": "b", "ItemId": ""}))[0].id
    assert one.split(".")[1] != other.split(".")[1]


def test_identical_rows_are_numbered() -> None:
    same = a_row(REQUEST, Vendor="")
    findings = found(evaluated(requests=[same, CLEAN[REQUEST], same, same]), "CR-004")
    stems = {each.id.rpartition("-")[0] for each in findings}
    assert len(stems) == 1
    assert [each.id.rpartition("-")[2] for each in findings] == ["1", "2", "3"]
    assert [each.row_number for each in findings] == [1, 3, 4]


def test_a_finding_is_found_by_its_id_and_by_no_other() -> None:
    evaluation = evaluated(plan=BAD_PLAN, effects={"CP-005": Effect.DRY_RUN})
    for each in Findings(evaluation):
        assert find(evaluation, each.id) == each
    known = Findings(evaluation)[0].id
    for wrong in ("", "CP-004", "CP-004.", f"{known}0", known.replace("CP-004", "CP-001"), "X.y"):
        assert find(evaluation, wrong) is None
        assert trace(evaluation, wrong) is None


def test_an_odd_row_key_is_cut_and_shown_without_controls() -> None:
    (finding,) = Findings(with_changes(spend={"PoNo": "\x1b" + "P" * 99, "PODate": ""}))
    assert finding.row_key.startswith("\\u001bPPP")
    assert finding.row_key.endswith("…")


def traced(rule_id: str, **cells: dict[str, str]) -> list[tuple[Feed, int, int]]:
    """Return the rows that the rule's verdict on the first row read."""
    evaluation = with_changes(**cells)
    read = trace(evaluation, found(evaluation, rule_id)[0].id)
    assert read is not None
    assert read.unmeasured == ()
    return [(row.feed, row.number, row.line) for row in read.rows]


OWN = {feed: (feed, 1, 2) for feed in Feed}


def test_a_trace_has_the_rows_that_the_verdict_read() -> None:
    assert traced("CP-004", plan={"Type": "?"}) == [OWN[PLAN]]
    assert traced("CR-002", request={"ItemId": "IT-2"}) == [OWN[REQUEST]]
    for rule_id in ("CR-005", "CR-006"):
        late = {"RequestDate": "2027-03-01", "ApprovalDate": "2027-03-09"}
        assert traced(rule_id, request=late) == [OWN[REQUEST], OWN[PLAN]]
    assert traced("CR-009", request={"Amount": "1"}) == [OWN[REQUEST], OWN[PLAN]]
    assert traced("SP-002", spend={"PODate": "2020-01-01"}) == [OWN[SPEND], OWN[REQUEST]]
    assert traced("SP-003", spend={"Amount": "9999"}) == [OWN[SPEND], OWN[REQUEST]]
    assert traced("SP-005", spend={"Type": "Testing"}) == [OWN[SPEND], OWN[PLAN]]


def test_a_trace_shows_the_cells_the_condition_and_what_to_do() -> None:
    evaluation = with_changes({"Type": "Tooling"})
    read = trace(evaluation, Findings(evaluation)[0].id)
    assert read is not None
    assert read.finding == Findings(evaluation)[0]
    assert dict(read.rows[0].cells)[Column.TYPE] == "Tooling"
    assert read.condition == "Type is Manufacturing, Tools or Testing"
    assert read.remediation == "Set Type to Manufacturing, Tools or Testing."


def test_a_trace_of_a_duplicate_has_all_rows_of_the_id() -> None:
    evaluation = evaluated(plan=[CLEAN[PLAN], a_row(PLAN, ItemId="IT-2"), CLEAN[PLAN]])
    read = trace(evaluation, found(evaluation, "CP-002")[1].id)
    assert read is not None
    assert [row.number for row in read.rows] == [3, 1]


def test_a_trace_of_a_sum_has_the_spend_of_the_approval_and_never_more_than_500_rows() -> None:
    spend = [a_row(SPEND, PoNo=f"PO-{n}", Amount="900") for n in range(ROWS_MAX + 20)]
    evaluation = evaluated(requests=[CLEAN[REQUEST]], spend=[*spend, a_row(SPEND, ApprovalId="x")])
    read = trace(evaluation, found(evaluation, "SP-003")[7].id)
    assert read is not None
    assert [(row.feed, row.number) for row in read.rows[:3]] == [
        (SPEND, 8),
        (REQUEST, 1),
        (SPEND, 1),
    ]
    assert len(read.rows) == ROWS_MAX
    assert read.unmeasured == ("21 more rows were read and are not listed",)
