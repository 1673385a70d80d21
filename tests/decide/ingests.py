"""CapEx documents, commands and verdicts to start a test of a decision from."""

from datetime import datetime
from typing import Any

from msgspec.structs import replace

from core_console.decide import staging
from core_console.decide.capex import decide
from core_console.decide.capex_commands import (
    CapexCommand,
    ClearFeed,
    CommitIngest,
    Evaluated,
    StageFeed,
)
from core_console.decide.context import Context
from core_console.decide.outcome import CapexAccepted, CapexOutcome, Refused
from core_console.model.capex import Config, Feed, Figure
from core_console.model.capex_document import (
    EMPTY_CAPEX,
    CapexDocument,
    LoadedFeed,
    ScanSummary,
    StagedFeed,
)
from core_console.model.codec import CAPEX
from core_console.model.event import Raising
from tests.builders import AUTHOR, NOW, SECOND
from tests.builders import context as a_context

PLAN, REQUEST, SPEND = Feed.CAPITAL_PLAN, Feed.CAPITAL_REQUEST, Feed.SPEND
EVENT_FACTS: dict[str, Any] = {
    "attributes": {"findings": "3", "dq": "0.9000"},
    "rows": ({"rule_id": "CP-001"},),
}


def staged(number: int = 1, feed: Feed = PLAN, at: datetime = NOW) -> StagedFeed:
    """Return a stage whose file has a digest of its own."""
    return StagedFeed(
        id=f"STG-{number}",
        feed=feed,
        digest=f"{feed}-{number}",
        filename=f"{feed}.csv",
        rows=10,
        staged_by=AUTHOR,
        staged_at=at,
        expires_at=at + staging.STAGED_FOR,
        notes=("a column is ignored",),
    )


def loaded(digest: str = "plan-0") -> LoadedFeed:
    """Return a feed that the second operator committed."""
    return LoadedFeed(digest, "old.csv", 5, SECOND, NOW)


def a_document(*stages: StagedFeed, **changes: Any) -> CapexDocument:  # noqa: ANN401 -- any field
    """Return a document with these stages and one loaded feed."""
    document = replace(EMPTY_CAPEX, revision=10, stages=stages, feeds={PLAN: loaded()})
    return replace(document, **changes)


def a_summary(findings: int = 3) -> ScanSummary:
    """Return figures; what they say is nothing to a decision."""
    return ScanSummary(findings, {}, {"CP-001": findings}, 0, Figure(None, "none"), {})


def figures(digests: dict[Feed, str], config: Config | None = None) -> Evaluated:
    """Return the figures of feeds with these digests."""
    return Evaluated(digests, config or Config(), a_summary())


def a_stage(filename: str = "plan.csv") -> StageFeed:
    return StageFeed(AUTHOR, PLAN, filename, "plan-1", 10, ("a note",))


def a_commit(document: CapexDocument, *stage_ids: str, note: str = "") -> CommitIngest:
    """Return the commit of these stages, evaluated on the document as it is."""
    chosen = tuple(each for each in document.stages if each.id in stage_ids)
    digests = staging.overlaid(document, chosen)
    return CommitIngest(AUTHOR, stage_ids, note, figures(digests, document.config), **EVENT_FACTS)


def a_clear(document: CapexDocument, note: str = "") -> ClearFeed:
    """Return the clear of the plan, evaluated on the document as it is."""
    return ClearFeed(AUTHOR, PLAN, note, figures(staging.without(document, PLAN), document.config))


def raising(number: int) -> Raising:
    """Return an event that waits for the metadoc."""
    return Raising(number=number, id=f"PBE-{number}", agent="capex", event="scan.committed")


def decided(
    document: CapexDocument, command: CapexCommand, context: Context | None = None
) -> CapexOutcome:
    """Decide, and prove that the document given still is what it was."""
    before = CAPEX.encode(document)
    outcome = decide(document, command, context or a_context())
    assert CAPEX.encode(document) == before
    if isinstance(outcome, CapexAccepted):
        assert CAPEX.decode(CAPEX.encode(outcome.document)) == outcome.document
    return outcome


def accepted(
    document: CapexDocument, command: CapexCommand, context: Context | None = None
) -> CapexAccepted:
    """Return the acceptance of a command that changes something."""
    outcome = decided(document, command, context)
    assert isinstance(outcome, CapexAccepted), outcome
    assert outcome.document != document
    return outcome


def unchanged(
    document: CapexDocument, command: CapexCommand, context: Context | None = None
) -> CapexAccepted:
    """Return the acceptance of a command that finds nothing to change."""
    outcome = decided(document, command, context)
    assert isinstance(outcome, CapexAccepted), outcome
    assert outcome.document is document
    assert outcome.entries == ()
    return outcome


def refused(
    document: CapexDocument, command: CapexCommand, context: Context | None = None
) -> Refused:
    """Return the refusal."""
    outcome = decided(document, command, context)
    assert isinstance(outcome, Refused), outcome
    return outcome
