"""The decision log: who decided what, as a view of the audit chain.

Owns which records are decisions, and the one word for each. Keeps nothing of its own: a decision
is always a record, and `audit_seq` says which.
"""

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from core_console.decide.outcome import Refused
from core_console.governance.trail import Filters, Trail
from core_console.model.audit import AuditRecord, Outcome


class Word(StrEnum):
    """What happened."""

    CREATED = "created"
    EDITED = "edited"
    ACTIVATED = "activated"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"
    RUN_STARTED = "run started"
    DISPATCHED = "dispatched"
    NOTIFIED = "notified"
    SCANNED = "scanned"
    REPORTED = "reported"
    APPROVED = "approved"
    REJECTED = "rejected"
    DECIDED = "decided"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed out"
    EXPIRED = "expired"
    RUN_ENDED = "run ended"
    SKIPPED = "skipped by guard"


_APPROVAL = "atlas.playbooks.approval.decide"
_EVENT = "atlas.events.raise"

_WORDS = {
    "atlas.playbooks.create": Word.CREATED,
    "atlas.playbooks.draft": Word.CREATED,
    "atlas.playbooks.update": Word.EDITED,
    "atlas.playbooks.activate": Word.ACTIVATED,
    "atlas.playbooks.pause": Word.PAUSED,
    "atlas.playbooks.resume": Word.RESUMED,
    "atlas.playbooks.delete": Word.DELETED,
    "atlas.playbooks.run": Word.RUN_STARTED,
    "atlas.playbooks.run.start": Word.RUN_STARTED,
    "atlas.playbooks.run.cancel": Word.CANCELLED,
    "atlas.playbooks.run.end": Word.RUN_ENDED,
    "atlas.playbooks.run.dispatch": Word.DISPATCHED,
    "atlas.playbooks.run.notify": Word.NOTIFIED,
    "atlas.playbooks.run.scan": Word.SCANNED,
    "atlas.playbooks.run.report": Word.REPORTED,
    "atlas.playbooks.run.timeout": Word.TIMED_OUT,
    "atlas.playbooks.run.expire": Word.EXPIRED,
}

_PLAYBOOK, _RUN, _EVENT_ID = "PB-", "PBR-", "PBE-"


class Decision(Struct, frozen=True, gc=False, kw_only=True):
    """One decision, dispatch or report; `at` is RFC 3339, ids that do not apply are empty."""

    audit_seq: int
    at: str
    subject: str
    actor: str
    decision: Word
    outcome: Outcome
    playbook_id: str = ""
    run_id: str = ""
    step_id: str = ""
    event_id: str = ""
    sentence: str


class DecisionPage(Struct, frozen=True, gc=False):
    """Decisions, newest first, and the token of what follows, "" at the end."""

    decisions: tuple[Decision, ...]
    next_page_token: str


class Decisions:
    """The decisions among the records of a trail.

    A decision is what a document decided, whatever came of it: a dispatch that GitHub refused is
    one. An operator's attempt that was denied is one too, for that is four eyes at work. A call
    that was refused for its form or the state decided nothing, and neither did a caller without
    an identity: both are in the audit trail alone.
    """

    def __init__(self, trail: Trail) -> None:
        self._trail = trail

    async def page(
        self,
        *,
        subject: str = "",
        actor: str = "",
        since: datetime | None = None,
        page_size: int = 0,
        page_token: str = "",
    ) -> DecisionPage | Refused:
        """Return a page of decisions, at or after `since`; a size of 0 means 50.

        Raises:
            Fault: the log cannot be read.
        """
        filters = Filters(subject=subject, actor=actor, since=since, view="decisions")
        page = await self._trail.page(
            filters, page_size=page_size, page_token=page_token, keep=_is_decision
        )
        if isinstance(page, Refused):
            return page
        decisions = (decision_of(record) for record in page.records)
        return DecisionPage(
            tuple(decision for decision in decisions if decision is not None),
            page.next_page_token,
        )


def decision_of(record: AuditRecord) -> Decision | None:
    """Return the decision that the record tells of, None when it tells of none."""
    denied_operator = record.outcome == Outcome.DENIED and "@" in record.actor
    word = _word(record)
    if word is None or not (record.document or denied_operator):
        return None
    ids = record.target.split("/")
    event_id = ids.pop(0) if ids[0].startswith(_EVENT_ID) else ""
    playbook_id = ids.pop(0) if ids and ids[0].startswith(_PLAYBOOK) else ""
    run_id = ids.pop(0) if ids and ids[0].startswith(_RUN) else ""
    return Decision(
        audit_seq=record.seq,
        at=record.at,
        subject=record.subject,
        actor=record.actor,
        decision=word,
        outcome=Outcome(record.outcome),
        playbook_id=playbook_id,
        run_id=run_id,
        step_id=ids[0] if ids and run_id and not event_id else "",
        event_id=event_id,
        sentence=record.detail,
    )


def _is_decision(record: AuditRecord) -> bool:
    return decision_of(record) is not None


def _word(record: AuditRecord) -> Word | None:
    if record.action == _APPROVAL:
        return _approval_word(record.detail)
    if record.action == _EVENT:
        return _event_word(record.target)
    return _WORDS.get(record.action)


def _approval_word(detail: str) -> Word:
    """Return what was decided; an attempt that was denied need not say which way it went."""
    first = detail.partition(" ")[0]
    return Word(first) if first in (Word.APPROVED, Word.REJECTED) else Word.DECIDED


def _event_word(target: str) -> Word | None:
    """Return what the event led to: its id is followed by the runs that it started.

    When it started none, the ids of the playbooks that the guard held back follow it. An event
    that no playbook waits for decides nothing.
    """
    _, *ids = target.split("/")
    if any(name.startswith(_RUN) for name in ids):
        return Word.RUN_STARTED
    return Word.SKIPPED if ids else None
