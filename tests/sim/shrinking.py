"""A failing plan made small: deeds and faults are dropped for as long as it still fails so.

Owns the search. It is bounded in time, and what it returns is always a plan that fails by the
same rule.
"""

import time
from collections.abc import Callable
from dataclasses import replace

from tests.sim.plan import Item, Plan

Fails = Callable[[Plan], bool]


def shrunk(plan: Plan, fails: Fails, *, patience_s: float) -> Plan:
    """Return the smallest plan found within that many seconds for which `fails` still holds."""
    give_up_at = time.monotonic() + patience_s

    def still(smaller: Plan) -> bool:
        return time.monotonic() < give_up_at and fails(smaller)

    for replicas in range(1, plan.replicas):
        fewer = replace(plan, replicas=replicas)
        if still(fewer):
            plan = fewer
            break
    return _without_items(plan, still)


def _without_items(plan: Plan, still: Fails) -> Plan:
    """Drop runs of items, long ones first, until no single one can go."""
    size = max(1, len(plan.items) // 2)
    while size:
        plan, dropped = _without_runs_of(plan, size, still)
        if not dropped or size > 1:
            size //= 2
    return plan


def _without_runs_of(plan: Plan, size: int, still: Fails) -> tuple[Plan, bool]:
    dropped, place = False, 0
    while place < len(plan.items):
        kept: tuple[Item, ...] = plan.items[:place] + plan.items[place + size :]
        smaller = replace(plan, items=kept)
        if still(smaller):
            plan, dropped = smaller, True
        else:
            place += size
    return plan, dropped
