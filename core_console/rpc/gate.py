"""The entry of every RPC: who calls, whether they may, and how a refusal leaves.

Owns the order (identity, policy, message, method), the one place of the gRPC side that catches
everything, and the record of every write that was refused or changed nothing. Never logs,
records or repeats a bearer or a text that somebody wrote.
"""

import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Protocol

import grpc
import structlog
from google.protobuf.message import Message
from msgspec import Struct

from core_console.decide.identity import Admission
from core_console.decide.outcome import Refused
from core_console.governance.policy import MethodClass, Rule, authorize, rule_of
from core_console.governance.tokens import Identity
from core_console.model.audit import Entry, Outcome
from core_console.model.faults import InvariantError
from core_console.ports import Clock, Fault
from core_console.rpc import caller, errors, handlers
from core_console.rpc.arrival import Arrivals, patience_s
from core_console.rpc.caller import Call
from core_console.rpc.errors import Answer, RefusedError
from core_console.rpc.from_proto import known_id
from core_console.rpc.handlers import Handler
from core_console.rpc.public import Public

log = structlog.get_logger(__name__)

_DENIED = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})

# The ids that a request may name, from the outside in, as records hold them.
_ID_FIELDS = ("playbook_id", "id", "run_id", "step_id")

_FRAMES_LOGGED = 8

Context = handlers.Context


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
    decode: handlers.Decode
    perform: handlers.Perform


class Gate(grpc.GenericRpcHandler):
    """Guards every method that is not public: gRPC finds nothing but what it guards."""

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
        self._arrivals = Arrivals()
        self._public = Public(self._arrivals)
        self._guarded: dict[str, Handler] = {}

    def guard(self, handlers: Mapping[str, Handler]) -> None:
        """Serve these from now on, each by its full method."""
        self._guarded |= {method: self._guard(method, each) for method, each in handlers.items()}

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """Return the guarded handler; None is gRPC's own UNIMPLEMENTED."""
        return self._guarded.get(handler_call_details.method)

    def _guard(self, method: str, handler: Handler) -> Handler:
        rule = rule_of(method)
        if rule.method_class is MethodClass.PUBLIC:
            return self._public.bounded(method, handler)
        if handler.request_streaming:
            raise InvariantError(f"{method} streams requests, and the gate guards no such method")
        served = _Served(method, rule, handlers.decode_of(handler), handlers.perform_of(handler))

        async def answer(_messages: object, context: Context) -> Message | None:
            return await self._answer(served, context)

        return handlers.answering(handler, answer)

    async def _answer(self, served: _Served, context: Context) -> Message | None:
        call = caller.enter()
        try:
            await self._admit(call, served.method, context)
            request = handlers.decoded(served.method, served.decode, call.message)
            response = await served.perform(request, context)
            if call.fault:
                await self._record(served, context, Outcome.FAILURE, call.fault)
            elif call.unchanged:
                sentence = "the same again; nothing changed"
                await self._record(served, context, Outcome.SUCCESS, sentence)
        except Exception as error:
            answer = errors.answer_to(error)
            if answer.code is grpc.StatusCode.INTERNAL:
                _log_bug(served.method, error)
            await self._record_refusal(served, context, answer)
        else:
            return response
        return await context.abort(answer.code, answer.sentence, answer.details)

    async def _admit(self, call: Call, method: str, context: Context) -> None:
        """Let in who may call, with their message; nobody's who is unknown is waited for."""
        authorization = _authorization(context)
        found = self._authenticator.identify(authorization, self._clock.now())
        if isinstance(found, Refused):
            raise RefusedError(found)
        call.identity = found
        call.barred = partial(self._barred, method, authorization)
        refused = self._judged(method, found)
        who = found.email if found else caller.origin_of(context.peer())
        if found is not None or refused is None:
            # Who is known and may not call is recorded with what they wanted to change.
            timeout_s = patience_s(method, identified=found is not None)
            call.message = await self._arrivals.message(context, who, timeout_s=timeout_s)
        if refused is not None:
            raise RefusedError(refused)

    def _barred(self, method: str, authorization: Sequence[str]) -> Refused | None:
        found = self._authenticator.identify(authorization, self._clock.now())
        return found if isinstance(found, Refused) else self._judged(method, found)

    def _judged(self, method: str, found: Identity | None) -> Refused | None:
        return authorize(
            method,
            found,
            admission=self._admission,
            console_is_open=found is None and self._authenticator.is_open,
        )

    async def _record_refusal(self, served: _Served, context: Context, answer: Answer) -> None:
        outcome = Outcome.DENIED if answer.code in _DENIED else Outcome.FAILURE
        await self._record(served, context, outcome, answer.sentence)

    async def _record(
        self, served: _Served, context: Context, outcome: Outcome, detail: str
    ) -> None:
        """Record a write that changed nothing; a log that cannot be written hides no answer."""
        if not served.rule.action:
            return
        call = caller.current()
        entry = Entry(
            at=self._clock.now(),
            actor=call.actor,
            action=served.rule.action,
            target=_target(served, call.message) if call.identity else "",
            outcome=outcome,
            detail=detail,
            subject=served.rule.subject,
        )
        with suppress(Fault):
            await self._refusals.record(
                entry, identified=call.identity is not None, peer=caller.peer_of(context.peer())
            )


def _authorization(context: Context) -> list[str]:
    metadata = context.invocation_metadata() or ()
    return [
        value if isinstance(value, str) else "" for key, value in metadata if key == "authorization"
    ]


def _target(served: _Served, raw: bytes) -> str:
    """Return the ids that the request names, as far as they can be ids."""
    try:
        request = handlers.decoded(served.method, served.decode, raw)
    except RefusedError:
        return ""
    named = (getattr(request, field, "") for field in _ID_FIELDS)
    return "/".join(each for each in named if isinstance(each, str) and known_id(each))


def _log_bug(method: str, error: Exception) -> None:
    """Log where a bug happened, never what it held: its text may quote a secret."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_LOGGED:]
    where = [f"{frame.name}:{frame.lineno}" for frame in frames]
    log.error("rpc.failed", method=method, error=type(error).__name__, where=where)
