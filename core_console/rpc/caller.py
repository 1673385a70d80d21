"""Who is behind the call that is being answered.

Owns what the gate tells the servicers, and the one thing that they tell it back. It lives exactly
as long as the call: gRPC answers each call in a task of its own.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from urllib.parse import unquote

from core_console.addresses import neighbourhood
from core_console.decide.outcome import Refused
from core_console.governance.tokens import Identity

ANONYMOUS = "anonymous"


@dataclass(slots=True)
class Call:
    """One call: who makes it, and whether it was a write that changed nothing.

    A write that changes nothing leaves no entry in the document, so the gate records it.
    `fault` is why it changed nothing although it is answered, such as a file's own faults.
    `message` is the request as it came, empty until it has. `barred` says why the caller may not
    make this call now, None when they may: it is asked again by what outlives its beginning.
    """

    identity: Identity | None = None
    unchanged: bool = False
    fault: str = ""
    message: bytes = b""
    barred: Callable[[], Refused | None] = lambda: None

    @property
    def actor(self) -> str:
        """The caller's e-mail, `anonymous` when nobody is named."""
        return self.identity.email if self.identity else ANONYMOUS


_current: ContextVar[Call] = ContextVar("call")


def enter() -> Call:
    """Begin a call in this task."""
    call = Call()
    _current.set(call)
    return call


def current() -> Call:
    """Return the call that this task answers."""
    return _current.get()


def peer_of(peer: str) -> str:
    """Return the address of gRPC's `ipv4:192.0.2.1:5000`, without the port that changes."""
    kind, _, rest = unquote(peer).partition(":")
    address = rest.rpartition(":")[0].strip("[]") if kind in {"ipv4", "ipv6"} else kind
    return address or "unknown"


def origin_of(peer: str) -> str:
    """Return by what the calls of gRPC's peer are counted."""
    return neighbourhood(peer_of(peer))
