"""The CapEx document: which files are the feeds, what is staged, the scan history, the settings.

Owns what is stored of the CapEx engine. The files themselves are blobs that this document names
by their digest, so a commit swaps a few names and no crash leaves half a feed.
"""

from enum import StrEnum

from msgspec import Struct

from core_console.model.capex import Config, Feed, Figure, Severity
from core_console.model.document import Versioned
from core_console.model.event import Raising
from core_console.model.moment import Moment

CAPEX_FORMAT = 1
"""The format that this code writes; a document of a newer one is refused, never guessed at."""


class LoadedFeed(Struct, frozen=True, gc=False, omit_defaults=True):
    """A feed as it is loaded: the file that it was replaced by, and who committed that."""

    digest: str
    filename: str
    rows: int
    committed_by: str
    committed_at: Moment
    notes: tuple[str, ...] = ()


class StagedFeed(Struct, frozen=True, gc=False, omit_defaults=True):
    """A parsed file that waits to be committed, until `expires_at`."""

    id: str
    feed: Feed
    digest: str
    filename: str
    rows: int
    staged_by: str
    staged_at: Moment
    expires_at: Moment
    notes: tuple[str, ...] = ()


class FeedCounts(Struct, frozen=True, gc=False):
    """One loaded feed in a summary: its file, its rows, and how many have a scored finding."""

    digest: str
    rows: int
    rows_flagged: int
    findings: int


class ScanSummary(Struct, frozen=True, gc=False):
    """The figures of one evaluation; `feeds` are the loaded ones.

    `by_severity` names every severity and `by_rule` every scored rule that was measured.
    """

    findings: int
    by_severity: dict[Severity, int]
    by_rule: dict[str, int]
    dry_run_findings: int
    dq: Figure
    feeds: dict[Feed, FeedCounts]


class ScanTrigger(StrEnum):
    """What a scan run was recorded for."""

    UPLOAD = "UPLOAD"
    MANUAL = "MANUAL"
    CLEAR = "CLEAR"


class ScanRun(Struct, frozen=True, gc=False, omit_defaults=True):
    """What one evaluation came to; `number` grows by one a scan run and never repeats.

    `actor` is who committed or cleared, or the id of the playbook run that scanned.
    """

    id: str
    number: int
    at: Moment
    trigger: ScanTrigger
    actor: str
    summary: ScanSummary
    note: str = ""


class Released(Struct, frozen=True, gc=False):
    """A file that was a feed until then: its blob is kept for a while, for a restored backup."""

    digest: str
    at: Moment


class CapexDocument(Versioned, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The CapEx document.

    `feeds` holds the loaded ones. `stages` and `scans` are oldest first. `raising` holds the
    harness events that wait for the metadoc, `raising_number` the number of the last one that was
    ever put there. Mappings are never changed in place.
    """

    feeds: dict[Feed, LoadedFeed]
    stages: tuple[StagedFeed, ...]
    config: Config
    scans: tuple[ScanRun, ...]
    raising: tuple[Raising, ...] = ()
    raising_number: int = 0
    released: tuple[Released, ...] = ()


EMPTY_CAPEX = CapexDocument(
    format=CAPEX_FORMAT,
    revision=0,
    swap_id="",
    feeds={},
    stages=(),
    config=Config(),
    scans=(),
    outbox=(),
    outbox_number=0,
)
"""A console that no feed was ever staged on."""
