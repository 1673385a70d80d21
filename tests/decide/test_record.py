"""An entry says who did what to which ids and when."""

from datetime import datetime, timedelta, timezone

from core_console.decide.record import entry, utc_seconds
from core_console.model.audit import Entry, Outcome
from tests.builders import AUTHOR, NOW, context


def test_an_entry_holds_the_ids_from_the_outside_in() -> None:
    made = entry(context(), AUTHOR, "atlas.playbooks.run", ("PB-1", "PBR-1", "detect"), "It ran")
    assert made == Entry(
        at=NOW,
        actor=AUTHOR,
        action="atlas.playbooks.run",
        target="PB-1/PBR-1/detect",
        outcome=Outcome.SUCCESS,
        detail="It ran",
        subject="playbook",
    )


def test_an_entry_of_a_failure_says_so() -> None:
    made = entry(context(), AUTHOR, "a", (), "It failed", outcome=Outcome.FAILURE)
    assert (made.outcome, made.target) == (Outcome.FAILURE, "")


def test_a_time_is_shown_in_utc_with_whole_seconds() -> None:
    ahead = datetime(2026, 11, 30, 1, 2, 3, 999_000, tzinfo=timezone(timedelta(hours=2)))
    assert utc_seconds(ahead) == "2026-11-29T23:02:03Z"
