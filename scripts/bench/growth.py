"""What an event costs while the history grows: none, 300 events and 200 runs, a full document.

Run: .venv/bin/python -m scripts.bench.growth. One connection at the door of a real process. A
document does not stay empty while events arrive, so each round starts a console of its own and
times its first events only; the rounds of the three documents take turns, for the machine drifts.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from core_console.model.document import Document
from scripts.bench.consoles import Console, GitHub, github, root_with, serving
from scripts.bench.doors import Client, event_request
from scripts.bench.measuring import Row, row_of, run
from scripts.bench.run_now import FULL_BYTES, document

UNTIMED, TIMED = 10, 50
"""Events of a round: the first ones are slower, for nothing has been looked up yet."""

_ROUND_S = 1.5
"""About what a round of one document takes, mostly the start of its console."""

_HISTORY_BYTES = 1
"""A history of events without detail: fewer bytes than any, so that nothing is filled up."""

DOCUMENTS: dict[str, Callable[[], Document]] = {
    "no history": lambda: document(0),
    "300 events, 200 runs": lambda: document(_HISTORY_BYTES),
    "the same, filled to the brim": lambda: document(FULL_BYTES),
}


async def first_events(console: Console, hub: GitHub) -> list[float]:
    """Return the milliseconds of a console's first events but the very first."""
    client = Client(*await asyncio.open_connection("127.0.0.1", console.http_port))
    times = []
    for _ in range(UNTIMED + TIMED):
        request = event_request(hub.token, time.time_ns())
        began = time.perf_counter()
        status = await client.ask(request)
        assert status == HTTPStatus.OK, status
        times.append((time.perf_counter() - began) * 1_000)
    return times[UNTIMED:]


def measured(folder: Path, seconds: float) -> list[Row]:
    """Let the documents take turns for about `seconds` each."""
    times: dict[str, list[float]] = {name: [] for name in DOCUMENTS}
    with github(folder) as hub:
        for turn in range(max(2, round(seconds / _ROUND_S))):
            for place, (name, make) in enumerate(DOCUMENTS.items()):
                root = root_with(folder / f"{turn}-{place}", make())
                with serving(root, settings=hub.settings) as console:
                    times[name] += asyncio.run(first_events(console, hub))
    rows = [row_of(f"event, {name}", took, sum(took) / 1_000) for name, took in times.items()]
    base = rows[0].p50_ms
    return [rows[0], *(replace(row, ratio=f"{row.p50_ms / base:.2f} x none") for row in rows[1:])]


if __name__ == "__main__":
    run(__doc__, measured, seconds=6.0)
