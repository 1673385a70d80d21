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

from core_console.company import Company
from core_console.decide.outcome import Carried, Refused
from core_console.ports import Fault

BATCH_MAX = 256
"""The most commands that share one swap: beyond it a batch's own deciding outlasts its sync."""

QUEUE_MAX = 4_096
"""Sixteen batches: a caller behind that many waits longer than its own deadline, so it is told."""

_POLL_S = 0.001

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
        self._complete = asyncio.Event()
        self._company = Company()

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
        self.ring()
        if len(self._queue) >= self._company.size:
            self._complete.set()
        return await asked.answer

    def ring(self) -> None:
        """Wake the writer, whether there are commands or not."""
        self._rung.set()

    async def rings(self) -> None:
        """Wait until there is something to do."""
        await self._rung.wait()
        self._rung.clear()

    async def take(self) -> list[Asked[C, R]]:
        """Take the commands that are next, as many as share a swap; none when none wait."""
        gathered = bool(self._queue) and self._is_incomplete()
        if gathered:
            await self._gather()
        batch = [self._queue.popleft() for _ in range(min(BATCH_MAX, len(self._queue)))]
        self._company.taken(len(batch), gathered=gathered, now_s=_now_s())
        return batch

    def _is_incomplete(self) -> bool:
        waiting = len(self._queue)
        return waiting < BATCH_MAX and self._company.is_awaited(waiting, _now_s())

    async def _gather(self) -> None:
        """Wait until all who are expected are there, or nobody else is on the way.

        A poll that ends late says nothing of that: those who were answered together are still
        being told so, or what they ask next is being read.
        """
        self._complete.clear()
        idle = 0
        while self._is_incomplete() and idle < self._company.idle_polls and not self.refusal:
            began_s, came = _now_s(), len(self._queue)
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_S):
                    await self._complete.wait()
            is_idle = len(self._queue) == came and _now_s() - began_s < 2 * _POLL_S
            idle = idle + 1 if is_idle else 0

    def give_back(self, rest: Sequence[Asked[C, R]]) -> None:
        """Put commands before all others, but for those whose callers were told something."""
        self._queue.extendleft(reversed([asked for asked in rest if not asked.was_told]))

    def answer(
        self, batch: Sequence[Asked[C, R]], outcomes: Sequence[R | Refused | Exception]
    ) -> None:
        """Answer the first commands of a batch, as many as have outcomes."""
        for asked, outcome in zip(batch, outcomes, strict=False):
            if asked.answer.done():
                continue
            self._answered(outcome)
            if isinstance(outcome, Exception):
                asked.answer.set_exception(outcome)
            else:
                asked.answer.set_result(outcome)

    def answer_batch(
        self, batch: Sequence[Asked[C, R]], outcomes: Sequence[R | Refused | Exception]
    ) -> None:
        """Answer what was taken together; those without an outcome wait before all others."""
        self._company.answered(len(self._queue), _now_s())
        self.answer(batch, outcomes)
        self.give_back(batch[len(outcomes) :])

    def refuse(self, fault: Fault) -> None:
        """Answer the fault to all that wait, and to all that ask from now on."""
        self.refusal = fault
        self.answer(tuple(self._queue), [fault] * len(self._queue))
        self._queue.clear()
        self.ring()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
