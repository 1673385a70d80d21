"""How a door says no: one table from codes to HTTP, one shape for every error.

Owns the status of every refusal, the security headers and the last resort for our own bugs. An
error is `{"error": "<one sentence>"}`; it never holds a stack, a secret, a path of the machine or
a value that the caller sent.
"""

import math
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

import structlog
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from core_console.decide.outcome import Code, Refused
from core_console.ports import Fault, ReporterVerdict, Standing

log = structlog.get_logger(__name__)

STATUS: Mapping[Code, int] = MappingProxyType(
    {
        Code.INVALID_ARGUMENT: 400,
        Code.UNAUTHENTICATED: 401,
        Code.PERMISSION_DENIED: 403,
        Code.NOT_FOUND: 404,
        Code.FAILED_PRECONDITION: 409,
        Code.ABORTED: 503,
        Code.RESOURCE_EXHAUSTED: 503,
        Code.UNAVAILABLE: 503,
    }
)
"""Every refusal's HTTP status. A lost race and a full budget pass with time, so they are 503 too:
the agents' script sends again on 503 and on no 4xx but 429 (contract, sections 7 and 9)."""

_STANDING: Mapping[Standing, tuple[int, str]] = MappingProxyType(
    {
        Standing.INVALID: (401, "the bearer token is not valid; mint a new one"),
        Standing.FOREIGN: (403, "the bearer is not this App's authority for this organisation"),
        Standing.LIMITED: (429, "too many requests; wait and send again"),
        Standing.UNKNOWN: (503, "GitHub could not be asked about the bearer; send again"),
        Standing.UNCONFIGURED: (503, "no GitHub App is configured, so no agent can be known"),
    }
)

# What a caller is told to wait when nobody knows better: longer than a swap or a reload takes,
# shorter than the patience of the report script.
RETRY_AFTER_S = 5

_UNNAMED = MappingProxyType(
    {
        404: "there is nothing at this path; see the list of doors in the documentation",
        405: "this path does not take this method; see the Allow header",
    }
)

SECURITY_HEADERS: Mapping[str, str] = MappingProxyType(
    {
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-frame-options": "DENY",
        "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
        "cross-origin-resource-policy": "same-origin",
    }
)
_RAW_HEADERS = [(name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()]


class Rejection(HTTPException):
    """A request that is turned away with a sentence of ours."""


def rejection(
    status: int,
    sentence: str,
    *,
    retry_after_s: float | None = None,
    headers: Mapping[str, str] | None = None,
) -> Rejection:
    """Return the exception that answers `sentence`, with the headers that its status asks for."""
    extra = dict(headers or {})
    if status == HTTPStatus.UNAUTHORIZED:
        extra["WWW-Authenticate"] = 'Bearer realm="core-console"'
    if status in {429, 503}:
        extra["Retry-After"] = str(max(1, math.ceil(retry_after_s or RETRY_AFTER_S)))
    return Rejection(status, sentence, extra)


def refused(refusal: Refused) -> Rejection:
    """Return how a refused command or a refused caller reads at a door."""
    return rejection(STATUS[refusal.code], refusal.reason)


def faulted(fault: Fault) -> Rejection:
    """Return how the outside world's failure reads at a door: unknown, so try again."""
    return rejection(503, fault.message, retry_after_s=fault.retry_after_s)


def barred(verdict: ReporterVerdict) -> Rejection:
    """Return how a bearer that is not VALID reads at a door."""
    status, sentence = _STANDING[verdict.standing]
    return rejection(status, verdict.reason or sentence, retry_after_s=verdict.retry_after_s)


async def answer(_request: Request, refusal: Exception) -> JSONResponse:
    """Answer a rejection, ours or the router's, in the one shape of all errors.

    It waits for nothing, but Starlette would run a plain function in one of its few threads.
    """
    if not isinstance(refusal, HTTPException):  # only registered for it
        raise refusal
    sentence = refusal.detail
    if not isinstance(refusal, Rejection):  # the router's: the bare phrase of the status
        sentence = _UNNAMED.get(refusal.status_code, sentence)
    return JSONResponse({"error": sentence}, refusal.status_code, headers=refusal.headers)


class SecurityHeaders:
    """Puts the security headers on every answer that has not set its own."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, adding the headers to the start of the answer."""

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name for name, _ in message["headers"]}
                missing = [pair for pair in _RAW_HEADERS if pair[0] not in present]
                message["headers"] = [*message["headers"], *missing]
            await send(message)

        await self._app(scope, receive, guarded)


class LastResort:
    """Answers our own bugs with a plain 500 and logs where they happened, never what they held."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve; an exception that nobody expected ends here."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            where = [f"{frame.name}:{frame.lineno}" for frame in frames[-8:]]
            log.error("door.failed", error=type(error).__name__, where=where)  # noqa: TRY400 -- its text may quote a secret
            if not started:
                sentence = "the console failed on this request; it has been logged"
                await JSONResponse({"error": sentence}, 500)(scope, receive, send)
