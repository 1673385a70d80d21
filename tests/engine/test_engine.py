import asyncio

import pytest
from msgspec.structs import replace

from core_console import inbox
from core_console.decide import lifecycle
from core_console.decide.commands import CancelRun, CreatePlaybook, PausePlaybook, RunNow
from core_console.decide.outcome import Accepted, Code, Refused
from core_console.model.codec import decode, encode
from core_console.model.faults import InvariantError
from core_console.model.run import RunStatus
from core_console.ports import Conflict, Fault, Stored
from core_console.store.memory import MemoryDocument
from core_console.writer import ATTEMPTS_MAX
from tests.builders import AUTHOR, SECOND, a_document, a_playbook, a_spec, approve
from tests.engine.conftest import World, run_of


class GatedDocument(MemoryDocument):
    """A store whose swaps are stored at once, but durable only when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.swaps = 0

    async def swap(self, expected: str, data: bytes) -> str:
        self.swaps += 1
        version = await super().swap(expected, data)
        await self.gate.wait()
        return version


def ten_playbooks() -> list[str]:
    return [f"PB-{number}" for number in range(10)]


async def ten_in_a(world: World, store: MemoryDocument) -> None:
    playbooks = [a_playbook(approve(), id=each) for each in ten_playbooks()]
    await store.swap("", encode(a_document(*playbooks)))
    world.document = store


async def test_commands_that_wait_together_share_one_swap(world: World) -> None:
    store = GatedDocument()
    store.gate.set()
    await ten_in_a(world, store)
    store.swaps = 0
    replica = await world.replica()
    outcomes = await asyncio.gather(
        *(replica.engine.submit(RunNow(AUTHOR, each)) for each in ten_playbooks())
    )
    assert len({run_of(outcome).id for outcome in outcomes}) == 10
    assert store.swaps == 1


async def test_nobody_is_answered_before_the_swap_is_durable(world: World) -> None:
    store = GatedDocument()
    store.gate.set()
    await ten_in_a(world, store)
    store.gate.clear()
    replica = await world.replica()
    asked = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    refused = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-none")))
    await world.clock.advance()
    assert store.swaps == 2
    assert not asked.done()
    assert not refused.done(), "a refusal too may rest on what is not durable yet"
    assert (await replica.engine.snapshot()).running == {}, "no read shows what is not durable"
    store.gate.set()
    assert run_of(await asked).status is RunStatus.WAITING_APPROVAL
    assert (await refused) == Refused(Code.NOT_FOUND, "playbook PB-none does not exist")


async def test_a_refused_command_does_not_spoil_its_batch(world: World) -> None:
    replica = await world.replica()
    first, second, third = await asyncio.gather(
        replica.engine.submit(RunNow(AUTHOR, "PB-1")),
        replica.engine.submit(RunNow(AUTHOR, "PB-1")),
        replica.engine.submit(PausePlaybook(AUTHOR, "PB-1")),
    )
    run = run_of(first)
    assert second == Refused(
        Code.FAILED_PRECONDITION,
        f"playbook PB-1 has a run in flight ({run.id}, WAITING_AGENT)",
    )
    assert isinstance(third, Accepted)


async def test_a_command_that_meets_a_bug_fails_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(lifecycle, "pause", broken)
    replica = await world.replica()
    broke, worked = await asyncio.gather(
        replica.engine.submit(PausePlaybook(AUTHOR, "PB-1")),
        replica.engine.submit(RunNow(AUTHOR, "PB-1")),
        return_exceptions=True,
    )
    assert isinstance(broke, ZeroDivisionError)
    assert run_of(worked).playbook_id == "PB-1"


async def test_the_loser_of_a_race_decides_again_on_what_the_winner_left(world: World) -> None:
    one, two = await world.replica(), await world.replica()
    first, second = await asyncio.gather(
        one.engine.submit(RunNow(AUTHOR, "PB-1")), two.engine.submit(RunNow(SECOND, "PB-1"))
    )
    accepted = [each for each in (first, second) if isinstance(each, Accepted)]
    refused = [each for each in (first, second) if isinstance(each, Refused)]
    assert len(accepted) == len(refused) == 1
    assert "has a run in flight" in refused[0].reason
    document = await one.engine.snapshot()
    assert document == await two.engine.snapshot()
    assert len(document.running) == 1


async def test_a_reply_that_was_lost_is_found_by_reading(world: World) -> None:
    world.document.troubles.after.append(Fault("the reply was lost"))
    replica = await world.replica()
    run = run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    assert (await replica.engine.snapshot()).running["PB-1"].id == run.id
    await world.clock.advance(1)
    assert [each.run_id for each in world.github.dispatched] == [run.id], "and its effect follows"


async def test_a_swap_that_failed_fails_all_that_it_would_have_changed(world: World) -> None:
    world.document.troubles.before.append(Fault("the disk is full"))
    replica = await world.replica()
    results = await asyncio.gather(
        replica.engine.submit(RunNow(AUTHOR, "PB-1")),
        replica.engine.submit(RunNow(AUTHOR, "PB-none")),
        return_exceptions=True,
    )
    assert isinstance(results[0], Fault)
    assert results[0].message == "the disk is full"
    assert results[1] == Refused(Code.NOT_FOUND, "playbook PB-none does not exist")
    assert (await replica.engine.snapshot()).running == {}
    await world.clock.advance(5)
    assert world.github.dispatched == []
    assert world.records() == []
    again = run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    assert again.status is RunStatus.WAITING_AGENT, "and it works again after"


async def test_contention_ends_in_aborted(world: World) -> None:
    class Contended(MemoryDocument):
        async def swap(self, expected: str, data: bytes) -> str:
            if expected:
                raise Conflict
            return await super().swap(expected, data)

    store = Contended()
    await ten_in_a(world, store)
    replica = await world.replica()
    asked = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    for _ in range(ATTEMPTS_MAX):
        await world.clock.advance(1)
    assert await asked == Refused(Code.ABORTED, "other replicas kept winning; try again")


async def test_a_document_that_does_not_decode_stops_the_start_and_stays(world: World) -> None:
    before = await world.document.load()
    for broken in (b'{"format": 2}', b"[]", b"\x00", before.data[:-1]):
        world.document._stored = Stored("9", broken)
        with pytest.raises(Fault, match="cannot be read") as caught:
            await world.replica()
        assert not caught.value.retryable
        assert (await world.document.load()).data == broken


async def test_every_decision_reaches_the_chain_once_and_then_leaves_the_document(
    world: World,
) -> None:
    await ten_in_a(world, MemoryDocument())
    replica = await world.replica()
    run = run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    await replica.engine.submit(CancelRun(AUTHOR, run.id, "enough"))
    await replica.engine.recorded()
    await replica.engine.recorded()
    assert world.actions() == ["run", "run.cancel", "run.end"]
    assert [record.number for record in world.records()] == [1, 2, 3]
    await replica.engine.submit(CreatePlaybook(AUTHOR, a_spec()))
    stored = decode((await world.document.load()).data)
    assert [waiting.number for waiting in stored.outbox] == [4]


async def test_what_a_dead_process_left_in_the_outbox_is_appended_by_the_next(
    world: World,
) -> None:
    await ten_in_a(world, MemoryDocument())
    first = await world.replica()
    world.log.troubles.before.append(Fault("the log's disk is full"))
    await first.engine.submit(RunNow(AUTHOR, "PB-1"))
    await first.die()
    assert world.records() == []
    await world.replica()
    await world.clock.advance()
    assert world.actions() == ["run"]


async def test_a_full_outbox_refuses_new_work_and_still_finishes_what_is_in_flight(
    world: World,
) -> None:
    playbooks = [a_playbook(approve(), id=f"PB-{number}") for number in range(60)]
    await world.document.swap((await world.document.load()).version, encode(a_document(*playbooks)))
    replica = await world.replica()
    world.log.troubles.before.extend(Fault("the log's disk is full") for _ in range(9_999))
    runs = []
    refusal = None
    for turn in range(400):
        outcome = await replica.engine.submit(RunNow(AUTHOR, f"PB-{turn % 60}"))
        if isinstance(outcome, Refused):
            refusal = outcome
            break
        runs.append(run_of(outcome))
        await replica.engine.submit(CancelRun(AUTHOR, runs[-1].id, "on"))
    assert refusal == Refused(Code.UNAVAILABLE, "the audit log cannot be written; try again later")
    assert world.records() == []
    world.log.troubles.before.clear()
    await replica.engine.recorded()
    assert run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-0"))).playbook_id == "PB-0"
    assert world.actions().count("run") == len(runs)


async def test_a_batch_that_fills_the_outbox_waits_for_the_chain_and_refuses_nobody(
    world: World,
) -> None:
    playbook = a_playbook(approve())
    await world.document.swap(
        (await world.document.load()).version,
        encode(a_document(*(replace(playbook, id=f"PB-{n}") for n in range(100)))),
    )
    replica = await world.replica()
    outcomes = await asyncio.gather(
        *(replica.engine.submit(RunNow(AUTHOR, f"PB-{n % 100}")) for n in range(256)),
        *(replica.engine.submit(PausePlaybook(AUTHOR, f"PB-{n}")) for n in range(100)),
    )
    assert sum(isinstance(each, Accepted) for each in outcomes) == 200
    assert all(
        each.code is Code.FAILED_PRECONDITION for each in outcomes if isinstance(each, Refused)
    )


async def test_a_console_that_stops_finishes_what_waits_and_refuses_what_comes(
    world: World,
) -> None:
    replica = await world.replica()
    asked = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    await asyncio.sleep(0)
    await replica.engine.close()
    assert run_of(await asked).playbook_id == "PB-1"
    with pytest.raises(Fault, match="stopping"):
        await replica.engine.submit(RunNow(AUTHOR, "PB-1"))


async def test_more_callers_than_the_queue_holds_are_told(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inbox, "QUEUE_MAX", 3)
    replica = await world.replica()
    results = await asyncio.gather(
        *(replica.engine.submit(RunNow(AUTHOR, "PB-1")) for _ in range(5)),
        return_exceptions=True,
    )
    told = [each for each in results if isinstance(each, Fault)]
    assert len(told) == 2
    assert told[0].retry_after_s == 1


async def test_a_caller_that_hangs_up_does_not_stop_the_writer(world: World) -> None:
    replica = await world.replica()
    asked = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    await asyncio.sleep(0)
    asked.cancel()
    outcome = await replica.engine.submit(PausePlaybook(AUTHOR, "PB-1"))
    assert isinstance(outcome, Accepted)


async def test_a_read_sees_what_another_replica_wrote(world: World) -> None:
    one, two = await world.replica(), await world.replica()
    run = run_of(await one.engine.submit(RunNow(AUTHOR, "PB-1")))
    assert (await two.engine.snapshot()).running["PB-1"].id == run.id


async def test_even_a_stop_iteration_is_answered(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise StopIteration

    monkeypatch.setattr(lifecycle, "pause", broken)
    replica = await world.replica()
    with pytest.raises(InvariantError):
        await replica.engine.submit(PausePlaybook(AUTHOR, "PB-1"))
