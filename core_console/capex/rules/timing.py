"""The rules of days: CP-007, CP-008, CR-005, CR-006, CR-007, CR-010, SP-002 and SP-006.

Owns their conditions (CapEx page, section 4). Days are ordinals; every boundary passes. A cell
that is no date is the finding of CP-008, CR-010 or SP-006 alone.
"""

from collections.abc import Sequence

from core_console.capex.case import Case, at
from core_console.capex.dates import shown_day
from core_console.capex.feeds import Table
from core_console.capex.rules.rule import (
    Gap,
    Rule,
    Verdicts,
    ambiguous_approvals,
    plan_of_request,
    request_of_spend,
)
from core_console.capex.texts import quoted
from core_console.model.capex import Column, Dimension, Feed, Severity

DAYS_A_WEEK = 7


def _on_schedule(case: Case) -> Verdicts:
    live, tolerance = case.go_live, case.limits.tolerance_days
    return [
        None
        if bought is None or weeks is None
        else -tolerance <= live - DAYS_A_WEEK * weeks - bought <= tolerance
        for bought, weeks in zip(
            case.plan.days[Column.PURCHASE_DATE], case.plan.wholes[Column.LEAD_TIME], strict=True
        )
    ]


def _off_schedule(case: Case, row: int) -> str:
    bought = shown_day(case.plan.days[Column.PURCHASE_DATE][row])
    weeks = case.plan.wholes[Column.LEAD_TIME][row] or 0
    due = shown_day(case.go_live - DAYS_A_WEEK * weeks)
    return (
        f"PurchaseDate {bought} is more than {case.limits.tolerance_days} days from {due}, "
        f"which is Go-Live {shown_day(case.go_live)} less {weeks} weeks"
    )


CP_007 = Rule(
    id="CP-007",
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.CRITICAL,
    condition=(
        "PurchaseDate is within {limits.tolerance_days} days of Go-Live less the lead time in weeks"
    ),
    remediation="Move PurchaseDate, or correct Lead_time_in_weeks.",
    holds=_on_schedule,
    says=_off_schedule,
    gap=Gap(
        "Lead_time_in_weeks is blank", lambda case: case.plan.wholes[Column.LEAD_TIME].count(None)
    ),
)


def _asked_in_time(case: Case) -> Verdicts:
    return [
        None if asked is None or bought is None else asked <= bought
        for asked, bought in zip(
            case.requests.days[Column.REQUEST_DATE], _planned_days(case), strict=True
        )
    ]


def _planned_days(case: Case) -> Sequence[int | None]:
    return at(case.plan.days[Column.PURCHASE_DATE], case.plan_of_request)


def _planned_day(case: Case, row: int) -> str:
    return shown_day(case.plan.days[Column.PURCHASE_DATE][case.plan_of_request[row]])


def _asked_too_late(case: Case, row: int) -> str:
    asked = shown_day(case.requests.days[Column.REQUEST_DATE][row])
    return f"RequestDate {asked} is after the plan's PurchaseDate {_planned_day(case, row)}"


CR_005 = Rule(
    id="CR-005",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.CRITICAL,
    dimension=Dimension.COMPLETENESS,
    condition="RequestDate is not after the plan's PurchaseDate",
    remediation="Correct RequestDate, or move the plan's PurchaseDate.",
    needs=(Feed.CAPITAL_PLAN,),
    holds=_asked_in_time,
    says=_asked_too_late,
    also_read=plan_of_request,
)


def _asked_near_plan(case: Case) -> Verdicts:
    tolerance = case.limits.tolerance_days
    return [
        None if asked is None or bought is None else -tolerance <= asked - bought <= tolerance
        for asked, bought in zip(
            case.requests.days[Column.REQUEST_DATE], _planned_days(case), strict=True
        )
    ]


def _asked_far_from_plan(case: Case, row: int) -> str:
    asked = shown_day(case.requests.days[Column.REQUEST_DATE][row])
    return (
        f"RequestDate {asked} is more than {case.limits.tolerance_days} days from "
        f"the plan's PurchaseDate {_planned_day(case, row)}"
    )


CR_006 = Rule(
    id="CR-006",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.MEDIUM,
    dimension=Dimension.ACCURACY,
    condition="RequestDate is within {limits.tolerance_days} days of the plan's PurchaseDate",
    remediation="Correct RequestDate, or move the plan's PurchaseDate.",
    needs=(Feed.CAPITAL_PLAN,),
    holds=_asked_near_plan,
    says=_asked_far_from_plan,
    also_read=plan_of_request,
)


def _approved_with_care(case: Case) -> Verdicts:
    least = case.limits.approval_lag_min_days
    return [
        None if asked is None or approved is None else approved - asked >= least
        for asked, approved in zip(
            case.requests.days[Column.REQUEST_DATE],
            case.requests.days[Column.APPROVAL_DATE],
            strict=True,
        )
    ]


def _approved_in_haste(case: Case, row: int) -> str:
    asked = shown_day(case.requests.days[Column.REQUEST_DATE][row])
    approved = shown_day(case.requests.days[Column.APPROVAL_DATE][row])
    least = case.limits.approval_lag_min_days
    return f"ApprovalDate {approved} is less than {least} days after RequestDate {asked}"


CR_007 = Rule(
    id="CR-007",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.HIGH,
    condition="ApprovalDate is at least {limits.approval_lag_min_days} days after RequestDate",
    remediation="Correct the dates, or have the request approved again.",
    holds=_approved_with_care,
    says=_approved_in_haste,
)


def _bought_after_approval(case: Case) -> Verdicts:
    approvals = at(case.requests.days[Column.APPROVAL_DATE], case.request_of_spend)
    return [
        None if bought is None or approved is None else bought >= approved
        for bought, approved in zip(case.spend.days[Column.PO_DATE], approvals, strict=True)
    ]


def _bought_before_approval(case: Case, row: int) -> str:
    bought = shown_day(case.spend.days[Column.PO_DATE][row])
    request = case.request_of_spend[row]
    approved = shown_day(case.requests.days[Column.APPROVAL_DATE][request])
    return f"PODate {bought} is before the request's ApprovalDate {approved}"


SP_002 = Rule(
    id="SP-002",
    sheet=Feed.SPEND,
    severity=Severity.CRITICAL,
    dimension=Dimension.CONSISTENCY,
    condition="PODate is not before the request's ApprovalDate",
    remediation="Correct the dates, or report the order that came before its approval.",
    needs=(Feed.CAPITAL_REQUEST,),
    holds=_bought_after_approval,
    says=_bought_before_approval,
    also_read=request_of_spend,
    gap=Gap("several requests have the ApprovalId", ambiguous_approvals),
)


def _dated(table: Table, *columns: Column) -> Verdicts:
    return [
        None not in found for found in zip(*(table.days[each] for each in columns), strict=True)
    ]


def _undated(table: Table, row: int, *columns: Column) -> str:
    bad = [each for each in columns if table.days[each][row] is None]
    return "; ".join(f"{each} is {quoted(table.texts[each][row])}, not YYYY-MM-DD" for each in bad)


CP_008 = Rule(
    id="CP-008",
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.CRITICAL,
    condition="PurchaseDate is a date, written YYYY-MM-DD",
    remediation="Write PurchaseDate as YYYY-MM-DD.",
    holds=lambda case: _dated(case.plan, Column.PURCHASE_DATE),
    says=lambda case, row: _undated(case.plan, row, Column.PURCHASE_DATE),
)

CR_010 = Rule(
    id="CR-010",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.CRITICAL,
    condition="RequestDate and ApprovalDate are dates, written YYYY-MM-DD",
    remediation="Write RequestDate and ApprovalDate as YYYY-MM-DD.",
    holds=lambda case: _dated(case.requests, Column.REQUEST_DATE, Column.APPROVAL_DATE),
    says=lambda case, row: _undated(case.requests, row, Column.REQUEST_DATE, Column.APPROVAL_DATE),
)

SP_006 = Rule(
    id="SP-006",
    sheet=Feed.SPEND,
    severity=Severity.CRITICAL,
    condition="PODate is a date, written YYYY-MM-DD",
    remediation="Write PODate as YYYY-MM-DD.",
    holds=lambda case: _dated(case.spend, Column.PO_DATE),
    says=lambda case, row: _undated(case.spend, row, Column.PO_DATE),
)
