"""The rules of requests that are not about days: CR-001 to CR-004, CR-008 and CR-009.

Owns their conditions (CapEx page, section 4).
"""

from decimal import Decimal

from core_console.capex.case import Case, at
from core_console.capex.numbers import EXACT, plain
from core_console.capex.rules.plan import usable_items
from core_console.capex.rules.rule import Rule, Verdicts, plan_of_request
from core_console.capex.texts import quoted
from core_console.model.capex import Column, Dimension, Feed, Severity

_HUNDRED = Decimal(100)


def _filled(case: Case, column: Column) -> Verdicts:
    return [cell != "" for cell in case.requests.texts[column]]


CR_001 = Rule(
    id="CR-001",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.CRITICAL,
    condition="ItemId is not blank",
    remediation="Give the request the ItemId of the planned item.",
    holds=lambda case: _filled(case, Column.ITEM_ID),
    says=lambda _, __: "ItemId is blank",
)


def _planned(case: Case) -> Verdicts:
    plan = case.plan_rows
    return [None if not item else item in plan for item in case.requests.texts[Column.ITEM_ID]]


def _unplanned(case: Case, row: int) -> str:
    item = case.requests.texts[Column.ITEM_ID][row]
    return f"ItemId {quoted(item)} is on no row of capital_plan"


CR_002 = Rule(
    id="CR-002",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.CRITICAL,
    dimension=Dimension.CONSISTENCY,
    condition="ItemId exists in capital_plan",
    remediation="Correct the ItemId, or plan the item.",
    needs=(Feed.CAPITAL_PLAN,),
    holds=_planned,
    says=_unplanned,
)

CR_003 = Rule(
    id="CR-003",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.CRITICAL,
    dimension=Dimension.COMPLETENESS,
    condition="ApprovalId is not blank",
    remediation="Give the request the ApprovalId under which it was approved.",
    holds=lambda case: _filled(case, Column.APPROVAL_ID),
    says=lambda _, __: "ApprovalId is blank",
)

CR_004 = Rule(
    id="CR-004",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.HIGH,
    dimension=Dimension.VALIDITY,
    condition="Vendor is not blank",
    remediation="Name the vendor.",
    holds=lambda case: _filled(case, Column.VENDOR),
    says=lambda _, __: "Vendor is blank",
)


def _requested(case: Case) -> Verdicts:
    asked = set(case.requests.texts[Column.ITEM_ID])
    items = zip(case.plan.texts[Column.ITEM_ID], usable_items(case), strict=True)
    return [item in asked if usable else None for item, usable in items]


def _unrequested(case: Case, row: int) -> str:
    item = case.plan.texts[Column.ITEM_ID][row]
    return f"no row of capital_request has ItemId {quoted(item)}"


CR_008 = Rule(
    id="CR-008",
    # A request that is missing has no row of its own.
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.CRITICAL,
    condition="every plan item has at least one row in capital_request",
    remediation="Request the item, or take it out of the plan.",
    needs=(Feed.CAPITAL_REQUEST,),
    holds=_requested,
    says=_unrequested,
)


def _near_plan(case: Case) -> Verdicts:
    percent = case.limits.request_plan_tolerance_pct
    planned = at(case.plan.numbers[Column.AMOUNT], case.plan_of_request)
    return [
        None if asked is None or plan is None else _within(asked, plan, percent)
        for asked, plan in zip(case.requests.numbers[Column.AMOUNT], planned, strict=True)
    ]


def _within(asked: Decimal, plan: Decimal, percent: Decimal) -> bool:
    """Say whether `asked` is within so many percent of `plan`, without dividing."""
    if asked == plan:
        return True
    apart = EXACT.abs(EXACT.subtract(asked, plan))
    return EXACT.multiply(apart, _HUNDRED) <= EXACT.multiply(EXACT.abs(plan), percent)


def _far_from_plan(case: Case, row: int) -> str:
    asked = plain(case.requests.numbers[Column.AMOUNT][row])
    plan = plain(case.plan.numbers[Column.AMOUNT][case.plan_of_request[row]])
    percent = plain(case.limits.request_plan_tolerance_pct)
    return f"Amount {asked} is more than {percent} % from the plan's Amount {plan}"


CR_009 = Rule(
    id="CR-009",
    sheet=Feed.CAPITAL_REQUEST,
    severity=Severity.HIGH,
    condition="Amount is within {limits.request_plan_tolerance_pct} % of the plan's Amount",
    remediation="Correct the Amount, or change the plan's.",
    needs=(Feed.CAPITAL_PLAN,),
    holds=_near_plan,
    says=_far_from_plan,
    also_read=plan_of_request,
)
