"""Figures are kept with the very feeds and settings that they are figures of, or not at all."""

from datetime import date

import pytest
from msgspec.structs import replace

from core_console.decide.capex_commands import (
    RecordScanRun,
)
from core_console.decide.outcome import Code
from core_console.model.capex import Config
from core_console.model.capex_document import (
    Released,
    ScanRun,
    ScanTrigger,
)
from tests.builders import NOW
from tests.decide.ingests import (
    PLAN,
    REQUEST,
    SPEND,
    a_clear,
    a_commit,
    a_document,
    a_summary,
    accepted,
    figures,
    loaded,
    refused,
    staged,
)

STAGED = a_document(staged(1, PLAN), staged(2, SPEND), staged(3, PLAN))


@pytest.mark.parametrize(
    "moved",
    [
        {"feeds": {PLAN: loaded("another")}},
        {"feeds": {PLAN: loaded(), REQUEST: loaded("r")}},
        {"feeds": {}},
        {"config": Config(date(2027, 1, 1))},
    ],
)
def test_a_commit_that_was_overtaken_is_aborted(moved: dict[str, object]) -> None:
    command = a_commit(STAGED, "STG-2")
    answer = refused(replace(STAGED, **moved), command)
    assert answer.code is Code.ABORTED


def test_a_feed_that_the_commit_replaces_anyway_may_have_changed() -> None:
    moved = replace(STAGED, feeds={PLAN: loaded("another")})
    accepted(moved, a_commit(STAGED, "STG-1"))


def test_the_scan_history_keeps_the_newest_50() -> None:
    scans = tuple(
        ScanRun(f"SCAN-old-{n}", n, NOW, ScanTrigger.MANUAL, "PBR-1", a_summary())
        for n in range(1, 51)
    )
    after = accepted(replace(STAGED, scans=scans), a_commit(STAGED, "STG-1")).document
    assert [each.number for each in after.scans] == list(range(2, 52))


def test_a_clear_that_was_overtaken_is_aborted() -> None:
    moved = accepted(STAGED, a_commit(STAGED, "STG-2")).document
    assert refused(moved, a_clear(STAGED)).code is Code.ABORTED


def test_a_playbooks_scan_is_kept_under_its_run() -> None:
    outcome = accepted(STAGED, RecordScanRun("PBR-7", figures({PLAN: "plan-0"})))
    assert isinstance(outcome.answer, ScanRun)
    assert (outcome.answer.trigger, outcome.answer.actor) == (ScanTrigger.MANUAL, "PBR-7")
    assert outcome.document == replace(STAGED, scans=(outcome.answer,))
    assert outcome.entries == (), "the run's own record tells of it"


def test_a_playbooks_scan_that_was_overtaken_is_aborted() -> None:
    assert refused(STAGED, RecordScanRun("PBR-7", figures({}))).code is Code.ABORTED


def test_released_files_are_named_within_a_bound() -> None:
    released = tuple(Released(f"old-{number}", NOW) for number in range(50))
    after = accepted(replace(STAGED, released=released), a_commit(STAGED, "STG-1")).document
    assert after.released == (*released[1:], Released("plan-0", NOW))
