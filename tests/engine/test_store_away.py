"""The store is away for a while: writes are told at once, reads see what was known and say so."""

import asyncio

import pytest
from structlog.testing import capture_logs

from core_console import engine as engines
from core_console.decide.commands import CancelRun, RunNow
from core_console.decide.outcome import Accepted
from core_console.model.codec import encode
from core_console.model.run import RunStatus
from core_console.ports import Fault, Stored
from core_console.store.memory import MemoryDocument
from core_console.ticker import Ticker
from tests.builders import AUTHOR, a_document, a_playbook, approve, detect
from tests.engine.conftest import Replica, World, run_of

PATIENCE_S = 0.1
"""Short, because the event loop's own time passes in these tests."""


class AwayDocument(MemoryDocument):
    """A store that can be told to fail every call, or to answer none until it is back."""

    def __init__(self) -> None:
        super().__init__()
        self.fails = False
        self.back = asyncio.Event()
        self.back.set()
        self.asked = 0

    async def _reach(self) -> None:
        self.asked += 1
        if self.fails:
            raise Fault("the disk reports an input/output error: check it before anything else")
        await self.back.wait()

    async def version(self) -> str:
        await self._reach()
        return await super().version()

    async def load(self) -> Stored:
        await self._reach()
        return await super().load()

    async def swap(self, expected: str, data: bytes) -> str:
        await self._reach()
        return await super().swap(expected, data)


class HangingSwaps(AwayDocument):
    """A store of which only the swaps hang, as when another process holds its lock."""

    async def version(self) -> str:
        return await MemoryDocument.version(self)

    async def load(self) -> Stored:
        return await MemoryDocument.load(self)


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "STORE_PATIENCE_S", PATIENCE_S)


async def started(world: World, store: AwayDocument) -> Replica:
    playbooks = (a_playbook(approve()), a_playbook(detect(), id="PB-2"))
    await store.swap("", encode(a_document(*playbooks)))
    world.document = store
    return await world.replica()


async def refused(replica: Replica, command: RunNow | CancelRun) -> Fault:
    with pytest.raises(Fault) as caught:
        await replica.engine.submit(command)
    return caught.value


async def until_back(world: World, replica: Replica) -> None:
    """Let the writer ask the store, at its own pace, until it is back."""
    for _ in range(5):
        await world.clock.advance(1)
    assert not replica.engine.away


async def test_a_store_that_fails_is_told_at_once_and_reads_see_what_was_known(
    world: World,
) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    run = run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    store.fails = True
    assert (await refused(replica, RunNow(AUTHOR, "PB-2"))).message.startswith("the disk reports")
    seen = await replica.engine.look()
    assert seen.document.running["PB-1"] == run
    assert seen.provenance == "last known state of revision 11, the store cannot be asked"
    with pytest.raises(Fault):
        await replica.engine.snapshot()
    store.fails = False
    seen = await replica.engine.look()
    assert (seen.fault, seen.provenance) == (None, "")
    assert isinstance(await replica.engine.submit(RunNow(AUTHOR, "PB-2")), Accepted)


async def test_a_store_that_does_not_answer_holds_nobody_up_twice(world: World) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    store.back.clear()
    first = await refused(replica, RunNow(AUTHOR, "PB-1"))
    assert "not known whether this was carried out" in first.message
    asked = store.asked
    second = await refused(replica, RunNow(AUTHOR, "PB-2"))
    assert second.message == "the store does not answer; try again later"
    assert second.retryable
    assert second.retry_after_s
    seen = await replica.engine.look()
    assert seen.document.revision == 10
    assert seen.provenance
    with pytest.raises(Fault):
        await replica.engine.snapshot()
    assert store.asked == asked, "nobody asks a store that still owes an answer"
    store.back.set()
    await until_back(world, replica)
    assert (await replica.engine.look()).fault is None
    assert isinstance(await replica.engine.submit(RunNow(AUTHOR, "PB-1")), Accepted)


async def test_what_was_not_decided_when_its_caller_was_told_is_never_decided(
    world: World,
) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    store.back.clear()
    asked = [
        asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, each)))
        for each in ("PB-1", "PB-2")
    ]
    told = await asyncio.gather(*asked, return_exceptions=True)
    assert all(isinstance(each, Fault) for each in told)
    store.back.set()
    await until_back(world, replica)
    assert (await replica.engine.snapshot()).running == {}


async def test_a_swap_that_lands_late_is_performed_and_recorded_once(world: World) -> None:
    store = HangingSwaps()
    replica = await started(world, store)
    store.back.clear()
    fault = await refused(replica, RunNow(AUTHOR, "PB-2"))
    assert "not known whether" in fault.message
    assert (await replica.engine.look()).document.running == {}
    store.back.set()
    await until_back(world, replica)
    run = (await replica.engine.snapshot()).running["PB-2"]
    await replica.engine.recorded()
    assert [each.run_id for each in world.github.dispatched] == [run.id]
    assert world.actions().count("run") == 1


async def test_commands_that_wait_behind_a_hanging_swap_are_told_too(world: World) -> None:
    store = HangingSwaps()
    replica = await started(world, store)
    store.back.clear()
    first = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    await asyncio.sleep(0)
    second = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-2")))
    told = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(each) for each in told] == [Fault, Fault]
    assert "not known" not in str(told[1]), "it was never decided"
    store.back.set()
    await until_back(world, replica)
    assert set((await replica.engine.snapshot()).running) == {"PB-1"}


async def test_the_writer_asks_a_store_that_failed_late_until_it_is_back(world: World) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    store.back.clear()
    await refused(replica, RunNow(AUTHOR, "PB-1"))
    store.fails = True
    store.back.set()
    await world.clock.advance(3)
    assert replica.engine.away
    assert (await refused(replica, RunNow(AUTHOR, "PB-1"))).message.startswith("the store does not")
    store.fails = False
    await until_back(world, replica)
    assert run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1"))).id


async def test_a_store_that_takes_long_to_fail_is_away_too(world: World) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    store.back.clear()
    asked = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    await asyncio.sleep(PATIENCE_S * 0.7)
    store.fails = True
    store.back.set()
    # What waited goes on without failing; what it does next fails, and so late.
    with pytest.raises(Fault):
        await asked
    assert replica.engine.away
    assert (await refused(replica, RunNow(AUTHOR, "PB-1"))).message.startswith("the store does not")
    store.fails = False
    await until_back(world, replica)


async def test_a_read_that_hangs_is_answered_from_what_was_known(world: World) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    store.back.clear()
    seen = await replica.engine.look()
    assert seen.document.revision == 10
    assert seen.provenance
    assert replica.engine.away
    store.back.set()
    await until_back(world, replica)


async def test_a_console_that_never_read_anything_has_nothing_to_show(world: World) -> None:
    store = AwayDocument()
    store.fails = True
    world.document = store
    replica = Replica(world)
    with pytest.raises(Fault):
        await replica.engine.look()


async def test_the_ticker_waits_and_goes_on_when_the_store_is_back(world: World) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    run = run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    ticker = Ticker(replica.engine, clock=world.clock, ids=world.ids, interval_s=30)
    ticking = asyncio.create_task(ticker.run())
    await world.clock.advance(1)
    store.fails = True
    world.clock.jump(73 * 3600)
    with capture_logs() as logs:
        await world.clock.advance(60)
    assert {each["event"] for each in logs} == {"tick_failed"}
    assert ticker.counts.failures == 2
    store.fails = False
    await world.clock.advance(30)
    ticking.cancel()
    finished = (await replica.engine.snapshot()).finished[run.id]
    assert finished.status is RunStatus.EXPIRED


async def test_nothing_is_sent_on_what_was_merely_known(world: World) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    # Taken while the store answers; performed when it does not: the step may have been cancelled.
    store.fails = False
    world.github.before_sending = lambda: _failing(store)
    await replica.engine.submit(RunNow(AUTHOR, "PB-2"))
    await world.clock.advance(1)
    assert world.github.dispatched == []
    store.fails = False
    await world.clock.advance(5)
    run = (await replica.engine.snapshot()).finished
    assert [each.status for each in run.values()] == [RunStatus.FAILED]


async def _failing(store: AwayDocument) -> None:
    store.fails = True


async def test_closing_does_not_wait_for_a_store_that_is_away(world: World) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    store.back.clear()
    await refused(replica, RunNow(AUTHOR, "PB-1"))
    store.fails = True
    store.back.set()
    await world.clock.advance(1)
    closing = asyncio.create_task(replica.engine.close())
    await world.clock.advance(2)
    await asyncio.wait_for(closing, 5)
    assert not replica.engine.serving


@pytest.mark.parametrize("before_ms", [0.5, 1.5, 2.5, 3.5, 20])
async def test_a_store_that_goes_while_a_batch_is_gathered_comes_back_too(
    world: World, before_ms: float
) -> None:
    store = AwayDocument()
    replica = await started(world, store)
    cancels = (CancelRun(AUTHOR, f"PBR-{n}", "no") for n in range(2))
    await asyncio.gather(*map(replica.engine.submit, cancels))  # two are expected again
    store.back.clear()
    looking = asyncio.create_task(replica.engine.look())
    await asyncio.sleep(PATIENCE_S - before_ms / 1_000)
    asking = asyncio.create_task(refused(replica, RunNow(AUTHOR, "PB-1")))
    assert (await looking).fault is not None
    await asking
    store.back.set()
    await until_back(world, replica)
