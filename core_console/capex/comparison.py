"""Whether a later scan found no more than the first one.

Owns compare_to_first_scan (contract, section 4). Counts of different rule statuses, thresholds or
Go-Live dates, or of a feed that became empty, are not comparable, and that fails.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from core_console.model.capex import Basis, RuleStatus, Thresholds


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether the scan passes, and one sentence that says why."""

    passed: bool
    detail: str


def compare_to_first(
    *,
    first: Mapping[str, int],
    first_basis: Basis,
    now: Mapping[str, int],
    basis: Basis,
    rule_ids: Collection[str] = (),
) -> Comparison:
    """Compare the scored counts by rule of two scans, of all rules when none are named."""
    if not basis.feeds:
        return Comparison(passed=False, detail="no feed is loaded")
    if changed := "; ".join(_changes(first_basis, basis)):
        return Comparison(passed=False, detail=f"not comparable: {changed}")
    before, after = _total(first, rule_ids), _total(now, rule_ids)
    of = f" of {', '.join(rule_ids)}" if rule_ids else ""
    if after > before:
        return Comparison(passed=False, detail=f"the findings{of} rose from {before} to {after}")
    return Comparison(
        passed=True, detail=f"the findings{of} did not rise: {before} before, {after} now"
    )


def _total(counts: Mapping[str, int], rule_ids: Collection[str]) -> int:
    return sum(count for rule_id, count in counts.items() if not rule_ids or rule_id in rule_ids)


def _changes(first: Basis, now: Basis) -> Iterator[str]:
    for rule_id in sorted(first.statuses.keys() | now.statuses.keys()):
        was = first.statuses.get(rule_id, RuleStatus.APPROVED)
        is_now = now.statuses.get(rule_id, RuleStatus.APPROVED)
        if was is not is_now:
            yield f"the status of {rule_id} was {was} and is {is_now}"
    yield from _moved(first.thresholds, now.thresholds)
    if first.go_live != now.go_live:
        yield f"Go-Live was {first.go_live} and is {now.go_live}"
    for feed in first.feeds:
        if feed not in now.feeds:
            yield f"{feed} became empty"


def _moved(first: Thresholds, now: Thresholds) -> Iterator[str]:
    for name in Thresholds.__struct_fields__:
        was, is_now = getattr(first, name), getattr(now, name)
        if was != is_now:
            yield f"{name} was {was} and is {is_now}"
