import asyncio

import pytest
from structlog.testing import capture_logs

from core_console.decide.commands import Command, RunNow, Tick
from core_console.decide.outcome import Accepted, Outcome
from core_console.model.codec import encode
from core_console.model.document import EMPTY
from core_console.model.run import RunStatus
from core_console.ports import Fault
from core_console.store.memory import MemoryDocument
from core_console.ticker import Ticker
from tests.builders import AUTHOR, a_document, a_playbook, approve
from tests.engine.conftest import World, run_of
from tests.fakes import CountingIds, ManualClock


class Ticked:
    """A console that counts its ticks and fails when told."""

    def __init__(self) -> None:
        self.ticks = 0
        self.recordings = 0
        self.trouble: Exception | None = None

    async def submit(self, command: Command) -> Outcome:
        assert command == Tick()
        self.ticks += 1
        if self.trouble is not None:
            raise self.trouble
        return Accepted(EMPTY)

    async def recorded(self) -> None:
        self.recordings += 1


async def test_it_ticks_at_once_and_then_at_the_jittered_interval() -> None:
    clock, console = ManualClock(), Ticked()
    ids = CountingIds(jitters=[1.2, 0.8])
    task = asyncio.create_task(Ticker(console, clock=clock, ids=ids, interval_s=30).run())
    await clock.advance()
    counts = [console.ticks]
    for seconds in (35.9, 0.1, 23.9, 0.1):
        await clock.advance(seconds)
        counts.append(console.ticks)
    task.cancel()
    assert counts == [1, 1, 2, 2, 3]
    assert console.recordings == 3


@pytest.mark.parametrize("trouble", [Fault("the store is away"), ZeroDivisionError()])
async def test_a_tick_that_fails_is_told_and_the_next_one_comes(trouble: Exception) -> None:
    clock, console = ManualClock(), Ticked()
    console.trouble = trouble
    with capture_logs() as logs:
        ticker = Ticker(console, clock=clock, ids=CountingIds(), interval_s=30)
        task = asyncio.create_task(ticker.run())
        await clock.advance()
        console.trouble = None
        await clock.advance(30)
        task.cancel()
    assert console.ticks == 2
    assert [log["event"] for log in logs] == ["tick_failed"]


async def test_a_chore_that_fails_does_not_keep_the_tick_from_its_work() -> None:
    async def broken() -> None:
        raise Fault("away")

    clock, console = ManualClock(), Ticked()
    ticker = Ticker(console, clock=clock, ids=CountingIds(), interval_s=30, chores=(broken,))
    await ticker.tick()
    assert (console.ticks, console.recordings) == (1, 1)


async def test_a_tick_with_nothing_due_writes_nothing(world: World) -> None:
    store = MemoryDocument()
    await store.swap("", encode(a_document(*(a_playbook(id=f"PB-{n}") for n in range(100)))))
    world.document = store
    replica = await world.replica()
    before = await store.version()
    await replica.engine.submit(Tick())
    assert await store.version() == before


async def test_an_approval_that_nobody_decides_expires_at_its_deadline(world: World) -> None:
    world.document = MemoryDocument()
    await world.holding(a_document(a_playbook(approve(hours=1))))
    replica = await world.replica()
    run = run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1")))
    world.clock.jump(3_599)
    await replica.engine.submit(Tick())
    assert (await replica.engine.snapshot()).running["PB-1"].status is RunStatus.WAITING_APPROVAL
    world.clock.jump(1)
    await replica.engine.submit(Tick())
    assert (await replica.engine.snapshot()).finished[run.id].status is RunStatus.EXPIRED
    await replica.engine.recorded()
    assert world.actions() == ["run", "run.expire", "run.end"]
