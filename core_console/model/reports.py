"""What the three reporting agents say, and the document that keeps the latest report of each.

Owns the bodies of the agents' report doors and what is stored of them. A report itself is a blob
that the document names by its digest: a document is swapped often, and three reports may have
3 MiB. Never judges a report: that is `decide.agent_reports`.
"""

from enum import StrEnum

from msgspec import Struct

from core_console.model.capex_document import Released
from core_console.model.codec import Codec
from core_console.model.document import Versioned
from core_console.model.event import Raising
from core_console.model.moment import Moment

REPORTS_FORMAT = 1
"""The format that this code writes; a document of a newer one is refused, never guessed at."""


class Control(StrEnum):
    """What datagov found of one control on one connection."""

    PASSED = "pass"
    FAILED = "fail"
    WARNED = "warn"
    UNABLE_TO_ASSESS = "unable-to-assess"


class Recon(StrEnum):
    """How one rule of a tenant stands against the rule book."""

    ALIGNED = "aligned"
    DRIFT = "drift"
    SHADOW = "shadow"
    MISSING = "missing"


class Judgement(StrEnum):
    """What the judge says of one claim."""

    CONCUR = "concur"
    DISSENT = "dissent"
    UNABLE_TO_JUDGE = "unable-to-judge"


# Verdicts arrive as plain texts: a reader's own complaint about a wrong one would repeat it.
class Finding(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One control on one connection; `verdict` is one of `Control`."""

    control: str
    verdict: str
    domain: str
    connection: str
    detail: str = ""


class RuleVerdict(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One rule; `verdict` is one of `Recon`."""

    rule: str
    verdict: str
    detail: str = ""


class Judged(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """One claim; `outcome` is one of `Judgement`."""

    id: str
    outcome: str
    reason: str = ""


class DatagovReport(
    Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"
):
    """The body of POST /api/data-governance-findings; `agent` is always datagov."""

    agent: str
    connections_assessed: int
    findings: tuple[Finding, ...]
    caused_by_run_id: str | None = None


class ReconReport(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """The body of POST /api/rules-recon/report."""

    tenant: str
    verdicts: tuple[RuleVerdict, ...]
    caused_by_run_id: str | None = None


class JudgeReport(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """The body of POST /api/judgements."""

    judgements: tuple[Judged, ...]
    caused_by_run_id: str | None = None


Report = DatagovReport | ReconReport | JudgeReport


class LatestReport(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The newest report of one agent: when it came, and the blob that holds it.

    `attributes` are those of its harness event, `items` counts its findings, verdicts or
    judgements.
    """

    agent: str
    at: Moment
    digest: str
    size_bytes: int
    items: int
    attributes: dict[str, str]
    caused_by_run_id: str = ""


class ReportsDocument(Versioned, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The reports document.

    `latest` holds the newest report by agent. `seen` holds, by agent, when each report of the last
    24 hours was first taken, by digest and oldest first. `raising` holds the harness events that
    wait for the metadoc, `raising_number` the number of the last one that was ever put there.
    `released` names the reports that were the latest until then. Mappings are never changed in
    place.
    """

    latest: dict[str, LatestReport]
    seen: dict[str, dict[str, Moment]]
    raising: tuple[Raising, ...] = ()
    raising_number: int = 0
    released: tuple[Released, ...] = ()


EMPTY_REPORTS = ReportsDocument(
    format=REPORTS_FORMAT,
    revision=0,
    swap_id="",
    latest={},
    seen={},
    outbox=(),
    outbox_number=0,
)
"""A console that no agent has reported to."""

REPORTS = Codec(ReportsDocument, version=REPORTS_FORMAT)
