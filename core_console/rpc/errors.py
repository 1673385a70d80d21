"""How an RPC says no: one table from codes to gRPC, one shape for every error.

Owns the status, the sentence and the details of every refusal. A sentence never holds a stack, a
secret, a path of the machine or a value that could be one.
"""

from collections.abc import Mapping
from types import MappingProxyType

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, RetryInfo  # type: ignore[import-untyped]  # it ships none
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it ships none
from msgspec import Struct

from core_console.decide.outcome import Code, Refused, Violation
from core_console.ports import Conflict, Fault

CODES: Mapping[Code, grpc.StatusCode] = MappingProxyType(
    {
        Code.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
        Code.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
        Code.PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
        Code.NOT_FOUND: grpc.StatusCode.NOT_FOUND,
        Code.FAILED_PRECONDITION: grpc.StatusCode.FAILED_PRECONDITION,
        Code.ABORTED: grpc.StatusCode.ABORTED,
        Code.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
        Code.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    }
)
"""Every refusal's gRPC status."""

MESSAGE_BYTES = 1_024
"""A status message travels as one percent-encoded header; clients take 8 KiB of headers at least
(gRPC core's soft limit), and the details need their part."""

DETAILS_BYTES = 4_096
"""The details travel as base64 in the same headers, a third longer than they are."""

_DETAILS_KEY = "grpc-status-details-bin"

BUG = "the console failed on this request; it has been logged"


class RefusedError(Exception):
    """Carries a refusal from a servicer to the gate."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(refused.reason)
        self.refused = refused


class Answer(Struct, frozen=True, gc=False):
    """What goes back instead of a response."""

    code: grpc.StatusCode
    sentence: str
    details: tuple[tuple[str, bytes], ...] = ()


def invalid_field(field: str, description: str) -> RefusedError:
    """Return the error of one bad field."""
    violation = Violation(field, description)
    return RefusedError(Refused(Code.INVALID_ARGUMENT, f"{field}: {description}", (violation,)))


def answer_to(error: Exception) -> Answer:
    """Return what the caller is told of an error; one that nobody expected is INTERNAL."""
    match error:
        case RefusedError(refused=refused):
            return _refused(refused)
        case Fault():
            return _faulted(error)
        case Conflict():
            sentence = "other writers kept winning; try again"
            return Answer(grpc.StatusCode.ABORTED, sentence)
        case _:
            return Answer(grpc.StatusCode.INTERNAL, BUG)


def _refused(refused: Refused) -> Answer:
    code, sentence = CODES[refused.code], one_line(refused.reason)
    if not refused.violations:
        return Answer(code, sentence)
    return Answer(code, sentence, _details(code, sentence, _bad_request(refused.violations)))


def _bad_request(violations: tuple[Violation, ...]) -> BadRequest:
    """Return as many of the violations as the headers have room for, the first always."""
    bad = BadRequest()
    for violation in violations:
        field = BadRequest.FieldViolation(
            field=violation.field, description=one_line(violation.description)
        )
        if bad.field_violations and bad.ByteSize() + field.ByteSize() > DETAILS_BYTES:
            break
        bad.field_violations.append(field)
    return bad


def _faulted(fault: Fault) -> Answer:
    code, sentence = grpc.StatusCode.UNAVAILABLE, one_line(fault.message)
    if not fault.retryable or fault.retry_after_s is None:
        return Answer(code, sentence)
    wait = Duration()
    wait.FromMilliseconds(int(fault.retry_after_s * 1000))
    return Answer(code, sentence, _details(code, sentence, RetryInfo(retry_delay=wait)))


def _details(
    code: grpc.StatusCode, sentence: str, detail: Message
) -> tuple[tuple[str, bytes], ...]:
    packed = Any()
    packed.Pack(detail)
    status = Status(code=code.value[0], message=sentence, details=[packed])
    return ((_DETAILS_KEY, status.SerializeToString()),)


def one_line(sentence: str) -> str:
    """Return the sentence without line breaks and cut to what a header takes."""
    flat = " ".join(sentence.split())
    data = flat.encode("utf-8", "replace")
    return flat if len(data) <= MESSAGE_BYTES else data[:MESSAGE_BYTES].decode("utf-8", "ignore")
