"""Staged files are held for 30 minutes, twelve of them, one a feed in a commit."""

from datetime import timedelta

import pytest

from core_console.decide import staging
from core_console.decide.outcome import Code, Refused
from core_console.model.capex_document import StagedFeed
from tests.builders import NOW, context, later
from tests.decide.ingests import (
    PLAN,
    REQUEST,
    SPEND,
    a_document,
    a_stage,
    accepted,
    loaded,
    refused,
    staged,
)

TWELVE = tuple(staged(number, at=later(minutes=number)) for number in range(12))


def test_a_staged_file_is_held_and_the_feeds_do_not_change() -> None:
    before = a_document()
    outcome = accepted(before, a_stage())
    assert outcome.answer == StagedFeed(
        id="STG-1",
        feed=PLAN,
        digest="plan-1",
        filename="plan.csv",
        rows=10,
        staged_by="author@example.com",
        staged_at=NOW,
        expires_at=later(minutes=30),
        notes=("a note",),
    )
    assert outcome.document.stages == (outcome.answer,)
    assert outcome.document.feeds == before.feeds
    (entry,) = outcome.entries
    assert (entry.actor, entry.action, entry.target, entry.subject) == (
        "author@example.com",
        "atlas.capex.stage",
        "STG-1",
        "capex",
    )
    assert "plan.csv" not in entry.detail, "a name that somebody wrote is in no record"


def test_the_thirteenth_stage_is_told_when_the_oldest_expires() -> None:
    now = later(minutes=12)
    accepted(a_document(*TWELVE[1:]), a_stage(), context(now=now))
    answer = refused(a_document(*TWELVE), a_stage(), context(now=now))
    assert answer.code is Code.RESOURCE_EXHAUSTED
    assert "12 files are staged" in answer.reason
    assert answer.reason.endswith("expires at 2026-11-30T12:30:00Z")


def test_an_expired_stage_makes_room_before_any_tick() -> None:
    now = later(minutes=30)
    outcome = accepted(a_document(*TWELVE), a_stage(), context(now=now))
    assert [each.id for each in outcome.document.stages] == [
        *(f"STG-{number}" for number in range(1, 12)),
        "STG-1",
    ]


@pytest.mark.parametrize(
    ("filename", "complaint"),
    [
        ("", "is required"),
        ("x" * 121, "has 121 characters"),
        ("../plan.csv", "path separator"),
        ("C:\\plan.csv", "path separator"),
        ("plan\n.csv", "control character"),
        ("plan\u202ecsv", "bidi"),
        ("ghp_abc.csv", "credential"),
    ],
)
def test_a_filename_is_a_name_and_nothing_else(filename: str, complaint: str) -> None:
    answer = refused(a_document(), a_stage(filename))
    assert answer.code is Code.INVALID_ARGUMENT
    assert [each.field for each in answer.violations] == ["filename"]
    assert complaint in answer.violations[0].description


def test_a_filename_of_120_characters_is_taken() -> None:
    accepted(a_document(), a_stage("x" * 120))


@pytest.mark.parametrize("count", [0, 4])
def test_one_to_three_stages_are_taken_at_once(count: int) -> None:
    document = a_document(*(staged(number) for number in range(4)))
    found = staging.chosen(document, [f"STG-{number}" for number in range(count)], NOW)
    assert isinstance(found, Refused)
    assert [each.field for each in found.violations] == ["stage_ids"]


def test_every_stage_that_cannot_be_taken_is_named() -> None:
    document = a_document(staged(1), staged(2), staged(3, SPEND, NOW - timedelta(minutes=30)))
    found = staging.chosen(document, ["STG-1", "STG-2", "STG-3"], NOW)
    assert isinstance(found, Refused)
    assert found.code is Code.INVALID_ARGUMENT
    assert [each.field for each in found.violations] == ["stage_ids[1]", "stage_ids[2]"]
    assert "second stage of capital_plan" in found.violations[0].description
    assert "expired" in found.violations[1].description


def test_a_stage_is_held_for_exactly_30_minutes() -> None:
    document = a_document(staged(1))
    just_in_time = later(minutes=30) - timedelta(milliseconds=1)
    assert not isinstance(staging.chosen(document, ["STG-1"], just_in_time), Refused)
    assert isinstance(staging.chosen(document, ["STG-1"], later(minutes=30)), Refused)


def test_a_stage_lies_over_the_current_feed() -> None:
    document = a_document(feeds={PLAN: loaded("p"), SPEND: loaded("s")})
    assert staging.loaded(document) == {PLAN: "p", SPEND: "s"}
    stages = (staged(1, PLAN), staged(2, REQUEST))
    assert staging.overlaid(document, stages) == {
        PLAN: "capital_plan-1",
        REQUEST: "capital_request-2",
        SPEND: "s",
    }
    assert staging.without(document, PLAN) == {SPEND: "s"}
