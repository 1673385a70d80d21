"""One console: every part built, joined, started and stopped.

Owns how the parts are joined, and the order of starting and stopping. It decides nothing.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path

import structlog
from starlette.applications import Starlette

from core_console.app.feeds import FeedParts
from core_console.app.reports import ReportParts
from core_console.batch import CAPEX, METADOC
from core_console.clock import RandomIds, SystemClock
from core_console.doors import app as doors
from core_console.doors.agent_reports import AgentReports
from core_console.doors.audit import AuditDoors
from core_console.doors.gate import Gate as DoorGate
from core_console.doors.inputs import Inputs
from core_console.doors.operators import Operators
from core_console.effects import Performer
from core_console.engine import Engine, Metadoc
from core_console.githubapp.app import GitHubApp, NoGitHub
from core_console.githubapp.organisation import Organisation
from core_console.governance.authenticator import Authenticator
from core_console.governance.chain import Chain
from core_console.governance.refusals import Refusals
from core_console.governance.trail import Trail
from core_console.metrics import Metrics, Sources
from core_console.ports import Fault
from core_console.raiser import Raiser
from core_console.recorder import Recorder
from core_console.reports import REPORTS
from core_console.rpc import server as rpc_server
from core_console.settings import Settings
from core_console.store.blobs import FileBlobs
from core_console.store.file import FileDocument
from core_console.store.filelog import FileLog
from core_console.ticker import Ticker
from core_console.writer import Policy

DOCUMENT_PATH = Path("var/lib") / METADOC.name
FEEDS_PATH = Path("var/lib") / CAPEX.name
BLOBS_PATH = Path("var/lib/blobs")
REPORTS_PATH = Path("var/lib") / REPORTS.name
# Apart from the feeds' blobs: each document's sweeper deletes what its own document does not name.
REPORT_BLOBS_PATH = Path("var/lib/report-blobs")
LOG_PATH = Path("var/log/audit")

_CALLS_S = 15.0
"""A call to GitHub that is under way when the console stops may end; it answers within 10 s."""

_log = structlog.get_logger(__name__)


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
        self.feeds_document = FileDocument(settings.root / FEEDS_PATH)
        self.blobs = FileBlobs(settings.root / BLOBS_PATH)
        self.feeds = FeedParts(
            document=self.feeds_document,
            blobs=self.blobs,
            chain=self.chain,
            clock=self.clock,
            ids=self.ids,
            policy=self.policy,
            raise_events=self._raise_events,
        )
        self.performer = Performer(github=self.github, scanner=self.feeds.scanner, clock=self.clock)
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
        self.raiser = Raiser(CAPEX.name, source=self.feeds.engine, console=self.engine)
        self.reports_document = FileDocument(settings.root / REPORTS_PATH)
        self.report_blobs = FileBlobs(settings.root / REPORT_BLOBS_PATH)
        self.reports = ReportParts(
            document=self.reports_document,
            blobs=self.report_blobs,
            console=self.engine,
            chain=self.chain,
            clock=self.clock,
            ids=self.ids,
            policy=self.policy,
        )
        self.ticker = Ticker(
            self.engine,
            clock=self.clock,
            ids=self.ids,
            interval_s=settings.tick_s,
            chores=(
                self.raiser.move,
                self.reports.raiser.move,
                self.feeds.engine.recorded,
                self.reports.engine.recorded,
                self.refusals.flush,
                self.learn_organisation,
                self.feeds.sweeper.sweep,
                self.reports.sweeper.sweep,
            ),
        )

        self.metrics = Metrics(self._measured())

    def _measured(self) -> Sources:
        return Sources(
            documents={
                METADOC.name: (self.engine, self.recorder),
                CAPEX.name: (self.feeds.engine, self.feeds.recorder),
                REPORTS.name: (self.reports.engine, self.reports.recorder),
            },
            performer=self.performer,
            ticker=self.ticker,
            refusals=self.refusals,
            log=self.log,
        )

    async def _raise_events(self) -> None:
        await self.raiser.move()

    async def recorded(self) -> None:
        """Wait until what any document decided is in the chain, as far as it can be written."""
        await self.engine.recorded()
        await self.feeds.engine.recorded()
        await self.reports.engine.recorded()

    @property
    def serving(self) -> bool:
        """Whether commands are taken now."""
        engines = (self.engine, self.feeds.engine, self.reports.engine)
        return all(engine.serving for engine in engines)

    def listener(self, *, connections_max: int) -> rpc_server.Listener:
        """Return the gRPC server, bound; raise Fault when it cannot be."""
        address, tls = self.settings.grpc_addr, self.settings.tls
        parts = rpc_server.Parts(
            console=self.engine,
            capex=self.feeds.capex,
            recorded=self.recorded,
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
            parts,
            host=address.host,
            port=address.port,
            certificate=certificate,
            connections_max=connections_max,
        )

    def doors(self) -> Starlette:
        """Return the HTTP application."""
        operators = Operators(
            authenticator=self.authenticator,
            admission=self.settings.admission,
            clock=self.clock,
        )
        gate = DoorGate(github=self.github, refusals=self.refusals, clock=self.clock)
        trail = Trail(self.log)
        audit = AuditDoors(
            operators=operators,
            trail=trail,
            recorded=self.recorded,
            verify=trail.verify,
        )
        agent_reports = AgentReports(
            reports=self.reports.engine,
            playbooks=self.engine,
            blobs=self.report_blobs,
            gate=gate,
            operators=operators,
            raised=self.reports.raiser.move,
        )
        return doors.build(
            console=self.engine,
            gate=gate,
            audit=audit,
            agent_reports=agent_reports,
            inputs=Inputs(gate=gate, operators=operators, scope=self.feeds.capex.eyes.scope),
            raised=self.reports.raiser.move,
            run_url_prefix=self.run_url_prefix,
            replica=doors.Replica(lambda: self.serving, self.metrics.text),
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

    async def _check_age(self) -> None:
        """Raise Fault when the metadoc is older than the chain, as after an old copy of its file.

        Its next entries would have numbers that the chain has passed, and never be recorded.
        """
        recorded = await self.chain.last_number(METADOC.name)
        if recorded > (await self.engine.snapshot()).outbox_number:
            raise Fault(
                f"the playbooks' document is older than the audit chain, which holds entry "
                f"{recorded} of it: put the newest one back, or run core-console state restore",
                retryable=False,
            )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the engine and its companions; at the end finish what is under way."""
        await self._check_age()
        for engine in (self.feeds.engine, self.reports.engine, self.engine):
            await engine.start()
        ticking = asyncio.create_task(self.ticker.run(), name="ticker")
        companions = [
            asyncio.create_task(self.recorder.run(), name="recorder"),
            asyncio.create_task(self.feeds.recorder.run(), name="feeds-recorder"),
            asyncio.create_task(self.reports.recorder.run(), name="reports-recorder"),
            asyncio.create_task(self.performer.run(self.engine), name="performer"),
        ]
        try:
            yield
        finally:
            ticking.cancel()
            with suppress(TimeoutError):
                async with asyncio.timeout(_CALLS_S):
                    await self.performer.close(self.engine)
            for engine in (self.feeds.engine, self.reports.engine, self.engine):
                await engine.close()
            await self.recorded()
            await self.refusals.flush(closing=True)
            for companion in companions:
                companion.cancel()
            await asyncio.gather(ticking, *companions, return_exceptions=True)
            await self.github.aclose()
            self.feeds.close()
            self.blobs.close()
            self.feeds_document.close()
            self.report_blobs.close()
            self.reports_document.close()
            self.document.close()
            self.log.close()


def _github(
    settings: Settings, clock: SystemClock
) -> tuple[GitHubApp | NoGitHub, Organisation | None]:
    if settings.github is None:
        return NoGitHub(), None
    github = GitHubApp(settings.github, clock)
    return github, Organisation(settings.github, github)


def _say_repaired(torn_bytes: int) -> None:
    _log.warning("audit_log_repaired", torn_bytes=torn_bytes)
