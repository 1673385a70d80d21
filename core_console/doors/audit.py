"""GET /api/audit…: the audit trail over HTTP, for the session admins alone.

Owns the parameters and the shape of the answers: a record is shown exactly as the chain holds it,
so that its hash can be worked out from what is shown. Never writes and never judges a record.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core_console.decide.outcome import Refused
from core_console.doors import errors, query
from core_console.doors.operators import Operators
from core_console.governance.trail import PAGE_SIZE_MAX, Filters, Trail
from core_console.governance.verify import Verification
from core_console.model.audit import Outcome
from core_console.ports import Fault

T = TypeVar("T")
Verify = Callable[[], Awaitable[Verification]]

PATH = "/api/audit"
VERIFY_PATH = "/api/audit/verify"
RECORD_PATH = "/api/audit/{seq}"

_FILTERS = ("actor", "action", "outcome", "subject", "since", "before", "limit", "page_token")
_OUTCOMES = tuple(str(outcome) for outcome in Outcome)


class AuditDoors:
    """Shows the trail.

    `recorded` waits until what is decided now is in the chain, as far as it can be written: who
    acts and then looks must find it. `verify` reads the whole chain without blocking anybody
    else; one reading at a time is enough for any number of auditors.
    """

    def __init__(
        self,
        *,
        operators: Operators,
        trail: Trail,
        recorded: Callable[[], Awaitable[None]],
        verify: Verify,
    ) -> None:
        self._operators = operators
        self._trail = trail
        self._recorded = recorded
        self._verify = verify
        self._verifying = asyncio.Lock()

    def routes(self) -> list[Route]:
        """Return the routes; `verify` comes before the record, whose path would match it too."""
        return [
            Route(PATH, self.records),
            Route(VERIFY_PATH, self.verification),
            Route(RECORD_PATH, self.record),
        ]

    async def records(self, request: Request) -> Response:
        """Answer a page of the records that match, newest first."""
        self._operators.admit(request, f"GET {PATH}")
        given = query.parameters(request, _FILTERS)
        limit = query.number("limit", given.get("limit", "50"), most=PAGE_SIZE_MAX)
        filters = _filters(given)
        await self._recorded()
        page = await _told(
            self._trail.page(filters, page_size=limit, page_token=given.get("page_token", ""))
        )
        return _json({"records": page.records, "next_page_token": page.next_page_token})

    async def record(self, request: Request) -> Response:
        """Answer one record by its number."""
        self._operators.admit(request, f"GET {RECORD_PATH}")
        query.parameters(request, ())
        seq = query.number("seq", request.path_params["seq"])
        await self._recorded()
        return _json(await _told(self._trail.get(seq)))

    async def verification(self, request: Request) -> Response:
        """Answer whether the whole chain holds, and else its first record that does not."""
        self._operators.admit(request, f"GET {VERIFY_PATH}")
        query.parameters(request, ())
        if self._verifying.locked():
            raise errors.rejection(429, "the chain is being verified already; ask again")
        async with self._verifying:
            await self._recorded()
            return _json(await _told(self._verify()))


def _filters(given: dict[str, str]) -> Filters:
    outcome = given.get("outcome")
    if outcome is not None and outcome not in _OUTCOMES:
        raise query.bad(f"outcome: is not one of {', '.join(_OUTCOMES)}")
    return Filters(
        actor=given.get("actor", ""),
        action=given.get("action", ""),
        outcome=None if outcome is None else Outcome(outcome),
        subject=given.get("subject", ""),
        since=query.moment("since", given["since"]) if "since" in given else None,
        before=query.moment("before", given["before"]) if "before" in given else None,
    )


async def _told(asked: Awaitable[T | Refused]) -> T:
    """Return what was found; raise the rejection that a refusal or a fault reads as."""
    try:
        found = await asked
    except Fault as fault:
        raise errors.faulted(fault) from fault
    if isinstance(found, Refused):
        raise errors.refused(found)
    return found


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type="application/json")
