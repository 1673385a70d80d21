"""Who reads over HTTP: an operator by their bearer, judged by the one policy table.

Owns the way from a request's headers to an identity or a rejection. Never decides who may do
what: that is `governance.policy`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from starlette.requests import Request

from core_console.decide.identity import Admission
from core_console.decide.outcome import Refused
from core_console.doors import errors
from core_console.governance import policy
from core_console.governance.tokens import Identity
from core_console.ports import Clock, Fault


class Authenticator(Protocol):
    """Who tells whom a bearer names."""

    @property
    def is_open(self) -> bool:
        """Tell whether no sign-in is configured; may raise Fault."""
        ...

    def identify(self, authorization: Sequence[str], now: datetime) -> Identity | Refused | None:
        """Return who calls, None when nobody says."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Operators:
    """Admits operators to the doors that are read."""

    authenticator: Authenticator
    admission: Admission
    clock: Clock

    def admit(self, request: Request, method: str) -> None:
        """Let the caller pass if the table allows it; `method` is the table's, `GET <route>`.

        Raises:
            Rejection: it does not, or nobody can tell who calls.
        """
        found = self.authenticator.identify(
            request.headers.getlist("authorization"), self.clock.now()
        )
        if isinstance(found, Refused):
            raise errors.refused(found)
        try:
            is_open = self.authenticator.is_open
        except Fault as fault:
            raise errors.faulted(fault) from fault
        refusal = policy.authorize(method, found, admission=self.admission, console_is_open=is_open)
        if refusal is not None:
            raise errors.refused(refusal)
