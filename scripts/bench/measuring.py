"""What every benchmark shares: a row of figures, callers that measure, processes, a table, JSON.

Owns no benchmark. Everything is bounded in time, on loopback, and printed beside a bare baseline.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console as Screen
from rich.table import Table

SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement: how many a second, and the milliseconds of one; `ratio` says to what."""

    name: str
    rate: float
    p50_ms: float
    p99_ms: float
    ratio: str = ""


def row_of(name: str, times_ms: Sequence[float], wall_s: float, *, ratio: str = "") -> Row:
    """Return the row of calls that together took `wall_s`."""
    ordered = sorted(times_ms)
    p99 = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]
    return Row(name, len(ordered) / wall_s, statistics.median(ordered), p99, ratio)


async def measure(
    name: str, callers: int, seconds: float, call: Callable[[int], Awaitable[float]]
) -> Row:
    """Let `callers` call one after another for `seconds`; a call returns its own milliseconds."""
    times: list[float] = []
    began = time.perf_counter()

    async def caller(number: int) -> None:
        while time.perf_counter() - began < seconds:
            times.append(await call(number))

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return row_of(name, times, time.perf_counter() - began)


def clean_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without a console's own settings, and with these."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("CONSOLE_", "CORE_"))}
    return kept | variables


@contextmanager
def process(arguments: Sequence[str], env: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """Run a module as a process; yield its first line, which says that it is ready, and its pid."""
    running = subprocess.Popen(
        (sys.executable, "-m", *arguments), env=dict(env), stdout=subprocess.PIPE, text=True
    )
    try:
        assert running.stdout is not None
        yield running.stdout.readline().strip(), running.pid
    finally:
        running.terminate()
        running.wait(30)


def rss_mib(pid: int) -> float:
    """Return the memory of a process in MiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1_024


def run(
    about: str | None, measured: Callable[[Path, float], Sequence[Row]], *, seconds: float = 4.0
) -> None:
    """Measure in a folder of its own, for as long as the command line asks, and print."""
    parser = argparse.ArgumentParser(description=about)
    limits = f"time of each row, at most {SECONDS_MAX:g}"
    parser.add_argument("--seconds", type=float, default=seconds, help=limits)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        show(measured(Path(name), min(given.seconds, SECONDS_MAX)), json_path=given.json)


def show(rows: Sequence[Row], *, json_path: Path | None) -> None:
    """Print the rows as a table, and write them as JSON if asked."""
    table = Table("what", "per s", "p50 ms", "p99 ms", "ratio")
    for row in rows:
        rate = f"{row.rate:,.0f}"
        table.add_row(row.name, rate, f"{row.p50_ms:.2f}", f"{row.p99_ms:.2f}", row.ratio)
    Screen(width=120).print(table)
    if json_path is not None:
        figures = [{name: getattr(row, name) for name in row.__slots__} for row in rows]
        json_path.write_text(json.dumps(figures, indent=1) + "\n")
