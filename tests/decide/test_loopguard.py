"""The guard has four reasons, in one order, word for word."""

from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from core_console.decide.depth import Chain
from core_console.decide.loopguard import Skip, judge
from core_console.model.document import Document
from core_console.model.playbook import (
    AgentEventTrigger,
    Playbook,
    PlaybookStatus,
    Trigger,
    TriggerState,
)
from core_console.model.run import Cause, RunStatus
from tests.builders import NOW, a_document, a_playbook, a_run, a_spec, later

TRIGGER = Trigger("findings", AgentEventTrigger("datagov", "findings.reported"), 60)
OTHER = Trigger("other", AgentEventTrigger("risk", "found"), 60)
DEEP = Chain(4, "PBR-9", Cause.NAMED)
SPEC = replace(a_spec(), triggers=(TRIGGER, OTHER))

STATUS = "playbook is PAUSED"
IN_FLIGHT = "a run is in flight (PBR-1, WAITING_AGENT)"
COOLDOWN = "cooldown: trigger findings started a run at 2026-11-30T11:30:00Z"
DEPTH = "chain depth 4 exceeds 3 (caused by run PBR-9) — refused, not run"


def playbook(
    status: PlaybookStatus = PlaybookStatus.ACTIVE,
    fired_at: datetime | None = None,
    trigger_id: str = "findings",
) -> Playbook:
    states = {trigger_id: TriggerState(fired_at=fired_at)} if fired_at else {}
    return a_playbook(spec=SPEC, status=status, trigger_states=states)


def judged(
    found: Playbook, *, flying: bool = False, at: datetime = NOW, chain: Chain | None = None
) -> Skip | None:
    document: Document = a_document(found)
    if flying:
        run = a_run(found, status=RunStatus.WAITING_AGENT)
        document = a_document(found, run)
    return judge(document, found, TRIGGER, at=at, chain=chain or Chain())


def test_an_active_playbook_at_rest_may_start() -> None:
    assert judged(playbook()) is None


@pytest.mark.parametrize("held", range(16))
def test_the_first_reason_in_the_order_is_the_one_that_is_told(held: int) -> None:
    paused, flying, cooling, deep = (bool(held & 1 << bit) for bit in range(4))
    found = playbook(
        PlaybookStatus.PAUSED if paused else PlaybookStatus.ACTIVE,
        later(minutes=-30) if cooling else None,
    )
    skip = judged(found, flying=flying, chain=DEEP if deep else None)
    reasons = [
        reason
        for reason, holds in (
            (STATUS, paused),
            (IN_FLIGHT, flying),
            (COOLDOWN, cooling),
            (DEPTH, deep),
        )
        if holds
    ]
    assert (skip.reason if skip else None) == (reasons[0] if reasons else None)


@pytest.mark.parametrize("status", [PlaybookStatus.DRAFT, PlaybookStatus.PAUSED])
def test_only_an_active_playbook_starts(status: PlaybookStatus) -> None:
    assert judged(playbook(status)) == Skip(f"playbook is {status.name}")


@pytest.mark.parametrize(
    ("age", "held"),
    [
        (timedelta(0), True),
        (timedelta(minutes=59, seconds=59, milliseconds=999), True),
        (timedelta(minutes=60), False),
        (timedelta(minutes=60, milliseconds=1), False),
        (timedelta(minutes=-90), True),  # the clock jumped back: nothing fires twice
    ],
)
def test_a_cooldown_counts_from_start_to_start_and_equal_passes(
    age: timedelta, *, held: bool
) -> None:
    skip = judged(playbook(fired_at=NOW - age))
    assert (skip is not None) is held
    if skip is not None:
        assert skip.reason.startswith("cooldown: trigger findings started a run at 2026-11-30T")


def test_a_cooldown_is_a_triggers_own() -> None:
    assert judged(playbook(fired_at=NOW, trigger_id="other")) is None


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_a_chain_may_be_three_deep(depth: int) -> None:
    assert judged(playbook(), chain=Chain(depth, "PBR-9", Cause.INFERRED)) is None


@pytest.mark.parametrize("depth", [4, 5, 99])
def test_a_deeper_chain_is_refused_and_names_its_cause(depth: int) -> None:
    skip = judged(playbook(), chain=Chain(depth, "PBR-9", Cause.INFERRED))
    assert skip == Skip(f"chain depth {depth} exceeds 3 (caused by run PBR-9) — refused, not run")


def test_a_skip_knows_what_will_go_on_holding_it() -> None:
    flying, cooling = judged(playbook(), flying=True), judged(playbook(fired_at=NOW))
    assert flying is not None
    assert cooling is not None
    assert (flying.held_by, cooling.held_by) == ("PBR-1", "2026-11-30T12:00:00Z")
