"""The report doors of datagov, recon and the judge: POST takes a report, GET shows the latest.

Owns the paths, and the order of taking one: the body, what is known of its causes, its bytes as a
blob, the swap that stores it with its event, and the raising of that event before the answer. Never
judges what a report says: that is `decide.agent_reports`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from core_console.decide import agent_reports, depth, stored_reports
from core_console.decide.agent_reports import Told
from core_console.decide.outcome import Refused
from core_console.decide.stored_reports import ReportsCommand, ReportsOutcome, StoreReport
from core_console.doors import errors, query, strict
from core_console.doors.gate import Attempt, Door, Gate
from core_console.doors.operators import Operators
from core_console.latest import Seen
from core_console.model import audit
from core_console.model.codec import canonical_json
from core_console.model.document import Document
from core_console.model.event import Chain
from core_console.model.reports import (
    DatagovReport,
    JudgeReport,
    LatestReport,
    ReconReport,
    Report,
    ReportsDocument,
)
from core_console.ports import Blobs, Fault

T = TypeVar("T")
Raise = Callable[[], Awaitable[None]]
Read = Callable[[Request], Awaitable[Response]]

DATAGOV_PATH = "/api/data-governance-findings"
RECON_PATH = "/api/rules-recon/report"
JUDGE_PATH = "/api/judgements"

# The contract's (section 7).
BODY_BYTES = 1024 * 1024

PROVENANCE = "core-console-provenance"
"""The header of a read that may not show the newest state."""

_METHODS = "GET, HEAD, POST"
_READS = frozenset({"GET", "HEAD"})


class Playbooks(Protocol):
    """The engine of the playbooks, as far as a report needs it."""

    async def look(self) -> Seen[Document]:
        """Return the newest state that can be had, and why it may be old; may raise Fault."""
        ...


class Reports(Protocol):
    """The engine of the reports document."""

    async def submit(self, command: ReportsCommand) -> ReportsOutcome:
        """Decide one command and return once its swap is durable; may raise Fault."""
        ...

    async def look(self) -> Seen[ReportsDocument]:
        """Return the newest state that can be had, for reads alone; may raise Fault."""
        ...


class AgentReports:
    """Takes and shows the reports of the three agents.

    `raised` moves the events that wait into the metadoc, as far as that can be done now. It is
    awaited before a report is answered: the step report that follows ends the agent's dispatch,
    and the event is best judged before that. An event that has to wait keeps the chain depth that
    it had when it came.
    """

    def __init__(
        self,
        *,
        reports: Reports,
        playbooks: Playbooks,
        blobs: Blobs,
        gate: Gate,
        operators: Operators,
        raised: Raise,
    ) -> None:
        self._reports = reports
        self._playbooks = playbooks
        self._blobs = blobs
        self._gate = gate
        self._operators = operators
        self._raised = raised

    def routes(self) -> list[Route]:
        """Return the three paths, each read and written."""
        return [
            self._route(DATAGOV_PATH, "datagov", DatagovReport),
            self._route(RECON_PATH, "recon", ReconReport),
            self._route(JUDGE_PATH, "judge", JudgeReport),
        ]

    def _route(self, path: str, agent: str, wanted: type[Report]) -> Route:
        async def take(body: bytes, attempt: Attempt) -> Response:
            attempt.actor, attempt.target = f"agent:{agent}", agent
            # Beside the event loop: 1 MiB of nothing but brackets takes half a second to read.
            report = await asyncio.to_thread(strict.read, body, wanted)
            return await self._take(report, attempt)

        async def show(request: Request) -> Response:
            self._operators.admit(request, f"GET {path}")
            query.parameters(request, ())
            return await self._show(agent)

        door = Door(
            gate=self._gate,
            action=stored_reports.action_of(agent),
            subject=stored_reports.SUBJECT,
            bytes_max=BODY_BYTES,
            take=take,
            methods=_METHODS,
        )
        return Route(path, _Path(door, show))

    async def _take(self, report: Report, attempt: Attempt) -> Response:
        told = agent_reports.read_out(report)
        if isinstance(told, Refused):
            raise errors.refused(told)
        chain = await self._chain(told)
        data = canonical_json(report)
        digest = await self._blobs.put(data)
        outcome = await self._reports.submit(StoreReport(told, digest, len(data), chain))
        if isinstance(outcome, Refused):
            raise errors.refused(outcome)
        attempt.target = f"{told.agent}/{digest}"
        if not outcome.entries:  # nothing changed, so no swap carries this record
            await self._gate.record(
                attempt, audit.Outcome.SUCCESS, "the same report again; nothing changed"
            )
        with suppress(Fault):  # the report is stored; its event waits, and a tick raises it
            await self._raised()
        again = {"duplicate": True} if outcome.duplicate else {}
        return JSONResponse({"accepted": True} | again)

    async def _chain(self, told: Told) -> Chain:
        """Return what is known of the causes of a report that is here and not stored yet.

        A dispatch that is claimed later cannot have led to it, and one that ends later still
        counts. What cannot be looked up now could be lower later, so the report is not taken then;
        nor is one that names a run which nobody knows, while somebody can still be told.

        Raises:
            Fault: the metadoc's store cannot be asked.
        """
        seen = await self._playbooks.look()
        if seen.fault is not None:
            raise seen.fault
        now = self._gate.clock.now()
        chain = depth.of_event(seen.document, told.agent, told.caused_by_run_id, now)
        if isinstance(chain, Refused):
            raise errors.refused(chain)
        return chain

    async def _show(self, agent: str) -> Response:
        seen = await _asked(self._reports.look())
        latest = seen.document.latest.get(agent)
        if latest is None:
            raise errors.rejection(404, f"{agent} has not reported yet")
        data = await _asked(self._blobs.get(latest.digest))
        said = {PROVENANCE: seen.provenance} if seen.provenance else {}
        return Response(_shown(latest, data), media_type="application/json", headers=said)


class _Path:
    """One path that is read by operators and written by an agent."""

    def __init__(self, door: Door, show: Read) -> None:
        self._door = door
        self._show = show

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call; whatever is no read meets the door, and its gate."""
        if scope["method"] in _READS:
            response = await self._show(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self._door(scope, receive, send)


def _shown(latest: LatestReport, data: bytes) -> bytes:
    """Return the report as it was taken, with who sent it, when, and its digest."""
    return msgspec.json.encode(
        {
            "agent": latest.agent,
            "reportedBy": f"agent:{latest.agent}",
            "reportedAt": latest.at,
            "digest": latest.digest,
            "sizeBytes": latest.size_bytes,
            "attributes": latest.attributes,
            "report": msgspec.Raw(data),
        }
    )


async def _asked(asking: Awaitable[T]) -> T:
    """Return what was found; raise the rejection that a fault reads as."""
    try:
        return await asking
    except Fault as fault:
        raise errors.faulted(fault) from fault
