"""What was decided waits in the document, numbered for ever, until the chain holds it."""

import msgspec
import pytest
from msgspec.structs import replace

from core_console.decide import outbox
from core_console.decide.commands import (
    ActivatePlaybook,
    CancelRun,
    Command,
    CreatePlaybook,
    DecideApproval,
    Decision,
    DeletePlaybook,
    PausePlaybook,
    RaiseEvent,
    RecordCall,
    RecordScan,
    ReportStep,
    ResumePlaybook,
    RunNow,
    Tick,
    UpdatePlaybook,
)
from core_console.decide.outcome import Code, Refused
from core_console.model.audit import Entry, Outcome
from core_console.model.document import EMPTY, Document
from core_console.model.run import Call
from tests.builders import AUTHOR, NOW, a_spec

LONGEST = "x" * 254 + "@"


def an_entry(detail: str = "It ran") -> Entry:
    return Entry(
        NOW, AUTHOR, "atlas.playbooks.run", "PB-1/PBR-1", Outcome.SUCCESS, detail, "playbook"
    )


def waiting(count: int, detail: str = "It ran") -> Document:
    return outbox.with_entries(EMPTY, [an_entry(detail)] * count)


def numbers(document: Document) -> list[int]:
    return [each.number for each in document.outbox]


def test_entries_are_numbered_in_order_and_a_number_never_repeats() -> None:
    first = outbox.with_entries(EMPTY, [an_entry("a"), an_entry("b")])
    assert [(each.number, each.entry.detail) for each in first.outbox] == [(1, "a"), (2, "b")]
    emptied = outbox.without_recorded(first, 2)
    assert (emptied.outbox, emptied.outbox_number) == ((), 2)
    again = outbox.with_entries(emptied, [an_entry("c")])
    assert (numbers(again), again.outbox_number) == ([3], 3)


def test_no_entries_change_nothing() -> None:
    assert outbox.with_entries(waiting(2), []) == waiting(2)


@pytest.mark.parametrize(
    ("recorded", "left"), [(0, [1, 2, 3]), (1, [2, 3]), (2, [3]), (3, []), (99, [])]
)
def test_only_what_the_chain_holds_leaves_the_document(recorded: int, left: list[int]) -> None:
    document = waiting(3)
    cleared = outbox.without_recorded(document, recorded)
    assert numbers(cleared) == left
    assert replace(cleared, outbox=document.outbox) == document
    assert outbox.without_recorded(cleared, recorded) is cleared


def test_the_size_of_the_outbox_is_its_stored_size_once_it_matters() -> None:
    assert outbox.outbox_bytes(EMPTY) == 0
    assert outbox.outbox_bytes(waiting(16)) == 0
    full = waiting(17)
    assert outbox.outbox_bytes(full) == len(msgspec.json.encode(full.outbox))


def test_a_size_that_is_not_counted_is_within_the_bound() -> None:
    assert outbox.OUTBOX_BYTES_MAX > 16 * 4_000


@pytest.mark.parametrize("detail", ["", "é" * 300, LONGEST * 4, '"\\' * 100])
def test_what_entries_add_is_never_estimated_too_low(detail: str) -> None:
    before, entries = waiting(40), [an_entry(detail)] * 7
    before = replace(before, outbox_number=10**15)
    after = outbox.with_entries(before, entries)
    added = outbox.outbox_bytes(after) - outbox.outbox_bytes(before)
    estimate = outbox.entries_bytes(entries)
    assert added <= estimate <= added + 7 * 40
    assert outbox.entries_bytes([]) == 0


@pytest.mark.parametrize(
    ("command", "new"),
    [
        (CreatePlaybook(AUTHOR, a_spec()), True),
        (UpdatePlaybook(AUTHOR, "PB-1", 1, a_spec()), True),
        (DeletePlaybook(AUTHOR, "PB-1"), True),
        (ActivatePlaybook(AUTHOR, "PB-1", 1), True),
        (PausePlaybook(AUTHOR, "PB-1"), True),
        (ResumePlaybook(AUTHOR, "PB-1"), True),
        (RunNow(AUTHOR, "PB-1"), True),
        (RaiseEvent(agent="risk", event="found"), True),
        (CancelRun(AUTHOR, "PBR-1", "stop"), False),
        (DecideApproval(AUTHOR, "PBR-1", "a", Decision.APPROVE), False),
        (ReportStep("risk", "PBR-1", "a", "success", "", "u"), False),
        (RecordCall("PBR-1", "a", "console-1", Call.ACCEPTED, ""), False),
        (RecordScan("PBR-1", "a", "console-1", "SCAN-1", {}, ""), False),
        (Tick(), False),
    ],
)
def test_whatever_is_in_flight_can_be_ended_while_the_log_is_full(
    command: Command, *, new: bool
) -> None:
    assert outbox.is_new_work(command) is new


def test_the_refusal_while_the_log_is_full_can_be_tried_again() -> None:
    reason = "the audit log cannot be written; try again later"
    assert outbox.unwritable() == Refused(Code.UNAVAILABLE, reason)
