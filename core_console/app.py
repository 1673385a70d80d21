"""The application: every part built, joined, started and stopped.

Owns the only place that knows all adapters, and the order of starting and stopping. It decides
nothing.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import click
import structlog
import uvicorn
from starlette.applications import Starlette

from core_console import logs
from core_console.addresses import Address
from core_console.batch import METADOC
from core_console.clock import RandomIds, SystemClock
from core_console.doors import app as doors
from core_console.doors import server as door_server
from core_console.doors.audit import AuditDoors
from core_console.doors.gate import Gate as DoorGate
from core_console.doors.operators import Operators
from core_console.effects import Performer
from core_console.engine import Engine, Metadoc, Policy
from core_console.githubapp.app import GitHubApp, NoGitHub
from core_console.githubapp.organisation import Organisation
from core_console.governance.chain import Chain
from core_console.governance.refusals import Refusals
from core_console.governance.tokens import Authenticator
from core_console.governance.trail import Trail
from core_console.ports import Fault, ScanFound
from core_console.recorder import Recorder
from core_console.rpc import server as rpc_server
from core_console.settings import Settings
from core_console.store.file import FileDocument
from core_console.store.filelog import FileLog
from core_console.ticker import Ticker

DOCUMENT_PATH = Path("var/lib") / METADOC.name
LOG_PATH = Path("var/log/audit")

_CALLS_S = 15.0
"""A call to GitHub that is under way when the console stops may end; it answers within 10 s."""

_log = structlog.get_logger(__name__)


class NoFeeds:
    """There is no CapEx engine in this version, and a scan says so."""

    async def scan(self) -> ScanFound:
        """Fail honestly: nothing is loaded that could be scanned."""
        return ScanFound("", {}, "no CapEx feed is loaded")


class Console:
    """Every part of one console process, built but not started."""

    def __init__(self, settings: Settings) -> None:
        """Build the parts; raise Fault when the operator key cannot be used."""
        self.settings = settings
        self.clock, self.ids = SystemClock(), RandomIds()
        self.document = FileDocument(settings.root / DOCUMENT_PATH)
        self.log = FileLog(settings.root / LOG_PATH, _say_repaired)
        self.chain = Chain(self.log, self.clock)
        self.refusals = Refusals(self.chain, self.clock)
        self.authenticator = Authenticator(settings)
        self.policy = Policy(
            settings.admission,
            settings.four_eyes_all_editors,
            timedelta(minutes=settings.catch_up_minutes),
        )
        self.github, self.organisation = _github(settings, self.clock)
        self.recorder = Recorder(self.chain, METADOC.name, self.clock)
        self.performer = Performer(github=self.github, scanner=NoFeeds(), clock=self.clock)
        self.engine: Metadoc = Engine(
            METADOC,
            store=self.document,
            recorder=self.recorder,
            performer=self.performer,
            clock=self.clock,
            ids=self.ids,
            policy=self.policy,
            replica=self.ids.new("CON"),
        )
        self.ticker = Ticker(
            self.engine,
            clock=self.clock,
            ids=self.ids,
            interval_s=settings.tick_s,
            chores=(self.refusals.flush, self.learn_organisation),
        )

    def listener(self) -> rpc_server.Listener:
        """Return the gRPC server, bound; raise Fault when it cannot be."""
        address, tls = self.settings.grpc_addr, self.settings.tls
        parts = rpc_server.Parts(
            console=self.engine,
            github=self.github,
            policy=self.policy,
            authenticator=self.authenticator,
            refusals=self.refusals,
            log=self.log,
            clock=self.clock,
        )
        certificate = None
        if tls is not None:
            certificate = rpc_server.Certificate(tls.cert.read_bytes(), tls.key.read_bytes())
        return rpc_server.build(
            parts, host=address.host, port=address.port, certificate=certificate
        )

    def doors(self) -> Starlette:
        """Return the HTTP application."""
        operators = Operators(
            authenticator=self.authenticator,
            admission=self.settings.admission,
            clock=self.clock,
        )
        trail = Trail(self.log)
        audit = AuditDoors(
            operators=operators,
            trail=trail,
            recorded=self.engine.recorded,
            verify=trail.verify,
        )
        return doors.build(
            console=self.engine,
            gate=DoorGate(github=self.github, refusals=self.refusals, clock=self.clock),
            audit=audit,
            run_url_prefix=self.run_url_prefix,
            serving=lambda: self.engine.serving,
        )

    def run_url_prefix(self) -> str:
        """Return how a run's address begins; raise Fault while the organisation is not known."""
        if self.organisation is None:
            raise Fault("no GitHub App is configured")
        return self.organisation.run_url_prefix()

    async def learn_organisation(self) -> None:
        """Ask GitHub for the organisation; only a mismatch is a Fault, being away is not."""
        if self.organisation is None:
            return
        try:
            await self.organisation.learn()
        except Fault as fault:
            if not fault.retryable:
                raise
            _log.warning("github_not_asked", reason=fault.message)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the engine and its companions; at the end finish what is under way."""
        await self.engine.start()
        companions = [
            asyncio.create_task(self.recorder.run(), name="recorder"),
            asyncio.create_task(self.performer.run(self.engine), name="performer"),
            asyncio.create_task(self.ticker.run(), name="ticker"),
        ]
        try:
            yield
        finally:
            companions[2].cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CALLS_S):
                    await self.performer.close(self.engine)
            await self.engine.close()
            await self.engine.recorded()
            await self.refusals.flush(closing=True)
            for companion in companions:
                companion.cancel()
            await asyncio.gather(*companions, return_exceptions=True)
            await self.github.aclose()
            self.document.close()
            self.log.close()


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; raise Fault when the console cannot start."""
    logs.configure()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    console = Console(settings)
    await console.learn_organisation()
    async with console.running():
        listener = console.listener()
        http_socket = _bound(settings.http_addr)
        http = HttpServer(_http_config(console, settings))
        await listener.start()
        http_task = asyncio.create_task(http.serve([http_socket]), name="http")
        host, port = settings.grpc_addr.host, listener.port
        http_port = http_socket.getsockname()[1]
        click.echo(
            f"core-console serves gRPC on {Address(host, port)} "
            f"and HTTP on {Address(settings.http_addr.host, http_port)}"
        )
        await stop.wait()
        http.should_exit = True
        await asyncio.gather(listener.stop(), http_task)


class HttpServer(uvicorn.Server):
    """uvicorn without its own signal handling: one signal stops the whole console in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def _http_config(console: Console, settings: Settings) -> uvicorn.Config:
    tls = settings.tls
    return door_server.config(
        console.doors(),
        host=settings.http_addr.host,
        port=settings.http_addr.port,
        tls_cert=None if tls is None else str(tls.cert),
        tls_key=None if tls is None else str(tls.key),
    )


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise Fault(
            f"{address} cannot be bound: {error.strerror or error}", retryable=False
        ) from error


def _github(
    settings: Settings, clock: SystemClock
) -> tuple[GitHubApp | NoGitHub, Organisation | None]:
    if settings.github is None:
        return NoGitHub(), None
    github = GitHubApp(settings.github, clock)
    return github, Organisation(settings.github, github)


def _say_repaired(torn_bytes: int) -> None:
    _log.warning("audit_log_repaired", torn_bytes=torn_bytes)
