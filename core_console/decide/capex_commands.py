"""What can be asked of the CapEx document: one frozen struct a command.

Owns the commands and nothing of how they are decided. `actor` is who asks: an operator's
normalised e-mail, `system:ticker` or `system:engine`. Nothing here evaluates: a command brings
the figures along, and what they were worked out from.
"""

from msgspec import Struct

from core_console.model.capex import Config, Feed
from core_console.model.capex_document import ScanSummary


class Evaluated(Struct, frozen=True, gc=False):
    """The figures of an evaluation, and the files (by digest) and settings behind them."""

    digests: dict[Feed, str]
    config: Config
    summary: ScanSummary


class StageFeed(Struct, frozen=True, gc=False):
    """Hold a parsed file, whose bytes are kept as the blob of that digest."""

    actor: str
    feed: Feed
    filename: str
    digest: str
    rows: int
    notes: tuple[str, ...] = ()


class CommitIngest(Struct, frozen=True, gc=False):
    """Replace each staged feed; `attributes` and `rows` are those of the event to raise."""

    actor: str
    stage_ids: tuple[str, ...]
    note: str
    evaluated: Evaluated
    attributes: dict[str, str]
    rows: tuple[dict[str, str], ...]


class ClearFeed(Struct, frozen=True, gc=False):
    """Empty one feed."""

    actor: str
    feed: Feed
    note: str
    evaluated: Evaluated


class UpdateConfig(Struct, frozen=True, gc=False):
    """Replace the settings."""

    actor: str
    config: Config


class RecordScanRun(Struct, frozen=True, gc=False):
    """Keep the figures that a playbook run's capex_scan step worked out of the current feeds."""

    run_id: str
    evaluated: Evaluated
    actor: str = "system:engine"


class ClearRaised(Struct, frozen=True, gc=False):
    """Forget the harness events up to that number: the metadoc has taken them."""

    number: int
    actor: str = "system:engine"


class Expire(Struct, frozen=True, gc=False):
    """Drop the stages whose time is up, and the names of released files kept long enough."""

    actor: str = "system:ticker"


CapexCommand = (
    StageFeed | CommitIngest | ClearFeed | UpdateConfig | RecordScanRun | ClearRaised | Expire
)
