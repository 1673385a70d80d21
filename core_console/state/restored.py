"""What a document of a backup becomes when it is put back: pure, and told in its outbox.

Owns what a restore changes. It starts nothing and sends nothing: runs in flight end FAILED, slots
count from now, harness events that waited are dropped. Numbers only move on, so that nothing that
the chain or a reader knows is given out again.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from core_console.decide import firing, runs
from core_console.decide.outbox import with_entries
from core_console.decide.record import utc_seconds
from core_console.model.audit import Entry, Outcome
from core_console.model.capex_document import CapexDocument
from core_console.model.document import Document, Versioned
from core_console.model.reports import ReportsDocument
from core_console.model.run import Run, RunStatus, StepRunStatus
from core_console.state.parts import Part

ACTION = "state.restore"
SUBJECT = "state"

UNREAD_REVISIONS = 1_000_000
"""How far the revision moves on when the replaced document cannot be read, and so may have been
further than the backup: more swaps than a console makes between two backups."""

D = TypeVar("D", bound=Versioned)


class Why(Struct, frozen=True, gc=False, kw_only=True):
    """Who restores which backup when, as records tell it; `swap_id` names the restore."""

    actor: str
    made_at: datetime
    now: datetime
    swap_id: str

    @property
    def reason(self) -> str:
        """Why a run in flight ended."""
        return f"restored from a backup of {utc_seconds(self.made_at)}"


class Before(Struct, frozen=True, gc=False, kw_only=True):
    """What is known of the document that is replaced, and of the chain.

    `document` is None when it cannot be read. `recorded` is the number of its last entry in the
    chain. `taken` holds, by source, the highest number of a harness event that may be waiting or
    taken anywhere.
    """

    document: Versioned | None
    recorded: int
    taken: dict[str, int]


def restored(part: Part, before: Before, why: Why) -> Versioned:
    """Return the document that is put in place."""
    based = _based(part.document, before)
    entries: list[Entry] = []
    match based:
        case Document():
            based, ended = _without_runs(based, why)
            entries = [_ended(run, why) for run in ended]
            based = _from_now(replace(based, taken=based.taken | before.taken), why)
        case CapexDocument():
            based = replace(_raised(based, part.name, before), stages=(), released=())
        case ReportsDocument():
            based = replace(_raised(based, part.name, before), released=())
        case _:
            raise TypeError(part.name)
    told = with_entries(based, [_told(part, based.revision + 1, len(entries), why), *entries])
    return replace(told, revision=told.revision + 1, swap_id=why.swap_id)


def _based(document: D, before: Before) -> D:
    """Return the backup's document with its numbers above everything that was given out."""
    here = before.document
    if here is None:
        revision, number = document.revision + UNREAD_REVISIONS, document.outbox_number
    else:
        revision = max(document.revision, here.revision)
        number = max(document.outbox_number, here.outbox_number)
    return replace(
        document, revision=revision, outbox=(), outbox_number=max(number, before.recorded)
    )


def _without_runs(document: Document, why: Why) -> tuple[Document, Sequence[Run]]:
    ended = [_failed(run, why) for run in document.running.values()]
    for run in ended:
        document = runs.put(document, runs.Moved(run)).document
    return document, ended


def _failed(run: Run, why: Why) -> Run:
    """Return the run ended where it stood. Such an end is no move of a console's own table."""
    index = runs.current_index(run)
    steps = list(run.steps)
    steps[index] = replace(
        steps[index], status=StepRunStatus.FAILED, finished_at=why.now, detail=why.reason
    )
    steps[index + 1 :] = [
        replace(each, status=StepRunStatus.SKIPPED) for each in steps[index + 1 :]
    ]
    return replace(
        run, status=RunStatus.FAILED, finished_at=why.now, detail=why.reason, steps=tuple(steps)
    )


def _from_now(document: Document, why: Why) -> Document:
    """Return the document whose schedules count from now, and whose watchers begin anew."""
    revision = document.revision + 1
    playbooks = {
        key: replace(each, trigger_states=firing.from_now(each, why.now), changed=revision)
        for key, each in document.playbooks.items()
    }
    # Who watched the replaced document saw what is gone now: to them all of it is a gap.
    return replace(document, playbooks=playbooks, trimmed=revision)


F = TypeVar("F", CapexDocument, ReportsDocument)


def _raised(document: F, name: str, before: Before) -> F:
    """Return the document without the events that waited: what they told of is long past."""
    last = max(document.raising_number, before.taken.get(name, 0))
    return replace(document, raising=(), raising_number=last)


def _told(part: Part, revision: int, ended: int, why: Why) -> Entry:
    dropped = len(getattr(part.document, "raising", ()))
    what = f"{part.name} is {why.reason}, at revision {part.document.revision}; it goes on at "
    more = f"{revision}; {ended} runs in flight ended FAILED, {dropped} events were dropped"
    return Entry(
        at=why.now,
        actor=why.actor,
        action=ACTION,
        target=part.name,
        outcome=Outcome.SUCCESS,
        detail=what + more,
        subject=SUBJECT,
    )


def _ended(run: Run, why: Why) -> Entry:
    return Entry(
        at=why.now,
        actor=runs.ENGINE,
        action="atlas.playbooks.run.end",
        target="/".join(runs.ids_of(run)),
        outcome=Outcome.SUCCESS,
        detail=f"run {run.id} of playbook {run.playbook_id} ended FAILED: {why.reason}",
        subject="playbook",
    )
