"""Callers of a peer: threads that start runs, each once the one before has begun its first step.

It runs in the peer's own virtualenv, so it imports the standard library alone. A step tells that
it has started by a datagram on loopback, which costs some microseconds and no disk.
"""

import itertools
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

WARM_UP_S = 1.0
_PATIENCE_S = 30.0
_STARTS_AT = "BENCH_STARTS_AT"
_NAME_BYTES_MAX = 64
_SAYS = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


@dataclass
class Loaded:
    """What a load of so many callers came to: the milliseconds of each start, and the time."""

    callers: int
    times_ms: list[float]
    wall_s: float


def step_started(name: str) -> None:
    """Say that the first step of the run has started; called in it, in whatever process."""
    _SAYS.sendto(name.encode(), ("127.0.0.1", int(os.environ[_STARTS_AT])))


class Starts:
    """The steps that say that they started, and who waits for one."""

    def __init__(self) -> None:
        self._waiting: dict[str, threading.Event] = {}
        self._heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._heard.bind(("127.0.0.1", 0))
        os.environ[_STARTS_AT] = str(self._heard.getsockname()[1])
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        while True:
            name = self._heard.recv(_NAME_BYTES_MAX).decode()
            if waiting := self._waiting.pop(name, None):
                waiting.set()

    def timed_ms(self, name: str, start: Callable[[str], object]) -> float:
        """Start a run and wait for its first step; return the milliseconds."""
        waiting = self._waiting[name] = threading.Event()
        began = time.perf_counter()
        start(name)
        assert waiting.wait(_PATIENCE_S), f"the first step of {name} never started"
        return (time.perf_counter() - began) * 1_000


def load(starts: Starts, start: Callable[[str], object], callers: int, seconds: float) -> None:
    """Let so many callers start runs, and print the milliseconds of each and the time it took."""
    numbers = itertools.count()
    _called(starts, start, callers, WARM_UP_S, numbers)
    began = time.perf_counter()
    times = _called(starts, start, callers, seconds, numbers)
    loaded = Loaded(callers, times, time.perf_counter() - began)
    print(json.dumps(asdict(loaded)), flush=True)


def _called(
    starts: Starts,
    start: Callable[[str], object],
    callers: int,
    seconds: float,
    numbers: "itertools.count[int]",
) -> list[float]:
    times: list[float] = []
    end = time.perf_counter() + seconds

    def caller() -> None:
        while time.perf_counter() < end:
            name = f"bench-{os.getpid()}-{next(numbers)}"
            times.append(starts.timed_ms(name, start))

    with ThreadPoolExecutor(callers) as pool:
        for done in [pool.submit(caller) for _ in range(callers)]:
            done.result()
    return times


def asked() -> tuple[Sequence[int], float]:
    """Return the numbers of callers and the seconds that the command line asks for."""
    *callers, seconds = sys.argv[1:]
    return [int(each) for each in callers], float(seconds)
