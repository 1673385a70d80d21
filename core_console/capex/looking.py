"""Looking at the feeds: what is stored, what it evaluates to, and where that comes from.

Owns the provenance of every read. *Could not look* is a normal answer with its reason, and never
a figure of zero.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from core_console.capex.evaluation import Evaluation
from core_console.capex.evaluator import Evaluator, Inputs, inputs_of
from core_console.capex.scope import Scope
from core_console.capex.summary import summarise
from core_console.capex.writer import Writer
from core_console.decide import staging
from core_console.model.capex import Basis, Config, Feed, Provenance, Source
from core_console.model.capex_document import CapexDocument, FeedCounts, ScanSummary
from core_console.ports import Fault


@dataclass(frozen=True, slots=True)
class Unseen:
    """The feeds could not be looked at; the provenance is UNAVAILABLE and has the reason."""

    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Stored:
    """The document as it is stored, for what needs no evaluation."""

    document: CapexDocument
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Seen:
    """Feeds as they were evaluated; `inputs` is all that the evaluation depends on."""

    document: CapexDocument
    inputs: Inputs
    evaluation: Evaluation
    summary: ScanSummary
    provenance: Provenance


class Eyes:
    """Reads the document and evaluates its feeds."""

    def __init__(self, *, writer: Writer, evaluator: Evaluator, scope: Callable[[], Scope]) -> None:
        self._writer = writer
        self._evaluator = evaluator
        self.scope = scope

    async def stored(self) -> Stored | Unseen:
        """Return what is stored; a store that cannot be asked is an answer too."""
        try:
            document = await self._writer.snapshot()
        except Fault as fault:
            return unseen(fault)
        source = source_of(staging.loaded(document), document.config)
        return Stored(document, Provenance(source))

    async def look(self) -> Seen | Unseen:
        """Return the current feeds, evaluated; what cannot be read is an answer too."""
        try:
            document = await self._writer.snapshot()
            return await self.see(document, staging.loaded(document))
        except Fault as fault:
            return unseen(fault)

    async def see(self, document: CapexDocument, digests: Mapping[Feed, str]) -> Seen:
        """Return the feeds of these digests, evaluated; raise Fault when one cannot be read."""
        inputs = inputs_of(digests, document.config, self.scope())
        evaluation = await self._evaluator.evaluate(inputs)
        return Seen(
            document=document,
            inputs=inputs,
            evaluation=evaluation,
            summary=figures(evaluation, digests),
            provenance=Provenance(source_of(digests, document.config), evaluation.unmeasured),
        )


def unseen(fault: Fault) -> Unseen:
    """Return the answer of a look that failed."""
    return Unseen(Provenance(Source.UNAVAILABLE, (f"could not look: {fault.message}",)))


def source_of(digests: Mapping[Feed, str], config: Config) -> Source:
    """Return where figures of these feeds come from."""
    if not digests:
        return Source.EMPTY
    return Source.DEFAULT if config.go_live_date is None else Source.LIVE


def figures(evaluation: Evaluation, digests: Mapping[Feed, str]) -> ScanSummary:
    """Return the figures of an evaluation as they are stored and shown."""
    summary = summarise(evaluation)
    return ScanSummary(
        findings=summary.findings,
        by_severity=summary.by_severity,
        by_rule=summary.by_rule,
        dry_run_findings=summary.dry_run_findings,
        dq=summary.dq,
        feeds={
            each.feed: FeedCounts(digests[each.feed], each.rows, each.rows_flagged, each.findings)
            for each in summary.feeds
            if each.loaded
        },
    )


def basis_of(inputs: Inputs) -> Basis:
    """Return what a scan's counts depend on beside the rows."""
    return Basis(
        go_live=inputs.go_live,
        thresholds=inputs.scope.thresholds,
        feeds=tuple(feed for feed, _ in inputs.digests),
        statuses=dict(inputs.scope.statuses),
    )
