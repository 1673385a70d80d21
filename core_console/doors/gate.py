"""The gate of the agents' doors: every check that is the same at each of them, in its order.

Owns the order (method, length, content type, bearer, body, state) and the record of every call
that is turned away. Never reads more than the door's bound, never waits longer than its time,
and never logs, echoes or keeps a bearer.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from core_console.doors import errors
from core_console.doors.errors import Rejection
from core_console.doors.strict import BadBody
from core_console.model.audit import Entry, Outcome
from core_console.ports import Clock, Fault, GitHub, Standing

# A body of the largest door needs 1 s on a 10 Mbit/s line; who takes 10 holds a place for nothing.
BODY_S = 10.0

# A caller that is still sending sees the answer only if what it sends is taken off its hands;
# beyond this it is not worth the time.
LINGER_BYTES = 1024 * 1024
LINGER_S = 1.0

ANONYMOUS = "anonymous"

_JSON = re.compile(r'application/json\s*(?:;\s*charset=(?:utf-8|"utf-8")\s*)?', re.IGNORECASE)
_DENIED = frozenset({401, 403, 429})
_CLOSE = {"Connection": "close"}


class Refusals(Protocol):
    """Where a call that was turned away is recorded."""

    async def record(self, entry: Entry, *, identified: bool, peer: str) -> None:
        """Append the entry; what comes without an identity is bounded and summed up."""
        ...


@dataclass(slots=True)
class Attempt:
    """What is known so far of one call; its record is written from it."""

    action: str
    subject: str
    peer: str
    identified: bool = False
    actor: str = ANONYMOUS
    target: str = ""


Take = Callable[[bytes, Attempt], Awaitable[Response]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """What every agents' door stands on; `body_s` bounds the reading of one body."""

    github: GitHub
    refusals: Refusals
    clock: Clock
    body_s: float = BODY_S

    async def record(self, attempt: Attempt, outcome: Outcome, detail: str) -> None:
        """Record one call that changed nothing; a log that cannot be written hides no answer."""
        entry = Entry(
            at=self.clock.now(),
            actor=attempt.actor,
            action=attempt.action,
            target=attempt.target,
            outcome=outcome,
            detail=detail,
            subject=attempt.subject,
        )
        with suppress(Fault):
            await self.refusals.record(entry, identified=attempt.identified, peer=attempt.peer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """One POST door: an ASGI application that hands `take` only a body that passed the gate.

    `methods` are those of its whole path, as an Allow header lists them.
    """

    gate: Gate
    action: str
    subject: str
    bytes_max: int
    take: Take
    methods: str = "POST"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one call, and record it when it is turned away.

        Raises:
            Rejection: the call is turned away; the application answers it.
        """
        request = Request(scope, receive)
        attempt = Attempt(self.action, self.subject, peer_of(request))
        ended: tuple[Outcome, str] | None = (Outcome.FAILURE, "the console failed on this call")
        try:
            response = await self._answer(request, attempt)
            ended = None  # an accepted call is recorded by the swap that took it
        except Rejection as rejection:
            outcome = Outcome.DENIED if rejection.status_code in _DENIED else Outcome.FAILURE
            ended = (outcome, rejection.detail)
            raise
        finally:
            if ended is not None:
                await self.gate.record(attempt, *ended)
        await response(scope, receive, send)

    async def _answer(self, request: Request, attempt: Attempt) -> Response:
        await _check_method(request, self.methods)
        body = await _read(request, bytes_max=self.bytes_max, timeout_s=self.gate.body_s)
        _check_type(request)
        await check_bearer(request, self.gate.github, attempt)
        try:
            return await self.take(body, attempt)
        except BadBody as error:
            raise errors.rejection(400, str(error)) from error
        except Fault as fault:
            raise errors.faulted(fault) from fault


def peer_of(request: Request) -> str:
    """Return the address of the connection itself; headers that claim another are not believed."""
    return request.client.host if request.client else "unknown"


async def _check_method(request: Request, methods: str) -> None:
    if request.method != "POST":
        await _linger(request)
        sentence = f"this door takes {methods} only"
        raise errors.rejection(405, sentence, headers={"Allow": methods} | _CLOSE)


async def _read(request: Request, *, bytes_max: int, timeout_s: float) -> bytes:
    """Return the body, which is read before the bearer is asked: only then its length is sure."""
    found: bytes | None = None
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) <= bytes_max:
        found = await _timed(request, bytes_max=bytes_max, timeout_s=timeout_s)
    else:
        await _linger(request)
    if found is None:
        sentence = f"the body is larger than the {bytes_max:,} bytes of this door"
        raise errors.rejection(413, sentence, headers=_CLOSE)
    return found


async def _timed(request: Request, *, bytes_max: int, timeout_s: float) -> bytes | None:
    try:
        async with asyncio.timeout(timeout_s):
            return await _take_in(request, bytes_max=bytes_max)
    except TimeoutError:
        sentence = f"the body took longer than {timeout_s:g} s to arrive"
        raise errors.rejection(408, sentence, headers=_CLOSE) from None
    except ClientDisconnect:
        raise errors.rejection(400, "the body broke off before its end") from None


async def _take_in(request: Request, *, bytes_max: int) -> bytes | None:
    """Return the body, None when it is larger; what is too much is read and thrown away."""
    found = bytearray()
    size_bytes = 0
    async for piece in request.stream():
        size_bytes += len(piece)
        if size_bytes <= bytes_max:
            found += piece
        elif size_bytes > bytes_max + LINGER_BYTES:
            break
    return bytes(found) if size_bytes <= bytes_max else None


async def _linger(request: Request) -> None:
    """Take what the caller is still sending, within bounds, so that it can read the answer."""
    if "expect" in request.headers:  # it waits for our word before it sends
        return
    with suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(LINGER_S):
            await _take_in(request, bytes_max=0)


def _check_type(request: Request) -> None:
    types = request.headers.getlist("content-type")
    plain = request.headers.get("content-encoding", "identity").lower() == "identity"
    if len(types) != 1 or not _JSON.fullmatch(types[0].strip()) or not plain:
        raise errors.rejection(415, "this door takes application/json in UTF-8 only")


async def check_bearer(request: Request, github: GitHub, attempt: Attempt) -> None:
    """Let the caller pass if the bearer is the App's; raise the rejection that it asks for."""
    verdict = await github.authorize_reporter(
        request.headers.getlist("authorization"), attempt.peer
    )
    if verdict.standing is not Standing.VALID:
        raise errors.barred(verdict)
    attempt.identified = True
