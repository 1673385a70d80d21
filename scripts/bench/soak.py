"""Whether a console's memory stays flat under events and runs.

Run: .venv/bin/python -m scripts.bench.soak --minutes 60. It samples the memory of a real process
on a full document every few seconds; the baseline is the first sample under load. The events come
over plain HTTP at the door, the runs over gRPC.
"""

import argparse
import asyncio
import statistics
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from core_console.clock import SystemClock
from scripts.bench.consoles import Console, GitHub, Root, github, root_with, serving
from scripts.bench.doors import load as events
from scripts.bench.measuring import Row, rss_mib, show
from scripts.bench.run_now import FULL_BYTES, document
from scripts.bench.transitions import start_and_end

CONNECTIONS, CALLERS = 8, 4
SAMPLE_S = 10.0
_SAMPLES_MIN = 3
MINUTES_MAX = 120.0


@dataclass
class Memory:
    """The memory of a process in MiB: before the load, and sample by sample under it."""

    pid: int
    idle: float = 0.0
    samples: list[float] = field(default_factory=list)

    async def watch(self, seconds: float) -> None:
        """Sample for so many seconds."""
        self.idle = rss_mib(self.pid)
        times = max(_SAMPLES_MIN, round(seconds / SAMPLE_S))
        for _ in range(times):
            await SystemClock().sleep(seconds / times)
            self.samples.append(rss_mib(self.pid))

    def told(self) -> str:
        """Return the first, the middle and the last sample, and how much it grew meanwhile."""
        first, middle, last = (
            self.samples[place] for place in (0, len(self.samples) // 2, len(self.samples) - 1)
        )
        return (
            f"RSS {self.idle:.0f} idle, {first:.0f}, {middle:.0f}, {last:.0f} MiB; "
            f"{last / first:.3f} of the first, median {statistics.median(self.samples):.0f}"
        )


async def loaded(console: Console, root: Root, hub: GitHub, seconds: float) -> list[Row]:
    """Load the console with events and runs at once, and watch its memory."""
    memory = Memory(console.pid)
    sent, runs, _ = await asyncio.gather(
        events(console.http_port, hub.token, CONNECTIONS, seconds, "event"),
        start_and_end([console.address], root.token, CALLERS, seconds),
        memory.watch(seconds),
    )
    number = f"{sent.rate * seconds:,.0f} events"
    return [replace(sent, ratio=number), runs.row("run and cancel", memory.told())]


def measured(folder: Path, minutes: float) -> list[Row]:
    """Serve a full document, and load it."""
    with github(folder) as hub:
        root = root_with(folder / "root", document(FULL_BYTES))
        with serving(root, settings=hub.settings) as console:
            return asyncio.run(loaded(console, root, hub, minutes * 60))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=0.5, help="how long, at most 120")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        rows = measured(Path(name), min(given.minutes, MINUTES_MAX))
    show(rows, json_path=given.json)


if __name__ == "__main__":
    main()
