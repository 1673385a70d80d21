"""The latest report of each agent, and the event that waits to tell of it.

Owns what becomes of the reports document. The swap that stores a report also stores the event to
raise, so that no crash loses or doubles one; the same report again within 24 hours raises nothing
(contract, section 6). A refused command changes nothing.
"""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from core_console.decide import record
from core_console.decide.agent_reports import Told
from core_console.decide.capex_commands import ClearRaised
from core_console.decide.context import Context
from core_console.decide.outcome import Carried, Code, Refused
from core_console.model.audit import Entry
from core_console.model.capex_document import Released
from core_console.model.event import Chain, Raising
from core_console.model.reports import LatestReport, ReportsDocument

SUBJECT = "report"

SAME_FOR = timedelta(hours=24)
"""How long the same report raises nothing (contract, section 6)."""

SEEN_MAX = 1_000
"""Different reports of one agent in 24 hours, one every 90 seconds: their digests have 100 KB."""

RAISING_MAX = 8
"""Events that wait for the metadoc, each with the rows of a whole report: 10 MB in one swap."""

RELEASED_FOR = timedelta(hours=24)
RELEASED_MAX = 50
"""A report that falls off is only deleted sooner; its file has lain there for a day in any case."""

_EVENT_DIGITS = 16


class StoreReport(Struct, frozen=True, gc=False):
    """Keep a report, which is the blob of that digest, as the agent's latest.

    `chain` is what the metadoc knew of the report's causes once it had come.
    """

    told: Told
    digest: str
    size_bytes: int
    chain: Chain


ReportsCommand = StoreReport | ClearRaised


class ReportsAccepted(Carried[ReportsDocument, LatestReport], frozen=True, gc=False):
    """A command that was carried out on the reports document."""


ReportsOutcome = ReportsAccepted | Refused


def action_of(agent: str) -> str:
    """Return what a record calls a report of that agent."""
    return f"atlas.reports.{agent}"


def is_new_work(command: ReportsCommand) -> bool:
    """Say whether the command starts something, rather than ending what is in flight."""
    return isinstance(command, StoreReport)


def decide(document: ReportsDocument, command: ReportsCommand, context: Context) -> ReportsOutcome:
    """Return what the command makes of the document; the document given is never changed."""
    match command:
        case StoreReport():
            return _store(document, command, context)
        case ClearRaised():
            return _clear_raised(document, command)
        case _ as never:
            assert_never(never)


def _store(document: ReportsDocument, command: StoreReport, context: Context) -> ReportsOutcome:
    agent = command.told.agent
    seen = _still_seen(document.seen.get(agent, {}), context.now)
    latest = document.latest.get(agent)
    if command.digest in seen:
        if latest is not None and latest.digest == command.digest:
            return ReportsAccepted(document, latest, duplicate=True)
        return _came_back(document, command, seen[command.digest], context)
    if len(document.raising) >= RAISING_MAX:
        return Refused(
            Code.UNAVAILABLE,
            f"the events of {len(document.raising)} earlier reports wait to be raised; "
            "try again later",
        )
    if len(seen) >= SEEN_MAX:
        return Refused(
            Code.RESOURCE_EXHAUSTED,
            f"{agent} sent {SEEN_MAX:,} different reports within 24 hours; try again later",
        )
    return _stored(document, command, seen, context)


def _stored(
    document: ReportsDocument, command: StoreReport, seen: dict[str, datetime], context: Context
) -> ReportsAccepted:
    latest = _latest(command, context)
    raising = _raising(document, command)
    changed = replace(
        _with_latest(document, latest, context),
        seen=document.seen | {latest.agent: seen | {latest.digest: context.now}},
        raising=(*document.raising, raising),
        raising_number=raising.number,
    )
    said = _entry(command, f"{_sentence(command)}; event {raising.id} tells of it", context)
    return ReportsAccepted(changed, latest, (said,))


def _came_back(
    document: ReportsDocument, command: StoreReport, first_at: datetime, context: Context
) -> ReportsAccepted:
    """Make an earlier report the latest again; its event was raised when it came first."""
    latest = _latest(command, context)
    changed = _with_latest(document, latest, context)
    since = f"the same came at {record.utc_seconds(first_at)}, so no event is raised"
    said = _entry(command, f"{_sentence(command)}; {since}", context)
    return ReportsAccepted(changed, latest, (said,), duplicate=True)


def _still_seen(seen: dict[str, datetime], now: datetime) -> dict[str, datetime]:
    return {digest: at for digest, at in seen.items() if now - at < SAME_FOR}


def _latest(command: StoreReport, context: Context) -> LatestReport:
    told = command.told
    return LatestReport(
        agent=told.agent,
        at=context.now,
        digest=command.digest,
        size_bytes=command.size_bytes,
        items=told.items,
        attributes=told.attributes,
        caused_by_run_id=told.caused_by_run_id,
    )


def _with_latest(
    document: ReportsDocument, latest: LatestReport, context: Context
) -> ReportsDocument:
    """Return the document with that latest report; the one that it replaces is released."""
    before = document.latest.get(latest.agent)
    lost = () if before is None else (Released(before.digest, context.now),)
    still = (each for each in document.released if context.now - each.at < RELEASED_FOR)
    return replace(
        document,
        latest=document.latest | {latest.agent: latest},
        released=(*still, *lost)[-RELEASED_MAX:],
    )


def _raising(document: ReportsDocument, command: StoreReport) -> Raising:
    """Return the event to raise; its id follows from the report and its number here.

    With the digest alone a report that comes again after its 24 hours would raise nothing.
    """
    told, number = command.told, document.raising_number + 1
    stored = f"{told.agent}/{command.digest}/{number}"
    return Raising(
        number=number,
        id=f"PBE-{sha256(stored.encode()).hexdigest()[:_EVENT_DIGITS]}",
        agent=told.agent,
        event=told.event,
        detail=f"report sha256 {command.digest}",
        attributes=told.attributes,
        rows=told.rows,
        caused_by_run_id=told.caused_by_run_id,
        chain=command.chain,
    )


def _sentence(command: StoreReport) -> str:
    told = command.told
    return f"{told.actor} reported {told.items} items (sha256 {command.digest})"


def _entry(command: StoreReport, sentence: str, context: Context) -> Entry:
    told = command.told
    ids = (told.agent, command.digest)
    return record.entry(context, told.actor, action_of(told.agent), ids, sentence, subject=SUBJECT)


def _clear_raised(document: ReportsDocument, command: ClearRaised) -> ReportsAccepted:
    left = tuple(each for each in document.raising if each.number > command.number)
    if left == document.raising:
        return ReportsAccepted(document)
    return ReportsAccepted(replace(document, raising=left))
