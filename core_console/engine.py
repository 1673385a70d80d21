"""The engine of one document in this process: its one writer, and the reads of its newest state.

Owns the loop that takes what waits and has one swap made for all of it, and what the console does
while the store does not answer. Never interprets a command: that is `decide`'s.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import structlog

from core_console.batch import Kind
from core_console.counts import DocumentCounts
from core_console.decide.capex_commands import CapexCommand
from core_console.decide.commands import Command
from core_console.decide.outcome import Accepted, CapexAccepted, Carried, Refused
from core_console.inbox import Asked, Inbox
from core_console.latest import Latest, Seen
from core_console.model.capex_document import CapexDocument
from core_console.model.document import Document, Versioned
from core_console.ports import Clock, Fault, Ids
from core_console.ports import Document as Store
from core_console.recorder import Recorder
from core_console.subscribers import Subscribers
from core_console.writer import Means, Performer, Policy, Writer

_log = structlog.get_logger(__name__)

STORE_PATIENCE_S = 5.0
"""A swap takes milliseconds, and 2 s more when the chain lags: a store that takes longer than that
is away, and whoever waits is told so."""

_PROBE_S = 1.0
"""A store that is away is asked again at this pace."""


D = TypeVar("D", bound=Versioned)
C = TypeVar("C")
R = TypeVar("R", bound=Carried[Any, Any])


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
        self._recorder = recorder
        self._clock = clock
        self._closing = False
        self._writing: asyncio.Task[None] | None = None
        self._subscribers: Subscribers[D] = Subscribers(self._newest, clock)
        self._inbox: Inbox[C, R] = Inbox(answered=self.counts.answered)
        self._latest = Latest(store, kind.codec, kind.empty, learned=self._learned)
        means = Means(
            recorder=recorder,
            performer=performer,
            clock=clock,
            ids=ids,
            policy=policy,
            replica=replica,
        )
        self._writer = Writer(kind, self._latest, self._inbox, means=means, counts=self.counts)

    async def start(self) -> None:
        """Load the document and start writing; raise Fault when it cannot be read."""
        held = await self._latest.fresh()
        self._recorder.offer(held.document.outbox)
        self._writing = asyncio.create_task(self._write(), name="writer")

    async def close(self) -> None:
        """Refuse new commands, finish those that wait, and stop."""
        self._closing = True
        self.release()
        self._inbox.ring()
        if self._writing is not None:
            await self._writing

    @property
    def clock(self) -> Clock:
        """The time that decisions are made by."""
        return self._clock

    @property
    def serving(self) -> bool:
        """Whether commands are taken now."""
        return self._writing is not None and not self._writing.done() and not self._closing

    @property
    def swapping(self) -> bool:
        """Whether a swap of this process is under way."""
        return self._latest.swapping

    @property
    def away(self) -> bool:
        """Whether the store has stopped answering, so that commands are refused at once."""
        return self._inbox.refusal is not None

    async def submit(self, command: C) -> R | Refused:
        """Return the command's outcome once it is durable; raise Fault when it cannot be."""
        if self._closing:
            raise Fault("the console is stopping; ask another replica, or try again")
        return await self._inbox.ask(command)

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
        if self._latest.known is None:
            raise fault
        return Seen(self._latest.known, fault)

    async def snapshot(self) -> D:
        """Return the newest durable document; raise Fault when the store cannot be asked."""
        if self._inbox.refusal is not None:
            raise self._inbox.refusal
        return await self._latest.durable()

    async def changed(self, revision: int, *, within_s: float) -> D:
        """Return the durable document once it is at another revision, or as it is by then.

        Raises:
            Fault: the store cannot be asked, or the console is stopping.
        """
        return await self._subscribers.changed(revision, within_s=within_s)

    def release(self) -> None:
        """Let nobody wait for a change any more: the console is stopping."""
        self._subscribers.end()

    async def recorded(self) -> None:
        """Wait until what is decided now is in the chain, as far as the chain can be written."""
        with suppress(Fault):
            await self._recorder.drain((await self.snapshot()).outbox)

    async def _newest(self) -> D:
        seen = await self.look()
        if seen.fault is not None:
            raise seen.fault
        return seen.document

    def _learned(self, document: D, size_bytes: int) -> None:
        self._subscribers.tell(document)
        self.counts.known(document, size_bytes)

    async def _write(self) -> None:
        while self._inbox or not self._closing:
            await self._inbox.rings()
            await self._come_back()
            while batch := await self._inbox.take():
                await self._commit(batch)
                await self._come_back()

    def _fall_away(self, batch: Sequence[Asked[C, R]] = ()) -> Fault:
        """Tell whoever waits that the store does not answer, and refuse commands from now on."""
        fault = Fault("the store does not answer; try again later", retry_after_s=_PROBE_S)
        unknown = Fault(
            "the store does not answer, so it is not known whether this was carried out: look "
            "before trying again"
        )
        self._inbox.answer(batch, [unknown] * len(batch))
        self._inbox.refuse(fault)
        return fault

    async def _come_back(self) -> None:
        """Ask a store that is away until it answers; then commands are taken again."""
        while self.away and not self._closing:
            try:
                await self._latest.fresh()
            except Fault:
                await self._clock.sleep(_PROBE_S)
            else:
                self._inbox.refusal = None

    async def _commit(self, batch: list[Asked[C, R]]) -> None:
        """Decide and swap a batch, and answer it whatever happens."""
        loop, faults = asyncio.get_running_loop(), self.counts.faults
        patience = loop.call_later(STORE_PATIENCE_S, self._fall_away, batch)
        try:
            await self._writer.commit(batch)
        except Fault as fault:
            self._latest.forget()
            self.counts.faults += 1
            self._inbox.answer(batch, [fault] * len(batch))
        except Exception as error:
            # Whoever waits must be answered, and the next batch must still be written.
            _log.exception("writer_failed")
            self._latest.forget()
            self._inbox.answer(batch, [error] * len(batch))
        finally:
            patience.cancel()
            late = loop.time() > patience.when() - STORE_PATIENCE_S / 2
            if late and self.counts.faults > faults:
                # It failed only after seconds: the next ones need not wait to hear the same.
                self._fall_away()


Metadoc = Engine[Document, Command, Accepted]
"""The engine of the playbooks."""

Capexdoc = Engine[CapexDocument, CapexCommand, CapexAccepted]
"""The engine of the feeds."""
