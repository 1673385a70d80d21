"""The metadoc never outgrows its budget, and nothing in flight is ever given up for room."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from core_console.batch import METADOC
from core_console.decide import budget
from core_console.decide.budget import BUDGET_BYTES, EVENTS_KEPT, FINISHED_KEPT, Ledger
from core_console.decide.commands import (
    CancelRun,
    Command,
    CreatePlaybook,
    DecideApproval,
    Decision,
    RunNow,
    Tick,
)
from core_console.decide.outcome import Accepted, Code, Refused
from core_console.model.codec import encode
from core_console.model.document import Document
from core_console.model.event import Event
from core_console.model.pieces import Pieces
from core_console.model.run import Run, RunStatus
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    a_document,
    a_playbook,
    a_run,
    a_spec,
    approve,
    context,
    detect,
)
from tests.fakes import CountingIds


def an_event(number: int, *, detail: str = "") -> Event:
    return Event(
        id=f"PBE-{number:04}",
        at=NOW + timedelta(seconds=number),
        agent="datagov",
        event="x",
        raised_by="agent:datagov",
        revision=number,
        detail=detail,
    )


def a_finished(number: int, *, detail: str = "") -> Run:
    playbook = a_playbook(approve())
    return a_run(
        playbook,
        id=f"PBR-{number:04}",
        status=RunStatus.CANCELLED,
        detail=detail,
        revision=1_000 + number,
    )


def history(events: int, finished: int, *, bytes_each: int) -> Document:
    """Return a document with that much history, and ten free playbooks."""
    document = a_document(*(a_playbook(approve(), id=f"PB-{n}") for n in range(10)))
    text = "x" * bytes_each
    runs = [a_finished(n, detail=text) for n in range(finished)]
    return replace(
        document,
        revision=10_000,
        events={each.id: each for each in (an_event(n, detail=text) for n in range(events))},
        finished={run.id: run for run in runs},
    )


def decided(document: Document, *commands: Command) -> tuple[Document, list[object]]:
    """Decide a batch as the writer does."""
    ids = CountingIds()
    batch = METADOC.decide_batch(document, commands, lambda _: context(ids=ids))
    return batch.document, list(batch.outcomes)


def test_new_work_that_fits_trims_nothing() -> None:
    document = history(300, 200, bytes_each=100)
    after, (outcome,) = decided(document, RunNow(AUTHOR, "PB-0"))
    assert isinstance(outcome, Accepted)
    assert (len(after.events), len(after.finished), after.trimmed) == (300, 200, 0)


def test_only_as_much_is_trimmed_as_the_new_work_needs_and_the_oldest_events_go_first() -> None:
    document = history(300, 100, bytes_each=1_580)
    after, (outcome,) = decided(document, RunNow(AUTHOR, "PB-0"))
    assert isinstance(outcome, Accepted)
    gone = 300 - len(after.events)
    assert 0 < gone < 300 - EVENTS_KEPT
    assert next(iter(after.events)) == f"PBE-{gone:04}"
    assert (len(after.finished), after.trimmed) == (100, gone - 1)
    assert len(encode(after)) <= BUDGET_BYTES


@pytest.mark.parametrize(
    ("events", "finished", "bytes_each", "kept"),
    [
        (60, 100, 8_000, (EVENTS_KEPT, None)),
        (40, 30, 15_000, (None, FINISHED_KEPT)),
        (50, 20, 14_000, (None, 20)),
        (1, 20, 40_000, (0, None)),
    ],
    ids=["events beyond 50", "finished beyond 20", "remaining events", "remaining finished"],
)
def test_history_is_trimmed_in_the_contracts_order(
    events: int, finished: int, bytes_each: int, kept: tuple[int | None, int | None]
) -> None:
    document = history(events, finished, bytes_each=bytes_each)
    after, (outcome,) = decided(document, RunNow(AUTHOR, "PB-0"))
    assert isinstance(outcome, Accepted)
    assert len(after.events) + len(after.finished) < events + finished
    if kept[0] is not None:
        assert len(after.events) == kept[0]
    if kept[1] is not None:
        assert len(after.finished) == kept[1]
    assert len(encode(after)) <= BUDGET_BYTES


def full() -> Document:
    """Return a document whose playbooks alone leave no room for one more run."""
    text = "x" * 2_000
    steps = [approve(f"s{n}", approver="a" * 240 + "@example.com") for n in range(10)]
    big = a_spec(*steps, description=text)
    playbooks = [a_playbook(id=f"PB-{n}", spec=big) for n in range(100)]
    return a_document(*playbooks)


def test_new_work_without_room_is_refused_by_name_and_changes_nothing() -> None:
    document = full()
    after, outcomes = decided(document, *(RunNow(AUTHOR, f"PB-{n}") for n in range(100)))
    refused = [each for each in outcomes if isinstance(each, Refused)]
    assert refused
    assert {each.code for each in refused} == {Code.RESOURCE_EXHAUSTED}
    assert f"of {BUDGET_BYTES:,}" in refused[0].reason
    assert len(after.running) == 100 - len(refused)
    assert len(encode(after)) <= BUDGET_BYTES


def test_everything_in_flight_can_be_ended_however_full_it_is() -> None:
    document, _ = decided(full(), *(RunNow(AUTHOR, f"PB-{n}") for n in range(100)))
    in_flight = list(document.running.values())
    assert len(in_flight) > 1
    note = '"' * 1_000
    for number, run in enumerate(in_flight):
        commands: list[Command] = [
            DecideApproval(SECOND, run.id, f"s{n}", Decision.APPROVE, note) for n in range(9)
        ]
        if number % 2:
            commands.append(CancelRun(SECOND, run.id, note))
        document, outcomes = decided(document, *commands)
        assert all(isinstance(each, Accepted) for each in outcomes)
        assert len(encode(replace(document, outbox=()))) <= BUDGET_BYTES
        document = replace(document, outbox=())


def test_a_tick_without_room_still_keeps_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    playbook = a_playbook(approve(hours=1))
    document, _ = decided(a_document(playbook), RunNow(AUTHOR, "PB-1"))
    monkeypatch.setattr(budget, "BUDGET_BYTES", 10)
    late = context(now=NOW + timedelta(hours=2))
    batch = METADOC.decide_batch(document, [Tick()], lambda _: late)
    assert isinstance(batch.outcomes[0], Accepted)
    assert [run.status for run in batch.document.finished.values()] == [RunStatus.EXPIRED]


def test_what_is_trimmed_is_never_a_run_in_flight_a_playbook_or_a_mark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = a_document(a_playbook(detect(), id="PB-1"), a_playbook(id="PB-2"))
    document, _ = decided(document, RunNow(AUTHOR, "PB-1"))
    monkeypatch.setattr(budget, "BUDGET_BYTES", 10)
    after, (outcome,) = decided(document, CreatePlaybook(AUTHOR, a_spec()))
    assert isinstance(outcome, Refused)
    assert after is document
    assert len(after.marks) == 1


def test_what_ended_in_this_very_swap_is_not_trimmed_by_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document, _ = decided(history(0, 0, bytes_each=0), RunNow(AUTHOR, "PB-0"))
    document = replace(document, outbox=(), revision=document.revision + 1)
    commands = (CancelRun(AUTHOR, "PBR-1", "x" * 900), RunNow(AUTHOR, "PB-1"))
    both, _ = decided(document, *commands)
    room = Ledger(Pieces()).room(both)
    monkeypatch.setattr(budget, "BUDGET_BYTES", room.needed_bytes - 100)

    after, (cancelled, started) = decided(document, *commands)
    assert isinstance(cancelled, Accepted)
    assert isinstance(started, Refused)
    assert list(after.finished) == ["PBR-1"]

    stored = replace(after, revision=after.revision + 1)
    after, (started,) = decided(stored, RunNow(AUTHOR, "PB-1"))
    assert isinstance(started, Accepted)
    assert after.finished == {}
    assert after.trimmed == stored.revision


def test_a_run_that_changed_in_this_swap_keeps_no_older_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = history(0, 3, bytes_each=1_000)
    first, *others = document.finished.values()
    changed = replace(first, revision=document.revision + 1)
    finished = {run.id: run for run in (changed, *others)}
    document = replace(document, finished=finished)
    both, _ = decided(document, RunNow(AUTHOR, "PB-0"))
    room = Ledger(Pieces()).room(both)
    monkeypatch.setattr(budget, "BUDGET_BYTES", room.needed_bytes - 1_500)
    after, (started,) = decided(document, RunNow(AUTHOR, "PB-0"))
    assert isinstance(started, Accepted)
    assert list(after.finished) == [first.id]


def test_the_account_of_a_batch_is_what_measuring_anew_would_give() -> None:
    ledger = Ledger(Pieces())
    document = history(20, 20, bytes_each=50)
    ids = CountingIds()
    commands: list[Command] = [
        CreatePlaybook(AUTHOR, a_spec()),
        RunNow(AUTHOR, "PB-2"),
        RunNow(AUTHOR, "PB-3"),
        CancelRun(SECOND, "PBR-1", "enough"),
        DecideApproval(SECOND, "PBR-2", "approve", Decision.APPROVE),
    ]
    room = ledger.room(document)
    for command in commands:
        outcome = METADOC.decide_one(document, command, context(ids=ids))
        assert isinstance(outcome, Accepted)
        admitted, room = ledger.admit(document, room, command, replace(outcome, entries=()))
        assert isinstance(admitted, Accepted)
        document = admitted.document
        fresh = Ledger(Pieces()).room(document)
        assert room.reserve_bytes == fresh.reserve_bytes
        # Commas between items and the braces of an empty field are all that it does not see.
        assert abs(room.size_bytes - fresh.size_bytes) <= 8


def test_runs_that_did_not_change_keep_their_reserve() -> None:
    ledger = Ledger(Pieces())
    document, _ = decided(a_document(a_playbook(approve())), RunNow(AUTHOR, "PB-1"))
    first = ledger.room(document)
    assert first.reserve_bytes > 0
    assert ledger.room(document) == first == Ledger(Pieces()).room(document)


A, B, C, D = (a_finished(number) for number in range(4))


@pytest.mark.parametrize(
    ("was", "now"),
    [
        ({"a": A, "b": B}, {"a": A, "b": B}),
        ({"a": A, "b": B}, {"a": A, "b": C}),
        ({"a": A, "b": B}, {"a": C, "b": D}),
        ({"a": A, "b": B}, {"b": B, "c": C}),
        ({"a": A, "b": B}, {"a": A, "c": C}),
        ({"a": A, "b": B, "c": C}, {"a": A, "c": C}),
        ({"a": A}, {"a": A, "b": B}),
        ({}, {"a": A}),
        ({"a": A}, {}),
        ({"a": A, "b": B, "c": C}, {"c": C, "a": A, "d": D}),
    ],
    ids="".join,
)
def test_every_item_that_came_or_went_is_found(was: dict[str, Run], now: dict[str, Run]) -> None:
    found = {key: (before, after) for key, before, after in budget._differences(was, now)}
    keys = was.keys() | now.keys()
    assert found == {
        key: (was.get(key), now.get(key)) for key in keys if was.get(key) is not now.get(key)
    }
