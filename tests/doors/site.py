"""A real HTTP server on loopback around the doors, and the small doubles behind them.

The doubles behave: the engine awaits reports and remembers them, the bearers are judged, the
refusals are kept. The client is a bare socket, because a client library is too polite to send
what an attacker sends.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from starlette.applications import Starlette
from uvicorn.server import ServerState

from core_console.capex.scope import Scope
from core_console.decide.commands import Command, ReportStep
from core_console.decide.identity import Admission
from core_console.decide.outcome import Accepted, Code, Outcome, Refused
from core_console.decide.stored_reports import ReportsCommand, ReportsOutcome
from core_console.doors import app, server
from core_console.doors.agent_reports import AgentReports
from core_console.doors.audit import AuditDoors, Verify
from core_console.doors.gate import Gate, Refusals
from core_console.doors.inputs import Inputs
from core_console.doors.operators import Authenticator, Operators
from core_console.doors.step_report import Console
from core_console.governance.tokens import Identity
from core_console.governance.trail import Trail
from core_console.governance.verify import Verification
from core_console.latest import Seen
from core_console.model.audit import Entry
from core_console.model.document import EMPTY, Document
from core_console.model.reports import EMPTY_REPORTS, ReportsDocument
from core_console.model.run import DispatchPayload
from core_console.ports import CallOutcome, Fault, Objection, ReporterVerdict, Standing
from core_console.store.memory import MemoryBlobs, MemoryLog
from tests.builders import RUN_URL, SECOND
from tests.fakes import ManualClock

URL = RUN_URL.removesuffix("17")
PATH = "/api/playbook-runs/step-report"
BEARER = "ghs_" + "a" * 36
LOOPBACK = frozenset({"127.0.0.1", "127.0.0.2"})
REPORT: Mapping[str, Any] = {
    "runId": "PBR-1",
    "stepId": "detect",
    "agent": "datagov",
    "conclusion": "success",
    "detail": "3 findings",
    "githubRunUrl": RUN_URL,
}


@dataclass
class Engine:
    """Awaits datagov's report of PBR-1/detect, and knows it when it comes again."""

    taken: list[ReportStep] = field(default_factory=list)
    raises: Exception | None = None
    answers: Outcome | None = None

    async def submit(self, command: Command) -> Outcome:
        if self.raises is not None:
            raise self.raises
        if self.answers is not None:
            return self.answers
        assert isinstance(command, ReportStep)
        return self._take(command)

    def _take(self, report: ReportStep) -> Outcome:
        if (report.run_id, report.step_id) != ("PBR-1", "detect"):
            return Refused(Code.NOT_FOUND, "there is no such run or step")
        if report.agent != "datagov":
            return Refused(Code.FAILED_PRECONDITION, "the step awaits another agent")
        if not self.taken:
            self.taken.append(report)
            return Accepted(EMPTY)
        if (report.conclusion, report.github_run_url) == (
            self.taken[0].conclusion,
            self.taken[0].github_run_url,
        ):
            return Accepted(EMPTY, duplicate=True)
        return Refused(Code.FAILED_PRECONDITION, "another report was accepted")


@dataclass
class Bearers:
    """Knows one bearer; `says` overrides what is said of it."""

    says: ReporterVerdict | None = None
    asked: list[tuple[str, ...]] = field(default_factory=list)

    async def authorize_reporter(self, authorization: Sequence[str], peer: str) -> ReporterVerdict:
        assert peer in LOOPBACK
        self.asked.append(tuple(authorization))
        if self.says is not None:
            return self.says
        if not authorization:
            return ReporterVerdict(Standing.INVALID, "missing bearer token")
        if len(authorization) > 1:
            return ReporterVerdict(Standing.INVALID, "more than one Authorization header")
        scheme, _, token = authorization[0].partition(" ")
        known = scheme.lower() == "bearer" and token == BEARER
        return ReporterVerdict(Standing.VALID if known else Standing.INVALID)

    async def dispatch(
        self, payload: DispatchPayload, patience_s: float, objection: Objection
    ) -> CallOutcome:
        raise NotImplementedError

    async def comment(
        self, repo: str, issue: int, body: str, patience_s: float, objection: Objection
    ) -> CallOutcome:
        raise NotImplementedError

    async def missing(self) -> tuple[str, ...]:
        raise NotImplementedError


@dataclass
class Book:
    """Keeps what was recorded; a full disk is one flag away."""

    entries: list[Entry] = field(default_factory=list)
    identified: list[bool] = field(default_factory=list)
    full: bool = False

    async def record(self, entry: Entry, *, identified: bool, peer: str) -> None:
        assert peer in LOOPBACK
        if self.full:
            raise Fault("the audit log cannot be written")
        self.entries.append(entry)
        self.identified.append(identified)


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:  # noqa: ANN401 -- whatever was answered
        return json.loads(self.body)

    @property
    def error(self) -> str:
        assert self.headers["content-type"] == "application/json"
        assert list(self.json) == ["error"]
        assert isinstance(self.json["error"], str)
        return self.json["error"]


@dataclass
class Site:
    port: int
    engine: Engine
    bearers: Bearers
    book: Book

    async def raw(self, *pieces: bytes, sent_from: str = "127.0.0.1") -> Answer:
        """Send bytes as they are and return the first answer."""
        async with dialled(self.port, sent_from) as (reader, writer):
            for piece in pieces:
                writer.write(piece)
            return await answer_of(reader)

    async def post(
        self,
        body: bytes | Mapping[str, Any] = REPORT,
        *,
        headers: Mapping[str, str | None] | None = None,
        method: str = "POST",
        path: str = PATH,
        sent_from: str = "127.0.0.1",
    ) -> Answer:
        """Send one well-formed request; a header given as None is left out."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.raw(head(method, path, len(data), headers) + data, sent_from=sent_from)


@asynccontextmanager
async def dialled(
    port: int, sent_from: str = "127.0.0.1"
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A bare connection, gone at the end whatever the server did with it.

    All of 127/8 is this machine, so `sent_from` can be another peer's address.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(sent_from, 0))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


def head(
    method: str, path: str, length: int, headers: Mapping[str, str | None] | None = None
) -> bytes:
    sent: dict[str, str | None] = {
        "Host": "127.0.0.1",
        "Authorization": f"Bearer {BEARER}",
        "Content-Type": "application/json",
        "Content-Length": str(length),
    }
    sent |= headers or {}
    lines = [f"{method} {path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in sent.items() if value is not None]
    return "\r\n".join([*lines, "", ""]).encode()


async def until(condition: Callable[[], bool]) -> None:
    """Let the server work until it holds; what it waits for is a socket, never the clock."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 -- the server knows no event of ours
            await asyncio.sleep(0.001)


async def answer_of(reader: asyncio.StreamReader, *, bodiless: bool = False) -> Answer:
    async with asyncio.timeout(5):
        lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines[1:] if line)
        length = 0 if bodiless else int(headers["content-length"])
        return Answer(int(lines[0].split()[1]), headers, await reader.readexactly(length))


class Nobody:
    """Knows no operator."""

    is_open = False

    def identify(self, authorization: Sequence[str], now: datetime) -> None:
        """Name nobody."""


class Auditor:
    """Takes every caller for the auditor."""

    is_open = False

    def identify(self, authorization: Sequence[str], now: datetime) -> Identity:
        """Name the auditor."""
        assert authorization
        assert now.tzinfo
        return Identity(SECOND)


async def held() -> Verification:
    return Verification(intact=True, records=0, last_hash="0" * 64)


async def at_once() -> None:
    """Hold nobody up: nothing waits for the chain."""


class NoRuns:
    """A console without runs."""

    async def look(self) -> Seen[Document]:
        return Seen(EMPTY)


class NoReports:
    """Nobody reported, and nobody can."""

    async def look(self) -> Seen[ReportsDocument]:
        return Seen(EMPTY_REPORTS)

    async def submit(self, command: ReportsCommand) -> ReportsOutcome:
        return Refused(Code.UNAVAILABLE, f"{type(command).__name__} is not taken here")


def operators_of(authenticator: Authenticator, *, auditors: frozenset[str]) -> Operators:
    return Operators(
        authenticator=authenticator,
        admission=Admission(auditors=auditors),
        clock=ManualClock(),
    )


def audit_doors(
    authenticator: Authenticator | None = None,
    *,
    log: MemoryLog | None = None,
    recorded: Callable[[], Awaitable[None]] = at_once,
    verify: Verify = held,
    auditors: frozenset[str] = frozenset(),
) -> AuditDoors:
    operators = operators_of(authenticator or Nobody(), auditors=auditors)
    return AuditDoors(
        operators=operators, trail=Trail(log or MemoryLog()), recorded=recorded, verify=verify
    )


def application(
    engine: Console,
    bearers: Bearers,
    refusals: Refusals,
    *,
    body_s: float = 10,
    serving: bool = True,
    audit: AuditDoors | None = None,
    agent_reports: AgentReports | None = None,
    inputs: Inputs | None = None,
    raised: Callable[[], Awaitable[None]] = at_once,
    run_url_prefix: Callable[[], str] = lambda: URL,
    figures: Callable[[], bytes] = bytes,
) -> Starlette:
    gate = Gate(github=bearers, refusals=refusals, clock=ManualClock(), body_s=body_s)
    operators = operators_of(Nobody(), auditors=frozenset())
    no_reports = AgentReports(
        reports=NoReports(),
        playbooks=NoRuns(),
        blobs=MemoryBlobs(ManualClock()),
        gate=gate,
        operators=operators,
        raised=raised,
    )
    return app.build(
        console=engine,
        gate=gate,
        audit=audit or audit_doors(),
        agent_reports=agent_reports or no_reports,
        inputs=inputs or Inputs(gate=gate, operators=operators, scope=Scope),
        raised=raised,
        run_url_prefix=run_url_prefix,
        replica=app.Replica(lambda: serving, figures),
    )


@asynccontextmanager
async def listening(
    asgi: Starlette, *, head_s: float = 10, connections_max: int = server.CONNECTIONS_MAX
) -> AsyncIterator[tuple[int, ServerState]]:
    """Serve on a free port with the product's own protocol, without uvicorn's pauses at the end."""
    config = server.config(asgi, host="127.0.0.1", port=0)
    config.limit_concurrency = connections_max
    config.load()
    state = ServerState()

    def protocol() -> server.DoorProtocol:
        made = server.DoorProtocol(config=config, server_state=state, app_state={})
        made.head_s = head_s
        return made

    listener = server.listening(
        socket.create_server(("127.0.0.1", 0)), connections_max=connections_max
    )
    listener.start(protocol, None)
    try:
        yield listener.port, state
    finally:
        listener.close()
        for connection in list(state.connections):
            connection.shutdown()
        await until(lambda: not state.connections and not state.tasks)


@asynccontextmanager
async def site(
    *,
    body_s: float = 10,
    head_s: float = 10,
    connections_max: int = server.CONNECTIONS_MAX,
    serving: bool = True,
) -> AsyncIterator[Site]:
    engine, bearers, book = Engine(), Bearers(), Book()
    asgi = application(engine, bearers, book, body_s=body_s, serving=serving)
    async with listening(asgi, head_s=head_s, connections_max=connections_max) as (port, _):
        yield Site(port, engine, bearers, book)
