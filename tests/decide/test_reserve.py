"""The reserve of a run is never less than what its steps come to."""

from itertools import product

import msgspec
import pytest
from msgspec.structs import replace

from core_console.decide.commands import (
    CancelRun,
    Command,
    DecideApproval,
    Decision,
    RecordCall,
    RecordScan,
    ReportStep,
    Tick,
)
from core_console.decide.decide import decide
from core_console.decide.outcome import Accepted
from core_console.decide.reserve import MARK_BYTES, size_at_most
from core_console.model.capex import Basis, Feed, RuleStatus, Thresholds
from core_console.model.document import Document, Mark
from core_console.model.run import Call, Run
from tests.builders import (
    NOW,
    REPLICA,
    SECOND,
    a_document,
    a_playbook,
    a_run_at,
    approve,
    context,
    detect,
    later,
    notify,
    scan,
)

WIDE = '"' * 1_000
LONGEST = "s" * 64
LINE = '"' * 500
COUNTS = {f"CP-{number:03}": 50_000 for number in range(24)}
BASIS = Basis(
    go_live=NOW.date(),
    thresholds=Thresholds(),
    feeds=tuple(Feed),
    statuses=dict.fromkeys(COUNTS, RuleStatus.PENDING),
)
URL = "https://github.com/" + "o" * 259 + "/actions/runs/17"

STEPS = {
    "dispatch": detect(LONGEST),
    "approval": approve(LONGEST),
    "notify": notify(LONGEST),
    "scan": scan(LONGEST),
}


def endings(kind: str, run: Run) -> list[Command]:
    """Return what can end the step, each with the longest texts that it may have."""
    commands: list[Command] = [CancelRun(SECOND, run.id, WIDE), Tick()]
    match kind:
        case "dispatch":
            commands += [
                ReportStep("datagov", run.id, LONGEST, "cancelled", LINE, URL),
                ReportStep("datagov", run.id, LONGEST, "success", LINE, URL),
                RecordCall(run.id, LONGEST, REPLICA, Call.REFUSED, LINE),
                RecordCall(run.id, LONGEST, REPLICA, Call.UNKNOWN, LINE),
            ]
        case "approval":
            commands += [
                DecideApproval(SECOND, run.id, LONGEST, decision, WIDE) for decision in Decision
            ]
        case "notify":
            commands += [
                RecordCall(run.id, LONGEST, REPLICA, call, LINE)
                for call in (Call.ACCEPTED, Call.REFUSED, Call.UNKNOWN)
            ]
        case _:
            commands += [
                RecordScan(
                    run.id,
                    LONGEST,
                    REPLICA,
                    "SCAN-" + "x" * 16,
                    COUNTS,
                    failure,
                    LINE,
                    COUNTS,
                    BASIS,
                )
                for failure in ("", LINE)
            ]
    return commands


def run_of(document: Document) -> Run:
    (run,) = (*document.running.values(), *document.finished.values())
    return run


def size(run: Run) -> int:
    return len(msgspec.json.encode(run))


@pytest.mark.parametrize(("kind", "following"), list(product(STEPS, repeat=2)))
def test_no_way_that_a_step_can_end_takes_more_than_was_reserved(kind: str, following: str) -> None:
    after = replace(STEPS[following], id="n" * 64)
    playbook = a_playbook(STEPS[kind], after)
    start = a_document(playbook, a_run_at(playbook, LONGEST))
    reserved = size_at_most(run_of(start))
    for command in endings(kind, run_of(start)):
        now = later(days=8) if isinstance(command, Tick) else NOW
        outcome = decide(start, command, context(now=now))
        assert isinstance(outcome, Accepted), command
        ended = run_of(outcome.document)
        marks = MARK_BYTES * (len(outcome.document.marks) - len(start.marks))
        assert size(ended) + marks <= reserved, command
        if not outcome.document.finished:
            assert size_at_most(ended) + marks <= reserved + size(ended) - size(run_of(start)) + 1


def test_a_mark_with_the_longest_ids_is_no_longer_than_its_bound() -> None:
    mark = Mark("PBR-" + "x" * 60, LONGEST, "compliance", 3, NOW, reported=True)
    assert len(msgspec.json.encode(mark)) < MARK_BYTES


def test_a_run_that_has_ended_its_steps_reserves_no_note_of_a_cancel() -> None:
    playbook = a_playbook(approve("a"), approve("b"))
    earlier, later_on = a_run_at(playbook, "a"), a_run_at(playbook, "b")
    assert size_at_most(later_on) - size(later_on) < size_at_most(earlier) - size(earlier)
