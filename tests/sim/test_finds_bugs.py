"""The simulator finds bugs: each of these is planted, and some seed catches it.

A simulation that passes proves nothing until it is known to fail when it should.
"""

from collections.abc import Callable

import pytest

from tests.sim.plan import plan_of
from tests.sim.planted import PLANTED
from tests.sim.simulation import play

SEEDS = 400


def first_caught(seeds: int) -> tuple[int, str] | None:
    """Return the first seed that breaks a promise, and which; None when none of them does."""
    for seed in range(seeds):
        broken = play(plan_of(seed)).broken
        if broken is not None:
            return seed, broken.rule
    return None


@pytest.mark.parametrize("bug", PLANTED, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_caught(
    bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    bug(monkeypatch)
    found = first_caught(SEEDS)
    assert found is not None, f"{SEEDS} seeds did not see it"
    assert found[1] in PLANTED[bug]
