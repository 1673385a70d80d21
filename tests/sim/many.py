"""Many seeds, one after another in as many processes as there are processors.

Owns how the work is spread. Which seed is played where changes nothing of what it comes to.
"""

import gc
import multiprocessing
import os
import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice

from tests.sim.plan import plan_of
from tests.sim.simulation import Played, play

_PIECE = 10
"""Seeds a task: half a second, so that progress is seen and nobody waits long at the end."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What some seeds came to; `broken` are the ones that failed."""

    seeds: int
    hours: float
    swaps: int
    records: int
    broken: tuple[Played, ...]


def tallied(seeds: list[int]) -> Tally:
    """Play these seeds."""
    played = [play(plan_of(seed)) for seed in seeds]
    gc.collect()
    return Tally(
        seeds=len(played),
        hours=sum(each.hours for each in played),
        swaps=sum(each.swaps for each in played),
        records=sum(each.records for each in played),
        broken=tuple(each for each in played if each.broken is not None),
    )


def tallies(seeds: Iterable[int], *, jobs: int = 0) -> Iterator[Tally]:
    """Yield the tally of each piece of the seeds, in their order; 0 jobs are one a processor."""
    jobs = jobs or os.cpu_count() or 1
    pieces = _pieces(seeds)
    if jobs == 1:
        yield from map(tallied, pieces)
        return
    # Forked from a process with threads a child may never start; a spawned one always does.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context, initializer=_leave_interrupts) as pool:
        waiting = [pool.submit(tallied, piece) for piece in islice(pieces, 2 * jobs)]
        while waiting:
            done = waiting.pop(0)
            yield done.result()
            waiting += [pool.submit(tallied, piece) for piece in islice(pieces, 1)]


def _leave_interrupts() -> None:
    """Let only the process that was interrupted say so, once the pieces under way are done."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _pieces(seeds: Iterable[int]) -> Iterator[list[int]]:
    ahead = iter(seeds)
    while piece := list(islice(ahead, _PIECE)):
        yield piece
