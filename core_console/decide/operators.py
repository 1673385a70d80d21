"""What operators ask of runs: start one by hand, cancel one.

Owns RunNow and CancelRun.
"""

from itertools import chain

from msgspec.structs import replace

from core_console.decide import runs, screen
from core_console.decide.commands import CancelRun, RunNow
from core_console.decide.context import Context
from core_console.decide.lifecycle import unknown_playbook
from core_console.decide.outcome import Accepted, Code, Outcome, Refused, invalid
from core_console.decide.record import entry, utc_seconds
from core_console.decide.spec import named
from core_console.decide.status import FINAL
from core_console.model.document import Document
from core_console.model.playbook import DispatchAgent, Playbook, PlaybookStatus
from core_console.model.run import Run, RunStatus, StepRun, StepRunStatus, TriggerKind

NOTE_BYTES = 1_000
REQUEST_ID_BYTES = 64

GOES_ON = "a job that has already started at GitHub goes on"


def run_now(document: Document, command: RunNow, context: Context) -> Outcome:
    """Start a run by hand; it needs no trigger, ignores cooldowns and sets none."""
    wrong = (
        *screen.text("request_id", command.request_id, bytes_max=REQUEST_ID_BYTES),
        *screen.text("note", command.note, bytes_max=NOTE_BYTES, prose=True),
    )
    if wrong:
        return invalid(*wrong)
    playbook = document.playbooks.get(command.playbook_id)
    if playbook is None:
        return unknown_playbook(command.playbook_id)
    earlier = _requested(document, command.request_id)
    if earlier is not None:
        return _requested_before(document, earlier, command)
    if playbook.status is not PlaybookStatus.ACTIVE:
        return Refused(
            Code.FAILED_PRECONDITION,
            f"playbook {playbook.id} is {playbook.status}; only an ACTIVE playbook runs",
        )
    in_flight = document.running.get(playbook.id)
    if in_flight is not None:
        return Refused(
            Code.FAILED_PRECONDITION,
            f"playbook {playbook.id} has a run in flight ({in_flight.id}, {in_flight.status})",
        )
    return _started(document, playbook, command, context)


def _started(document: Document, playbook: Playbook, command: RunNow, context: Context) -> Accepted:
    why = runs.Start(
        trigger=TriggerKind.MANUAL,
        initiator=command.actor,
        request_id=command.request_id,
        note=command.note,
    )
    moved = runs.start(document, playbook, why, context)
    sentence = (
        f"{command.actor} started run {moved.run.id} of playbook {playbook.id} at revision "
        f"{playbook.revision} (spec sha256 {playbook.spec_digest})"
    )
    record = entry(context, command.actor, "atlas.playbooks.run", runs.ids_of(moved.run), sentence)
    return runs.put(document, moved, record)


def _requested(document: Document, request_id: str) -> Run | None:
    """Return the kept run that was started under this request id."""
    if not request_id:
        return None
    kept = chain(document.running.values(), document.finished.values())
    return next((run for run in kept if run.request_id == request_id), None)


def _requested_before(document: Document, run: Run, command: RunNow) -> Outcome:
    same = (command.playbook_id, command.note, command.actor)
    if (run.playbook_id, run.note, run.initiator) == same:
        return Accepted(document, run, duplicate=True)
    return Refused(
        Code.FAILED_PRECONDITION,
        f"request_id: run {run.id} was started under it with another playbook, note or caller; "
        "take a new request_id",
    )


def cancel_run(document: Document, command: CancelRun, context: Context) -> Outcome:
    """Cancel a run in flight: the current step is CANCELLED, later ones are SKIPPED."""
    wrong = screen.text("note", command.note, bytes_max=NOTE_BYTES, prose=True, required=True)
    if wrong:
        return invalid(*wrong)
    run = runs.find(document, command.run_id)
    if run is None:
        return unknown_run(command.run_id)
    if run.status in FINAL:
        return _ended_before(document, run, command)
    index = runs.current_index(run)
    cancelled = replace(
        run.steps[index],
        status=StepRunStatus.CANCELLED,
        decided_by=command.actor,
        decision_note=command.note,
    )
    why = f"cancelled by {command.actor}; {GOES_ON}"
    moved = runs.end_step(run, index, cancelled, context, why=why)
    sentence = f"{command.actor} cancelled run {run.id} of playbook {run.playbook_id}; {GOES_ON}"
    ids = runs.ids_of(run, cancelled.step.id)
    record = entry(context, command.actor, "atlas.playbooks.run.cancel", ids, sentence)
    return runs.put(document, moved, record)


def unknown_run(run_id: str) -> Refused:
    """Return the refusal of an id that no kept run has."""
    return Refused(Code.NOT_FOUND, f"{named('run', run_id)} does not exist, or is no longer kept")


def _ended_before(document: Document, run: Run, command: CancelRun) -> Outcome:
    who = next((step.decided_by for step in reversed(run.steps) if step.decided_by), "")
    if run.status is RunStatus.CANCELLED and who == command.actor:
        return Accepted(document, run, duplicate=True)
    return Refused(Code.FAILED_PRECONDITION, f"run {run.id} is {run.status} ({ended(run)})")


def ended(run: Run) -> str:
    """Return who ended a finished run and when."""
    last = next((step for step in reversed(run.steps) if step.finished_at), run.steps[-1])
    when = f" at {utc_seconds(run.finished_at)}" if run.finished_at else ""
    return f"by {_ender(last)}{when}"


def _ender(last: StepRun) -> str:
    if last.decided_by:
        return last.decided_by
    if last.conclusion and isinstance(last.step.action, DispatchAgent):
        return f"agent:{last.step.action.agent}"
    timed = last.status in {StepRunStatus.TIMED_OUT, StepRunStatus.EXPIRED}
    return runs.TICKER if timed else runs.ENGINE
