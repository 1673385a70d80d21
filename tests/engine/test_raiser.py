"""What a commit brought about is raised once, after the commit, whoever dies in between."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from core_console.app.feeds import FeedParts
from core_console.capex.service import Recorded
from core_console.decide.commands import Command, RaiseEvent
from core_console.decide.outcome import Code, Outcome, Refused
from core_console.model.codec import CAPEX, encode
from core_console.model.event import Event
from core_console.model.playbook import CapexEventTrigger, Condition, ConditionOp, Trigger
from core_console.model.run import TriggerKind
from core_console.ports import Fault
from core_console.raiser import Raiser
from core_console.store.memory import MemoryDocument
from tests.builders import SECOND, a_document, a_playbook, a_spec, approve
from tests.capex.house import CLEAN, PLAN, faulty_plan, staged
from tests.engine.conftest import Replica, World


def on_commit(*conditions: Condition) -> Any:  # noqa: ANN401 -- a playbook
    trigger = Trigger("on-commit", CapexEventTrigger(conditions), 60)
    return a_playbook(spec=replace(a_spec(approve()), triggers=(trigger,)))


async def holding(world: World, playbook: object) -> None:
    world.document = MemoryDocument()
    await world.document.swap("", encode(a_document(playbook)))  # type: ignore[arg-type]  # a playbook


async def commit(parts: FeedParts, csv: bytes = CLEAN[PLAN]) -> Recorded:
    stage = await staged(parts.capex, PLAN, csv)
    found = await parts.capex.commit(actor=SECOND, stage_ids=[stage.id], note="")
    assert isinstance(found, Recorded)
    return found


async def events(replica: Replica) -> list[Event]:
    return list((await replica.engine.snapshot()).events.values())


async def waiting(world: World) -> list[int]:
    document = CAPEX.decode((await world.feeds.load()).data)
    return [each.number for each in document.raising]


async def test_a_commit_starts_what_waits_for_it_in_the_committers_name(world: World) -> None:
    await holding(world, on_commit(Condition("rule_id", ConditionOp.EQ, "CP-001")))
    replica = await world.replica()
    recorded = await commit(replica.feeds, faulty_plan())
    (event,) = await events(replica)
    assert (event.agent, event.event, event.subject) == (
        "capex",
        "scan.committed",
        recorded.scan.id,
    )
    assert event.raised_by == SECOND
    assert event.attributes == {
        "critical": "1",
        "high": "0",
        "medium": "0",
        "findings": "1",
        "dq": "0.0000",
    }
    run = (await replica.engine.snapshot()).running["PB-1"]
    assert (run.trigger, run.initiator, run.event_id) == (
        TriggerKind.CAPEX_EVENT,
        SECOND,
        event.id,
    )
    assert await waiting(world) == []


async def test_a_rule_without_a_finding_matches_no_condition_on_it(world: World) -> None:
    await holding(world, on_commit(Condition("rule_id", ConditionOp.EQ, "CP-001")))
    replica = await world.replica()
    await commit(replica.feeds)
    (event,) = await events(replica)
    assert (event.started, event.skipped) == ((), ())


async def test_nothing_is_raised_of_a_commit_that_was_not_stored(world: World) -> None:
    replica = await world.replica()
    stage = await staged(replica.feeds.capex, PLAN, CLEAN[PLAN])
    world.feeds.troubles.before.append(Fault("the disk is full"))
    with pytest.raises(Fault, match="full"):
        await replica.feeds.capex.commit(actor=SECOND, stage_ids=[stage.id], note="")
    await replica.raiser.move()
    assert await events(replica) == []


async def test_a_console_that_dies_before_it_raised_leaves_that_to_another(world: World) -> None:
    first = await world.replica()
    first.feeds.capex._raise_events = _nothing
    await commit(first.feeds)
    await first.die()
    assert await waiting(world) == [1]
    second = await world.replica()
    await second.raiser.move()
    assert len(await events(second)) == 1
    assert await waiting(world) == []


async def _nothing() -> None:
    """Die before anything is raised."""


async def test_a_console_that_dies_between_raising_and_clearing_doubles_nothing(
    world: World,
) -> None:
    await holding(world, on_commit())
    first = await world.replica()
    world.feeds.troubles.before.extend([None, None, Fault("it died here")])
    await commit(first.feeds)
    assert (len(await events(first)), await waiting(world)) == (1, [1])
    await first.die()
    second = await world.replica()
    await second.raiser.move()
    (event,) = await events(second)
    assert len(event.started) == 1
    assert await waiting(world) == []
    await second.engine.recorded()
    raised = [each for each in world.records() if each.action == "atlas.events.raise"]
    assert len(raised) == 1


async def test_an_event_that_was_trimmed_meanwhile_is_not_raised_again(world: World) -> None:
    first = await world.replica()
    world.feeds.troubles.before.extend([None, None, Fault("it died here")])
    await commit(first.feeds)
    document = replace(await first.engine.snapshot(), events={})
    await world.document.swap(await world.document.version(), encode(document))
    await first.raiser.move()
    assert (await events(first), await waiting(world)) == ([], [])


async def test_replicas_that_raise_at_once_raise_each_event_once_and_in_order(
    world: World,
) -> None:
    replicas = [await world.replica() for _ in range(3)]
    for replica in replicas:
        replica.feeds.capex._raise_events = _nothing
    scans = [(await commit(replicas[number % 3].feeds)).scan.id for number in range(6)]
    assert await waiting(world) == [1, 2, 3, 4, 5, 6]
    await asyncio.gather(*(each.raiser.move() for each in replicas for _ in range(2)))
    assert [each.subject for each in await events(replicas[0])] == scans
    assert (await replicas[0].engine.snapshot()).taken == {"capex": 6}
    assert await waiting(world) == []


async def test_a_later_event_never_overtakes_one_that_was_not_taken(world: World) -> None:
    replica = await world.replica()
    replica.feeds.capex._raise_events = _nothing
    for _ in range(2):
        await commit(replica.feeds)
    world.document.troubles.before.append(Fault("the disk is full"))
    with pytest.raises(Fault, match="full"):
        await replica.raiser.move()
    assert (await events(replica), await waiting(world)) == ([], [1, 2])
    await replica.raiser.move()
    assert (await replica.engine.snapshot()).taken == {"capex": 2}
    assert len(await events(replica)) == 2


class Answering:
    """A metadoc that refuses what it is told to."""

    def __init__(self, refuse: Callable[[RaiseEvent], Refused | None], then: Replica) -> None:
        self._refuse, self._then = refuse, then

    async def submit(self, command: Command) -> Outcome:
        assert isinstance(command, RaiseEvent)
        return self._refuse(command) or await self._then.engine.submit(command)


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.ABORTED])
async def test_a_metadoc_that_takes_nothing_now_is_asked_again(world: World, code: Code) -> None:
    replica = await world.replica()
    replica.feeds.capex._raise_events = _nothing
    await commit(replica.feeds)
    full = Answering(lambda _: Refused(code, "not now"), replica)
    with pytest.raises(Fault, match="not now"):
        await Raiser("capex", source=replica.feeds.engine, console=full).move()
    assert await waiting(world) == [1]


async def test_an_event_that_can_never_be_taken_is_set_aside_and_the_next_one_is_raised(
    world: World,
) -> None:
    replica = await world.replica()
    replica.feeds.capex._raise_events = _nothing
    for _ in range(2):
        await commit(replica.feeds)
    poisoned = Refused(Code.INVALID_ARGUMENT, "attributes: are wrong")
    picky = Answering(lambda each: poisoned if each.number == 1 else None, replica)
    with capture_logs() as logs:
        await Raiser("capex", source=replica.feeds.engine, console=picky).move()
    assert [log["event"] for log in logs] == ["event_set_aside"]
    assert (len(await events(replica)), await waiting(world)) == (1, [])
