"""What `scan.committed` tells the triggers: the attributes of the event, and a row for each rule.

Owns their names and forms (contract, section 6). An absent figure is left out, for an absent
attribute matches nothing.
"""

from decimal import ROUND_HALF_EVEN, Decimal

from core_console.capex.evaluation import Evaluation
from core_console.capex.summary import summarise
from core_console.model.capex import Severity

_FOUR_DECIMALS = Decimal("0.0001")
_ONE = Decimal(1)


def scan_attributes(evaluation: Evaluation) -> dict[str, str]:
    """Return the event's attributes, as text."""
    summary = summarise(evaluation)
    found = {
        "critical": str(summary.by_severity[Severity.CRITICAL]),
        "high": str(summary.by_severity[Severity.HIGH]),
        "medium": str(summary.by_severity[Severity.MEDIUM]),
        "findings": str(summary.findings),
    }
    if summary.dq.value is not None:
        found["dq"] = ratio(summary.dq.value)
    return found


def scan_rows(evaluation: Evaluation) -> tuple[dict[str, str], ...]:
    """Return one row for each rule with a scored finding, in the order of the book."""
    return tuple({"rule_id": rule_id} for rule_id, count in evaluation.counts().items() if count)


def ratio(value: Decimal) -> str:
    """Return a share with 4 decimals; only a share of exactly 1 is shown as 1.0000."""
    rounded = value.quantize(_FOUR_DECIMALS, rounding=ROUND_HALF_EVEN)
    if rounded == _ONE and value < _ONE:
        rounded = _ONE - _FOUR_DECIMALS
    return str(rounded)
