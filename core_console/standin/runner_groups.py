"""Concurrency groups: one job of a group runs, one waits, and a newer one takes its place.

Owns GitHub's rule that the waiting job of a group is cancelled by a newer one, even when nothing
in progress may be cancelled.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import Struct


class Replaced(Exception):  # noqa: N818 -- an answer of the queue, not an error
    """A newer job took this one's place in the queue of its group."""


class _Group(Struct):
    waiting: asyncio.Future[None] | None = None


class Groups:
    """The groups of one repository."""

    def __init__(self) -> None:
        self._groups: dict[str, _Group] = {}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[None]:
        """Hold a group while the body runs.

        Raises:
            Replaced: a newer job came while this one was waiting.
        """
        key = name.lower()  # group names are compared without regard to case
        if key in self._groups:
            await self._queue(self._groups[key])
        else:
            self._groups[key] = _Group()
        try:
            yield
        finally:
            self._pass_on(key)

    async def _queue(self, group: _Group) -> None:
        if group.waiting is not None and not group.waiting.done():
            group.waiting.set_exception(Replaced)
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        group.waiting = mine
        try:
            await mine
        finally:
            if group.waiting is mine:
                group.waiting = None

    def _pass_on(self, key: str) -> None:
        waiting = self._groups[key].waiting
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
        else:
            del self._groups[key]
