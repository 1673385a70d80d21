"""Two consoles on one root against one: what both together carry, and whether a caller starves.

Run: .venv/bin/python -m scripts.bench.replicas. Sixteen callers on real processes and a full
document; half of them ask each replica. The rate counts RunNow and the CancelRun that frees its
playbook; p50 and p99 are RunNow's, with the attempts that another replica's write undid.
"""

import asyncio
from contextlib import ExitStack
from pathlib import Path

from scripts.bench.consoles import root_with, serving
from scripts.bench.measuring import Row, run
from scripts.bench.run_now import FULL_BYTES, document
from scripts.bench.transitions import Load, start_and_end

CALLERS = 16


def served(folder: Path, replicas: int, seconds: float) -> Load:
    """Measure so many consoles on a fresh root."""
    folder.mkdir()
    root = root_with(folder / "root", document(FULL_BYTES))
    with ExitStack() as stack:
        consoles = [stack.enter_context(serving(root)) for _ in range(replicas)]
        addresses = [console.address for console in consoles]
        return asyncio.run(start_and_end(addresses, root.token, CALLERS, seconds))


def measured(folder: Path, seconds: float) -> list[Row]:
    """Measure one replica and two."""
    one = served(folder / "one", 1, seconds)
    two = served(folder / "two", 2, seconds)
    base = one.row("one replica", _worst(one))
    row = two.row("two replicas")
    aborted = f"{two.aborted} of {two.calls + two.aborted:,} aborted"
    halves = [sum(map(len, two.times_ms[place::2])) for place in (0, 1)]
    slower = f"{min(halves) / sum(halves):.0%} by the slower"
    ratio = f"{row.rate / base.rate:.2f} of one, {slower}, {_worst(two)}, {aborted}"
    return [base, two.row("two replicas", ratio)]


def _worst(load: Load) -> str:
    return f"worst caller's p99 {load.worst_p99_ms():.0f} ms"


if __name__ == "__main__":
    run(__doc__, measured)
