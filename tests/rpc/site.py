"""A real gRPC server on loopback around the real engine, chain and tokens, and callers of it.

Owns the site and how a refusal is read from the wire. GitHub and what performs effects are the
only doubles: nothing here leaves the process.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.rpc.error_details_pb2 import BadRequest  # type: ignore[import-untyped]  # it ships none
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it ships none
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.audit_pb2_grpc import AuditServiceStub
from runink.core.atlas.v1.capex_pb2_grpc import CapexServiceStub
from runink.core.atlas.v1.governance_pb2_grpc import GovernanceServiceStub
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from core_console import settings
from core_console.app.feeds import FeedParts
from core_console.batch import CAPEX, METADOC
from core_console.decide.outcome import Effect
from core_console.engine import Engine, Metadoc
from core_console.governance import authenticator, tokens
from core_console.governance.chain import Chain
from core_console.governance.refusals import Refusals
from core_console.governance.rootkey import KeyFile, make_key
from core_console.model.audit import AuditRecord
from core_console.model.codec import encode
from core_console.model.document import Document
from core_console.model.run import DispatchPayload
from core_console.ports import CallOutcome, Objection, ReporterVerdict
from core_console.raiser import Raiser
from core_console.recorder import Recorder
from core_console.rpc import server
from core_console.store.memory import MemoryBlobs, MemoryDocument, MemoryLog
from core_console.writer import Policy
from tests.builders import AUTHOR, SECOND, STRANGER
from tests.fakes import CountingIds, ManualClock

if TYPE_CHECKING:  # these classes exist for the type checker alone
    from runink.core.atlas.v1.audit_pb2_grpc import AuditServiceAsyncStub
    from runink.core.atlas.v1.capex_pb2_grpc import CapexServiceAsyncStub
    from runink.core.atlas.v1.governance_pb2_grpc import GovernanceServiceAsyncStub
    from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceAsyncStub

AUDITOR = "auditor@example.com"
LISTS = {
    "CONSOLE_ALLOWED_EMAILS": f"{AUTHOR},{SECOND},{STRANGER},{AUDITOR}",
    "CORE_ATLAS_ADMINS": f"{AUTHOR},{SECOND}",
    "CONSOLE_SESSION_ADMINS": AUDITOR,
}

_Continuation = Callable[[grpc.aio.ClientCallDetails, Any], Awaitable[Any]]


class Bench:
    """Takes effects and leaves them: whether they are performed is another part's test."""

    room = 30

    def __init__(self) -> None:
        self.taken: list[Effect] = []

    def take(self, effects: Sequence[Effect]) -> None:
        self.taken.extend(effects)


@dataclass
class Agents:
    """GitHub as far as an RPC asks it."""

    lacks: tuple[str, ...] = ()

    async def missing(self) -> tuple[str, ...]:
        return self.lacks

    async def dispatch(
        self, payload: DispatchPayload, patience_s: float, objection: Objection
    ) -> CallOutcome:
        raise NotImplementedError

    async def comment(
        self, repo: str, issue: int, body: str, patience_s: float, objection: Objection
    ) -> CallOutcome:
        raise NotImplementedError

    async def authorize_reporter(self, authorization: Sequence[str], peer: str) -> ReporterVerdict:
        raise NotImplementedError


class _Unary(grpc.aio.UnaryUnaryClientInterceptor):
    """Sends the same metadata with every call of a channel."""

    def __init__(self, metadata: grpc.aio.Metadata) -> None:
        self._metadata = metadata

    async def intercept_unary_unary(
        self, continuation: _Continuation, details: grpc.aio.ClientCallDetails, request: object
    ) -> Any:  # noqa: ANN401 -- whatever gRPC's call is
        return await continuation(_with(details, self._metadata), request)


class _Stream(grpc.aio.UnaryStreamClientInterceptor):
    """The same for a server stream: gRPC asks one object for one shape only."""

    def __init__(self, metadata: grpc.aio.Metadata) -> None:
        self._metadata = metadata

    async def intercept_unary_stream(
        self, continuation: _Continuation, details: grpc.aio.ClientCallDetails, request: object
    ) -> Any:  # noqa: ANN401 -- whatever gRPC's call is
        return await continuation(_with(details, self._metadata), request)


def _with(
    details: grpc.aio.ClientCallDetails, metadata: grpc.aio.Metadata
) -> grpc.aio.ClientCallDetails:
    return grpc.aio.ClientCallDetails(
        details.method, details.timeout, metadata, details.credentials, details.wait_for_ready
    )


@dataclass
class Caller:
    """Somebody with a channel of their own."""

    channel: grpc.aio.Channel
    playbooks: "PlaybookServiceAsyncStub"
    capex: "CapexServiceAsyncStub"
    governance: "GovernanceServiceAsyncStub"
    audit: "AuditServiceAsyncStub"

    async def raw(self, method: str, data: bytes) -> bytes:
        """Call a method with bytes that need be no message."""
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(method)
        return await call(data)

    async def raw_stream(self, method: str, data: bytes) -> object:
        """Read the first message of a server stream, and leave."""
        stream: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = self.channel.unary_stream(method)
        call = stream(data)
        first = await call.read()
        call.cancel()
        return first


@dataclass(frozen=True)
class Refusal:
    """What a refused caller saw."""

    code: grpc.StatusCode
    sentence: str
    fields: Mapping[str, str]
    details: Status


async def refused(call: Awaitable[object]) -> Refusal:
    """Await a call that must be refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    return refusal_of(caught.value)


def refusal_of(error: grpc.aio.AioRpcError) -> Refusal:
    """Read a refusal, and hold it to the shape of all of them."""
    sentence = error.details() or ""
    assert sentence
    assert len(sentence.encode()) <= 1024
    assert "\n" not in sentence
    trailers = dict(error.trailing_metadata() or ())
    status = Status()
    fields = {}
    if "grpc-status-details-bin" in trailers:
        status.ParseFromString(trailers["grpc-status-details-bin"])
        assert (status.code, status.message) == (error.code().value[0], sentence)
        for detail in status.details:
            bad = BadRequest()
            if detail.Unpack(bad):
                fields = {each.field: each.description for each in bad.field_violations}
    return Refusal(error.code(), sentence, fields, status)


@dataclass
class Site:
    """The server, what is behind it, and who calls it."""

    port: int
    root: Path
    clock: ManualClock
    ids: CountingIds
    engines: "_Engines"
    github: Agents
    refusals: Refusals
    parts: server.Parts
    listener: server.Listener
    _channels: list[grpc.aio.Channel] = field(default_factory=list)
    _callers: dict[str, Caller] = field(default_factory=dict)

    @property
    def engine(self) -> Metadoc:
        return self.engines.engine

    @property
    def store(self) -> MemoryDocument:
        return self.engines.store

    @property
    def log(self) -> MemoryLog:
        return self.engines.log

    @property
    def bench(self) -> Bench:
        return self.engines.bench

    def token(self, email: str) -> str:
        key = KeyFile(self.root).current()
        assert key is not None
        return tokens.issue(
            email,
            timedelta(hours=1),
            key=key,
            now=self.clock.now(),
            token_id=self.ids.new("TOK"),
        )

    def caller(self, *authorization: str) -> Caller:
        """Return a caller that sends these values of `authorization`."""
        metadata = grpc.aio.Metadata(*(("authorization", value) for value in authorization))
        channel = grpc.aio.insecure_channel(
            f"127.0.0.1:{self.port}", interceptors=[_Unary(metadata), _Stream(metadata)]
        )
        self._channels.append(channel)
        return Caller(
            channel,
            PlaybookServiceStub(channel),
            CapexServiceStub(channel),
            GovernanceServiceStub(channel),
            AuditServiceStub(channel),
        )

    def named(self, email: str) -> Caller:
        if email not in self._callers:
            self._callers[email] = self.caller(f"Bearer {self.token(email)}")
        return self._callers[email]

    @property
    def author(self) -> "PlaybookServiceAsyncStub":
        return self.named(AUTHOR).playbooks

    @property
    def second(self) -> "PlaybookServiceAsyncStub":
        return self.named(SECOND).playbooks

    @property
    def stranger(self) -> "PlaybookServiceAsyncStub":
        return self.named(STRANGER).playbooks

    @property
    def anonymous(self) -> "PlaybookServiceAsyncStub":
        if "" not in self._callers:
            self._callers[""] = self.caller()
        return self._callers[""].playbooks

    @property
    def capex(self) -> "CapexServiceAsyncStub":
        return self.named(AUTHOR).capex

    @property
    def auditor(self) -> "AuditServiceAsyncStub":
        return self.named(AUDITOR).audit

    async def records(self) -> list[AuditRecord]:
        """Return the whole chain, oldest first."""
        await self.parts.recorded()
        chain = Chain(self.log, self.clock)
        return await chain._read(1, len(self.log.lines)) if self.log.lines else []

    async def hold(self, document: Document) -> None:
        """Put a document into the store, as another replica would."""
        await self.store.swap(await self.store.version(), encode(document))

    async def an_active_playbook(self, request: pb.CreatePlaybookRequest) -> pb.Playbook:
        """Write a playbook as the author, and activate it as the second operator."""
        written = (await self.author.CreatePlaybook(request)).playbook
        activation = pb.ActivatePlaybookRequest(id=written.id, revision=written.revision)
        return (await self.second.ActivatePlaybook(activation)).playbook

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()


class _Engines:
    """Both documents' engines on stores in memory, sharing one chain."""

    def __init__(self, policy: Policy, clock: ManualClock, ids: CountingIds) -> None:
        self.store, self.feeds_store = MemoryDocument(), MemoryDocument()
        self.log, self.blobs, self.bench = MemoryLog(), MemoryBlobs(clock), Bench()
        self.chain = Chain(self.log, clock)
        self.recorder = Recorder(self.chain, METADOC.name, clock)
        self.engine: Metadoc = Engine(
            METADOC,
            store=self.store,
            recorder=self.recorder,
            performer=self.bench,
            clock=clock,
            ids=ids,
            policy=policy,
            replica=ids.new("CON"),
        )
        self.feeds = FeedParts(
            document=self.feeds_store,
            blobs=self.blobs,
            chain=self.chain,
            clock=clock,
            ids=ids,
            policy=policy,
            raise_events=self._raise_events,
        )
        self.raiser = Raiser(CAPEX.name, source=self.feeds.engine, console=self.engine)

    async def _raise_events(self) -> None:
        await self.raiser.move()

    async def recorded(self) -> None:
        await self.engine.recorded()
        await self.feeds.engine.recorded()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        recorders = (self.recorder, self.feeds.recorder)
        recording = [asyncio.create_task(each.run()) for each in recorders]
        await self.feeds.engine.start()
        await self.engine.start()
        try:
            yield
        finally:
            await self.feeds.engine.close()
            await self.engine.close()
            self.feeds.close()
            for each in recording:
                each.cancel()
            await asyncio.gather(*recording, return_exceptions=True)


@asynccontextmanager
async def site(
    root: Path, *, is_open: bool = False, lists: Mapping[str, str] = LISTS
) -> AsyncIterator[Site]:
    """Serve a console on a free port; an open one has no key to sign tokens with."""
    clock, ids = ManualClock(), CountingIds()
    if not is_open:
        make_key(root, ids)
    loaded = settings.load({"CONSOLE_APPFS_DIR": str(root), **lists})
    policy = Policy(loaded.admission, loaded.four_eyes_all_editors)
    engines, github = _Engines(policy, clock, ids), Agents()
    refusals = Refusals(engines.chain, clock)
    parts = server.Parts(
        console=engines.engine,
        capex=engines.feeds.capex,
        recorded=engines.recorded,
        github=github,
        policy=policy,
        authenticator=authenticator.Authenticator(loaded),
        refusals=refusals,
        log=engines.log,
        clock=clock,
    )
    listener = server.build(parts, host="127.0.0.1", port=0)
    async with engines.running():
        await listener.start()
        made = Site(
            port=listener.port,
            root=root,
            clock=clock,
            ids=ids,
            engines=engines,
            github=github,
            refusals=refusals,
            parts=parts,
            listener=listener,
        )
        try:
            yield made
        finally:
            await made.close()
            await listener.stop(0)
