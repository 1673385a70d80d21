"""The CapEx engine on 3 x 50,000 rows: time, memory, pauses of other threads, ratio to Polars.

Run `python -m scripts.bench.capex` from the project's folder. Each measurement is a process of its
own, so that its memory is its own; each figure is the best of its rounds, for on shared cores the
best is what the work costs. Polars is no dependency of the product: without it there is no ratio.

The Polars version only counts. Where nearly every row is faulty, the product's ratio may be above
10: it digests the content of 150,000 rows for the ids, which is most of its time there.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event, Thread
from time import perf_counter
from typing import Self

from rich.console import Console as Screen
from rich.table import Table as Lines

from core_console.capex.evaluation import evaluate
from core_console.capex.feeds import CSV_BYTES_MAX, ROWS_MAX, Table
from core_console.capex.findings import Findings
from core_console.capex.parsing import Parsed, parse
from core_console.model.capex import Config, Feed, Thresholds
from scripts.bench import capex_polars, capex_rows

ROUNDS = 3
BARE_S = 5.0
MIB = 1_024 * 1_024
PAGE = 200
FAULTS = {"one cell in 200 faulty": 200, "every second cell faulty": 2}


@dataclass
class Measured:
    """What one process measured; seconds, MiB above idle, and milliseconds."""

    read_s: float = 0.0
    rules_s: float = 0.0
    page_s: float = 0.0
    above_idle_mib: float = 0.0
    pause_ms: float = 0.0
    counts: dict[str, int] = field(default_factory=dict)


class Pauses:
    """The longest time that another thread could not run: what a gRPC loop would feel."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self._end = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        before = perf_counter()
        while not self._end.wait(0.001):
            now = perf_counter()
            self.longest_s = max(self.longest_s, now - before)
            before = now

    def __enter__(self) -> Self:
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop watching."""
        self._end.set()
        self._thread.join()


def memory_mib(field_name: str) -> float:
    """Return a figure of this process's memory: VmRSS or VmHWM (its peak)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split(f"{field_name}:")[1].split()[0]) / 1_024


def timed(work: Callable[[], object]) -> float:
    """Return the seconds of the best of the rounds."""
    best = float("inf")
    for _ in range(ROUNDS):
        began = perf_counter()
        work()
        best = min(best, perf_counter() - began)
    return best


def table_of(feed: Feed, path: Path) -> Table:
    """Return a feed that has no fault of the file."""
    parsed = parse(feed, path.read_bytes())
    assert isinstance(parsed, Parsed), parsed
    return parsed.table


def measure_product(folder: Path) -> Measured:
    """Measure this project's parser and evaluation."""
    idle = memory_mib("VmRSS")

    def read() -> dict[Feed, Table]:
        return {feed: table_of(feed, folder / f"{feed}.csv") for feed in Feed}

    with Pauses() as pauses:
        read_s = timed(read)
        feeds = read()

        def rules() -> object:
            return evaluate(feeds, config=Config(), thresholds=Thresholds())

        rules_s = timed(rules)
        evaluation = evaluate(feeds, config=Config(), thresholds=Thresholds())
        page_s = timed(lambda: Findings(evaluation)[-PAGE:])
    return Measured(
        read_s=read_s,
        rules_s=rules_s,
        page_s=page_s,
        above_idle_mib=memory_mib("VmHWM") - idle,
        pause_ms=pauses.longest_s * 1_000,
        counts=evaluation.counts(),
    )


def measure_large(folder: Path) -> Measured:
    """Measure the parse of one file of 8 MiB."""
    idle = memory_mib("VmRSS")
    with Pauses() as pauses:
        read_s = timed(lambda: table_of(Feed.CAPITAL_PLAN, folder / "large.csv"))
    peak = memory_mib("VmHWM") - idle
    return Measured(read_s=read_s, above_idle_mib=peak, pause_ms=pauses.longest_s * 1_000)


def measure_bare(folder: Path) -> Measured:
    """Measure the pauses that a bare loop of as long makes: the machine's share of the others."""
    del folder
    began = perf_counter()
    with Pauses() as pauses:
        while perf_counter() - began < BARE_S:
            sum(range(1_000))
    return Measured(pause_ms=pauses.longest_s * 1_000)


def measure_polars(folder: Path) -> Measured:
    """Measure the Polars version; its first round also warms it up."""
    idle = memory_mib("VmRSS")
    rounds = [capex_polars.count(folder) for _ in range(ROUNDS)]
    return Measured(
        read_s=min(read for read, _, _ in rounds),
        rules_s=min(rules for _, rules, _ in rounds),
        above_idle_mib=memory_mib("VmHWM") - idle,
        counts=rounds[-1][2],
    )


MEASURES = {
    "bare": measure_bare,
    "product": measure_product,
    "large": measure_large,
    "polars": measure_polars,
}


def in_its_own_process(what: str, folder: Path) -> Measured:
    """Let a fresh process measure, and return what it found."""
    command = (sys.executable, "-m", "scripts.bench.capex", "--measure", what, str(folder))
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    return Measured(**json.loads(done.stdout))


def line(name: str, found: Measured, ratio: str = "") -> tuple[str, ...]:
    """Return a measurement as cells."""
    return (
        name,
        f"{found.read_s:.3f}" if found.read_s else "",
        f"{found.rules_s:.3f}" if found.rules_s else "",
        f"{found.page_s * 1_000:.1f}" if found.page_s else "",
        f"{found.above_idle_mib:.0f}" if found.above_idle_mib else "",
        f"{found.pause_ms:.0f}" if found.pause_ms else "",
        f"{sum(found.counts.values()):,}" if found.counts else "",
        ratio,
    )


def compared(folder: Path, name: str, lines: Lines, *, with_polars: bool) -> None:
    """Measure one set of feeds, with Polars when it is there."""
    ours = in_its_own_process("product", folder)
    if not with_polars:
        lines.add_row(*line(name, ours))
        return
    theirs = in_its_own_process("polars", folder)
    assert theirs.counts == {**ours.counts}, (ours.counts, theirs.counts)
    whole = (ours.read_s + ours.rules_s) / (theirs.read_s + theirs.rules_s)
    ratio = f"{ours.rules_s / theirs.rules_s:.1f} rules, {whole:.1f} with reading"
    lines.add_row(*line(name, ours, ratio))
    lines.add_row(*line("  the same in Polars, counts only", theirs))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "FOLDER"), help=argparse.SUPPRESS)
    asked = parser.parse_args().measure
    if asked:
        json.dump(asdict(MEASURES[asked[0]](Path(asked[1]))), sys.stdout)
        return
    screen = Screen()
    polars = capex_polars.polars()
    version = f"Polars {polars.__version__}" if polars else "Polars is not installed: no ratio"
    screen.print(f"3 x {ROWS_MAX:,} rows, all rules, best of {ROUNDS}; {version}")
    lines = Lines(
        "feeds",
        "read s",
        "rules s",
        f"{PAGE} findings ms",
        "MiB",
        "pause ms",
        "findings",
        "x Polars",
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for label, fault_one_in in FAULTS.items():
            capex_rows.write(folder, rows=ROWS_MAX, fault_one_in=fault_one_in)
            compared(folder, label, lines, with_polars=polars is not None)
        large = folder / "large.csv"
        capex_rows.write_large(large, size_bytes=CSV_BYTES_MAX, rows=ROWS_MAX)
        size = f"one file of {large.stat().st_size / MIB:.1f} MiB, quoted"
        lines.add_row(*line(size, in_its_own_process("large", folder)))
        lines.add_row(*line("a bare loop", in_its_own_process("bare", folder)))
    screen.print(lines)


if __name__ == "__main__":
    main()
