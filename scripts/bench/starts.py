"""An event at the door that starts a run, answered once both are durable.

Run: .venv/bin/python -m scripts.bench.starts. One ACTIVE playbook of a hundred listens to each
event; CancelRun over gRPC frees it again, untimed but durable too, so a rate counts both. The
triggers have no cooldown, which no operator can write: a playbook may start again at once. Events
and notes are as long as they may be, and so is the history of the full document: it stays full.
The baseline is GET /healthz over as many connections.
"""

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
from msgspec.structs import replace
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from core_console.decide import events, operators
from core_console.model.codec import encode, spec_digest
from core_console.model.document import Document
from core_console.model.playbook import AgentEventTrigger, Playbook, Trigger
from core_console.model.run import Run, StepRun
from scripts.bench.consoles import Console, Root, github, root_with, serving
from scripts.bench.doors import Client, load, request_of
from scripts.bench.measuring import Row, measure, run
from scripts.bench.run_now import FULL_BYTES, PLAYBOOKS, document

if TYPE_CHECKING:  # a class of the stubs alone
    from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceAsyncStub

CALLERS = (1, 16, 64)
AGENT = "datagov"
DETAIL = "x" * events.DETAIL_BYTES
NOTE = "x" * operators.NOTE_BYTES
_WITH_HISTORY = 1
"""Fewer bytes than any history has, so that nothing else is filled up."""


def listening(each: Playbook, number: int, description: str) -> Playbook:
    """Return the playbook with a trigger on the event of that number."""
    trigger = Trigger("event", AgentEventTrigger(AGENT, f"bench.{number}"))
    spec = replace(each.spec, triggers=(trigger,), description=description)
    return replace(each, spec=spec, spec_digest=spec_digest(spec))


def listeners(made: Document, description: str = "") -> Document:
    """Return the document with playbooks that each listen to an event of their own."""
    playbooks = {
        each.id: listening(each, number, description)
        for number, each in enumerate(made.playbooks.values())
    }
    return replace(made, playbooks=playbooks)


def full() -> Document:
    """Return a full document that stays full: its history is as large as what pushes it out."""
    made = document(_WITH_HISTORY)
    finished = {key: replace(run, steps=(_noted(run),)) for key, run in made.finished.items()}
    events = {key: replace(each, detail=DETAIL) for key, each in made.events.items()}
    made = listeners(replace(made, finished=finished, events=events))
    return listeners(made, "x" * ((FULL_BYTES - len(encode(made))) // PLAYBOOKS))


def _noted(run: Run) -> StepRun:
    return replace(run.steps[0], decision_note=NOTE)


DOCUMENTS: dict[str, Callable[[], Document]] = {
    "small": lambda: listeners(document(0)),
    "full": full,
}


@dataclass
class Caller:
    """A connection to the door and one over gRPC, and the playbooks that are its alone."""

    client: Client
    stub: "PlaybookServiceAsyncStub"
    numbers: Iterator[int]


class Starts:
    """Callers that raise events, each of which starts a run that is then cancelled."""

    def __init__(self, console: Console, root: Root, bearer: str) -> None:
        self._console, self._bearer = console, bearer
        self._metadata = (("authorization", f"Bearer {root.token}"),)
        self._ids = count(time.time_ns())

    async def row(self, name: str, callers: int, seconds: float) -> Row:
        """Measure so many callers."""
        async with grpc.aio.insecure_channel(self._console.address) as channel:
            stub: PlaybookServiceAsyncStub = PlaybookServiceStub(channel)
            made = [await self._caller(stub, number, callers) for number in range(callers)]

            async def call(number: int) -> float:
                return await self._one(made[number])

            await measure("", callers, 0.5, call)
            found = await measure(name, callers, seconds, call)
        return Row(name, 2 * found.rate, found.p50_ms, found.p99_ms)

    async def _caller(self, stub: "PlaybookServiceAsyncStub", number: int, callers: int) -> Caller:
        streams = await asyncio.open_connection("127.0.0.1", self._console.http_port)
        share = PLAYBOOKS // callers
        numbers = (number * share + turn % share for turn in count())
        return Caller(Client(*streams), stub, numbers)

    async def _one(self, caller: Caller) -> float:
        """Raise an event and cancel its run; return the milliseconds of the event."""
        fields = {
            "agent": AGENT,
            "event": f"bench.{next(caller.numbers)}",
            "eventId": f"bench-{next(self._ids)}",
            "detail": DETAIL,
        }
        began = time.perf_counter()
        status, body = await caller.client.answer(request_of(self._bearer, fields))
        took_ms = (time.perf_counter() - began) * 1_000
        assert status == HTTPStatus.OK, status
        (run_id,) = json.loads(body)["started"]
        cancel = pb.CancelRunRequest(run_id=run_id, note=NOTE)
        await caller.stub.CancelRun(cancel, metadata=self._metadata)
        return took_ms


async def _rows(starts: Starts, console: Console, label: str, seconds: float) -> list[Row]:
    rows = []
    for callers in CALLERS:
        bare = await load(console.http_port, "", callers, seconds / 4, "healthz")
        row = await starts.row(f"event that starts a run, {label}, {callers}", callers, seconds)
        ratio = f"{row.rate / bare.rate:.2f} of healthz, event and cancel"
        rows.append(dataclasses.replace(row, ratio=ratio))
    return rows


def measured(folder: Path, seconds: float) -> Sequence[Row]:
    """Measure a console on a small and on a full document."""
    rows: list[Row] = []
    with github(folder) as hub:
        for label, make in DOCUMENTS.items():
            root = root_with(folder / label, make())
            with serving(root, settings=hub.settings) as console:
                starts = Starts(console, root, hub.token)
                rows += asyncio.run(_rows(starts, console, label, seconds))
    return rows


if __name__ == "__main__":
    run(__doc__, measured)
