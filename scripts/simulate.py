"""Play the whole system against its promises: many seeds, or one of them once more.

Owns what people see: progress, a summary, and the story of a seed that failed. Run it as
`python -m scripts.simulate`; it exits with 1 when a promise was broken. Ctrl-C ends it early, with
a summary of what was played.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from itertools import count

from rich.console import Console as Screen
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tests.sim.many import Tally, tallies
from tests.sim.plan import plan_of
from tests.sim.simulation import Played, play
from tests.sim.telling import failure_of, story_of

_STORIES_MAX = 5
"""More failures than that are one bug seen often."""


_INTERRUPTED = 130
"""What a shell says of a program that Ctrl-C ended."""


def main() -> int:
    """Return 1 when a promise was broken, and tell what was played even when interrupted."""
    asked = _asked()
    if asked.seed is not None:
        return _one(asked.seed, shrink_s=asked.shrink_s)
    screen = Screen()
    started_s = time.monotonic()
    found: list[Tally] = []
    interrupted = False
    try:
        _many(asked, screen, found)
    except KeyboardInterrupt:
        interrupted = True
    _summary(screen, found, time.monotonic() - started_s)
    broken = [played for tally in found for played in tally.broken]
    for played in broken[:_STORIES_MAX]:
        print(failure_of(played, patience_s=asked.shrink_s), end="\n\n")
    if broken:
        return 1
    return _INTERRUPTED if interrupted else 0


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=2_000, help="how many seeds")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--hours", type=float, default=0, help="go on for so many simulated hours")
    parser.add_argument("--seed", type=int, help="play this one alone, and tell all of it")
    parser.add_argument("--jobs", type=int, default=0, help="processes; 0 is one a processor")
    parser.add_argument("--shrink-s", type=float, default=30, help="time to make a failure small")
    return parser.parse_args()


def _one(seed: int, *, shrink_s: float) -> int:
    """Play one seed once more; a failing one is told as short as it could be made."""
    played = play(plan_of(seed), telling=True)
    if played.broken is None:
        print(story_of(played))
        return 0
    print(failure_of(played, patience_s=shrink_s))
    return 1


def _many(asked: argparse.Namespace, screen: Screen, found: list[Tally]) -> None:
    """Play what was asked for, and add each piece to what was found as soon as it is done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=screen) as progress:
        total = asked.hours or asked.seeds
        bar = progress.add_task("hours" if asked.hours else "seeds", total=round(total))
        for tally in _tallies(asked):
            found.append(tally)
            progress.advance(bar, round(tally.hours) if asked.hours else tally.seeds)
            if sum(len(each.broken) for each in found) >= _STORIES_MAX:
                break


def _tallies(asked: argparse.Namespace) -> Iterator[Tally]:
    """Yield tallies until so many seeds, or so many simulated hours, were played."""
    if not asked.hours:
        yield from tallies(range(asked.first, asked.first + asked.seeds), jobs=asked.jobs)
        return
    hours = 0.0
    for tally in tallies(count(asked.first), jobs=asked.jobs):
        yield tally
        hours += tally.hours
        if hours >= asked.hours:
            return


def _summary(screen: Screen, found: list[Tally], took_s: float) -> None:
    seeds = sum(tally.seeds for tally in found)
    broken: list[Played] = [played for tally in found for played in tally.broken]
    screen.print(
        f"{seeds:,} seeds in {took_s:,.0f} s ({seeds / max(took_s, 0.001):,.0f} a second), "
        f"{sum(tally.hours for tally in found):,.0f} simulated hours, "
        f"{sum(tally.swaps for tally in found):,} swaps, "
        f"{sum(tally.records for tally in found):,} audit records: {len(broken)} broke a promise"
    )


if __name__ == "__main__":
    sys.exit(main())
