"""A trigger remembers what it fired for as long as its id exists; slots count from ACTIVE."""

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide.commands import (
    ActivatePlaybook,
    PausePlaybook,
    ResumePlaybook,
    RunNow,
    Tick,
    UpdatePlaybook,
)
from core_console.decide.outcome import Accepted
from core_console.model.document import Document
from core_console.model.playbook import (
    ManualTrigger,
    Playbook,
    PlaybookStatus,
    ScheduleTrigger,
    Trigger,
    TriggerState,
)
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    a_document,
    a_playbook,
    a_spec,
    context,
    later,
    notify,
)
from tests.decide.verdicts import accepted, the_playbook, unchanged
from tests.fakes import CountingIds


def hourly(trigger_id: str = "hourly", cron: str = "0 * * * *", cooldown: int = 60) -> Trigger:
    return Trigger(trigger_id, ScheduleTrigger(cron), cooldown)


def scheduled(
    *triggers: Trigger,
    id: str = "PB-1",  # noqa: A002 -- the field's own name
    done: datetime = NOW,
    **changes: Any,  # noqa: ANN401 -- any field of Playbook
) -> Playbook:
    """Return an ACTIVE playbook whose schedules have seen every slot up to `done`."""
    triggers = triggers or (hourly(),)
    states = {
        each.id: TriggerState(slot_done=done)
        for each in triggers
        if isinstance(each.source, ScheduleTrigger)
    }
    spec = replace(a_spec(notify()), triggers=triggers)
    return replace(a_playbook(id=id, spec=spec, trigger_states=states), **changes)


def ticked(
    document: Document,
    now: datetime,
    *,
    ids: CountingIds | None = None,
    **changes: Any,  # noqa: ANN401 -- any field of Context
) -> Accepted:
    return accepted(document, Tick(), replace(context(now=now, ids=ids), **changes))


def becoming_active(playbook: Playbook, now: datetime) -> Document:
    command = (
        ResumePlaybook(SECOND, "PB-1")
        if playbook.status is PlaybookStatus.PAUSED
        else ActivatePlaybook(SECOND, "PB-1", playbook.revision)
    )
    return accepted(a_document(playbook), command, context(now=now)).document


@pytest.mark.parametrize("status", [PlaybookStatus.DRAFT, PlaybookStatus.PAUSED])
def test_becoming_active_starts_from_now(status: PlaybookStatus) -> None:
    fresh = scheduled(hourly(), Trigger("by-hand", ManualTrigger()), status=status)
    document = becoming_active(replace(fresh, trigger_states={}), later(hours=5, minutes=30))
    assert the_states(document) == {"hourly": TriggerState(later(hours=5, minutes=30))}
    unchanged(document, Tick(), context(now=later(hours=5, minutes=59)))
    assert ticked(document, later(hours=6)).document.running
    old = replace(fresh, trigger_states={"hourly": TriggerState(later(hours=-3), later(hours=-3))})
    document = becoming_active(old, later(hours=5, minutes=30))
    assert the_states(document) == {
        "hourly": TriggerState(later(hours=5, minutes=30), later(hours=-3))
    }


def the_states(document: Document) -> dict[str, TriggerState]:
    return document.playbooks["PB-1"].trigger_states


def test_slots_that_were_done_stay_done_when_the_clock_jumped_back() -> None:
    paused = scheduled(done=later(hours=9), status=PlaybookStatus.PAUSED)
    assert the_states(becoming_active(paused, NOW)) == {"hourly": TriggerState(later(hours=9))}


def test_pausing_and_running_by_hand_leave_the_slots_alone() -> None:
    before = a_document(scheduled())
    states = the_states(before)
    here = context(now=later(hours=3))
    assert the_states(accepted(before, PausePlaybook(AUTHOR, "PB-1"), here).document) == states
    assert the_states(accepted(before, RunNow(AUTHOR, "PB-1"), here).document) == states


def test_an_edit_keeps_what_the_triggers_that_stay_remember() -> None:
    kept, gone = TriggerState(NOW, later(hours=-1)), TriggerState(NOW)
    playbook = scheduled(
        hourly("kept"), hourly("gone"), trigger_states={"kept": kept, "gone": gone}
    )
    spec = replace(playbook.spec, triggers=(hourly("new"), hourly("kept", "9 * * * *")))
    outcome = accepted(a_document(playbook), UpdatePlaybook(AUTHOR, "PB-1", 2, spec))
    assert the_playbook(outcome).trigger_states == {"kept": kept}


def test_an_active_playbook_of_an_older_console_starts_from_its_activation() -> None:
    playbook = replace(scheduled(), trigger_states={}, switched_at=later(hours=1, minutes=30))
    unchanged(a_document(playbook), Tick(), context(now=later(hours=1, minutes=59)))
    outcome = ticked(a_document(playbook), later(hours=2))
    assert outcome.document.running["PB-1"].slot == later(hours=2)
    unknown = replace(playbook, switched_at=None)
    unchanged(a_document(unknown), Tick(), context(now=later(hours=2)))
