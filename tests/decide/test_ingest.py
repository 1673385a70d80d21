"""One commit wins and uses its stages up; what it brought about waits in the same swap."""

import pytest
from msgspec.structs import replace

from core_console.decide.capex_commands import (
    ClearRaised,
)
from core_console.decide.outcome import Code
from core_console.model.capex_document import (
    LoadedFeed,
    Released,
    ScanRun,
    ScanTrigger,
)
from tests.builders import AUTHOR, NOW, context, later
from tests.decide.ingests import (
    EVENT_FACTS,
    PLAN,
    SPEND,
    a_clear,
    a_commit,
    a_document,
    a_summary,
    accepted,
    loaded,
    raising,
    refused,
    staged,
)
from tests.fakes import CountingIds

STAGED = a_document(staged(1, PLAN), staged(2, SPEND), staged(3, PLAN))


def test_a_commit_replaces_its_feeds_and_uses_its_stages_up() -> None:
    outcome = accepted(STAGED, a_commit(STAGED, "STG-1", "STG-2", note="Q1"))
    after = outcome.document
    assert after.feeds == {
        PLAN: LoadedFeed(
            "capital_plan-1", "capital_plan.csv", 10, AUTHOR, NOW, ("a column is ignored",)
        ),
        SPEND: LoadedFeed("spend-2", "spend.csv", 10, AUTHOR, NOW, ("a column is ignored",)),
    }
    assert [each.id for each in after.stages] == ["STG-3"]
    assert outcome.answer == ScanRun(
        "SCAN-1", 1, NOW, ScanTrigger.UPLOAD, AUTHOR, a_summary(), "Q1"
    )
    assert after.scans == (outcome.answer,)
    assert after.released == (Released("plan-0", NOW),)


def test_the_swap_of_a_commit_holds_the_event_to_raise() -> None:
    after = accepted(STAGED, a_commit(STAGED, "STG-1")).document
    (event,) = after.raising
    assert (event.number, after.raising_number) == (1, 1)
    assert (event.agent, event.event, event.subject) == ("capex", "scan.committed", "SCAN-1")
    assert (event.attributes, event.rows) == (EVENT_FACTS["attributes"], EVENT_FACTS["rows"])
    assert event.committed_by == AUTHOR
    again = accepted(STAGED, a_commit(STAGED, "STG-1")).document
    assert again.raising == after.raising, "its id follows from what is stored"


def test_each_commits_event_has_a_number_of_its_own() -> None:
    ids = CountingIds()
    once = accepted(STAGED, a_commit(STAGED, "STG-1"), context(ids=ids)).document
    cleared = accepted(once, ClearRaised(1)).document
    twice = accepted(cleared, a_commit(cleared, "STG-2"), context(ids=ids)).document
    assert [each.number for each in twice.raising] == [2]
    assert twice.raising[0].id != once.raising[0].id
    assert [each.number for each in twice.scans] == [1, 2]


def test_a_commit_is_recorded_with_its_ids_and_digests_and_nothing_that_somebody_wrote() -> None:
    (entry,) = accepted(STAGED, a_commit(STAGED, "STG-1", note="my words")).entries
    assert (entry.actor, entry.action, entry.target) == (
        AUTHOR,
        "atlas.capex.commit",
        "SCAN-1/STG-1",
    )
    assert (entry.subject, "capital_plan-1" in entry.detail) == ("capex", True)
    assert "my words" not in entry.detail


def test_a_stage_is_committed_once() -> None:
    command = a_commit(STAGED, "STG-1")
    answer = refused(accepted(STAGED, command).document, command)
    assert answer.code is Code.INVALID_ARGUMENT
    assert [each.field for each in answer.violations] == ["stage_ids[0]"]


def test_an_expired_stage_is_not_committed() -> None:
    answer = refused(STAGED, a_commit(STAGED, "STG-1"), context(now=later(minutes=30)))
    assert answer.code is Code.INVALID_ARGUMENT
    assert "expired" in answer.reason


@pytest.mark.parametrize(
    ("note", "ok"),
    [("", True), ("two\nlines", True), ("é" * 500, True), ("é" * 501, False), ("\x00", False)],
)
def test_a_note_has_at_most_1000_bytes(note: str, *, ok: bool) -> None:
    for command in (a_commit(STAGED, "STG-1", note=note), a_clear(STAGED, note)):
        if ok:
            accepted(STAGED, command)
        else:
            answer = refused(STAGED, command)
            assert answer.code is Code.INVALID_ARGUMENT
            assert [each.field for each in answer.violations] == ["note"]


def test_no_commit_is_taken_while_twenty_events_wait() -> None:
    command = a_commit(STAGED, "STG-1")
    full = replace(STAGED, raising=tuple(raising(number) for number in range(20)))
    answer = refused(full, command)
    assert (answer.code, "20 earlier commits" in answer.reason) == (Code.UNAVAILABLE, True)
    accepted(replace(full, raising=full.raising[1:]), command)


def test_a_clear_empties_one_feed_and_keeps_a_scan_run_and_raises_nothing() -> None:
    before = a_document(feeds={PLAN: loaded(), SPEND: loaded("s")})
    outcome = accepted(before, a_clear(before, "wrong file"))
    assert outcome.document.feeds == {SPEND: loaded("s")}
    assert outcome.answer == ScanRun(
        "SCAN-1", 1, NOW, ScanTrigger.CLEAR, AUTHOR, a_summary(), "wrong file"
    )
    assert (outcome.document.raising, outcome.document.raising_number) == ((), 0)
    assert outcome.document.released == (Released("plan-0", NOW),)
    (entry,) = outcome.entries
    assert (entry.action, entry.target) == ("atlas.capex.clear", "SCAN-1")


def test_a_feed_that_is_empty_is_not_cleared_again() -> None:
    command = a_clear(STAGED)
    answer = refused(accepted(STAGED, command).document, command)
    assert answer.code is Code.FAILED_PRECONDITION
    assert answer.reason.startswith("capital_plan is not loaded")
