"""How long an event takes that comes at random, whatever became of the others before it.

Run: .venv/bin/python -m scripts.bench.arrivals. Callers who wait for an answer before they ask
again come in step with the console; most agents do not. The baseline is the same console when it
waits for nobody before a swap (docs/decisions/014). Who finds every connection taken is left out,
and counted.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

from core_console.clock import RandomIds
from scripts.bench.consoles import SERVE, Console, github, launched, root_with, serving
from scripts.bench.doors import Client, event_request
from scripts.bench.measuring import Row, row_of, run
from scripts.bench.run_now import FULL_BYTES, document

RATES = (50, 200, 500, 900)
CONNECTIONS = 64
HOW = {"waits for nobody": launched("--alone"), "as it is": SERVE}


def _pause_s(rate: float) -> float:
    """Return the time to the next of arrivals that know nothing of each other (exponential)."""
    evenly = RandomIds().jitter(1) / 2
    return -math.log(max(evenly, 1e-9)) / rate


class Arrivals:
    """Events that come at random times over a pool of kept connections."""

    def __init__(self, clients: Sequence[Client], bearer: str) -> None:
        self._free = list(clients)
        self._bearer = bearer
        self._under_way: set[asyncio.Task[None]] = set()
        self.times_ms: list[float] = []
        self.left_out = 0

    async def come(self, rate: float, seconds: float) -> None:
        """Send so many a second on average, each at a moment of its own."""
        due = time.perf_counter()
        end = due + seconds
        while (due := due + _pause_s(rate)) < end:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            if not self._free:
                self.left_out += 1
                continue
            sending = asyncio.create_task(self._send(self._free.pop()))
            self._under_way.add(sending)
            sending.add_done_callback(self._under_way.discard)
        await asyncio.gather(*self._under_way)

    async def _send(self, client: Client) -> None:
        request = event_request(self._bearer, time.time_ns())
        began = time.perf_counter()
        status = await client.ask(request)
        self.times_ms.append((time.perf_counter() - began) * 1_000)
        assert status == HTTPStatus.OK, status
        self._free.append(client)


async def _row(console: Console, bearer: str, rate: int, seconds: float, name: str) -> Row:
    opening = (asyncio.open_connection("127.0.0.1", console.http_port) for _ in range(CONNECTIONS))
    arrivals = Arrivals([Client(*await each) for each in opening], bearer)
    await arrivals.come(rate, seconds)
    row = row_of(f"{rate} events a second, {name}", arrivals.times_ms, seconds)
    return replace(row, ratio=f"{arrivals.left_out} left out" if arrivals.left_out else "")


def measured(folder: Path, seconds: float) -> list[Row]:
    """Let both kinds of console take each rate, one after the other."""
    rows: dict[tuple[int, str], Row] = {}
    with github(folder) as hub:
        for name, how in HOW.items():
            root = root_with(folder / name.replace(" ", "-"), document(FULL_BYTES))
            with serving(root, how, hub.settings) as console:
                asyncio.run(_row(console, hub.token, RATES[0], 1, "warm-up"))
                for rate in RATES:
                    row = asyncio.run(_row(console, hub.token, rate, seconds, name))
                    rows[rate, name] = row
    return [_compared(rows, rate, name) for rate in RATES for name in HOW]


def _compared(rows: dict[tuple[int, str], Row], rate: int, name: str) -> Row:
    row, base = rows[rate, name], rows[rate, next(iter(HOW))]
    ratio = "" if row is base else f"p50 {row.p50_ms / base.p50_ms:.2f} of waiting for nobody"
    return replace(row, ratio=" ".join(filter(None, (row.ratio, ratio))))


if __name__ == "__main__":
    run(__doc__, measured)
