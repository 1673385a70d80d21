"""The feeds that ship with the demo: what they come to, and that its two endings are possible."""

import pytest

from core_console.capex.draft import worst
from core_console.capex.rules.book import RULES
from tests.capex.demo_feeds import GOLDEN, PLANS, demo, rendered
from tests.capex.rows import all_found

WORST = worst(demo().counts(), 3)


@pytest.mark.parametrize("plan", PLANS)
def test_the_demo_feeds_come_to_what_the_golden_file_says(plan: str) -> None:
    assert rendered(demo(plan)) == (GOLDEN / f"{plan}.txt").read_text(encoding="utf-8")


def test_every_rule_has_a_finding() -> None:
    assert all_found(demo()) == RULES.keys()


def test_the_corrected_plan_lowers_every_count_and_the_worse_one_raises_them() -> None:
    first, fixed, worse = (demo(plan).counts() for plan in PLANS)
    assert all(fixed[rule_id] <= count for rule_id, count in first.items())
    assert all(worse[rule_id] >= count for rule_id, count in first.items())
    assert all(fixed[rule_id] < first[rule_id] < worse[rule_id] for rule_id in WORST)
