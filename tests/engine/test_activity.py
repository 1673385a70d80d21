"""Whoever waits for the document to change learns of every swap, of this replica and of others."""

import asyncio

import pytest

from core_console.decide.commands import PausePlaybook, RunNow
from core_console.model.document import Document
from core_console.model.playbook import PlaybookStatus
from core_console.ports import Fault
from core_console.store.memory import MemoryDocument
from core_console.subscribers import POLL_S
from tests.builders import AUTHOR, a_document, a_playbook, approve
from tests.engine.conftest import Replica, World
from tests.engine.test_engine import GatedDocument


class CountedDocument(MemoryDocument):
    """A store that counts how often it is asked for its version, and fails while it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.wrong: Exception | None = None

    async def version(self) -> str:
        self.looks += 1
        if self.wrong is not None:
            raise self.wrong
        return await super().version()


async def on(world: World, store: MemoryDocument) -> Replica:
    """Start a replica on this store, with one playbook in it."""
    world.document = store
    await world.holding(a_document(a_playbook(approve())))
    return await world.replica()


def waiting(replica: Replica, *, within_s: float = 60.0) -> asyncio.Task[Document]:
    return asyncio.create_task(replica.engine.changed(10, within_s=within_s))


async def test_whoever_is_behind_is_told_without_waiting(world: World) -> None:
    replica = await world.replica()
    assert (await replica.engine.changed(9, within_s=60)).revision == 10
    assert (await replica.engine.changed(11, within_s=60)).revision == 10, "a backup is told too"


async def test_a_swap_of_this_replica_is_told_at_once(world: World) -> None:
    replica = await world.replica()
    told = [waiting(replica) for _ in range(3)]
    await world.clock.advance()
    await replica.engine.submit(PausePlaybook(AUTHOR, "PB-1"))
    for document in await asyncio.gather(*told):
        assert document.playbooks["PB-1"].status is PlaybookStatus.PAUSED
    assert world.clock.monotonic() == 0


async def test_a_swap_of_another_replica_is_told_within_a_second(world: World) -> None:
    one, other = await world.replica(), await world.replica()
    told = waiting(one)
    await world.clock.advance()
    await other.engine.submit(PausePlaybook(AUTHOR, "PB-1"))
    assert not told.done()
    await world.clock.advance(POLL_S)
    assert (await told).revision == 11


async def test_what_a_read_finds_is_told_to_all_who_wait(world: World) -> None:
    one, other = await world.replica(), await world.replica()
    told = waiting(one)
    await world.clock.advance()
    await other.engine.submit(PausePlaybook(AUTHOR, "PB-1"))
    await one.engine.snapshot()
    assert (await told).revision == 11
    assert world.clock.monotonic() == 0


async def test_nobody_is_told_of_what_is_not_durable(world: World) -> None:
    store = GatedDocument()
    store.gate.set()
    replica = await on(world, store)
    store.gate.clear()
    told = waiting(replica)
    asked = asyncio.create_task(replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    await world.clock.advance(5 * POLL_S)
    assert store.swaps == 2
    assert not told.done()
    store.gate.set()
    assert (await told).running
    await asked


async def test_when_nothing_changes_the_document_comes_as_it_is(world: World) -> None:
    replica = await world.replica()
    told = waiting(replica, within_s=14)
    await world.clock.advance(13)
    assert not told.done()
    await world.clock.advance(1)
    assert (await told).revision == 10


async def test_all_who_wait_share_one_look_a_second_and_nobody_looks_for_nobody(
    world: World,
) -> None:
    store = CountedDocument()
    replica = await on(world, store)
    told = [waiting(replica) for _ in range(50)]
    await world.clock.advance()
    store.looks = 0
    await world.clock.advance(10)
    assert store.looks == 10
    for each in told:
        each.cancel()
    await asyncio.gather(*told, return_exceptions=True)
    await world.clock.advance(10)
    assert store.looks == 10


async def test_an_outage_is_sat_out_as_long_as_the_reader_would_hear_nothing(
    world: World,
) -> None:
    store = CountedDocument()
    replica = await on(world, store)
    told, lost = waiting(replica, within_s=30), waiting(replica, within_s=5)
    await world.clock.advance()
    store.wrong = Fault("the store is away")
    await world.clock.advance(6)
    with pytest.raises(Fault, match="the store is away"):
        await lost
    store.wrong = None
    await replica.engine.submit(PausePlaybook(AUTHOR, "PB-1"))
    assert (await told).revision == 11


async def test_a_bug_while_looking_leaves_nobody_waiting_for_ever(world: World) -> None:
    store = CountedDocument()
    replica = await on(world, store)
    told = waiting(replica)
    await world.clock.advance()
    store.wrong = ZeroDivisionError()
    await world.clock.advance(POLL_S)
    with pytest.raises(ZeroDivisionError):
        await told
    store.wrong = None
    again = waiting(replica, within_s=2)
    await world.clock.advance(2)
    assert (await again).revision == 10


@pytest.mark.parametrize("close", [False, True])
async def test_a_console_that_stops_lets_nobody_wait(world: World, *, close: bool) -> None:
    replica = await world.replica()
    told = waiting(replica)
    await world.clock.advance()
    if close:
        await replica.engine.close()
    else:
        replica.engine.release()
    for each in (told, waiting(replica)):
        with pytest.raises(Fault, match="the console is stopping"):
            await each
