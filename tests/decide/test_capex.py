"""Settings, playbook scans and what time ended: each changes what it names and no more."""

from datetime import date, timedelta

from msgspec.structs import replace

from core_console.decide import capex
from core_console.decide.capex_commands import (
    CapexCommand,
    ClearRaised,
    Expire,
    RecordScanRun,
    UpdateConfig,
)
from core_console.model.capex import Config
from core_console.model.capex_document import (
    Released,
)
from tests.builders import AUTHOR, NOW, context, later
from tests.decide.ingests import (
    PLAN,
    SPEND,
    a_clear,
    a_commit,
    a_document,
    a_stage,
    accepted,
    figures,
    raising,
    staged,
    unchanged,
)

STAGED = a_document(staged(1, PLAN), staged(2, SPEND), staged(3, PLAN))


def test_the_go_live_date_is_set_and_taken_back() -> None:
    set_to = accepted(STAGED, UpdateConfig(AUTHOR, Config(date(2027, 6, 1))))
    assert set_to.answer == set_to.document.config == Config(date(2027, 6, 1))
    assert [each.detail for each in set_to.entries] == [
        f"{AUTHOR} set Go-Live to 2027-06-01; it was 2027-03-31"
    ]
    back = accepted(set_to.document, UpdateConfig(AUTHOR, Config()))
    assert [each.detail for each in back.entries] == [
        f"{AUTHOR} set Go-Live to 2027-03-31 (the default); it was 2027-06-01"
    ]
    assert back.entries[0].action == "atlas.capex.config.update"


def test_settings_that_stand_so_already_change_nothing() -> None:
    assert unchanged(STAGED, UpdateConfig(AUTHOR, Config())).answer == Config()


def test_events_are_cleared_up_to_the_one_that_was_raised() -> None:
    waiting = replace(STAGED, raising=(raising(3), raising(4)), raising_number=4)
    after = accepted(waiting, ClearRaised(3)).document
    assert (after.raising, after.raising_number) == ((raising(4),), 4)
    unchanged(waiting, ClearRaised(2))


def test_a_tick_drops_what_time_has_ended() -> None:
    kept, gone = staged(1, at=later(minutes=1)), staged(2)
    day_ago = NOW - timedelta(hours=23, minutes=30)
    before = a_document(kept, gone, released=(Released("old", day_ago), Released("new", NOW)))
    after = accepted(before, Expire(), context(now=later(minutes=30))).document
    assert (after.stages, after.released) == ((kept,), (Released("new", NOW),))
    unchanged(after, Expire(), context(now=later(minutes=30)))


def test_only_what_ends_something_in_flight_passes_a_full_outbox() -> None:
    new: list[CapexCommand] = [
        a_stage(),
        a_commit(STAGED, "STG-1"),
        a_clear(STAGED),
        UpdateConfig(AUTHOR, Config()),
    ]
    ending: list[CapexCommand] = [RecordScanRun("PBR-1", figures({})), ClearRaised(1), Expire()]
    assert [capex.is_new_work(each) for each in (*new, *ending)] == [True] * 4 + [False] * 3
