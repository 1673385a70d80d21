"""What the engine asks of the outside world: time, chance, a document, a log and GitHub.

Owns the protocols and the words that cross them. Never imports an adapter. Every method may raise
`Fault`; nothing else may escape an adapter.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from core_console.model.capex import Basis
from core_console.model.run import Call, DispatchPayload, ScanResult


class Fault(Exception):  # noqa: N818 -- the word for the outside world failing
    """The outside world failed: a disk, a database, GitHub.

    `message` is one sentence without a path or a secret. `retryable` says whether the same call
    may succeed later, `retry_after_s` when.
    """

    def __init__(
        self, message: str, *, retryable: bool = True, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class Conflict(Exception):  # noqa: N818 -- losing a race is a normal answer, not an error
    """Another writer won: what is stored is no longer what the caller expected."""


class Stored(Struct, frozen=True, gc=False):
    """A document as it lies in the store; `version` is "" and `data` empty when nothing does."""

    version: str
    data: bytes


class Document(Protocol):
    """One compare-and-swap document."""

    async def version(self) -> str:
        """Return the stored version cheaply, "" when nothing is stored."""
        ...

    async def load(self) -> Stored:
        """Return what is stored."""
        ...

    async def swap(self, expected: str, data: bytes) -> str:
        """Replace what is stored at version `expected` durably and return the new version.

        Raises:
            Conflict: another version is stored; nothing was changed.
            Fault: it failed. The swap may or may not have landed: load to find out.
        """
        ...


class Log(Protocol):
    """One append-only log of lines, numbered from 1; each line is JSON that holds its `seq`."""

    async def last_seq(self) -> int:
        """Return the number of the last line, 0 when there is none."""
        ...

    async def append(self, expected_seq: int, lines: Sequence[bytes]) -> None:
        """Add lines (without newline) durably, all after line `expected_seq`.

        Raises:
            Conflict: the last line is another one; nothing was added.
            Fault: it failed. Some lines may have been added: read the end to find out.
        """
        ...

    async def read(self, first_seq: int, count: int) -> list[bytes]:
        """Return up to `count` lines from number `first_seq` on, in order."""
        ...


class Blob(Struct, frozen=True, gc=False):
    """A blob as it lies in the store: its digest, and when it was last put."""

    digest: str
    put_at: datetime


class Blobs(Protocol):
    """Bytes by their own SHA-256 (lower-case hex): too large for a document that names them."""

    async def put(self, data: bytes) -> str:
        """Keep the bytes durably and return their digest; keeping them again renews their time."""
        ...

    async def get(self, digest: str) -> bytes:
        """Return the bytes of that digest; raise Fault when they are gone or not whole."""
        ...

    async def kept(self) -> list[Blob]:
        """Return every blob that is kept."""
        ...

    async def delete(self, digest: str, *, put_before: datetime | None = None) -> None:
        """Forget a blob, unless it was put at that time or later; a missing one is no error."""
        ...


class Clock(Protocol):
    """Time."""

    def now(self) -> datetime:
        """Return the time in UTC, aware, in whole milliseconds."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never jump."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class Ids(Protocol):
    """Chance: new ids and jitter."""

    def new(self, prefix: str) -> str:
        """Return a new id such as `PB-3f9k…`; it never repeats."""
        ...

    def jitter(self, spread: float) -> float:
        """Return a factor between 1 - spread and 1 + spread."""
        ...


class CallOutcome(Struct, frozen=True, gc=False):
    """What became of one call that changes something at GitHub.

    `call` is ACCEPTED, REFUSED or UNKNOWN; `detail` says what to fix (REFUSED) or what is not
    known (UNKNOWN).
    """

    call: Call
    detail: str = ""


class Standing(StrEnum):
    """What is known of a reporter's bearer."""

    VALID = "VALID"
    INVALID = "INVALID"
    FOREIGN = "FOREIGN"
    UNKNOWN = "UNKNOWN"
    LIMITED = "LIMITED"
    UNCONFIGURED = "UNCONFIGURED"


class ReporterVerdict(Struct, frozen=True, gc=False):
    """Whether a bearer is the App's authority for the organisation, and why not.

    INVALID is 401, FOREIGN 403, LIMITED 429, UNKNOWN and UNCONFIGURED 503 at a door.
    """

    standing: Standing
    reason: str = ""
    retry_after_s: int = 0


Objection = Callable[[], Awaitable[str]]
"""Asked right before a call leaves: why it must not leave any more, "" when it may."""


class GitHub(Protocol):
    """GitHub, as far as the console knows it. No method ever raises for GitHub's answers."""

    async def dispatch(
        self, payload: DispatchPayload, patience_s: float, objection: Objection
    ) -> CallOutcome:
        """Send one repository_dispatch, waiting out a rate limit for at most `patience_s`.

        `objection` is asked right before each sending: whatever it answers but "" is REFUSED.
        """
        ...

    async def comment(
        self, repo: str, issue: int, body: str, patience_s: float, objection: Objection
    ) -> CallOutcome:
        """Post one comment on an issue of the organisation."""
        ...

    async def missing(self) -> tuple[str, ...]:
        """Return what keeps the console from dispatching, one sentence each; empty when nothing."""
        ...

    async def authorize_reporter(self, authorization: Sequence[str], peer: str) -> ReporterVerdict:
        """Judge the values of a request's Authorization headers; `peer` is the caller's address."""
        ...


class ScanAsked(Struct, frozen=True, gc=False):
    """What a capex_scan step of a run asks for.

    `first` is the run's first scan, None while there is none. When `compares`, the scan passes
    only if the scored count, of `rule_ids` if there are any, did not rise against it.
    """

    run_id: str
    compares: bool = False
    rule_ids: tuple[str, ...] = ()
    first: ScanResult | None = None


class ScanFound(Struct, frozen=True, gc=False):
    """What a scan came to: its ScanRun, the scored count per rule, and why it failed, if it did.

    `detail` says what was compared when it passed, and `baseline` holds the counts that it was
    compared with. `basis` is what the counts depend on beside the rows.
    """

    scan_run_id: str
    findings: dict[str, int]
    failure: str = ""
    detail: str = ""
    baseline: dict[str, int] = {}
    basis: Basis | None = None


class Scanner(Protocol):
    """The CapEx engine, as far as a capex_scan step needs it."""

    async def scan(self, asked: ScanAsked) -> ScanFound:
        """Evaluate the current feeds, record a ScanRun and compare; a failure is an answer."""
        ...
