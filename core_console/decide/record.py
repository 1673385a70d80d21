"""The sentence that every decision leaves for the audit chain.

Owns how an entry is made. A sentence has ids, who and what; never a name, note, prompt or detail
that somebody wrote: those may be long, and the chain cannot forget.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

from core_console.decide.context import Context
from core_console.model.audit import Entry, Outcome

SUBJECT = "playbook"
CAPEX = "capex"


def entry(
    context: Context,
    actor: str,
    action: str,
    ids: Sequence[str],
    sentence: str,
    *,
    outcome: Outcome = Outcome.SUCCESS,
    subject: str = SUBJECT,
) -> Entry:
    """Return the entry of one decision, about a playbook unless `subject` says otherwise.

    `ids` go from the outside in.
    """
    return Entry(
        at=context.now,
        actor=actor,
        action=action,
        target="/".join(ids),
        outcome=outcome,
        detail=sentence,
        subject=subject,
    )


def capex_entry(
    context: Context, actor: str, word: str, ids: Sequence[str], sentence: str
) -> Entry:
    """Return the entry of one decision about the feeds."""
    return entry(context, actor, f"atlas.capex.{word}", ids, sentence, subject=CAPEX)


def utc_seconds(at: datetime) -> str:
    """Return the time as RFC 3339 in UTC with whole seconds, as sentences show it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
