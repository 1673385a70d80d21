"""The doors with everything behind them: both engines, the chain, the raiser and the blobs.

GitHub and what performs effects are the only doubles.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from core_console.batch import METADOC
from core_console.capex.scope import Scope
from core_console.decide.identity import Admission
from core_console.decide.outcome import Effect
from core_console.doors.agent_reports import AgentReports
from core_console.doors.gate import Gate
from core_console.doors.inputs import Inputs
from core_console.doors.operators import Operators
from core_console.engine import Engine, Metadoc
from core_console.governance.chain import Chain, decode
from core_console.governance.tokens import Identity
from core_console.model.audit import AuditRecord
from core_console.model.codec import encode
from core_console.model.document import Document
from core_console.model.event import Event
from core_console.model.playbook import (
    AgentEventTrigger,
    Condition,
    ConditionOp,
    Playbook,
    Trigger,
)
from core_console.ports import Fault
from core_console.raiser import Raiser
from core_console.recorder import Recorder
from core_console.reports import REPORTS, Reportsdoc
from core_console.store.memory import MemoryBlobs, MemoryDocument, MemoryLog
from core_console.writer import Policy
from tests.builders import AUTHOR, a_document, a_playbook, a_spec, approve
from tests.doors.site import Answer, Bearers, Book, Site, application, listening
from tests.doors.site import Engine as Unasked
from tests.fakes import CountingIds, ManualClock

OPERATOR = "Bearer operator"


def waits_for(agent: str, event: str, *conditions: tuple[str, str, str], **more: Any) -> Playbook:  # noqa: ANN401 -- any field of Playbook
    """Return an ACTIVE playbook that an agent's event starts."""
    found = tuple(Condition(name, ConditionOp(op), value) for name, op, value in conditions)
    trigger = Trigger("on-event", AgentEventTrigger(agent, event, found), 60)
    return a_playbook(spec=a_spec(approve(), triggers=(trigger,)), **more)


class Idle:
    """Performs nothing: no effect of these runs leaves the process."""

    room = 30

    def take(self, effects: Sequence[Effect]) -> None:
        """Leave them."""


class Door:
    """Knows one operator, or is open."""

    def __init__(self) -> None:
        self.is_open = False

    def identify(self, authorization: Sequence[str], now: datetime) -> Identity | None:
        """Name the operator."""
        assert now.tzinfo
        return Identity(AUTHOR) if tuple(authorization) == (OPERATOR,) else None


class House:
    def __init__(
        self, *, clock: ManualClock | None = None, store: MemoryDocument | None = None
    ) -> None:
        self.clock = clock or ManualClock()
        self.ids = CountingIds()
        self.log = MemoryLog()
        self.store, self.reports_store = store or MemoryDocument(), MemoryDocument()
        self.blobs = MemoryBlobs(self.clock)
        self.bearers, self.book, self.door = Bearers(), Book(), Door()
        self.scope: Scope | Fault = Scope()
        self.chain = Chain(self.log, self.clock)
        self.engine: Metadoc = Engine(
            METADOC,
            store=self.store,
            recorder=Recorder(self.chain, METADOC.name, self.clock),
            performer=Idle(),
            clock=self.clock,
            ids=self.ids,
            policy=Policy(Admission()),
            replica="CON-1",
        )
        self.reports: Reportsdoc = Engine(
            REPORTS,
            store=self.reports_store,
            recorder=Recorder(self.chain, REPORTS.name, self.clock),
            performer=Idle(),
            clock=self.clock,
            ids=self.ids,
            policy=Policy(Admission()),
            replica="CON-1",
        )
        self.raiser = Raiser(REPORTS.name, source=self.reports, console=self.engine)

    @asynccontextmanager
    async def open(self, *things: Any, **more: Any) -> AsyncIterator[Site]:  # noqa: ANN401 -- as a_document's
        await self.store.swap("", encode(a_document(*things, **more)))
        await self.engine.start()
        await self.reports.start()
        try:
            async with listening(self._application()) as (port, _):
                yield Site(port, Unasked(), self.bearers, self.book)
        finally:
            await self.reports.close()
            await self.engine.close()

    def _application(self) -> Any:  # noqa: ANN401 -- an ASGI application
        gate = Gate(github=self.bearers, refusals=self.book, clock=self.clock)
        operators = Operators(authenticator=self.door, admission=Admission(), clock=self.clock)
        agent_reports = AgentReports(
            reports=self.reports,
            playbooks=self.engine,
            blobs=self.blobs,
            gate=gate,
            operators=operators,
            raised=self.raiser.move,
        )
        return application(
            self.engine,
            self.bearers,
            self.book,
            agent_reports=agent_reports,
            inputs=Inputs(gate=gate, operators=operators, scope=self._current),
            raised=self.raiser.move,
        )

    def _current(self) -> Scope:
        if isinstance(self.scope, Fault):
            raise self.scope
        return self.scope

    async def events(self) -> list[Event]:
        """Return the events that the metadoc keeps."""
        document: Document = await self.engine.snapshot()
        return list(document.events.values())

    async def records(self) -> list[AuditRecord]:
        """Return what the chain holds."""
        await self.engine.recorded()
        await self.reports.recorded()
        return [decode(line) for line in self.log.lines]


async def get(door: Site, path: str, bearer: str | None = OPERATOR) -> Answer:
    """Read as the operator."""
    return await door.post(b"", method="GET", path=path, headers={"Authorization": bearer})
