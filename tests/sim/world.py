"""The world that the processes of one simulation share, and its one history.

Owns what is durable, simulated time, chance, and who is told of what. All chance comes from the
plan's seed, and nothing here depends on the machine, so that a plan always plays the same.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from contextvars import copy_context
from datetime import timedelta
from itertools import cycle
from random import Random
from typing import Any, ParamSpec

from core_console.batch import METADOC
from core_console.decide.commands import Command
from core_console.decide.identity import Admission
from core_console.model.document import Document
from core_console.model.event import Raising
from core_console.ports import Conflict, Fault, Stored
from core_console.writer import Policy
from tests.fakes import NOON
from tests.sim.agents import Agents
from tests.sim.beginnings import first_document
from tests.sim.brief import Answered, Asked
from tests.sim.broken import BrokenError
from tests.sim.faults import Faults
from tests.sim.github import GitHub
from tests.sim.judge import Judge
from tests.sim.operators import ADMINS
from tests.sim.plan import Plan
from tests.sim.process import PROCESS, Machine, Process
from tests.sim.told import Told

P = ParamSpec("P")

_LAGS_S = (0.0, 0.0, 0.0, 0.001, 0.002, 0.01, 0.08)
_LAGS = 997
"""A prime: a call that comes again and again meets every lag."""

_DOWN_S = (0.0, 1.0, 20.0, 100.0, 400.0)
_REMEMBERED = 4


class Ids:
    """Ids that count, and jitter of the seed."""

    def __init__(self, dice: Random) -> None:
        self._dice = dice
        self._counts: Counter[str] = Counter()

    def new(self, prefix: str) -> str:
        self._counts[prefix] += 1
        return f"{prefix}-{self._counts[prefix]}"

    def jitter(self, spread: float) -> float:
        return self._dice.uniform(1 - spread, 1 + spread)


class World:
    """Everything that is shared."""

    def __init__(self, plan: Plan, loop: asyncio.AbstractEventLoop) -> None:
        self.plan = plan
        self.loop = loop
        self.calm = False
        self.faults = Faults()
        self.ids = Ids(self.dice("jitter"))
        admins = ADMINS if plan.listed_admins else None
        self.policy = Policy(Admission(admins=admins), bar_all_editors=plan.all_editors)
        self.judge = Judge(Told(admins, plan.all_editors))
        self.github = GitHub(self)
        self.agents = Agents(self)
        self.raising: list[Raising] = []
        self.raised = 0
        self.refusals = 0
        self.swaps = 0
        self.tick_s = plan.tick_s
        self.remembered: list[Document] = []
        self.machines = [Machine(self, number) for number in range(1, plan.replicas + 1)]
        self.over: asyncio.Future[None] = loop.create_future()
        self.broken: BrokenError | None = None
        self._history: list[tuple[float, str, tuple[object, ...]]] = []
        self._dice = self.dice("world")
        self._lags_s = cycle(self._dice.choices(_LAGS_S, k=_LAGS))
        self.stored = self._first()

    def _first(self) -> Stored:
        document = first_document(self.plan)
        self.judge.begin(document)
        return Stored("0", METADOC.codec.encode(document))

    def dice(self, *key: object) -> Random:
        """Return the chance of that thing alone: dropping another item does not change it."""
        return Random(f"{self.plan.seed}/{key}")

    def mischief(self, chance: float) -> float:
        """Return the chance that something outside goes wrong, 0 when all is well."""
        return 0.0 if self.calm or self.plan.steadfast else chance

    def lag_s(self) -> float:
        """Return how long a hop takes."""
        return next(self._lags_s)

    def lands_after_death(self) -> bool:
        """Say whether what a process had under way when it died still arrives."""
        return self._dice.random() < 0.5

    def later(self, seconds: float, call: Callable[..., None], *args: object) -> None:
        """Do that outside of any process."""
        context = copy_context()
        context.run(PROCESS.set, None)
        self.loop.call_later(seconds, call, *args, context=context)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something outside of any process."""
        context = copy_context()
        context.run(PROCESS.set, None)
        return self.loop.create_task(self._whole(coroutine), context=context)

    async def _whole(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        try:
            await coroutine
        except BrokenError as error:
            self.fail(error)
        except (AssertionError, LookupError, TypeError, ValueError, AttributeError) as error:
            self.fail(BrokenError("the simulation itself works", repr(error)))
            raise

    def boots_again(self, machine: Machine) -> None:
        """Have a machine start a new process after a while."""
        down_s = 1.0 if self.calm else self._dice.choice(_DOWN_S)
        self.later(down_s, machine.boot)

    def processes(self) -> list[Process]:
        """Return those that serve now."""
        found = (machine.process for machine in self.machines)
        return [process for process in found if process is not None and process.ready]

    async def ask(self, command: Command, actor: str, dice: Random) -> bool:
        """Ask some replica; return whether it answered with a judgement."""
        serving = self.processes()
        if not serving:
            return False
        process = dice.choice(serving)
        answer = await process.ask(command, actor=actor)
        told = Asked(command), Answered(answer)
        self.say("{} asked {} for {}: {}", actor, process.name, *told)
        return answer is not None and not isinstance(answer, Fault)

    def swap(self, expected: str, data: bytes, replica: str) -> str:
        """Swap the document, durably."""
        if expected != self.stored.version:
            raise Conflict
        self.swaps += 1
        self.stored = Stored(str(self.swaps), data)
        document = METADOC.codec.decode(data)
        before = self.judge.document.outbox_number
        self.judged(self.judge.swapped, document, len(data), replica=replica, at_s=self.loop.time())
        for each in document.outbox:
            if each.number > before:
                self.say("{} stored as {}: {}", replica, each.number, each.entry.detail)
        self._remember(document)
        return self.stored.version

    def _remember(self, document: Document) -> None:
        """Keep some old documents: people act on what they once saw."""
        if self.swaps % 8 == 0:
            self.remembered = [*self.remembered, document][-_REMEMBERED:]

    def append(self, expected_seq: int, lines: Sequence[bytes], *, half: bool) -> None:
        """Append to the log, durably."""
        if expected_seq != len(self.judge.lines):
            raise Conflict
        self.judged(self.judge.appended, lines[: len(lines) // 2] if half else lines)

    def clear_raised(self, number: int) -> None:
        """Forget the harness events up to that number."""
        self.raising = [each for each in self.raising if each.number > number]

    def judged(self, judge: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Have something judged, and end the simulation when it does not hold."""
        try:
            judge(*args, **kwargs)
        except BrokenError as error:
            self.fail(error)

    def fail(self, error: BrokenError) -> None:
        """End the simulation with its first failure."""
        if self.broken is None:
            self.broken = error
            self.say("BROKEN: {}", error)
        if not self.over.done():
            self.over.set_result(None)

    def say(self, template: str, *facts: object) -> None:
        """Add a line to the history."""
        self._history.append((self.loop.time(), template, facts))

    def history(self) -> list[str]:
        """Return what happened, line by line, with the time since the start."""
        return [
            f"{NOON + timedelta(seconds=at_s):%d %H:%M:%S.%f}"[:-3] + f" {told.format(*facts)}"
            for at_s, told, facts in self._history
        ]
