"""The writer loop: load, decide, swap, answer, then perform.

Owns the one writer of a document in this process. Commands queue up; the writer takes what is
waiting, decides each against the state that the one before it left, and makes one swap for all
of them. Nobody is answered before the swap is durable, and no effect is performed before it.
Never interprets a command: that is `decide`'s.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Generic, Protocol, TypeVar

import structlog
from msgspec import Struct
from msgspec.structs import replace

from core_console.batch import Kind
from core_console.counts import DocumentCounts
from core_console.decide.capex_commands import CapexCommand
from core_console.decide.commands import Command
from core_console.decide.context import CATCH_UP, Context
from core_console.decide.identity import Admission
from core_console.decide.outbox import OUTBOX_BYTES_MAX, outbox_bytes, without_recorded
from core_console.decide.outcome import Accepted, CapexAccepted, Carried, Code, Effect, Refused
from core_console.model.capex_document import CapexDocument
from core_console.model.codec import DocumentError
from core_console.model.document import Document, Versioned
from core_console.ports import Clock, Conflict, Fault, Ids
from core_console.ports import Document as Store
from core_console.recorder import Recorder
from core_console.subscribers import Subscribers

_log = structlog.get_logger(__name__)

BATCH_MAX = 256
"""The most commands that share one swap: beyond it a batch's own deciding outlasts its sync."""

QUEUE_MAX = 4_096
"""Sixteen batches: a caller behind that many waits longer than its own deadline, so it is told."""

ATTEMPTS_MAX = 20
"""Lost races before a batch gives up; with a few replicas losing five in a row is rare."""

_BACKOFF_S = 0.002
"""About two swaps of a file: the winner is done by then."""

_RECORDER_PATIENCE_S = 2.0

STORE_PATIENCE_S = 5.0
"""A swap takes milliseconds, and 2 s more when the chain lags: a store that takes longer than that
is away, and whoever waits is told so."""

_PROBE_S = 1.0
"""A store that is away is asked again at this pace."""


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


@dataclass(frozen=True, slots=True)
class _Held(Generic[D]):
    """The document as it was last known to be stored."""

    version: str
    document: D


@dataclass(frozen=True, slots=True)
class Seen(Generic[D]):
    """A document as a read sees it; `fault` says why a newer state may exist, None if not."""

    document: D
    fault: Fault | None = None

    @property
    def provenance(self) -> str:
        """Where the state comes from when it is not the newest for sure, "" when it is."""
        if self.fault is None:
            return ""
        return f"last known state of revision {self.document.revision}, the store cannot be asked"


@dataclass(frozen=True, slots=True)
class _Asked(Generic[C, R]):
    """A command and who waits for its outcome."""

    command: C
    answer: asyncio.Future[R | Refused]


class Engine(Generic[D, C, R]):
    """The one writer of one document in this process, and the reader of its newest state."""

    def __init__(
        self,
        kind: Kind[D, C, R],
        *,
        store: Store,
        recorder: Recorder,
        performer: Performer,
        clock: Clock,
        ids: Ids,
        policy: Policy,
        replica: str,
    ) -> None:
        self.replica = replica
        self.counts = DocumentCounts()
        self._kind = kind
        self._store = store
        self._recorder = recorder
        self._performer = performer
        self._clock = clock
        self._ids = ids
        self._policy = policy
        self._held: _Held[D] | None = None
        self._known: D | None = None
        self._away: Fault | None = None
        self._swaps = 0
        self._swapping = False
        self._closing = False
        self._loading = asyncio.Lock()
        self._queue: deque[_Asked[C, R]] = deque()
        self._asked = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None
        self._subscribers: Subscribers[D] = Subscribers(self._newest, clock)

    async def start(self) -> None:
        """Load the document and start writing; raise Fault when it cannot be read."""
        held = await self._fresh()
        self._recorder.offer(held.document.outbox)
        self._writer = asyncio.create_task(self._write(), name="writer")

    async def close(self) -> None:
        """Refuse new commands, finish those that wait, and stop."""
        self._closing = True
        self.release()
        self._asked.set()
        if self._writer is not None:
            await self._writer

    @property
    def clock(self) -> Clock:
        """The time that decisions are made by."""
        return self._clock

    @property
    def serving(self) -> bool:
        """Whether commands are taken now."""
        return self._writer is not None and not self._writer.done() and not self._closing

    @property
    def away(self) -> bool:
        """Whether the store has stopped answering, so that commands are refused at once."""
        return self._away is not None

    async def submit(self, command: C) -> R | Refused:
        """Return the command's outcome once it is durable; raise Fault when it cannot be."""
        if self._closing:
            raise Fault("the console is stopping; ask another replica, or try again")
        if self._away is not None:
            raise self._away
        if len(self._queue) >= QUEUE_MAX:
            raise Fault("the console has too much to do; try again later", retry_after_s=1)
        asked: _Asked[C, R] = _Asked(command, asyncio.get_running_loop().create_future())
        self._queue.append(asked)
        self._asked.set()
        return await asked.answer

    async def look(self) -> Seen[D]:
        """Return the newest state that can be had: the last known one while the store is away.

        For reads alone: what is decided or sent must not rest on it.

        Raises:
            Fault: the store cannot be asked, and never could be.
        """
        try:
            async with asyncio.timeout(STORE_PATIENCE_S):
                return Seen(await self.snapshot())
        except TimeoutError:
            fault = self._fall_away()
        except Fault as error:
            fault = error
        if self._known is None:
            raise fault
        return Seen(self._known, fault)

    async def snapshot(self) -> D:
        """Return the newest durable document; raise Fault when the store cannot be asked."""
        if self._away is not None:
            raise self._away
        if self._swapping and self._held is not None:
            # The store may show our own swap before it is durable; nobody sees it before us.
            return self._held.document
        return (await self._fresh()).document

    async def changed(self, revision: int, *, within_s: float) -> D:
        """Return the durable document once it is at another revision, or as it is by then.

        Raises:
            Fault: the store cannot be asked, or the console is stopping.
        """
        return await self._subscribers.changed(revision, within_s=within_s)

    def release(self) -> None:
        """Let nobody wait for a change any more: the console is stopping."""
        self._subscribers.end()

    async def _newest(self) -> D:
        seen = await self.look()
        if seen.fault is not None:
            raise seen.fault
        return seen.document

    async def recorded(self) -> None:
        """Wait until what is decided now is in the chain, as far as the chain can be written."""
        with suppress(Fault):
            await self._recorder.drain((await self.snapshot()).outbox)

    async def _fresh(self) -> _Held[D]:
        async with self._loading:
            version = await self._store.version()
            held = self._held
            if held is None or held.version != version:
                stored = await self._store.load()
                held = _Held(stored.version, self._decoded(stored.data))
                self._hold(held, len(stored.data))
            return held

    def _hold(self, held: _Held[D], size_bytes: int) -> None:
        """Remember what is durable."""
        self._held, self._known = held, held.document
        self._subscribers.tell(held.document)
        self.counts.known(held.document, size_bytes)

    def _decoded(self, data: bytes) -> D:
        if not data:
            return self._kind.empty
        try:
            return self._kind.codec.decode(data)
        except DocumentError as error:
            raise Fault(
                f"the stored document cannot be read: {error}; keep it and restore a backup",
                retryable=False,
            ) from error

    async def _write(self) -> None:
        while self._queue or not self._closing:
            await self._asked.wait()
            self._asked.clear()
            await self._come_back()
            while self._queue:
                taken = [self._queue.popleft() for _ in range(min(BATCH_MAX, len(self._queue)))]
                await self._commit(taken)
                await self._come_back()

    def _fall_away(self, batch: Sequence[_Asked[C, R]] = ()) -> Fault:
        """Tell whoever waits that the store does not answer, and refuse commands from now on."""
        self._away = Fault("the store does not answer; try again later", retry_after_s=_PROBE_S)
        unknown = Fault(
            "the store does not answer, so it is not known whether this was carried out: look "
            "before trying again"
        )
        self._answer(batch, [unknown] * len(batch))
        self._answer(tuple(self._queue), [self._away] * len(self._queue))
        self._queue.clear()
        self._asked.set()
        return self._away

    async def _come_back(self) -> None:
        """Ask a store that is away until it answers; then commands are taken again."""
        while self._away is not None and not self._closing:
            try:
                await self._fresh()
            except Fault:
                await self._clock.sleep(_PROBE_S)
            else:
                self._away = None

    async def _commit(self, batch: list[_Asked[C, R]]) -> None:
        """Decide and swap a batch, and answer it whatever happens."""
        loop, faults = asyncio.get_running_loop(), self.counts.faults
        patience = loop.call_later(STORE_PATIENCE_S, self._fall_away, batch)
        try:
            for attempt in range(ATTEMPTS_MAX):
                if await self._attempt(batch):
                    return
                await self._clock.sleep(_BACKOFF_S * attempt * self._ids.jitter(0.5))
            refusal = Refused(Code.ABORTED, "other replicas kept winning; try again")
            self._answer(batch, [refusal] * len(batch))
        except Fault as fault:
            self._held = None
            self.counts.faults += 1
            self._answer(batch, [fault] * len(batch))
        except Exception as error:
            # Whoever waits must be answered, and the next batch must still be written.
            _log.exception("writer_failed")
            self._held = None
            self._answer(batch, [error] * len(batch))
        finally:
            patience.cancel()
            late = loop.time() > patience.when() - STORE_PATIENCE_S / 2
            if late and self.counts.faults > faults:
                # It failed only after seconds: the next ones need not wait to hear the same.
                self._fall_away()

    async def _attempt(self, batch: list[_Asked[C, R]]) -> bool:
        """Try once; return False when another replica won the race."""
        held = await self._fresh()
        await self._make_outbox_room(held.document)
        if self._away is not None:  # whoever asked was told so, and may have asked another replica
            raise self._away
        commands = [asked.command for asked in batch]
        lean = without_recorded(held.document, self._recorder.recorded)
        decided = self._kind.decide_batch(lean, commands, self._context)
        if decided.document is not lean:
            stamped = self._stamped(decided.document)
            try:
                await self._swap(held, stamped)
            except Conflict:
                self._held = None
                self.counts.conflicts += 1
                return False
            except Fault as fault:
                if not await self._landed():
                    self.counts.faults += 1
                    self._answer_fault(batch, held.document, fault)
                    return True
            self.counts.swapped(held.document, stamped, len(decided.outcomes))
            self._recorder.offer(stamped.outbox)
            self._performer.take(decided.effects)
        self._answer(batch, decided.outcomes)
        rest = [asked for asked in batch[len(decided.outcomes) :] if not _was_told(asked)]
        self._queue.extendleft(reversed(rest))
        return True

    def _context(self, claimed: int = 0) -> Context:
        """Return what the next decision is given; `claimed` effects of its batch come before."""
        return Context(
            now=self._clock.now(),
            ids=self._ids,
            replica=self.replica,
            admission=self._policy.admission,
            sender_room=self._performer.room - claimed,
            bar_all_editors=self._policy.bar_all_editors,
            catch_up=self._policy.catch_up,
        )

    def _stamped(self, document: D) -> D:
        self._swaps += 1
        return replace(
            document, revision=document.revision + 1, swap_id=f"{self.replica}-{self._swaps}"
        )

    async def _swap(self, held: _Held[D], document: D) -> None:
        self._swapping = True
        try:
            data = self._kind.codec.encode(document)
            version = await self._store.swap(held.version, data)
            self._hold(_Held(version, document), len(data))
        finally:
            self._swapping = False

    async def _landed(self) -> bool:
        """Say whether the swap whose reply was lost is what is stored now."""
        self._held = None
        mine = f"{self.replica}-{self._swaps}"
        with suppress(Fault):
            return (await self._fresh()).document.swap_id == mine
        return False

    async def _make_outbox_room(self, document: D) -> None:
        """Give a chain that lags a moment to catch up before new work is refused for it."""
        if outbox_bytes(without_recorded(document, self._recorder.recorded)) < OUTBOX_BYTES_MAX:
            return
        with suppress(Fault, TimeoutError):
            async with asyncio.timeout(_RECORDER_PATIENCE_S):
                await self._recorder.drain(document.outbox)

    def _answer_fault(self, batch: Sequence[_Asked[C, R]], base: D, fault: Fault) -> None:
        """Answer the fault to all but those that would have been refused anyway."""
        context = self._context()
        outcomes = [self._kind.decide_one(base, asked.command, context) for asked in batch]
        self._answer(batch, [each if isinstance(each, Refused) else fault for each in outcomes])

    def _answer(
        self, batch: Sequence[_Asked[C, R]], outcomes: Sequence[R | Refused | Exception]
    ) -> None:
        for asked, outcome in zip(batch, outcomes, strict=False):
            if asked.answer.done():
                continue
            self.counts.answered(outcome)
            if isinstance(outcome, Exception):
                asked.answer.set_exception(outcome)
            else:
                asked.answer.set_result(outcome)


def _was_told(asked: _Asked[Any, Any]) -> bool:
    """Say whether its caller has an answer; one that merely went away has none."""
    return asked.answer.done() and not asked.answer.cancelled()


Metadoc = Engine[Document, Command, Accepted]
"""The engine of the playbooks."""

Capexdoc = Engine[CapexDocument, CapexCommand, CapexAccepted]
"""The engine of the feeds."""
