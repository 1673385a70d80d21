"""The whole system keeps its promises whatever goes wrong; a failing seed can be read and replayed.

`make simulate SEEDS=…` plays more seeds, `python -m scripts.simulate --seed N` one of them.
"""

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.sim.broken import BrokenError
from tests.sim.many import tallies
from tests.sim.plan import FAULTS, Begin, Deed, plan_of
from tests.sim.planted import an_unknown_call_is_sent_again
from tests.sim.shrinking import shrunk
from tests.sim.simulation import play
from tests.sim.telling import failure_of

_QUICK = 60

_HISTORIES = """
from hashlib import sha256
from tests.sim.plan import plan_of
from tests.sim.simulation import play
for seed in range(12):
    print(seed, sha256("\\n".join(play(plan_of(seed), telling=True).history).encode()).hexdigest())
"""


def judge(seeds: range, *, jobs: int) -> None:
    """Play the seeds, and tell the story of the first that breaks a promise."""
    for tally in tallies(seeds, jobs=jobs):
        for played in tally.broken:
            pytest.fail(failure_of(played, patience_s=30), pytrace=False)


def test_no_quick_seed_breaks_a_promise() -> None:
    judge(range(_QUICK), jobs=1)


def test_the_same_seed_plays_the_same_to_its_last_step() -> None:
    told = {
        subprocess.run(
            [sys.executable, "-c", _HISTORIES],
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    assert len(told) == 1
    assert told.pop().count("\n") == 12


def test_seeds_differ_in_what_they_play() -> None:
    plans = [plan_of(seed) for seed in range(200)]
    assert {plan.replicas for plan in plans} == {1, 2, 3}
    assert {plan.begin for plan in plans} == set(Begin)
    assert {item.deed for plan in plans for item in plan.items} == set(Deed)
    assert any(not FAULTS & {item.deed for item in plan.items} for plan in plans)


def test_a_failing_plan_is_made_as_small_as_it_can_be() -> None:
    plan = plan_of(3)
    culprits = {plan.items[2], plan.items[-1]}
    small = shrunk(plan, lambda found: culprits <= set(found.items), patience_s=60)
    assert set(small.items) == culprits
    assert small.replicas == 1


def test_a_failing_seed_tells_a_short_story(monkeypatch: pytest.MonkeyPatch) -> None:
    an_unknown_call_is_sent_again(monkeypatch)
    played = next(each for each in map(play, map(plan_of, range(100))) if each.broken)
    story = failure_of(played, patience_s=60)
    assert failure_of(played, patience_s=60) == story
    opening, _, dropped, *_, broken, replay = story.splitlines()
    assert opening.startswith(
        f"seed {played.plan.seed} breaks a promise: a dispatch is sent at most once"
    )
    assert replay == f"replay: python -m scripts.simulate --seed {played.plan.seed}"
    assert "BROKEN: a dispatch is sent at most once" in broken
    kept, whole = map(int, re.findall(r"\d+", dropped))
    assert kept < whole == len(played.plan.items)


def test_what_breaks_first_is_what_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise BrokenError("a rule", "it does not hold")

    monkeypatch.setattr("tests.sim.judge.Judge.swapped", refuse)
    broken = play(replace(plan_of(0), replicas=1)).broken
    assert broken is not None
    assert (broken.rule, broken.said) == ("a rule", "it does not hold")
