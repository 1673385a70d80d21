"""Rules that look at several rows or several feeds: duplicates, ambiguous ids, sums, no feed."""

from datetime import date
from decimal import Decimal

from core_console.capex.rules.book import RULE_BOOK
from core_console.model.capex import Config, Effect, Thresholds
from tests.capex.rows import (
    CLEAN,
    PLAN,
    REQUEST,
    SPEND,
    a_row,
    all_found,
    evaluated,
    found,
    verdicts,
    with_changes,
)

BOTH_PLANNED = [CLEAN[PLAN], a_row(PLAN, Description="Torque wrench")]


def test_every_row_of_a_duplicate_is_marked() -> None:
    third = a_row(PLAN, ItemId="IT-2")
    evaluation = evaluated(plan=[*BOTH_PLANNED, third, CLEAN[PLAN]])
    assert verdicts(evaluation, "CP-002") == [False, False, True, False]
    assert found(evaluation, "CP-002")[0].message == 'ItemId "IT-1" stands on 3 rows'


def test_an_ambiguous_item_is_missing_input_for_all_who_look_it_up() -> None:
    late = a_row(REQUEST, RequestDate="2027-06-01", ApprovalDate="2027-06-09", Amount="7")
    other = a_row(SPEND, Type="Testing", Amount="7")
    evaluation = evaluated(plan=BOTH_PLANNED, requests=[late], spend=[other])
    for rule_id in ("CR-005", "CR-006", "CR-009", "SP-005"):
        assert verdicts(evaluation, rule_id) == [None]
    assert verdicts(evaluation, "CR-002") == [True]
    assert verdicts(evaluation, "CR-008") == [None, None]


def test_an_ambiguous_approval_is_missing_input_and_is_named() -> None:
    again = a_row(REQUEST, ID="RQ-2", Amount="1001")
    early = a_row(SPEND, PODate="2026-01-01", Amount="9999999")
    evaluation = evaluated(plan=[CLEAN[PLAN]], requests=[CLEAN[REQUEST], again], spend=[early])
    assert verdicts(evaluation, "SP-002") == verdicts(evaluation, "SP-003") == [None]
    assert verdicts(evaluation, "SP-004") == [True]
    assert evaluation.unmeasured == tuple(
        f"{rule_id} is not evaluated on 1 row of spend: several requests have the ApprovalId"
        for rule_id in ("SP-002", "SP-003")
    )


def test_the_spend_of_an_approval_is_summed_and_found_on_each_of_its_rows() -> None:
    spend = [a_row(SPEND, PoNo=f"PO-{n}", Amount=amount) for n, amount in enumerate(("900", "201"))]
    other = a_row(SPEND, ApprovalId="AP-2")
    requests = [CLEAN[REQUEST], a_row(REQUEST, ID="RQ-2", ApprovalId="AP-2")]
    evaluation = evaluated(plan=[CLEAN[PLAN]], requests=requests, spend=[*spend, other])
    assert verdicts(evaluation, "SP-003") == [False, False, True]
    assert found(evaluation, "SP-003")[1].message == (
        'the spend of ApprovalId "AP-1" is 1101 together, above 1100.00, '
        "which is the approved 1000 x 1.10"
    )


def test_a_credit_note_lowers_the_sum() -> None:
    spend = [a_row(SPEND, Amount="1200"), a_row(SPEND, PoNo="PO-2", Amount="-100")]
    evaluation = evaluated(plan=[CLEAN[PLAN]], requests=[CLEAN[REQUEST]], spend=spend)
    assert verdicts(evaluation, "SP-003") == [True, True]


def test_sums_are_exact() -> None:
    huge = "9" * 30
    spend = [a_row(SPEND, PoNo=f"PO-{n}", Amount=amount) for n, amount in enumerate((huge, "1"))]
    request = a_row(REQUEST, Amount="1" + "0" * 30)
    limits = Thresholds(overspend_factor=Decimal(1))
    exactly = evaluated(requests=[request], spend=spend, thresholds=limits)
    assert verdicts(exactly, "SP-003") == [True, True]
    over = [*spend, a_row(SPEND, PoNo="PO-3", Amount="0.01")]
    above = evaluated(requests=[request], spend=over, thresholds=limits)
    assert verdicts(above, "SP-003") == [False] * 3


def test_a_missing_request_is_reported_on_the_plan_row() -> None:
    evaluation = evaluated(
        plan=[CLEAN[PLAN], a_row(PLAN, ItemId="IT-2")], requests=[CLEAN[REQUEST]]
    )
    finding, *more = found(evaluation, "CR-008")
    assert not more
    assert (finding.sheet, finding.row_key, finding.row_number) == (PLAN, "IT-2", 2)


def test_a_rule_whose_feed_is_not_loaded_is_named_and_not_evaluated() -> None:
    evaluation = evaluated(spend=[a_row(SPEND, Type="Testing", ApprovalId="")])
    assert all_found(evaluation) == {"SP-001"}
    assert set(evaluation.counts()) == {"SP-001", "SP-006"}
    assert "SP-005 is not evaluated: capital_plan is not loaded" in evaluation.unmeasured
    both = "CR-002 is not evaluated: capital_request and capital_plan are not loaded"
    assert both in evaluation.unmeasured
    assert len(evaluation.unmeasured) == len(RULE_BOOK) - 2


def test_what_no_rule_reports_is_named() -> None:
    evaluation = with_changes(
        {"Lead_time_in_weeks": "", "PricePerUnit": ""}, {"ItemId": "IT-9"}, {"ItemId": "IT-9"}
    )
    assert evaluation.unmeasured == (
        "CP-006 is not evaluated on 1 row of capital_plan: PricePerUnit is blank",
        "CP-007 is not evaluated on 1 row of capital_plan: Lead_time_in_weeks is blank",
        "SP-005 is not evaluated on 1 row of spend: capital_plan has no such ItemId",
    )


def test_a_dry_run_is_listed_and_flagged_and_counts_nowhere() -> None:
    evaluation = evaluated(plan=[a_row(PLAN, Type="?")], effects={"CP-004": Effect.DRY_RUN})
    assert found(evaluation, "CP-004")[0].dry_run
    assert "CP-004" not in evaluation.counts()
    assert evaluation.dq().value == 1
    assert "CP-004 is a dry run: its findings are listed and count in no figure" in (
        evaluation.unmeasured
    )


def test_a_rejected_rule_is_not_evaluated_and_named() -> None:
    evaluation = evaluated(plan=[a_row(PLAN, Type="?")], effects={"CP-004": Effect.NOT_EVALUATED})
    assert all_found(evaluation) == set()
    assert "CP-004" not in evaluation.counts()
    assert "CP-004 is not evaluated: the rule is rejected" in evaluation.unmeasured


def test_thresholds_and_go_live_are_what_is_given() -> None:
    plan = [a_row(PLAN, PricePerUnit="50", PurchaseDate="2027-01-10")]
    limits = Thresholds(
        tolerance_days=0,
        unit_price_capital_threshold=Decimal(50),
        approval_lag_min_days=6,
        request_plan_tolerance_pct=Decimal("0.1"),
        overspend_factor=Decimal(1),
    )
    early = Config(go_live_date=date(2027, 3, 21))
    requests = [a_row(REQUEST, Amount="1001.01", RequestDate="2027-01-10")]
    spend = [a_row(SPEND, PODate="2027-01-18", Amount="1001.02")]
    evaluation = evaluated(
        plan=plan, requests=requests, spend=spend, thresholds=limits, config=early
    )
    assert all_found(evaluation) == {"CR-009", "SP-003"}


def test_nothing_loaded_is_evaluated_to_nothing() -> None:
    evaluation = evaluated()
    assert evaluation.outcomes == ()
    assert evaluation.dq().value is None
    assert evaluation.dq().absent_reason == "no feed is loaded"
