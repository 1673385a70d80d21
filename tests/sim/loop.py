"""An event loop whose time is a number: nothing ever waits, and the same seed runs the same steps.

Owns virtual time. When nobody can go on the loop moves its clock to the next timer at once, so a
simulated day takes as long as its work.
"""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class StuckError(Exception):
    """Nobody can go on and no timer runs: whoever still waits would wait for ever."""


class _Virtual(selectors.SelectSelector):
    """Waits for no file; a wait for time moves the time."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise StuckError("nobody can go on, and no timer runs")
        self.now_s += max(0.0, timeout)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in virtual time, without threads and without sockets of its own use."""

    def __init__(self) -> None:
        self._virtual = _Virtual()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now_s


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run until `main` is done; whatever still waits then is cancelled."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        loop.run_until_complete(_ended(asyncio.all_tasks(loop)))
        loop.close()


async def _ended(left: set[asyncio.Task[Any]]) -> None:
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
