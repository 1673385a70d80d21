"""Staged files: how many may wait and for how long, and what the feeds would be with them.

Owns the caps of staging (CapEx page, section 2). An expired stage counts as gone at once, even
if no tick has dropped it yet.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from core_console.decide import screen
from core_console.decide.outcome import Code, Refused, Violation, invalid
from core_console.decide.record import utc_seconds
from core_console.model.capex import Feed
from core_console.model.capex_document import CapexDocument, StagedFeed

STAGES_MAX = 12  # CapEx page, section 2
STAGED_FOR = timedelta(minutes=30)  # the same
FILENAME_CHARACTERS = 120
"""Longer than any name that people read; it is shown, never opened."""

_SEPARATORS = ("/", "\\")


def pending(document: CapexDocument, now: datetime) -> tuple[StagedFeed, ...]:
    """Return the stages that may still be committed, oldest first."""
    return tuple(each for each in document.stages if now < each.expires_at)


def objection(document: CapexDocument, filename: str, now: datetime) -> Refused | None:
    """Return why no file of that name may be staged now, None when one may."""
    wrong = _filename_violations(filename)
    if wrong:
        return invalid(*wrong)
    waiting = pending(document, now)
    if len(waiting) < STAGES_MAX:
        return None
    oldest = min(each.expires_at for each in waiting)
    return Refused(
        Code.RESOURCE_EXHAUSTED,
        f"{len(waiting)} files are staged, which is the most; commit some, or wait: the oldest "
        f"expires at {utc_seconds(oldest)}",
    )


def _filename_violations(filename: str) -> tuple[Violation, ...]:
    field = "filename"
    wrong = screen.characters(field, filename, least=1, most=FILENAME_CHARACTERS)
    if not wrong and any(each in filename for each in _SEPARATORS):
        return (Violation(field, "holds a path separator; send the file's name alone"),)
    return wrong


def chosen(
    document: CapexDocument, stage_ids: Sequence[str], now: datetime
) -> tuple[StagedFeed, ...] | Refused:
    """Return the stages of those ids, at most one a feed, or why they cannot be taken."""
    if not 1 <= len(stage_ids) <= len(Feed):
        said = f"has {len(stage_ids)} items; it takes 1 to {len(Feed)}, at most one a feed"
        return invalid(Violation("stage_ids", said))
    waiting = {each.id: each for each in pending(document, now)}
    found: dict[Feed, StagedFeed] = {}
    wrong: list[Violation] = []
    for number, stage_id in enumerate(stage_ids):
        stage = waiting.get(stage_id)
        if stage is None:
            wrong.append(Violation(f"stage_ids[{number}]", _GONE))
        elif stage.feed in found:
            said = f"is a second stage of {stage.feed}; take at most one a feed"
            wrong.append(Violation(f"stage_ids[{number}]", said))
        else:
            found[stage.feed] = stage
    return invalid(*wrong) if wrong else tuple(found[feed] for feed in Feed if feed in found)


_GONE = (
    "is no stage that waits: it was committed, has expired (a stage is held for "
    f"{STAGED_FOR.seconds // 60} minutes) or never was; stage the file again"
)


def loaded(document: CapexDocument) -> dict[Feed, str]:
    """Return the digests of the current feeds."""
    return {feed: document.feeds[feed].digest for feed in Feed if feed in document.feeds}


def overlaid(document: CapexDocument, stages: Sequence[StagedFeed]) -> dict[Feed, str]:
    """Return the digests of the feeds as they would be with these stages committed."""
    return loaded(document) | {each.feed: each.digest for each in stages}


def without(document: CapexDocument, feed: Feed) -> dict[Feed, str]:
    """Return the digests of the current feeds but that one."""
    return {each: digest for each, digest in loaded(document).items() if each is not feed}
