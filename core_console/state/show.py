"""What a root holds at a glance: each document's revision, counts, and who holds what.

Owns the figures alone; how people see them is the command line's.
"""

from collections import Counter
from datetime import datetime

from msgspec import Struct

from core_console.model.capex_document import CapexDocument
from core_console.model.document import Document, Versioned
from core_console.model.reports import ReportsDocument
from core_console.state.parts import Part


class Shown(Struct, frozen=True, gc=False):
    """One document; `waiting` counts the entries that the chain does not hold yet."""

    name: str
    revision: int
    size_bytes: int
    waiting: int
    holds: str


class Claim(Struct, frozen=True, gc=False, omit_defaults=True):
    """A run in flight: the step that it is at, and the process that holds it."""

    run_id: str
    playbook_id: str
    step_id: str
    status: str
    held_by: str = ""
    since: datetime | None = None
    deadline: datetime | None = None


class State(Struct, frozen=True, gc=False):
    """A root; `served` says whether a replica serves it now."""

    served: bool
    records: int
    documents: tuple[Shown, ...]
    in_flight: tuple[Claim, ...]


def shown(part: Part, recorded: int) -> Shown:
    """Return one document at a glance; `recorded` is its last number in the chain."""
    waiting = sum(each.number > recorded for each in part.document.outbox)
    document = part.document
    return Shown(part.name, document.revision, len(part.data), waiting, _holds(document))


def claims(document: Document) -> tuple[Claim, ...]:
    """Return who holds which run in flight, by the runs' start."""
    found = []
    for run in sorted(document.running.values(), key=lambda each: each.started_at):
        at = next(each for each in run.steps if each.finished_at is None)
        found.append(
            Claim(
                run_id=run.id,
                playbook_id=run.playbook_id,
                step_id=at.step.id,
                status=at.status,
                held_by=at.claimed_by,
                since=at.claimed_at,
                deadline=at.deadline,
            )
        )
    return tuple(found)


def _holds(document: Versioned) -> str:
    match document:
        case Document():
            standing = Counter(each.status for each in document.playbooks.values())
            told = ", ".join(f"{number} {status}" for status, number in sorted(standing.items()))
            return (
                f"{len(document.playbooks)} playbooks{f' ({told})' if told else ''}, "
                f"{len(document.running)} runs in flight, {len(document.finished)} finished, "
                f"{len(document.events)} events"
            )
        case CapexDocument():
            return (
                f"{len(document.feeds)} feeds, {len(document.stages)} staged files, "
                f"{len(document.scans)} scan runs, {len(document.raising)} events to raise"
            )
        case ReportsDocument():
            return f"{len(document.latest)} reports, {len(document.raising)} events to raise"
        case _:
            raise TypeError(type(document).__name__)
