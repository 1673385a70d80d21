"""What people read of a failing seed: its smallest plan, and what happened in it.

Owns the words. The same seed gives the same text.
"""

from dataclasses import replace

from tests.sim.plan import Plan
from tests.sim.shrinking import shrunk
from tests.sim.simulation import Played, play

_LINE_CHARACTERS = 360
"""An answer holds whole documents; its beginning says what was answered."""


def failure_of(played: Played, *, patience_s: float) -> str:
    """Return the story of a failure, as short as it could be made in that many seconds."""
    assert played.broken is not None
    rule = played.broken.rule

    def fails(plan: Plan) -> bool:
        found = play(plan).broken
        return found is not None and found.rule == rule

    small = shrunk(played.plan, fails, patience_s=patience_s)
    return story_of(play(small, telling=True), items=len(played.plan.items))


def story_of(played: Played, *, items: int = 0) -> str:
    """Return the plan, every line of the history, and what was broken, if anything was."""
    plan = played.plan
    broken = f"breaks a promise: {played.broken}" if played.broken else "keeps every promise"
    settings = replace(plan, items=())
    deeds = [f"  {item.at_s:10.3f} s  {item.deed}" for item in plan.items]
    lines = [line[:_LINE_CHARACTERS] for line in played.history]
    return "\n".join(
        [
            f"seed {plan.seed} {broken}",
            f"settings: {settings}",
            f"{len(plan.items)} of its {items or len(plan.items)} deeds:",
            *deeds,
            "what happened:",
            *(f"  {line}" for line in lines),
            f"replay: python -m scripts.simulate --seed {plan.seed}",
        ]
    )
