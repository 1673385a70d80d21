"""What is told of an evaluation: summary, dashboard, attributes, comparison and draft."""

from datetime import date
from decimal import Decimal

import pytest
from msgspec.structs import replace

from core_console.capex.attributes import ratio, scan_attributes, scan_rows
from core_console.capex.comparison import compare_to_first
from core_console.capex.dashboard import dashboard
from core_console.capex.draft import draft
from core_console.capex.summary import summarise
from core_console.decide import spec
from core_console.decide.identity import Admission
from core_console.model.capex import (
    Basis,
    Dimension,
    Effect,
    Feed,
    Figure,
    RuleStatus,
    Severity,
    Thresholds,
)
from core_console.model.playbook import CapexScan, Notify, RequireApproval, StepKind
from tests.builders import CAST, NOW
from tests.capex.rows import CLEAN, PLAN, REQUEST, SPEND, a_row, evaluated, with_changes

MIXED = evaluated(
    plan=[CLEAN[PLAN], a_row(PLAN, ItemId="IT-2", Type="?", Category="?"), a_row(PLAN, ItemId="")],
    requests=[CLEAN[REQUEST], a_row(REQUEST, ID="RQ-2", ItemId="IT-2", ApprovalId="")],
    effects={"CP-005": Effect.DRY_RUN, "CR-004": Effect.NOT_EVALUATED},
)


def test_the_summary_counts_what_is_scored() -> None:
    summary = summarise(MIXED)
    assert summary.findings == 3
    assert summary.by_severity == {Severity.CRITICAL: 2, Severity.HIGH: 1, Severity.MEDIUM: 0}
    assert {rule: n for rule, n in summary.by_rule.items() if n} == {
        "CP-001": 1,
        "CP-004": 1,
        "CR-003": 1,
    }
    assert summary.dry_run_findings == 1
    assert "CP-005" not in summary.by_rule
    assert [(each.feed, each.loaded, each.rows, each.rows_flagged) for each in summary.feeds] == [
        (PLAN, True, 3, 2),
        (REQUEST, True, 2, 1),
        (SPEND, False, 0, 0),
    ]
    assert [each.findings for each in summary.feeds] == [2, 1, 0]


def test_dq_is_the_share_of_rows_without_a_scored_finding() -> None:
    assert summarise(MIXED).dq == Figure(Decimal("0.4"))
    assert summarise(with_changes()).dq == Figure(Decimal(1))
    two_faults_of_one_row = with_changes({"Type": "?", "Category": "?"})
    assert scan_attributes(two_faults_of_one_row)["dq"] == "0.6667"


def test_nothing_loaded_has_no_figure() -> None:
    summary = summarise(evaluated())
    assert summary.dq == Figure(None, "no feed is loaded")
    assert len(summary.unmeasured) == 24
    assert not any(each.loaded for each in summary.feeds)
    for score in dashboard(evaluated()):
        assert score.effectiveness.value is None
        assert score.effectiveness.absent_reason


def test_a_dimension_is_the_share_of_its_checks_that_held() -> None:
    scores = {each.dimension: each for each in dashboard(MIXED)}
    assert tuple(scores) == tuple(Dimension)
    completeness = scores[Dimension.COMPLETENESS]
    assert completeness.rule_ids == ("CP-001", "CR-003", "CR-005", "SP-001")
    assert completeness.measured_rule_ids == ("CP-001", "CR-003", "CR-005")
    assert (completeness.checks, completeness.failures) == (3 + 2 + 2, 2)
    assert completeness.effectiveness.value is not None
    assert ratio(completeness.effectiveness.value) == "0.7143"


def test_what_is_not_measured_or_a_dry_run_scores_no_dimension() -> None:
    scores = {each.dimension: each for each in dashboard(MIXED)}
    assert scores[Dimension.VALIDITY].measured_rule_ids == ("CP-004",)
    assert scores[Dimension.ACCURACY].measured_rule_ids == ("CR-006",)
    alone = {each.dimension: each for each in dashboard(evaluated(spend=[CLEAN[SPEND]]))}
    assert alone[Dimension.ACCURACY].effectiveness == Figure(
        None, "none of its rules was measured: CP-005, CR-006, SP-003"
    )


def test_a_dimension_whose_rules_judge_no_row_says_so() -> None:
    evaluation = evaluated(requests=[CLEAN[REQUEST]], spend=[a_row(SPEND, ApprovalId="")])
    scores = {each.dimension: each for each in dashboard(evaluation)}
    assert scores[Dimension.CONSISTENCY].effectiveness == Figure(
        None, "no row could be judged by SP-002, SP-004"
    )


@pytest.mark.parametrize("dimension", [Dimension.TIMELINESS, Dimension.UNIQUENESS])
def test_a_dimension_without_rules_is_absent(dimension: Dimension) -> None:
    scores = {each.dimension: each for each in dashboard(with_changes())}
    assert scores[dimension].effectiveness == Figure(None, "no rule is mapped to this dimension")
    assert scores[dimension].rule_ids == ()


def test_the_dimensions_map_the_rules_of_the_book() -> None:
    mapped = {each.dimension: set(each.rule_ids) for each in dashboard(evaluated())}
    assert mapped == {
        Dimension.COMPLETENESS: {"CP-001", "CR-003", "CR-005", "SP-001"},
        Dimension.VALIDITY: {"CP-004", "CR-004", "SP-005"},
        Dimension.CONSISTENCY: {"CR-002", "SP-002", "SP-004"},
        Dimension.ACCURACY: {"CP-005", "CR-006", "SP-003"},
        Dimension.TIMELINESS: set(),
        Dimension.UNIQUENESS: set(),
    }


def test_scan_committed_tells_the_counts_the_score_and_the_rules() -> None:
    assert scan_attributes(MIXED) == {
        "critical": "2",
        "high": "1",
        "medium": "0",
        "findings": "3",
        "dq": "0.4000",
    }
    assert scan_rows(MIXED) == (
        {"rule_id": "CP-001"},
        {"rule_id": "CP-004"},
        {"rule_id": "CR-003"},
    )
    assert "dq" not in scan_attributes(evaluated())


@pytest.mark.parametrize(
    ("value", "text"),
    [("1", "1.0000"), ("0", "0.0000"), ("0.66666", "0.6667"), ("0.99999", "0.9999")],
)
def test_only_a_perfect_score_reads_as_one(value: str, text: str) -> None:
    assert ratio(Decimal(value)) == text


FIRST = Basis(date(2027, 3, 31), Thresholds(), tuple(Feed), {"CP-009": RuleStatus.DRAFT})


@pytest.mark.parametrize(
    ("now", "rule_ids", "passed", "detail"),
    [
        ({"A": 2, "B": 3}, (), True, "the findings did not rise: 5 before, 5 now"),
        ({"A": 0, "B": 5}, (), True, "the findings did not rise: 5 before, 5 now"),
        ({}, (), True, "the findings did not rise: 5 before, 0 now"),
        ({"A": 3, "B": 3}, (), False, "the findings rose from 5 to 6"),
        ({"A": 0, "B": 4}, ("B",), False, "the findings of B rose from 3 to 4"),
        ({"A": 9, "B": 3}, ("B",), True, "the findings of B did not rise: 3 before, 3 now"),
        ({"C": 1}, ("C", "A"), True, "the findings of C, A did not rise: 2 before, 1 now"),
    ],
)
def test_a_scan_passes_when_the_count_did_not_rise(
    now: dict[str, int], rule_ids: tuple[str, ...], *, passed: bool, detail: str
) -> None:
    compared = compare_to_first(
        first={"A": 2, "B": 3}, first_basis=FIRST, now=now, basis=FIRST, rule_ids=rule_ids
    )
    assert (compared.passed, compared.detail) == (passed, detail)


@pytest.mark.parametrize(
    ("basis", "detail"),
    [
        (replace(FIRST, feeds=()), "no feed is loaded"),
        (replace(FIRST, feeds=(PLAN, SPEND)), "not comparable: capital_request became empty"),
        (
            replace(FIRST, go_live=date(2027, 4, 1)),
            "not comparable: Go-Live was 2027-03-31 and is 2027-04-01",
        ),
        (
            replace(FIRST, statuses={}),
            "not comparable: the status of CP-009 was DRAFT and is APPROVED",
        ),
        (
            replace(FIRST, thresholds=Thresholds(tolerance_days=15, overspend_factor=Decimal(2))),
            "not comparable: tolerance_days was 14 and is 15; overspend_factor was 1.10 and is 2",
        ),
    ],
)
def test_scans_of_another_basis_are_not_comparable(basis: Basis, detail: str) -> None:
    compared = compare_to_first(first={"A": 2}, first_basis=FIRST, now={}, basis=basis)
    assert (compared.passed, compared.detail) == (False, detail)


def test_a_feed_that_was_loaded_since_is_comparable() -> None:
    fewer = replace(FIRST, feeds=(PLAN,))
    assert compare_to_first(first={}, first_basis=fewer, now={}, basis=FIRST).passed


def test_an_equal_threshold_of_another_scale_is_no_change() -> None:
    same = replace(FIRST, thresholds=Thresholds(overspend_factor=Decimal("1.1")))
    assert compare_to_first(first={}, first_basis=FIRST, now={}, basis=same).passed


COUNTS = {"CP-001": 4, "CP-004": 9, "CR-003": 0, "CR-002": 4, "SP-001": 1}


def test_a_draft_takes_the_rules_with_most_findings() -> None:
    made = draft(COUNTS, max_rules=3, repo="core", issue=7, approver="second@example.com")
    assert made is not None
    assert made.name == "CapEx: CP-004, CP-001, CR-002"
    assert [(step.id, step.kind) for step in made.steps] == [
        ("scan", StepKind.DETECT),
        ("approve", StepKind.VALIDATE),
        ("notify", StepKind.NOTIFY),
        ("verify", StepKind.VERIFY),
    ]
    scan, approve, notify, verify = (step.action for step in made.steps)
    assert scan == CapexScan()
    assert isinstance(approve, RequireApproval)
    assert approve.approver == "second@example.com"
    assert notify == Notify("core", 7)
    assert verify == CapexScan(compare_to_first_scan=True, rule_ids=("CP-004", "CP-001", "CR-002"))


@pytest.mark.parametrize("max_rules", [1, 3, 10])
def test_a_draft_may_be_stored(max_rules: int) -> None:
    many = {f"CP-{n:03d}": 99_999 for n in range(1, 25)}
    made = draft(many, max_rules=max_rules, repo="core", issue=1, approver="")
    assert made is not None
    assert spec.violations(made, admission=Admission(allowed_emails=CAST), now=NOW) == ()
    assert len(made.name.split(",")) == max_rules


def test_the_same_findings_give_the_same_draft() -> None:
    turned = dict(reversed(COUNTS.items()))
    one, other = (
        draft(counts, max_rules=4, repo="core", issue=7, approver="") for counts in (COUNTS, turned)
    )
    assert one == other


def test_no_scored_finding_makes_no_draft() -> None:
    assert draft({}, max_rules=3, repo="core", issue=7, approver="") is None
    assert draft({"CP-001": 0}, max_rules=3, repo="core", issue=7, approver="") is None
