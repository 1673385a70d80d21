"""Who is behind the call that is being answered.

Owns what the gate tells the servicers, and the one thing that they tell it back. It lives exactly
as long as the call: gRPC answers each call in a task of its own.
"""

from contextvars import ContextVar
from dataclasses import dataclass

from core_console.governance.tokens import Identity

ANONYMOUS = "anonymous"


@dataclass(slots=True)
class Call:
    """One call: who makes it, and whether it was a write that changed nothing.

    A write that changes nothing leaves no entry in the document, so the gate records it.
    `fault` is why it changed nothing although it is answered, such as a file's own faults.
    """

    identity: Identity | None = None
    unchanged: bool = False
    fault: str = ""

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
