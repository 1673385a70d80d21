"""The commands that wait for a document's writer, and their answers.

Owns how many may wait, how many are taken together, and that each is answered once. Knows neither
what a command is nor what it comes to.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from core_console.decide.outcome import Carried, Refused
from core_console.ports import Fault

BATCH_MAX = 256
"""The most commands that share one swap: beyond it a batch's own deciding outlasts its sync."""

QUEUE_MAX = 4_096
"""Sixteen batches: a caller behind that many waits longer than its own deadline, so it is told."""

_COMPANY_S = 0.012
"""How long after an answer those who had it are expected back. A command's own work on the event
loop is 0.4 ms, a swap's 1.5 ms: within this time as many are back as make it worth their while."""

_POLL_S = 0.001
_QUIET_POLLS = 3
"""Nobody else comes when nobody came so often in a row. A poll of a busy loop takes as long as one
round of it, and in one round all those that were answered together can come back."""

C = TypeVar("C")
R = TypeVar("R", bound=Carried[Any, Any])


@dataclass(frozen=True, slots=True)
class Asked(Generic[C, R]):
    """A command and who waits for its outcome."""

    command: C
    answer: asyncio.Future[R | Refused]

    @property
    def was_told(self) -> bool:
        """Whether its caller has an answer; one that merely went away has none."""
        return self.answer.done() and not self.answer.cancelled()


class Inbox(Generic[C, R]):
    """The queue of one writer; `answered` is told each answer that somebody was given.

    `refusal` is why commands are refused at once, None while they are taken.
    """

    def __init__(self, *, answered: Callable[[R | Refused | Exception], None]) -> None:
        self.refusal: Fault | None = None
        self._answered = answered
        self._queue: deque[Asked[C, R]] = deque()
        self._rung = asyncio.Event()
        self._company, self._company_until_s = 1, 0.0
        self._wanted = 1

    def __len__(self) -> int:
        """Return how many commands wait."""
        return len(self._queue)

    async def ask(self, command: C) -> R | Refused:
        """Return the command's outcome; raise the refusal, or a Fault when too many wait."""
        if self.refusal is not None:
            raise self.refusal
        if len(self._queue) >= QUEUE_MAX:
            raise Fault("the console has too much to do; try again later", retry_after_s=1)
        asked: Asked[C, R] = Asked(command, asyncio.get_running_loop().create_future())
        self._queue.append(asked)
        if len(self._queue) >= self._wanted:
            self.ring()
        return await asked.answer

    def ring(self) -> None:
        """Wake the writer, whether there are commands or not."""
        self._rung.set()

    async def rings(self) -> None:
        """Wait until there is something to do."""
        await self._rung.wait()
        self._rung.clear()

    async def take(self) -> list[Asked[C, R]]:
        """Take the commands that are next, as many as share a swap; none when none wait.

        Whoever was answered together comes back together. A swap costs the same for one command as
        for all of them, so it is not made for the first ones alone.
        """
        if self._queue and len(self._queue) < self._company:
            await self._gather()
        return [self._queue.popleft() for _ in range(min(BATCH_MAX, len(self._queue)))]

    async def _gather(self) -> None:
        """Wait until as many as last time are there, or no more of them come."""
        quiet, came = 0, len(self._queue)
        self._wanted = self._company
        while came < self._company and quiet < _QUIET_POLLS and _now_s() < self._company_until_s:
            await self._rings_within(_POLL_S)
            quiet = quiet + 1 if len(self._queue) == came else 0
            came = len(self._queue)
        self._wanted = 1

    async def _rings_within(self, time_s: float) -> None:
        self._rung.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(time_s):
                await self._rung.wait()

    def give_back(self, rest: Sequence[Asked[C, R]]) -> None:
        """Put commands before all others, but for those whose callers were told something."""
        self._queue.extendleft(reversed([asked for asked in rest if not asked.was_told]))

    def answer(
        self, batch: Sequence[Asked[C, R]], outcomes: Sequence[R | Refused | Exception]
    ) -> None:
        """Answer the first commands of a batch, as many as have outcomes."""
        self._company = min(len(batch) + len(self._queue), BATCH_MAX)
        self._company_until_s = _now_s() + _COMPANY_S
        for asked, outcome in zip(batch, outcomes, strict=False):
            if asked.answer.done():
                continue
            self._answered(outcome)
            if isinstance(outcome, Exception):
                asked.answer.set_exception(outcome)
            else:
                asked.answer.set_result(outcome)

    def refuse(self, fault: Fault) -> None:
        """Answer the fault to all that wait, and to all that ask from now on."""
        self.refusal = fault
        self.answer(tuple(self._queue), [fault] * len(self._queue))
        self._queue.clear()
        self.ring()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
