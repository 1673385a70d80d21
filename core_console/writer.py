"""One batch after the other: decided against the newest state, swapped, answered, performed.

Owns the order of these, and what becomes of a batch whose swap lost a race or failed. Nobody is
answered before the swap is durable, and no effect is performed before it. Never interprets a
command: that is `decide`'s.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from core_console.batch import Decided, Kind
from core_console.counts import DocumentCounts
from core_console.decide.context import CATCH_UP, Context
from core_console.decide.identity import Admission
from core_console.decide.outbox import OUTBOX_BYTES_MAX, outbox_bytes, without_recorded
from core_console.decide.outcome import Carried, Code, Effect, Refused
from core_console.inbox import Asked, Inbox
from core_console.latest import Held, Latest
from core_console.model.document import Versioned
from core_console.ports import Clock, Conflict, Fault, Ids
from core_console.recorder import Recorder

ATTEMPTS_MAX = 20
"""Lost races before a batch gives up; with a few replicas losing five in a row is rare."""

_BACKOFF_S = 0.002
"""About two swaps of a file: the winner is done by then."""

_RECORDER_PATIENCE_S = 2.0


class Policy(Struct, frozen=True, gc=False):
    """The settings that decisions depend on."""

    admission: Admission
    bar_all_editors: bool = False
    catch_up: timedelta = CATCH_UP


class Performer(Protocol):
    """Who performs effects after the swap."""

    @property
    def room(self) -> int:
        """How many more effects may be claimed."""
        ...

    def take(self, effects: Sequence[Effect]) -> None:
        """Perform these, each at most once."""
        ...


D = TypeVar("D", bound=Versioned)
C = TypeVar("C")
R = TypeVar("R", bound=Carried[Any, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a writer works with beside its document."""

    recorder: Recorder
    performer: Performer
    clock: Clock
    ids: Ids
    policy: Policy
    replica: str


class Writer(Generic[D, C, R]):
    """Carries out the batches of one document, one at a time."""

    def __init__(
        self,
        kind: Kind[D, C, R],
        latest: Latest[D],
        inbox: Inbox[C, R],
        *,
        means: Means,
        counts: DocumentCounts,
    ) -> None:
        self._kind = kind
        self._latest = latest
        self._inbox = inbox
        self._means = means
        self._counts = counts
        self._swaps = 0

    async def commit(self, batch: list[Asked[C, R]]) -> None:
        """Decide, swap and answer a batch, as often as it takes against other replicas.

        Raises:
            Fault: the store cannot be asked, or was given up meanwhile. Nobody was answered.
        """
        for attempt in range(ATTEMPTS_MAX):
            if await self._attempt(batch):
                return
            await self._means.clock.sleep(_BACKOFF_S * attempt * self._means.ids.jitter(0.5))
        refusal = Refused(Code.ABORTED, "other replicas kept winning; try again")
        self._inbox.answer(batch, [refusal] * len(batch))

    async def _attempt(self, batch: list[Asked[C, R]]) -> bool:
        """Try once; return False when another replica won the race."""
        held = await self._latest.fresh()
        await self._make_outbox_room(held.document)
        if self._inbox.refusal is not None:
            # Whoever asked was told so meanwhile, and may have asked another replica.
            raise self._inbox.refusal
        commands = [asked.command for asked in batch]
        lean = without_recorded(held.document, self._means.recorder.recorded)
        decided = self._kind.decide_batch(lean, commands, self._context)
        if decided.document is not lean:
            try:
                await self._swap(held, decided)
            except Conflict:
                self._latest.forget()
                self._counts.conflicts += 1
                return False
            except Fault as fault:
                self._counts.faults += 1
                self._answer_fault(batch, held.document, fault)
                return True
        self._inbox.answer_batch(batch, decided.outcomes)
        return True

    async def _swap(self, held: Held[D], decided: Decided[D, R]) -> None:
        """Make what was decided durable, and then let its effects happen.

        Raises:
            Conflict: another replica won the race; nothing was changed.
            Fault: it is not stored, or cannot be found there.
        """
        stamped = self._stamped(decided.document)
        try:
            await self._latest.swap(held, stamped)
        except Fault:
            if not await self._landed():
                raise
        self._counts.swapped(held.document, stamped, len(decided.outcomes))
        self._means.recorder.offer(stamped.outbox)
        self._means.performer.take(decided.effects)

    def _stamped(self, document: D) -> D:
        self._swaps += 1
        return replace(
            document, revision=document.revision + 1, swap_id=f"{self._means.replica}-{self._swaps}"
        )

    async def _landed(self) -> bool:
        """Say whether the swap whose reply was lost is what is stored now."""
        self._latest.forget()
        mine = f"{self._means.replica}-{self._swaps}"
        with suppress(Fault):
            return (await self._latest.fresh()).document.swap_id == mine
        return False

    def _context(self, claimed: int = 0) -> Context:
        """Return what the next decision is given; `claimed` effects of its batch come before."""
        means, policy = self._means, self._means.policy
        return Context(
            now=means.clock.now(),
            ids=means.ids,
            replica=means.replica,
            admission=policy.admission,
            sender_room=means.performer.room - claimed,
            bar_all_editors=policy.bar_all_editors,
            catch_up=policy.catch_up,
        )

    async def _make_outbox_room(self, document: D) -> None:
        """Give a chain that lags a moment to catch up before new work is refused for it."""
        if (
            outbox_bytes(without_recorded(document, self._means.recorder.recorded))
            < OUTBOX_BYTES_MAX
        ):
            return
        with suppress(Fault, TimeoutError):
            async with asyncio.timeout(_RECORDER_PATIENCE_S):
                await self._means.recorder.drain(document.outbox)

    def _answer_fault(self, batch: Sequence[Asked[C, R]], base: D, fault: Fault) -> None:
        """Answer the fault to all but those that would have been refused anyway."""
        context = self._context()
        outcomes = [self._kind.decide_one(base, asked.command, context) for asked in batch]
        self._inbox.answer(
            batch, [each if isinstance(each, Refused) else fault for each in outcomes]
        )
