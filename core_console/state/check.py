"""Does a stored document keep every promise of the contract? A separate program in spirit.

Owns the judgement of what is common to all documents and of the metadoc as a whole. It shares the
model's types and nothing else, so that a fault of a rule cannot hide in its check. Never changes
anything, and says nothing but sentences with ids.
"""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from msgspec import Struct

from core_console.model.document import Document, Mark, Versioned
from core_console.model.event import Event
from core_console.model.playbook import AGENTS, Playbook
from core_console.model.run import Run, RunStatus
from core_console.state import check_playbooks, check_runs
from core_console.state.check_words import MAY_BE_SET_BACK, longer

# The contract's (sections 5, 7 and 9), written a second time on purpose.
BUDGET_BYTES = 786_432
PLAYBOOKS_MAX = 100
FINISHED_MAX = 200
EVENTS_MAX = 300
MARKS_MAX = 300
DEPTH_MAX = 3
ATTRIBUTES_MAX = 16

_OF_NO_AGENT = ("schedule", "capex")
"""Who else may stand as an event's agent: a slot that started nothing, and a commit."""


_RESTORE = "state.restore"


class Recorded(Struct, frozen=True, gc=False):
    """The number of a document's last entry in the chain, read before and after the document.

    While a console serves, both the chain and the document go on between two looks.
    """

    before: int = 0
    after: int = 0


def of_metadoc(document: Document, size_bytes: int, recorded: Recorded) -> Iterator[str]:
    """Yield every promise that the metadoc breaks, one sentence each."""
    if size_bytes > BUDGET_BYTES:
        yield f"it has {size_bytes:,} bytes, and the budget is {BUDGET_BYTES:,}"
    yield from of_outbox(document, recorded)
    yield from _counts(document)
    yield from _revisions(document)
    for playbook in document.playbooks.values():
        yield from check_playbooks.of(playbook)
        yield from _finished_of(playbook, document)
    yield from _runs(document)
    for event in document.events.values():
        yield from _event(event)
    yield from _marks(document.marks)


def of_outbox(document: Versioned, recorded: Recorded) -> Iterator[str]:
    """Yield what is wrong with the entries that wait for the chain."""
    numbers = [waiting.number for waiting in document.outbox]
    last = document.outbox_number
    if numbers and numbers != list(range(last - len(numbers) + 1, last + 1)):
        yield f"the outbox is not numbered without a gap up to {last}"
    if last < recorded.before:
        yield f"its last entry is {last}, and the chain holds entry {recorded.before} of it"
    first = numbers[0] if numbers else last + 1
    # A restore moves the numbers on, and its own entry is the first of the new ones.
    goes_on = bool(document.outbox) and document.outbox[0].entry.action == _RESTORE
    if first > recorded.after + 1 and not goes_on:
        yield (
            f"entries {recorded.after + 1} to {first - 1} are neither in the outbox nor in the "
            "chain: the chain, or its end, is lost"
        )


def _counts(document: Document) -> Iterator[str]:
    most = (
        ("playbooks", len(document.playbooks), PLAYBOOKS_MAX),
        ("finished runs", len(document.finished), FINISHED_MAX),
        ("events", len(document.events), EVENTS_MAX),
        ("marks", len(document.marks), MARKS_MAX),
    )
    for name, number, limit in most:
        if number > limit:
            yield f"it has {number} {name}, and {limit} is the most"
    for source, number in document.taken.items():
        if number < 0:
            yield f"the last event taken from {source} has the number {number}"


def _revisions(document: Document) -> Iterator[str]:
    if document.revision < 0 or document.trimmed > document.revision:
        yield f"it is at revision {document.revision} and was trimmed up to {document.trimmed}"
    stood = (
        *((f"playbook {each.id}", each.changed) for each in document.playbooks.values()),
        *((f"run {each.id}", each.revision) for each in document.running.values()),
        *((f"run {each.id}", each.revision) for each in document.finished.values()),
        *((f"event {each.id}", each.revision) for each in document.events.values()),
    )
    for name, revision in stood:
        if not 0 <= revision <= document.revision:
            yield f"{name} changed at revision {revision}, and the document is at another"


def _finished_of(playbook: Playbook, document: Document) -> Iterator[str]:
    """Yield what the playbook's counters leave out of the finished runs that are kept."""
    mine = [run for run in document.finished.values() if run.playbook_id == playbook.id]
    succeeded = sum(run.status is RunStatus.SUCCEEDED for run in mine)
    if playbook.runs_finished < len(mine) or playbook.runs_succeeded < succeeded:
        yield (
            f"playbook {playbook.id} counts {playbook.runs_finished} finished runs and "
            f"{playbook.runs_succeeded} that succeeded, and {len(mine)} and {succeeded} are kept"
        )


def _runs(document: Document) -> Iterator[str]:
    for playbook_id, run in document.running.items():
        if run.playbook_id != playbook_id:
            yield f"run {run.id} in flight stands under playbook {playbook_id}"
        if playbook_id not in document.playbooks:
            yield f"run {run.id} is in flight, and its playbook {playbook_id} is gone"
        yield from check_runs.in_flight(run)
    for run in document.finished.values():
        yield from check_runs.finished(run)
    everyone = (*document.running.values(), *document.finished.values())
    ids = Counter(run.id for run in everyone)
    for run_id in sorted(run_id for run_id, times in ids.items() if times > 1):
        yield f"run {run_id} is there {ids[run_id]} times"
    for run in everyone:
        yield from _copied(run, document.playbooks.get(run.playbook_id))


def _copied(run: Run, playbook: Playbook | None) -> Iterator[str]:
    """Yield that a run of the very spec that is stored carries other steps."""
    if playbook is None or playbook.spec_digest != run.spec_digest:
        return
    if playbook.spec.steps != tuple(step_run.step for step_run in run.steps):
        yield f"run {run.id} has the spec digest of playbook {playbook.id}, and other steps"


def _event(event: Event) -> Iterator[str]:
    name = f"event {event.id}"
    if event.agent not in (*AGENTS, *_OF_NO_AGENT):
        yield f"{name} is of no agent that exists"
    if event.count < 1:
        yield f"{name} came {event.count} times"
    if len(event.attributes) > ATTRIBUTES_MAX:
        yield f"{name} has {len(event.attributes)} attributes, and {ATTRIBUTES_MAX} is the most"
    texts = (("subject", event.subject, 256), ("detail", event.detail, 500))
    yield from longer(name, (*texts, ("eventId", event.external_id, 64)))


def _marks(marks: tuple[Mark, ...]) -> Iterator[str]:
    for mark in marks:
        if mark.agent not in AGENTS or not 0 <= mark.depth <= DEPTH_MAX:
            yield f"the mark of step {mark.step_id} of run {mark.run_id} is of no dispatch"
    for before, after in pairwise(marks):
        if after.claimed_at < before.claimed_at - MAY_BE_SET_BACK:
            yield f"the mark of run {after.run_id} is older than the one before it"
