"""A console of one or several replicas in memory: the real engine, recorder, effects and chain."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from core_console.app.feeds import FeedParts
from core_console.batch import CAPEX, METADOC
from core_console.decide.outcome import Accepted
from core_console.effects import Performer
from core_console.engine import Engine, Metadoc
from core_console.governance.chain import Chain, decode
from core_console.model.audit import AuditRecord
from core_console.model.codec import encode
from core_console.model.document import Document
from core_console.model.run import Call, DispatchPayload, Run
from core_console.ports import CallOutcome, Objection, ReporterVerdict, Standing
from core_console.raiser import Raiser
from core_console.recorder import Recorder
from core_console.store.memory import MemoryBlobs, MemoryDocument, MemoryLog
from core_console.writer import Policy
from tests.builders import a_document, a_playbook, admission
from tests.fakes import CountingIds, ManualClock

NAME = "atlas-playbooks"


class PlainGitHub:
    """A GitHub that keeps what it was sent and answers as it is told, ACCEPTED at first."""

    def __init__(self) -> None:
        self.dispatched: list[DispatchPayload] = []
        self.comments: list[tuple[str, int, str]] = []
        self.answer = CallOutcome(Call.ACCEPTED)
        self.before_sending: Callable[[], Awaitable[object]] | None = None
        self.before_answer: Callable[[], Awaitable[object]] | None = None

    async def dispatch(
        self, payload: DispatchPayload, patience_s: float, objection: Objection
    ) -> CallOutcome:
        assert 0 < patience_s <= 60
        if self.before_sending is not None:
            await self.before_sending()
        if why := await objection():
            return CallOutcome(Call.REFUSED, f"not sent: {why}")
        self.dispatched.append(payload)
        return await self._answered()

    async def comment(
        self, repo: str, issue: int, body: str, patience_s: float, objection: Objection
    ) -> CallOutcome:
        assert 0 < patience_s <= 60
        if why := await objection():
            return CallOutcome(Call.REFUSED, f"not sent: {why}")
        self.comments.append((repo, issue, body))
        return await self._answered()

    async def _answered(self) -> CallOutcome:
        if self.before_answer is not None:
            await self.before_answer()
        return self.answer

    async def missing(self) -> tuple[str, ...]:
        return ()

    async def authorize_reporter(self, authorization: object, peer: str) -> ReporterVerdict:
        del authorization, peer
        return ReporterVerdict(Standing.VALID)


class Replica:
    """One console process: it can be started, and die at any moment without a word."""

    def __init__(self, world: "World") -> None:
        self.recorder = Recorder(Chain(world.log, world.clock), NAME, world.clock)
        self.feeds = FeedParts(
            document=world.feeds,
            blobs=world.blobs,
            chain=Chain(world.log, world.clock),
            clock=world.clock,
            ids=world.ids,
            policy=Policy(admission()),
            raise_events=self._raise_events,
        )
        self.performer = Performer(
            github=world.github, scanner=self.feeds.scanner, clock=world.clock
        )
        self.engine: Metadoc = Engine(
            METADOC,
            store=world.document,
            recorder=self.recorder,
            performer=self.performer,
            clock=world.clock,
            ids=world.ids,
            policy=Policy(admission()),
            replica=world.ids.new("CON"),
        )
        self.raiser = Raiser(CAPEX.name, source=self.feeds.engine, console=self.engine)
        self._tasks: list[asyncio.Task[None]] = []

    async def _raise_events(self) -> None:
        await self.raiser.move()

    async def start(self) -> "Replica":
        await self.feeds.engine.start()
        await self.engine.start()
        self._tasks = [
            asyncio.create_task(self.recorder.run()),
            asyncio.create_task(self.feeds.recorder.run()),
            asyncio.create_task(self.performer.run(self.engine)),
        ]
        return self

    async def die(self) -> None:
        """End as kill -9 ends: nothing is finished."""
        writers = {self.engine._writing, self.feeds.engine._writing}
        mine = {*self._tasks, *writers, *self.performer._under_way}
        for task in mine:
            if task is not None:
                task.cancel()
        for task in mine:
            if task is not None:
                with suppress(asyncio.CancelledError):
                    await task
        self.feeds.close()


class World:
    """What replicas share: the document, the log, GitHub, time and ids."""

    def __init__(self) -> None:
        self.document = MemoryDocument()
        self.log = MemoryLog()
        self.github = PlainGitHub()
        self.clock = ManualClock()
        self.ids = CountingIds()
        self.feeds = MemoryDocument()
        self.blobs = MemoryBlobs(self.clock)
        self.replicas: list[Replica] = []

    async def holding(self, document: Document) -> None:
        """Begin with this document stored."""
        await self.document.swap("", encode(document))

    async def replica(self) -> Replica:
        """Start one more replica."""
        replica = await Replica(self).start()
        self.replicas.append(replica)
        return replica

    def records(self) -> list[AuditRecord]:
        """Return what the chain holds."""
        return [decode(line) for line in self.log.lines]

    def actions(self) -> list[str]:
        """Return the chain's actions without their common beginning."""
        return [record.action.removeprefix("atlas.playbooks.") for record in self.records()]


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    await made.holding(a_document(a_playbook()))
    yield made
    for replica in made.replicas:
        await replica.die()


def run_of(outcome: object) -> Run:
    """Return the run that an accepted command answered."""
    assert isinstance(outcome, Accepted)
    assert isinstance(outcome.answer, Run)
    return outcome.answer
