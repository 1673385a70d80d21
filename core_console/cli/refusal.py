"""What a person is told when a call was refused or got no answer.

Owns these sentences and the exit code that goes with each. Never shows what gRPC says of its own
sockets and streams: it says what is there, and what to do.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
from google.rpc.error_details_pb2 import BadRequest  # type: ignore[import-untyped]  # it ships none
from grpc_status import rpc_status

from core_console.addresses import Address
from core_console.cli.failure import Exit, Failed
from core_console.cli.probe import Found, look

SIGN_IN = "set CORE_CONSOLE_TOKEN; make one with: core-console token --email you@example.com"

_OPEN = "this console has no sign-in configured"
"""How the refusal of an open console begins (governance, section 1)."""

_INTERNAL = re.compile(
    r"ipv[46]:|\[field:|connect to all addresses|recvmsg|handshake|GOAWAY|RST_STREAM|Socket closed"
    r"|Stream removed|Connection (?:reset|refused|timed out)|Broken pipe",
    re.IGNORECASE,
)
"""What gRPC says by itself, and no console."""

_MORE = re.compile(r" \(and ([0-9]{1,6}) more\)$")

Locate = Callable[[str], str]
"""Where a proto path stands in the file that was sent, such as `f.yaml, line 9: timeoutMinutes`."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a call went, and whether by TLS."""

    address: Address
    is_secure: bool


@dataclass(frozen=True, slots=True)
class _Violation:
    field: str
    description: str

    def line(self, locate: Locate | None) -> str:
        """Return the fault with its place; `status: status is …` would say the name twice."""
        is_named = self._names(re.split(r"[.\]]", self.field)[-1])
        if locate is None:
            return self.description if is_named else f"{self.field}: {self.description}"
        place = locate(self.field)
        if is_named:
            place = place.rpartition(": ")[0]
        return f"{place}: {self.description}"

    def _names(self, last: str) -> bool:
        return bool(last) and self.description.startswith(f"{last} ")


def told(error: grpc.RpcError, target: Target, locate: Locate | None = None) -> Failed:
    """Return how the command ends after this error."""
    if not isinstance(error, grpc.Call):
        return Failed(Exit.UNREACHABLE, f"the call to {target.address} failed")
    details = error.details() or "no reason was given"
    match error.code():
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            said = f"the console at {target.address} did not answer in time; it may be busy"
            return Failed(Exit.UNREACHABLE, said)
        case grpc.StatusCode.UNAVAILABLE:
            return Failed(Exit.UNREACHABLE, _unavailable(details, target))
        case grpc.StatusCode.UNAUTHENTICATED:
            # On an open console no token helps: its own sentence says what does.
            lines = () if details.startswith(_OPEN) else (SIGN_IN,)
            return Failed(Exit.REFUSED, f"UNAUTHENTICATED: {details}", lines)
        case code:
            return _refused(f"{code.name}: {details}", details, _violations(error), locate)


def _refused(
    sentence: str, details: str, violations: Sequence[_Violation], locate: Locate | None
) -> Failed:
    lines = [violation.line(locate) for violation in violations]
    if not violations or violations[0].description not in details:
        return Failed(Exit.REFUSED, sentence, lines)
    # The sentence only repeats the first violation and counts the others.
    counted = _MORE.search(details)
    left = int(counted[1]) + 1 - len(violations) if counted else 0
    if left > 0:
        lines.append(f"and {left} more, of which the answer has no room to tell")
    code = "" if locate is not None else sentence.removesuffix(details)
    return Failed(Exit.REFUSED, code + lines[0], lines[1:])


def _unavailable(details: str, target: Target) -> str:
    """Return what is wrong with the connection, or what the console itself cannot do now."""
    if not _INTERNAL.search(details):
        return f"the console at {target.address} cannot answer now: {details}"
    return no_answer(look(target.address), target)


def no_answer(found: Found, target: Target) -> str:
    """Return the sentence for what was found where no console answered."""
    address = target.address
    match found:
        case Found.NO_HOST:
            return f"there is no host named {address.host}; check CORE_CONSOLE_URL"
        case Found.NOTHING:
            return f"nothing answers at {address}; is core-console serve running?"
        case Found.SILENCE:
            return f"{address} accepts no connection in time; check the address and the network"
        case Found.HTTP:
            return (
                f"{address} is an HTTP port; CORE_CONSOLE_URL takes the gRPC address, "
                "by default 127.0.0.1:7443"
            )
        case Found.TLS if not target.is_secure:
            return f"{address} speaks TLS only: write https://{address} in CORE_CONSOLE_URL"
        case Found.TLS:
            return (
                f"the certificate of {address} is not trusted: name its authority in "
                "CORE_CONSOLE_CA, and the host as the certificate names it"
            )
        case Found.OTHER if target.is_secure:
            return (
                f"{address} does not speak TLS: write {address} in CORE_CONSOLE_URL, without a CA"
            )
        case _:
            return f"the connection to {address} broke off; try again"


def _violations(call: grpc.Call) -> list[_Violation]:
    """Return each field that was refused."""
    try:
        status = rpc_status.from_call(call)
    except ValueError:
        return []
    found = []
    for detail in status.details if status is not None else ():
        bad = BadRequest()
        if detail.Is(BadRequest.DESCRIPTOR) and detail.Unpack(bad):
            found += [_Violation(each.field, each.description) for each in bad.field_violations]
    return found
