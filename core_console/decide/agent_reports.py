"""The reports of datagov, recon and the judge: what they may hold, and the event that they make.

Owns the bounds of a report and the attributes and rows of its harness event (contract, section 6).
Nothing is stored here: what this module has read out is what may be.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from core_console.decide import screen
from core_console.decide.outcome import Refused, Violation, invalid
from core_console.decide.spec import ID_RULE, is_id
from core_console.model.reports import (
    Control,
    DatagovReport,
    Finding,
    Judgement,
    JudgeReport,
    Recon,
    ReconReport,
    Report,
)

ITEMS_MAX = 2_000
"""A report of 1 MiB in which each item has its 500 bytes of words."""

CONNECTIONS_MAX = 1_000_000
"""No organisation keeps more by hand; a larger figure is a fault of the agent."""

NAME_BYTES = 256
"""A name is matched as an event's attribute, so it has an attribute's bound (contract, 2)."""

WORDS_BYTES = 500
"""A detail's bound everywhere (contract, section 2)."""


class Told(Struct, frozen=True, gc=False, kw_only=True):
    """What a report that keeps the bounds says: its harness event, in all but its id.

    `items` counts its findings, verdicts or judgements; `rows` are those to be matched.
    """

    agent: str
    event: str
    items: int
    attributes: dict[str, str]
    rows: tuple[dict[str, str], ...] = ()
    caused_by_run_id: str = ""

    @property
    def actor(self) -> str:
        """The agent, as far as the App's bearer vouches for it."""
        return f"agent:{self.agent}"


def read_out(report: Report) -> Told | Refused:
    """Return what the report says, or the refusal of one that does not keep the bounds."""
    wrong = tuple(_violations(report))
    if wrong:
        return invalid(*wrong)
    return replace(_told(report), caused_by_run_id=report.caused_by_run_id or "")


def _told(report: Report) -> Told:
    match report:
        case DatagovReport():
            return _told_by_datagov(report)
        case ReconReport():
            return _told_by_recon(report)
        case JudgeReport():
            return _told_by_judge(report)
        case _ as never:
            assert_never(never)


def _told_by_datagov(report: DatagovReport) -> Told:
    counts = Counter(each.verdict for each in report.findings)
    # Any row that matches is enough, so two alike are one.
    rows = {_row_key(each): _row(each) for each in report.findings if each.verdict in _MATCHED}
    return Told(
        agent="datagov",
        event="findings.reported",
        items=len(report.findings),
        attributes={
            "fail_count": str(counts[Control.FAILED]),
            "warn_count": str(counts[Control.WARNED]),
        },
        rows=tuple(rows.values()),
    )


_MATCHED = frozenset({Control.FAILED, Control.WARNED})


def _row(finding: Finding) -> dict[str, str]:
    return {
        "control": finding.control,
        "verdict": finding.verdict,
        "domain": finding.domain,
        "connection": finding.connection,
    }


def _row_key(finding: Finding) -> tuple[str, ...]:
    return tuple(_row(finding).values())


def _told_by_recon(report: ReconReport) -> Told:
    counts = Counter(each.verdict for each in report.verdicts)
    counted = {each.value: str(counts[each]) for each in (Recon.DRIFT, Recon.SHADOW, Recon.MISSING)}
    return Told(
        agent="recon",
        event="recon.reported",
        items=len(report.verdicts),
        attributes=counted | {"tenant": report.tenant},
    )


def _told_by_judge(report: JudgeReport) -> Told:
    counts = Counter(each.outcome for each in report.judgements)
    return Told(
        agent="judge",
        event="judgements.reported",
        items=len(report.judgements),
        attributes={
            "dissent": str(counts[Judgement.DISSENT]),
            "unable": str(counts[Judgement.UNABLE_TO_JUDGE]),
        },
    )


def _violations(report: Report) -> Iterator[Violation]:
    if report.caused_by_run_id is not None:
        yield from _id("causedByRunId", report.caused_by_run_id)
    match report:
        case DatagovReport():
            yield from _datagov(report)
        case ReconReport():
            yield from _recon(report)
        case JudgeReport():
            yield from _judge(report)
        case _ as never:
            assert_never(never)


def _datagov(report: DatagovReport) -> Iterator[Violation]:
    if report.agent != "datagov":
        yield Violation("agent", "is not datagov, whose door this is")
    if not 0 <= report.connections_assessed <= CONNECTIONS_MAX:
        yield Violation("connectionsAssessed", f"is not 0 to {CONNECTIONS_MAX}")
    yield from _many("findings", report.findings)
    for number, each in enumerate(report.findings[:ITEMS_MAX]):
        path = f"findings[{number}]"
        yield from _name(f"{path}.control", each.control)
        yield from _one_of(f"{path}.verdict", each.verdict, Control)
        yield from screen.text(f"{path}.domain", each.domain, bytes_max=NAME_BYTES)
        yield from screen.text(f"{path}.connection", each.connection, bytes_max=NAME_BYTES)
        yield from screen.text(f"{path}.detail", each.detail, bytes_max=WORDS_BYTES)


def _recon(report: ReconReport) -> Iterator[Violation]:
    yield from _name("tenant", report.tenant)
    yield from _many("verdicts", report.verdicts)
    for number, each in enumerate(report.verdicts[:ITEMS_MAX]):
        path = f"verdicts[{number}]"
        yield from _name(f"{path}.rule", each.rule)
        yield from _one_of(f"{path}.verdict", each.verdict, Recon)
        yield from screen.text(f"{path}.detail", each.detail, bytes_max=WORDS_BYTES)


def _judge(report: JudgeReport) -> Iterator[Violation]:
    yield from _many("judgements", report.judgements)
    for number, each in enumerate(report.judgements[:ITEMS_MAX]):
        path = f"judgements[{number}]"
        yield from _name(f"{path}.id", each.id)
        yield from _one_of(f"{path}.outcome", each.outcome, Judgement)
        yield from screen.text(f"{path}.reason", each.reason, bytes_max=WORDS_BYTES)


def _id(field: str, value: str) -> Iterable[Violation]:
    return screen.flaws(field, value) if is_id(value) else (Violation(field, ID_RULE),)


def _name(field: str, value: str) -> Iterable[Violation]:
    if not value.strip():
        return (Violation(field, "is required"),)
    return screen.text(field, value, bytes_max=NAME_BYTES)


def _one_of(field: str, value: str, words: type[StrEnum]) -> Iterator[Violation]:
    if value not in tuple(words):
        yield Violation(field, f"is not one of {', '.join(words)}")


def _many(field: str, items: Sequence[object]) -> Iterator[Violation]:
    if len(items) > ITEMS_MAX:
        yield Violation(field, f"has {len(items):,} items; at most {ITEMS_MAX:,}")
