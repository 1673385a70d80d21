"""A console process: the real engine, recorder, performer, ticker, chain and refusals.

Owns how the parts are joined and that a process can die at any await: all its tasks end, and
nothing of it reaches what is shared any more.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core_console.batch import CAPEX, METADOC, Kind
from core_console.decide.budget import Ledger
from core_console.decide.commands import Command, RaiseEvent, ReportStep
from core_console.decide.outcome import Accepted, Outcome, Refused
from core_console.doors.gate import Gate
from core_console.effects import Performer
from core_console.engine import Engine, Metadoc
from core_console.governance.chain import Chain
from core_console.governance.refusals import Refusals
from core_console.model.audit import Entry
from core_console.model.audit import Outcome as Recorded
from core_console.model.document import Document
from core_console.model.pieces import Pieces
from core_console.ports import Fault
from core_console.raiser import Raiser
from core_console.recorder import Recorder
from core_console.ticker import Ticker
from tests.sim.broken import BrokenError
from tests.sim.doors import Doors, Heard
from tests.sim.wires import (
    MachineClock,
    Wire,
    WiredDocument,
    WiredFeeds,
    WiredGitHub,
    WiredLog,
    WiredScanner,
)

if TYPE_CHECKING:
    from tests.sim.world import World

PROCESS: ContextVar["Process | None"] = ContextVar("PROCESS", default=None)

_DRIFTS_S = (0.0, 0.0, 0.2, -3.0, 20.0)
_START_AGAIN_S = 5.0
_CLOSING_S = 15.0


def task_of_a_process(
    loop: asyncio.AbstractEventLoop,
    coroutine: Any,  # noqa: ANN401 -- the loop hands on whatever may be run
    context: Context | None = None,
) -> "asyncio.Task[Any]":
    """Make a task, and note whose it is: a process's tasks make tasks of that process."""
    task = asyncio.Task(coroutine, loop=loop, context=context)
    process = PROCESS.get() if context is None else context.get(PROCESS)
    if process is not None:
        process.tasks.append(task)
        if not process.alive:  # something that cleans up after itself; a dead process does not
            task.cancel()
    return task


class Machine:
    """Where one replica runs, again after each crash."""

    def __init__(self, world: "World", number: int) -> None:
        self.number = number
        self.clock = MachineClock(world.loop)
        self.clock.offset_s = world.dice("drift", number).choice(_DRIFTS_S)
        self.process: Process | None = None
        self._world = world
        self._boots = 0

    def boot(self) -> None:
        """Start a new process, unless one runs."""
        if self.process is None:
            self._boots += 1
            self.process = Process(self._world, self, f"console-{self.number}.{self._boots}")
            self.process.spawn(self.process.run())


def kind_of_a_process() -> "Kind[Document, Command, Accepted]":
    """Return the metadoc's kind with a memory of its own, as each real process has it."""
    codec = copy(METADOC.codec)
    codec.pieces = Pieces()
    return replace(METADOC, codec=codec, ledger=Ledger(codec.pieces))


class Process:
    """One console process."""

    def __init__(self, world: "World", machine: Machine, name: str) -> None:
        self.name = name
        self.machine = machine
        self.alive = True
        self.ready = False
        self.tasks: list[asyncio.Task[Any]] = []
        self._world = world
        wire, clock = Wire(world, self), machine.clock
        chain = Chain(WiredLog(wire), clock)
        self.refusals = Refusals(chain, clock)
        self.recorder = Recorder(chain, METADOC.name, clock)
        self.performer = Performer(
            github=WiredGitHub(wire), scanner=WiredScanner(wire), clock=clock
        )
        self.engine: Metadoc = Engine(
            kind_of_a_process(),
            store=WiredDocument(wire),
            recorder=self.recorder,
            performer=self.performer,
            clock=clock,
            ids=world.ids,
            policy=world.policy,
            replica=name,
        )
        raiser = Raiser(CAPEX.name, source=WiredFeeds(wire), console=self.engine)
        gate = Gate(github=WiredGitHub(wire), refusals=self.refusals, clock=clock)
        self._doors = Doors(console=Heard(self._judged), gate=gate, raised=raiser.move)
        self.ticker = Ticker(
            self.engine,
            clock=clock,
            ids=world.ids,
            interval_s=world.tick_s,
            chores=(raiser.move, self.refusals.flush),
        )

    async def run(self) -> None:
        """Start as soon as the store can be read, and go on for ever."""
        while True:
            try:
                await self.engine.start()
            except Fault:
                await asyncio.sleep(_START_AGAIN_S)
            else:
                break
        self.ready = True
        for part in (self.recorder.run(), self.performer.run(self.engine), self.ticker.run()):
            self.spawn(part)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Run something as a part of this process."""
        context = copy_context()
        context.run(PROCESS.set, self)
        return self._world.loop.create_task(coroutine, context=context)

    def die(self, where: str) -> None:
        """End as kill -9 ends: nothing is finished."""
        if not self.alive:
            return
        self._world.say("{} dies {}", self.name, where)
        self.alive = self.ready = False
        for task in self.tasks:
            task.cancel()
        self.machine.process = None
        self._world.boots_again(self.machine)

    async def stop(self) -> None:
        """End in order, as on SIGTERM."""
        self._world.say("{} stops in order", self.name)
        self.ready = False
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSING_S):
                await self.performer.close(self.engine)
        await self.engine.close()
        await self.engine.recorded()
        self.die("at the end of its stop")

    async def ask(self, command: Command, *, actor: str) -> Outcome | Fault | None:
        """Return the answer to a caller, None when the connection broke."""
        if not self.alive:
            return None
        task = self.spawn(self._answer(command, actor))
        await asyncio.wait((task,))
        if task.cancelled():
            return None
        answer: Outcome | Fault = task.result()
        return answer

    async def read(self) -> Document | None:
        """Return what this process shows, None when it shows nothing."""
        task = self.spawn(self._read())
        await asyncio.wait((task,))
        return None if task.cancelled() else task.result()

    async def _read(self) -> Document | None:
        try:
            return await self.engine.snapshot()
        except Fault:
            return None

    def look(self) -> None:
        """Have somebody look at what this process shows."""
        self.spawn(self._look())

    async def _look(self) -> None:
        judge = self._world.judge
        newest = 0 if self.engine.swapping else judge.document.revision
        try:
            seen = await self.engine.look()
        except Fault:
            return
        # While the store is away the last known state is shown, and said to be just that.
        least = newest if seen.fault is None else 0
        self._world.judged(judge.shown, seen.document, least_revision=least)

    async def _answer(self, command: Command, actor: str) -> Outcome | Fault:
        if isinstance(command, ReportStep | RaiseEvent):
            return await self._at_a_door(command)
        outcome = await self._judged(command)
        if isinstance(outcome, Refused):
            self._world.refusals += 1
            await self.refusals.record(self._denied(command, actor, outcome), **_KNOWN)
        return outcome

    async def _at_a_door(self, command: ReportStep | RaiseEvent) -> Outcome | Fault:
        self._world.refusals += 1  # a door records whatever no swap does, the same again included
        try:
            return await self._doors.send(command)
        except BrokenError as error:
            self._world.fail(error)
            raise

    async def _judged(self, command: Command) -> Outcome | Fault:
        try:
            outcome = await self.engine.submit(command)
        except Fault as fault:
            return fault
        if isinstance(outcome, Accepted):
            self._world.judged(self._world.judge.answered, outcome)
        else:
            self._world.judged(self._world.judge.refused, command, outcome)
        return outcome

    def _denied(self, command: Command, actor: str, refused: Refused) -> Entry:
        return Entry(
            at=self.machine.clock.now(),
            actor=actor,
            action=type(command).__name__,
            target="",
            outcome=Recorded.DENIED,
            detail=refused.reason,
            subject="playbook",
        )


_KNOWN: Any = {"identified": True, "peer": "192.0.2.1"}
