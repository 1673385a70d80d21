"""The entry of every RPC: who calls, whether they may, and how a refusal leaves.

Owns the order (identity, policy, message, method), the one place of the gRPC side that catches
everything, and the record of every write that was refused or changed nothing. Never logs,
records or repeats a bearer or a text that somebody wrote.
"""

import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import unquote

import grpc
import structlog
from google.protobuf.message import DecodeError, Message
from msgspec import Struct

from core_console.decide.identity import Admission
from core_console.decide.outcome import Code, Refused
from core_console.governance.policy import MethodClass, Rule, authorize, rule_of
from core_console.governance.tokens import Identity
from core_console.model.audit import Entry, Outcome
from core_console.model.faults import InvariantError
from core_console.ports import Clock, Fault
from core_console.rpc import caller, errors
from core_console.rpc.caller import Call
from core_console.rpc.errors import Answer, RefusedError
from core_console.rpc.from_proto import known_id

log = structlog.get_logger(__name__)

_DENIED = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})

# The ids that a request may name, from the outside in, as records hold them.
_ID_FIELDS = ("playbook_id", "id", "run_id", "step_id")

_FRAMES_LOGGED = 8

MESSAGE_BYTES = 4 * 1024 * 1024
"""gRPC's own default. The largest playbook is under 100 KiB; a client that sends more gets a
sentence about what is too long rather than a transport's error."""

UPLOAD_BYTES = 16 * 1024 * 1024 + 64 * 1024
"""An upload of twice the largest feed still gets its `too_large` as a fault of the file; the rest
is for the other fields and the framing (CapEx page, section 2)."""

MESSAGE_BYTES_OF = {"/runink.core.atlas.v1.CapexService/StageFeed": UPLOAD_BYTES}
"""The methods that take more than a default message; every other one refuses it undecoded."""

if TYPE_CHECKING:  # it is generic for the type checker alone
    Handler = grpc.RpcMethodHandler[Any, Any]
else:
    Handler = grpc.RpcMethodHandler

Context = grpc.aio.ServicerContext[Any, Any]
Perform = Callable[[Any, Context], Awaitable[Message | None]]


class Refusals(Protocol):
    """Where a call that changed nothing is recorded."""

    async def record(self, entry: Entry, *, identified: bool, peer: str) -> None:
        """Append the entry; what comes without an identity is bounded and summed up."""
        ...


class Authenticator(Protocol):
    """Who says who is calling."""

    @property
    def is_open(self) -> bool:
        """Whether no sign-in is configured; may raise Fault."""
        ...

    def identify(self, authorization: Sequence[str], now: datetime) -> Identity | Refused | None:
        """Return who calls, why nobody can be named, or None for a caller without a token."""
        ...


class _Served(Struct, frozen=True, gc=False):
    """One method behind the gate."""

    method: str
    rule: Rule
    decode: Callable[[bytes], Message]
    perform: Perform


class Gate(grpc.aio.ServerInterceptor):
    """Guards every method that is not public."""

    def __init__(
        self,
        *,
        authenticator: Authenticator,
        admission: Admission,
        refusals: Refusals,
        clock: Clock,
    ) -> None:
        self._authenticator = authenticator
        self._admission = admission
        self._refusals = refusals
        self._clock = clock
        self._guarded: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the guarded handler, made once a method; None is gRPC's own UNIMPLEMENTED."""
        method = handler_call_details.method
        guarded = self._guarded.get(method)
        if guarded is None:
            handler = await continuation(handler_call_details)
            if handler is None:  # not kept: a caller can make up any number of names
                return handler
            guarded = self._guarded[method] = self._guard(method, handler)
        return guarded

    def _guard(self, method: str, handler: Handler) -> Handler:
        rule = rule_of(method)
        if rule.method_class is MethodClass.PUBLIC:
            return handler
        if handler.request_streaming:
            raise InvariantError(f"{method} streams requests, and the gate guards no such method")
        decode = cast("Callable[[bytes], Message]", handler.request_deserializer)
        served = _Served(method, rule, decode, _perform(handler))

        async def answer(raw: bytes, context: Context) -> Message | None:
            return await self._answer(served, raw, context)

        # Without a deserializer the bytes arrive here: a caller who may not call costs no parse.
        make: Callable[..., Handler] = (
            grpc.unary_stream_rpc_method_handler
            if handler.response_streaming
            else grpc.unary_unary_rpc_method_handler
        )
        return make(answer, None, handler.response_serializer)

    async def _answer(self, served: _Served, raw: bytes, context: Context) -> Message | None:
        call = caller.enter()
        try:
            self._admit(call, served.method, context)
            response = await served.perform(_decoded(served, raw), context)
            if call.fault:
                await self._record(served, raw, context, Outcome.FAILURE, call.fault)
            elif call.unchanged:
                sentence = "the same again; nothing changed"
                await self._record(served, raw, context, Outcome.SUCCESS, sentence)
        except Exception as error:
            answer = errors.answer_to(error)
            if answer.code is grpc.StatusCode.INTERNAL:
                _log_bug(served.method, error)
            await self._record_refusal(served, raw, context, answer)
        else:
            return response
        return await context.abort(answer.code, answer.sentence, answer.details)

    def _admit(self, call: Call, method: str, context: Context) -> None:
        found = self._authenticator.identify(_authorization(context), self._clock.now())
        if isinstance(found, Refused):
            raise RefusedError(found)
        call.identity = found
        refused = authorize(
            method,
            found,
            admission=self._admission,
            console_is_open=found is None and self._authenticator.is_open,
        )
        if refused is not None:
            raise RefusedError(refused)

    async def _record_refusal(
        self, served: _Served, raw: bytes, context: Context, answer: Answer
    ) -> None:
        outcome = Outcome.DENIED if answer.code in _DENIED else Outcome.FAILURE
        await self._record(served, raw, context, outcome, answer.sentence)

    async def _record(
        self, served: _Served, raw: bytes, context: Context, outcome: Outcome, detail: str
    ) -> None:
        """Record a write that changed nothing; a log that cannot be written hides no answer."""
        if not served.rule.action:
            return
        call = caller.current()
        entry = Entry(
            at=self._clock.now(),
            actor=call.actor,
            action=served.rule.action,
            target=_target(served, raw),
            outcome=outcome,
            detail=detail,
            subject=served.rule.subject,
        )
        with suppress(Fault):
            await self._refusals.record(
                entry, identified=call.identity is not None, peer=peer_of(context.peer())
            )


def _perform(handler: Handler) -> Perform:
    """Return the method as one awaitable, so that both shapes leave by the same way.

    gRPC takes a coroutine that writes for itself as well as a generator of messages.
    """
    if not handler.response_streaming:
        return cast("Perform", handler.unary_unary)
    behaviour = cast("Callable[[Any, Context], AsyncIterator[Message]]", handler.unary_stream)

    async def perform(request: Message, context: Context) -> None:
        async for message in behaviour(request, context):
            await context.write(message)

    return perform


def _decoded(served: _Served, raw: bytes) -> Message:
    most = MESSAGE_BYTES_OF.get(served.method, MESSAGE_BYTES)
    if len(raw) > most:
        sentence = f"the request has {len(raw):,} bytes; this method takes at most {most:,}"
        raise RefusedError(Refused(Code.RESOURCE_EXHAUSTED, sentence))
    try:
        return served.decode(raw)
    except DecodeError:
        sentence = "the request is no message of this method: send it as the contract defines it"
        raise RefusedError(Refused(Code.INVALID_ARGUMENT, sentence)) from None


def _authorization(context: Context) -> list[str]:
    metadata = context.invocation_metadata() or ()
    return [
        value if isinstance(value, str) else "" for key, value in metadata if key == "authorization"
    ]


def _target(served: _Served, raw: bytes) -> str:
    """Return the ids that the request names, as far as they can be ids."""
    try:
        request = _decoded(served, raw)
    except RefusedError:
        return ""
    named = (getattr(request, field, "") for field in _ID_FIELDS)
    return "/".join(each for each in named if isinstance(each, str) and known_id(each))


def peer_of(peer: str) -> str:
    """Return the address of gRPC's `ipv4:192.0.2.1:5000`, without the port that changes."""
    kind, _, rest = unquote(peer).partition(":")
    address = rest.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else kind
    return address or "unknown"


def _log_bug(method: str, error: Exception) -> None:
    """Log where a bug happened, never what it held: its text may quote a secret."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_LOGGED:]
    where = [f"{frame.name}:{frame.lineno}" for frame in frames]
    log.error("rpc.failed", method=method, error=type(error).__name__, where=where)
