"""The rules of spend that are not about days: SP-001, SP-003, SP-004 and SP-005.

Owns their conditions (CapEx page, section 4).
"""

from collections.abc import Sequence
from decimal import Decimal

from core_console.capex.case import Case, at
from core_console.capex.numbers import EXACT, plain
from core_console.capex.rules.plan import PLAN_TYPES
from core_console.capex.rules.rule import (
    Gap,
    RowRef,
    Rule,
    Verdicts,
    ambiguous_approvals,
    plan_of_spend,
    request_of_spend,
)
from core_console.capex.texts import quoted
from core_console.model.capex import Column, Dimension, Feed, Severity

_IDENTIFYING = (Column.APPROVAL_ID, Column.ITEM_ID, Column.TYPE)


def _identified(case: Case) -> Verdicts:
    texts = case.spend.texts
    return ["" not in cells for cells in zip(*(texts[each] for each in _IDENTIFYING), strict=True)]


def _unidentified(case: Case, row: int) -> str:
    blank = [each for each in _IDENTIFYING if not case.spend.texts[each][row]]
    return f"{' and '.join(blank)} {'is' if len(blank) == 1 else 'are'} blank"


SP_001 = Rule(
    id="SP-001",
    sheet=Feed.SPEND,
    severity=Severity.CRITICAL,
    dimension=Dimension.COMPLETENESS,
    condition="ApprovalId, ItemId and Type are not blank",
    remediation="Fill in what is blank, from the order.",
    holds=_identified,
    says=_unidentified,
)


def _affordable(case: Case) -> Verdicts:
    within = {request: spent <= _limit(case, request) for request, spent in case.spent.items()}
    return [within.get(request) for request in case.request_of_spend]


def _limit(case: Case, request: int) -> Decimal:
    """Return what may be spent on a request; its Amount is never blank."""
    approved = case.requests.numbers[Column.AMOUNT][request] or Decimal(0)
    return EXACT.multiply(approved, case.limits.overspend_factor)


def _overspent(case: Case, row: int) -> str:
    request = case.request_of_spend[row]
    approval = quoted(case.spend.texts[Column.APPROVAL_ID][row])
    approved = plain(case.requests.numbers[Column.AMOUNT][request])
    factor = plain(case.limits.overspend_factor)
    return (
        f"the spend of ApprovalId {approval} is {plain(case.spent[request])} together, above "
        f"{plain(_limit(case, request))}, which is the approved {approved} x {factor}"
    )


def _whole_spend(case: Case, row: int) -> Sequence[RowRef]:
    request = case.request_of_spend[row]
    others = (
        (Feed.SPEND, other)
        for other, named in enumerate(case.request_of_spend)
        if named == request and other != row
    )
    return (*request_of_spend(case, row), *others)


SP_003 = Rule(
    id="SP-003",
    sheet=Feed.SPEND,
    severity=Severity.CRITICAL,
    dimension=Dimension.ACCURACY,
    condition=(
        "the spend of one approval together is at most the approved Amount "
        "x {limits.overspend_factor}"
    ),
    remediation="Correct the Amounts, or have the overspend approved.",
    needs=(Feed.CAPITAL_REQUEST,),
    holds=_affordable,
    says=_overspent,
    also_read=_whole_spend,
    gap=Gap("several requests have the ApprovalId", ambiguous_approvals),
)


def _approved(case: Case) -> Verdicts:
    approvals = case.approval_rows
    return [
        None if not cell else cell in approvals for cell in case.spend.texts[Column.APPROVAL_ID]
    ]


def _unapproved(case: Case, row: int) -> str:
    approval = case.spend.texts[Column.APPROVAL_ID][row]
    return f"ApprovalId {quoted(approval)} is on no row of capital_request"


SP_004 = Rule(
    id="SP-004",
    sheet=Feed.SPEND,
    severity=Severity.CRITICAL,
    dimension=Dimension.CONSISTENCY,
    condition="ApprovalId exists in capital_request",
    remediation="Correct the ApprovalId, or report the order that nobody approved.",
    needs=(Feed.CAPITAL_REQUEST,),
    holds=_approved,
    says=_unapproved,
)


def _same_type(case: Case) -> Verdicts:
    planned = at(case.plan.texts[Column.TYPE], case.plan_of_spend)
    return [
        None if not found or plan not in PLAN_TYPES else found == plan
        for found, plan in zip(case.spend.texts[Column.TYPE], planned, strict=True)
    ]


def _other_type(case: Case, row: int) -> str:
    found = case.spend.texts[Column.TYPE][row]
    plan = case.plan.texts[Column.TYPE][case.plan_of_spend[row]]
    return f"Type is {quoted(found)}, and the plan's Type of the same ItemId is {quoted(plan)}"


def _unplanned(case: Case) -> int:
    """Count the spend rows that name an item which is on no row of the plan."""
    named = case.spend.texts[Column.ITEM_ID]
    return len(named) - named.count("") - sum(map(case.plan_rows.__contains__, named))


SP_005 = Rule(
    id="SP-005",
    sheet=Feed.SPEND,
    severity=Severity.HIGH,
    dimension=Dimension.VALIDITY,
    condition="Type equals the plan's Type for the same ItemId",
    remediation="Correct the Type, here or in the plan.",
    needs=(Feed.CAPITAL_PLAN,),
    holds=_same_type,
    says=_other_type,
    also_read=plan_of_spend,
    gap=Gap("capital_plan has no such ItemId", _unplanned),
)
