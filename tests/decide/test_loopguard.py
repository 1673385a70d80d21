"""The guard has four reasons, in one order, word for word."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from msgspec.structs import replace

from core_console.decide.commands import CancelRun, Command, RaiseEvent, ReportStep, RunNow, Tick
from core_console.decide.decide import decide
from core_console.decide.loopguard import Skip, judge
from core_console.decide.outcome import Accepted
from core_console.model.document import Document
from core_console.model.event import FIRST_CAUSE, Chain, Event
from core_console.model.playbook import (
    AgentEventTrigger,
    Playbook,
    PlaybookStatus,
    Trigger,
    TriggerState,
)
from core_console.model.run import Cause, RunStatus
from tests.builders import (
    AUTHOR,
    NOW,
    RUN_URL,
    SECOND,
    a_document,
    a_playbook,
    a_run,
    a_spec,
    context,
    detect,
    later,
)
from tests.fakes import CountingIds

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
    return judge(document, found, TRIGGER, at=at, chain=chain or FIRST_CAUSE)


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


# Two playbooks whose agents start each other, through every way that a loop could hide.

PING = Trigger("ping", AgentEventTrigger("judge", "judged"), 5)
PONG = Trigger("pong", AgentEventTrigger("datagov", "found"), 5)
EVENTS = {"datagov": "found", "judge": "judged"}
OTHER_AGENT = {"datagov": "judge", "judge": "datagov"}


class Loop:
    """A document in which datagov's events start judge, and judge's start datagov."""

    def __init__(self) -> None:
        pairs = (("PB-1", PING, "datagov"), ("PB-2", PONG, "judge"))
        self.document = a_document(
            *(
                a_playbook(
                    id=playbook_id,
                    spec=replace(a_spec(detect("go", agent=agent, minutes=5)), triggers=(trigger,)),
                )
                for playbook_id, trigger, agent in pairs
            )
        )
        self.ids = CountingIds()
        self.now = NOW
        self.run_ids: list[str] = []
        self.do(RunNow(AUTHOR, "PB-1"))
        self.run_ids.append(self.document.running["PB-1"].id)

    def do(self, command: Command) -> Accepted:
        outcome = decide(self.document, command, context(now=self.now, ids=self.ids))
        assert isinstance(outcome, Accepted), outcome
        self.document = outcome.document
        return outcome

    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)

    def event_of(self, agent: str, named: str) -> Event:
        event = RaiseEvent(agent=agent, event=EVENTS[agent], caused_by_run_id=named)
        answer = self.do(event).answer
        assert isinstance(answer, Event)
        return answer

    def report(self, agent: str) -> Accepted:
        return self.do(ReportStep(agent, self.run_ids[-1], "go", "success", "", RUN_URL))


def event_then_report(loop: Loop, agent: str, named: str) -> Event:
    loop.wait(4)
    event = loop.event_of(agent, named)
    assert loop.report(agent).refused is None
    return event


def event_after_the_run_timed_out(loop: Loop, agent: str, named: str) -> Event:
    loop.wait(6)
    loop.do(Tick())
    event = loop.event_of(agent, named)
    assert loop.report(agent).refused is not None
    return event


def event_after_the_run_was_cancelled(loop: Loop, agent: str, named: str) -> Event:
    loop.wait(1)
    loop.do(CancelRun(SECOND, loop.run_ids[-1], "stop"))
    loop.wait(5)
    event = loop.event_of(agent, named)
    assert loop.report(agent).refused is not None
    return event


def event_without_any_report(loop: Loop, agent: str, named: str) -> Event:
    loop.wait(6)
    loop.do(Tick())
    return loop.event_of(agent, named)


def event_after_the_run_was_trimmed(loop: Loop, agent: str, named: str) -> Event:
    loop.wait(6)
    loop.do(Tick())
    loop.document = replace(loop.document, finished={}, events={})
    return loop.event_of(agent, named)


@pytest.mark.parametrize(
    "step",
    [
        event_then_report,
        event_after_the_run_timed_out,
        event_after_the_run_was_cancelled,
        event_without_any_report,
        event_after_the_run_was_trimmed,
    ],
)
@pytest.mark.parametrize("names", ["the right run", "nothing", "the oldest run"])
def test_a_loop_of_two_playbooks_ends_at_depth_three(
    step: Callable[[Loop, str, str], Event], names: str
) -> None:
    loop, agent, events = Loop(), "datagov", []
    for _ in range(4):
        caused_by = {"the right run": loop.run_ids[-1], "the oldest run": loop.run_ids[0]}
        event = step(loop, agent, caused_by.get(names, ""))
        events.append(event)
        loop.run_ids += [each.run_id for each in event.started]
        agent = OTHER_AGENT[agent]
    assert [event.chain_depth for event in events] == [1, 2, 3, 4]
    assert [len(event.started) for event in events] == [1, 1, 1, 0]
    (skip,) = events[-1].skipped
    assert (skip.playbook_id, skip.trigger_id) == ("PB-1", "ping")
    assert skip.reason == (
        f"chain depth 4 exceeds 3 (caused by run {loop.run_ids[3]}) — refused, not run"
    )
    assert len(loop.run_ids) == 4


def test_after_six_hours_an_event_is_a_first_cause_again() -> None:
    loop = Loop()
    loop.wait(6)
    loop.do(Tick())
    loop.wait(6 * 60)
    assert loop.event_of("datagov", "").chain_depth == 0
