"""Whoever waits for a document to change, and how they learn of it.

Owns the waiting. A swap of this process tells at once; one poller for all looks for the swaps of
other replicas, as long as somebody waits. Holds nothing but the waiting: what changed is worked
out by whoever is told.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from core_console.model.document import Versioned
from core_console.ports import Clock, Fault

POLL_S = 1.0
"""A person sees no difference below it, and one look at a version a second is no load."""

D = TypeVar("D", bound=Versioned)


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting(Generic[D]):
    """Somebody who knows a revision and waits, until an instant that never jumps, for another."""

    revision: int
    until_s: float
    answer: asyncio.Future[D]


class Subscribers(Generic[D]):
    """Those who wait for one document; `look` returns its newest durable state."""

    def __init__(self, look: Callable[[], Awaitable[D]], clock: Clock) -> None:
        self._look = look
        self._clock = clock
        self._waiting: set[_Waiting[D]] = set()
        self._poller: asyncio.Task[None] | None = None
        self._ended = False

    async def changed(self, revision: int, *, within_s: float) -> D:
        """Return the document once it is at another revision, or as it is after `within_s`.

        The time is looked at once a second. An outage of the store is sat out for as long.

        Raises:
            Fault: the store cannot be asked, or the console is stopping.
        """
        document = await self._look()
        if self._ended:
            raise _stopping()
        if document.revision != revision:
            return document
        until_s = self._clock.monotonic() + within_s
        answer: asyncio.Future[D] = asyncio.get_running_loop().create_future()
        waiting = _Waiting(revision, until_s, answer)
        self._waiting.add(waiting)
        self._poll()
        try:
            return await answer
        finally:
            self._waiting.discard(waiting)
            self._rest()

    def tell(self, document: D) -> None:
        """Wake those who know another revision than this durable one."""
        for each in self._waiting:
            if each.revision != document.revision and not each.answer.done():
                each.answer.set_result(document)

    def end(self) -> None:
        """Let nobody wait any more: the console is stopping."""
        self._ended = True
        self._fail(_stopping())

    def _poll(self) -> None:
        if self._poller is None:
            self._poller = asyncio.create_task(self._polling(), name="poller")
            self._poller.add_done_callback(self._polled)

    def _rest(self) -> None:
        if not self._waiting and self._poller is not None:
            self._poller.cancel()
            self._poller = None

    def _polled(self, poller: asyncio.Task[None]) -> None:
        """A bug that ends the poller is everybody's answer: nobody waits for ever."""
        if self._poller is poller:
            self._poller = None
        if not poller.cancelled() and (error := poller.exception()) is not None:
            self._fail(error)

    async def _polling(self) -> None:
        while True:
            await self._clock.sleep(POLL_S)
            try:
                document = await self._look()
            except Fault as fault:
                self._fail(fault, only_overdue=True)
                continue
            self.tell(document)
            for each in self._overdue():
                each.answer.set_result(document)

    def _overdue(self) -> list[_Waiting[D]]:
        now_s = self._clock.monotonic()
        return [each for each in self._waiting if each.until_s <= now_s and not each.answer.done()]

    def _fail(self, error: BaseException, *, only_overdue: bool = False) -> None:
        for each in self._overdue() if only_overdue else self._waiting:
            if not each.answer.done():
                each.answer.set_exception(error)


def _stopping() -> Fault:
    return Fault("the console is stopping; ask another replica, or try again")
