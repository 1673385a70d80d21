"""Evaluations off the event loop: worked out once, and kept while they may be asked for again.

Owns the one thread that parses and evaluates, and what is kept in memory: the evaluation of the
current feeds and that of one candidate, with their parsed files, and the files parsed last.
Never decides which feeds are current.
"""

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date

from msgspec import Struct

from core_console.capex.evaluation import Evaluation, evaluate
from core_console.capex.feeds import Table
from core_console.capex.parsing import Parsed, parse
from core_console.capex.scope import Scope
from core_console.model.capex import Config, Feed, ParseIssue
from core_console.ports import Blobs, Fault

EVALUATIONS_MAX = 2
"""The current feeds' and one candidate's: with 3 x 50,000 rows each has about 200 MiB."""

PARSED_MAX = len(Feed)
"""One file a feed, from its upload to the evaluation that reads it first."""


class Inputs(Struct, frozen=True, gc=False):
    """Everything that an evaluation depends on; equal inputs have the same evaluation."""

    digests: tuple[tuple[Feed, str], ...]
    go_live: date
    scope: Scope


def inputs_of(digests: Mapping[Feed, str], config: Config, scope: Scope) -> Inputs:
    """Return the inputs of the feeds with these digests."""
    ordered = tuple((feed, digests[feed]) for feed in Feed if feed in digests)
    return Inputs(ordered, config.go_live, scope)


class Evaluator:
    """Parses and evaluates, one thing at a time, in a thread of its own."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="capex")
        self._evaluations: dict[Inputs, Evaluation] = {}
        self._parsed: dict[tuple[Feed, str], Table] = {}
        self._under_way: dict[Inputs, asyncio.Task[Evaluation]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def parse(self, feed: Feed, data: bytes) -> Parsed | tuple[ParseIssue, ...]:
        """Return the feed in `data`, or the file's faults."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, parse, feed, data)

    def keep(self, feed: Feed, digest: str, table: Table) -> None:
        """Keep a file that was just parsed, for whoever evaluates it next."""
        self._parsed.pop((feed, digest), None)
        self._parsed[feed, digest] = table
        while len(self._parsed) > PARSED_MAX:
            del self._parsed[next(iter(self._parsed))]

    async def evaluate(self, inputs: Inputs) -> Evaluation:
        """Return the evaluation; callers that ask for the same meanwhile share one.

        Raises:
            Fault: a file cannot be read, or is not what was once parsed.
        """
        known = self._known(inputs)
        if known is not None:
            return known
        task = self._under_way.get(inputs)
        if task is None:
            task = asyncio.create_task(self._evaluate(inputs))
            self._under_way[inputs] = task
            task.add_done_callback(lambda done: self._ended(inputs, done))
        # A caller that gives up takes the work from nobody else.
        return await asyncio.shield(task)

    def close(self) -> None:
        """Finish what the thread has begun and end it."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _known(self, inputs: Inputs) -> Evaluation | None:
        found = self._evaluations.pop(inputs, None)
        if found is not None:
            self._evaluations[inputs] = found  # the newest now
        return found

    def _ended(self, inputs: Inputs, task: asyncio.Task[Evaluation]) -> None:
        self._under_way.pop(inputs, None)
        if not task.cancelled():
            task.exception()  # told to whoever still waits

    async def _evaluate(self, inputs: Inputs) -> Evaluation:
        async with self._one_at_a_time:
            tables = {feed: await self._table(feed, digest) for feed, digest in inputs.digests}
            # Room is made before, so that there is never one more in memory than is kept.
            while len(self._evaluations) >= EVALUATIONS_MAX:
                del self._evaluations[next(iter(self._evaluations))]
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._pool, _evaluated, tables, inputs)
            for key in inputs.digests:
                self._parsed.pop(key, None)
            self._evaluations[inputs] = found
            return found

    async def _table(self, feed: Feed, digest: str) -> Table:
        for inputs, evaluation in self._evaluations.items():
            if (feed, digest) in inputs.digests:
                return evaluation.case.table(feed)
        if (feed, digest) in self._parsed:
            return self._parsed[feed, digest]
        parsed = await self.parse(feed, await self._blobs.get(digest))
        if not isinstance(parsed, Parsed):
            # It was staged by another version, or the disk lied.
            raise Fault(
                f"the file of {feed} does not parse any more ({parsed[0].code}); stage it again",
                retryable=False,
            )
        return parsed.table


def _evaluated(tables: Mapping[Feed, Table], inputs: Inputs) -> Evaluation:
    return evaluate(
        tables,
        config=Config(inputs.go_live),
        thresholds=inputs.scope.thresholds,
        effects=inputs.scope.effects(),
    )
