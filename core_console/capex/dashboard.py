"""Control effectiveness by dimension: of all that was checked, the share that held.

Owns the figures of GetDashboard. A check is one rule put to one row that it could judge; what
could not be judged counts neither way. Dry runs count in no figure.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from core_console.capex.evaluation import Evaluation, RuleOutcome, share
from core_console.capex.rules.book import RULE_BOOK
from core_console.model.capex import Dimension, Figure

NO_RULE = "no rule is mapped to this dimension"


@dataclass(frozen=True, slots=True)
class DimensionScore:
    """A dimension's figure, with the checks behind it and the rules that made them."""

    dimension: Dimension
    effectiveness: Figure
    checks: int
    failures: int
    rule_ids: tuple[str, ...]
    measured_rule_ids: tuple[str, ...]


def dashboard(evaluation: Evaluation) -> tuple[DimensionScore, ...]:
    """Return every dimension's score, in the order of the dimensions."""
    return tuple(_score(evaluation, dimension) for dimension in Dimension)


def overall(scores: Iterable[DimensionScore]) -> Figure:
    """Return the figure of all mapped rules together."""
    told = tuple(scores)
    checks = sum(each.checks for each in told)
    failures = sum(each.failures for each in told)
    return share(checks - failures, checks, absent_reason="no row could be judged by any rule")


def _score(evaluation: Evaluation, dimension: Dimension) -> DimensionScore:
    mapped = tuple(rule.id for rule in RULE_BOOK if rule.dimension is dimension)
    measured = [
        each for each in evaluation.outcomes if each.scored and each.rule.dimension is dimension
    ]
    checks = sum(each.judged for each in measured)
    failures = sum(len(each.failing) for each in measured)
    return DimensionScore(
        dimension=dimension,
        effectiveness=share(checks - failures, checks, absent_reason=_reason(mapped, measured)),
        checks=checks,
        failures=failures,
        rule_ids=mapped,
        measured_rule_ids=tuple(each.rule.id for each in measured),
    )


def _reason(mapped: tuple[str, ...], measured: list[RuleOutcome]) -> str:
    """Return why a dimension without a single check has no figure."""
    if not mapped:
        return NO_RULE
    if not measured:
        return f"none of its rules was measured: {', '.join(mapped)}"
    return f"no row could be judged by {', '.join(each.rule.id for each in measured)}"
