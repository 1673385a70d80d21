"""What a decision answers: accepted with a new document, or refused with a reason.

Owns the answer types and their codes. A refusal is data, because it is recorded too.
"""

from enum import StrEnum
from typing import Generic, TypeVar

from msgspec import Struct

from core_console.model.audit import Entry
from core_console.model.capex import Config
from core_console.model.capex_document import CapexDocument, ScanRun, StagedFeed
from core_console.model.document import Document
from core_console.model.event import Event
from core_console.model.playbook import Playbook
from core_console.model.run import DispatchPayload, Run


class Code(StrEnum):
    """Why a command was refused; one table each maps them to gRPC and to HTTP."""

    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    NOT_FOUND = "NOT_FOUND"
    FAILED_PRECONDITION = "FAILED_PRECONDITION"
    ABORTED = "ABORTED"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNAVAILABLE = "UNAVAILABLE"


class Violation(Struct, frozen=True, gc=False):
    """One field that cannot be accepted: its proto path and what is wrong with it."""

    field: str
    description: str


class Refused(Struct, frozen=True, gc=False):
    """A command that changed nothing: one sentence, and the fields when fields are to blame."""

    code: Code
    reason: str
    violations: tuple[Violation, ...] = ()


class SendDispatch(Struct, frozen=True, gc=False):
    """Perform a claimed dispatch once."""

    run_id: str
    step_id: str
    payload: DispatchPayload


class SendComment(Struct, frozen=True, gc=False):
    """Perform a claimed comment once; the body is written from the run just before sending."""

    run_id: str
    step_id: str
    repo: str
    issue: int


class RunScan(Struct, frozen=True, gc=False):
    """Perform a claimed CapEx scan once."""

    run_id: str
    step_id: str


Effect = SendDispatch | SendComment | RunScan


D = TypeVar("D")
A = TypeVar("A")


class Carried(Struct, Generic[D, A], frozen=True, gc=False):
    """A command that was carried out, on whichever document.

    `document` is the very object that was given when nothing changed. `entries` go to the outbox
    with the swap; `effects` are performed after it. `duplicate` marks the same command given
    again, which answers as before and changes nothing. `refused` is set when the document
    changed and yet the answer is that refusal: `entries` record it, so nobody else does.
    """

    document: D
    answer: A | None = None
    entries: tuple[Entry, ...] = ()
    effects: tuple[Effect, ...] = ()
    duplicate: bool = False
    refused: Refused | None = None


class Accepted(Carried[Document, Playbook | Run | Event], frozen=True, gc=False):
    """A command that was carried out on the metadoc."""


Outcome = Accepted | Refused


class CapexAccepted(Carried[CapexDocument, StagedFeed | ScanRun | Config], frozen=True, gc=False):
    """A command that was carried out on the CapEx document."""


CapexOutcome = CapexAccepted | Refused


def invalid(*violations: Violation) -> Refused:
    """Return the refusal of bad fields; its sentence names the first and counts the rest."""
    first, *rest = violations
    more = f" (and {len(rest)} more)" if rest else ""
    return Refused(
        Code.INVALID_ARGUMENT, f"{first.field}: {first.description}{more}", tuple(violations)
    )
