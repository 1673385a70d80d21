"""Evaluations run off the event loop, once for the same inputs, within a bound of memory."""

import asyncio
import gc
import threading
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from time import perf_counter

import pytest

from core_console.capex import evaluation
from core_console.capex.evaluation import Evaluation
from core_console.capex.evaluator import EVALUATIONS_MAX, PARSED_MAX, Evaluator, inputs_of
from core_console.capex.feeds import Table
from core_console.capex.parsing import Parsed
from core_console.capex.scope import Scope
from core_console.model.capex import Config, Effect, Feed, RuleStatus, Thresholds
from core_console.ports import Fault
from core_console.store.memory import MemoryBlobs
from scripts.bench import capex_rows
from tests.capex.house import CLEAN, PLAN, SPEND, plans
from tests.fakes import ManualClock

LOOP_LAG_S = 0.25
"""The product's bound is 50 ms on a machine of its own; this one may be shared by many."""


class Counted:
    """Counts evaluations, and the threads that they ran in."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[str] = []
        real = evaluation.evaluate

        def evaluate(
            feeds: Mapping[Feed, Table],
            *,
            config: Config,
            thresholds: Thresholds,
            effects: Mapping[str, Effect],
        ) -> Evaluation:
            self.threads.append(threading.current_thread().name)
            return real(feeds, config=config, thresholds=thresholds, effects=effects)

        monkeypatch.setattr("core_console.capex.evaluator.evaluate", evaluate)


class Kept(MemoryBlobs):
    """Counts what is read."""

    def __init__(self) -> None:
        super().__init__(ManualClock())
        self.reads = 0

    async def get(self, digest: str) -> bytes:
        self.reads += 1
        return await super().get(digest)


async def the_plan(blobs: MemoryBlobs, *items: str) -> dict[Feed, str]:
    return {PLAN: await blobs.put(plans(*items))}


async def test_the_same_inputs_are_evaluated_once_and_in_another_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted, blobs = Counted(monkeypatch), Kept()
    evaluator = Evaluator(blobs)
    inputs = inputs_of(await the_plan(blobs, "IT-1"), Config(), Scope())
    found = await asyncio.gather(*(evaluator.evaluate(inputs) for _ in range(10)))
    assert all(each is found[0] for each in found)
    assert await evaluator.evaluate(inputs) is found[0]
    assert (len(counted.threads), blobs.reads) == (1, 1)
    assert counted.threads[0].startswith("capex")
    evaluator.close()


async def test_each_thing_that_an_evaluation_depends_on_asks_for_a_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted, blobs = Counted(monkeypatch), Kept()
    evaluator = Evaluator(blobs)
    feeds = await the_plan(blobs, "IT-1")
    both = feeds | {SPEND: await blobs.put(CLEAN[SPEND])}
    rejected = Scope(statuses=(("CP-001", RuleStatus.REJECTED),))
    stricter = Scope(Thresholds(tolerance_days=1))
    for inputs in (
        inputs_of(feeds, Config(), Scope()),
        inputs_of(both, Config(), Scope()),
        inputs_of(feeds, Config(date(2028, 1, 1)), Scope()),
        inputs_of(feeds, Config(), rejected),
        inputs_of(feeds, Config(), stricter),
    ):
        await evaluator.evaluate(inputs)
    assert len(counted.threads) == 5
    assert blobs.reads == 2, "a file is parsed once while an evaluation holds it"
    evaluator.close()


async def test_the_default_date_and_the_same_date_set_are_one_evaluation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted, blobs = Counted(monkeypatch), Kept()
    evaluator = Evaluator(blobs)
    feeds = await the_plan(blobs, "IT-1")
    for config in (Config(), Config(Config().go_live)):
        await evaluator.evaluate(inputs_of(feeds, config, Scope()))
    assert len(counted.threads) == 1
    evaluator.close()


async def test_the_current_feeds_and_one_candidate_are_kept_and_no_more() -> None:
    blobs = Kept()
    evaluator = Evaluator(blobs)
    current = inputs_of(await the_plan(blobs, "IT-0"), Config(), Scope())
    for number in range(1, 6):
        await evaluator.evaluate(current)
        candidate = inputs_of(await the_plan(blobs, f"IT-{number}"), Config(), Scope())
        await evaluator.evaluate(candidate)
        assert list(evaluator._evaluations) == [current, candidate]
        assert len(evaluator._evaluations) <= EVALUATIONS_MAX
    assert blobs.reads == 6
    evaluator.close()


async def test_a_file_that_was_just_parsed_is_not_read_again_and_few_are_kept() -> None:
    blobs = Kept()
    evaluator = Evaluator(blobs)
    digests = []
    for number in range(PARSED_MAX + 2):
        data = plans(f"IT-{number}")
        parsed = await evaluator.parse(PLAN, data)
        assert isinstance(parsed, Parsed)
        digests.append(await blobs.put(data))
        evaluator.keep(PLAN, digests[-1], parsed.table)
    assert [digest for _, digest in evaluator._parsed] == digests[-PARSED_MAX:]
    await evaluator.evaluate(inputs_of({PLAN: digests[-1]}, Config(), Scope()))
    assert blobs.reads == 0
    assert (PLAN, digests[-1]) not in evaluator._parsed, "the evaluation holds it now"
    evaluator.close()


async def test_a_caller_that_gives_up_takes_the_work_from_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted, blobs = Counted(monkeypatch), Kept()
    evaluator = Evaluator(blobs)
    inputs = inputs_of(await the_plan(blobs, "IT-1"), Config(), Scope())
    impatient = asyncio.create_task(evaluator.evaluate(inputs))
    patient = asyncio.create_task(evaluator.evaluate(inputs))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient).counts()["CP-001"] == 0
    assert len(counted.threads) == 1
    evaluator.close()


async def test_a_fault_is_told_to_everybody_who_waits_and_is_not_kept() -> None:
    blobs = Kept()
    evaluator = Evaluator(blobs)
    inputs = inputs_of({PLAN: "0" * 64}, Config(), Scope())
    found = await asyncio.gather(
        *(evaluator.evaluate(inputs) for _ in range(3)), return_exceptions=True
    )
    assert [type(each) for each in found] == [Fault] * 3
    assert (evaluator._under_way, evaluator._evaluations) == ({}, {})
    evaluator.close()


@pytest.mark.slow
async def test_the_largest_feeds_hold_the_event_loop_up_for_no_longer_than_a_moment(
    tmp_path: Path,
) -> None:
    capex_rows.write(tmp_path, rows=50_000, fault_one_in=20)
    blobs = Kept()
    evaluator = Evaluator(blobs)
    digests = {feed: await blobs.put((tmp_path / f"{feed}.csv").read_bytes()) for feed in Feed}
    lags: list[float] = []
    done = asyncio.Event()

    async def beat() -> None:
        while not done.is_set():
            started = perf_counter()
            await asyncio.sleep(0.005)
            lags.append(perf_counter() - started - 0.005)

    gc.collect()
    beating = asyncio.create_task(beat())
    found = await evaluator.evaluate(inputs_of(digests, Config(), Scope()))
    done.set()
    await beating
    assert sum(found.counts().values()) > 10_000
    assert len(lags) > 20, "the loop turned all the while"
    assert max(lags) < LOOP_LAG_S, sorted(lags)[-5:]
    evaluator.close()
