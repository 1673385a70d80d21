"""How long RunNow takes on real processes, against a bare echo and a bare durable write.

Run: .venv/bin/python -m scripts.bench.run_now. Prints a table, and ratios to baselines of the same
run, for absolute figures drift with the machine. Bounded: a few seconds a row, loopback only.
"""

import asyncio
import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import grpc
from msgspec.structs import replace
from rich.console import Console as Screen
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from core_console.app import DOCUMENT_PATH
from core_console.batch import METADOC
from core_console.clock import RandomIds, SystemClock
from core_console.decide import runs
from core_console.decide.commands import Tick
from core_console.decide.context import Context
from core_console.decide.identity import Admission
from core_console.governance.rootkey import KeyFile, make_key
from core_console.governance.tokens import issue
from core_console.model.codec import encode, spec_digest
from core_console.model.document import EMPTY, Document
from core_console.model.event import Event
from core_console.model.playbook import (
    Playbook,
    PlaybookStatus,
    RequireApproval,
    ScheduleTrigger,
    Spec,
    Step,
    StepKind,
    Trigger,
    TriggerState,
)
from core_console.model.run import Run, RunStatus, StepRunStatus, TriggerKind
from core_console.store.durable import replace as replace_durably
from core_console.store.file import FileDocument
from scripts.bench.measuring import Row, clean_environment, measure, row_of, rss_mib, run

PLAYBOOKS = 100
FULL_BYTES = 700_000
EVENTS_MAX = 300
_EVENT_BYTES = 200
"""What an event takes beside its detail."""

OPERATOR = "bench@example.com"
SCREEN = Screen()


def playbook(number: int) -> Playbook:
    """Return an ACTIVE playbook of one require_approval step."""
    spec = Spec(
        f"Playbook {number}", "", (Step("ask", StepKind.VALIDATE, RequireApproval(72)),), ()
    )
    now = SystemClock().now()
    return Playbook(
        id=f"PB-{number:016d}",
        spec=spec,
        spec_digest=spec_digest(spec),
        status=PlaybookStatus.ACTIVE,
        revision=2,
        created_by="author@example.com",
        created_at=now,
        updated_by="author@example.com",
        updated_at=now,
        changed=1,
        activated_by="second@example.com",
        activated_at=now,
        activated_revision=1,
    )


def document(size_bytes: int) -> Document:
    """Return a document with 100 playbooks, filled to about `size_bytes`; 0 adds no history.

    It is filled with 200 finished runs and with events, which no run replaces: so it stays as
    full as it is while it is measured.
    """
    playbooks = {each.id: each for each in map(playbook, range(PLAYBOOKS))}
    made = replace(EMPTY, revision=1, playbooks=playbooks)
    if not size_bytes:
        return made
    made = replace(made, finished={run.id: run for run in _finished(made)})
    each_bytes = (size_bytes - len(encode(made))) // EVENTS_MAX - _EVENT_BYTES
    events = [_event(number, max(each_bytes, 0)) for number in range(EVENTS_MAX)]
    return replace(made, events={event.id: event for event in events})


def _finished(made: Document) -> Iterator[Run]:
    context = Context(
        now=SystemClock().now(),
        ids=RandomIds(),
        replica="bench",
        admission=Admission(),
        sender_room=30,
    )
    why = runs.Start(trigger=TriggerKind.MANUAL, initiator=OPERATOR)
    run = runs.start(made, next(iter(made.playbooks.values())), why, context).run
    done = replace(run.steps[0], status=StepRunStatus.SUCCEEDED, finished_at=run.started_at)
    for _ in range(runs.FINISHED_MAX):
        yield replace(
            run,
            id=RandomIds().new("PBR"),
            status=RunStatus.SUCCEEDED,
            steps=(done,),
            finished_at=run.started_at,
        )


def _event(number: int, detail_bytes: int) -> Event:
    return Event(
        id=f"PBE-{number:016d}",
        at=SystemClock().now(),
        agent="datagov",
        event="findings.reported",
        raised_by="agent:datagov",
        revision=1,
        detail="x" * detail_bytes,
    )


async def run_now(address: str, token: str, callers: int, seconds: float, name: str) -> Row:
    """Measure RunNow on a free playbook; CancelRun frees it outside the time."""
    metadata = (("authorization", f"Bearer {token}"),)
    channels = [
        grpc.aio.insecure_channel(address, options=(("grpc.use_local_subchannel_pool", 1),))
        for _ in range(callers)
    ]
    stubs = [PlaybookServiceStub(channel) for channel in channels]
    share = PLAYBOOKS // callers
    turns = [0] * callers

    async def call(number: int) -> float:
        playbook_id = f"PB-{number * share + turns[number] % share:016d}"
        turns[number] += 1
        began = time.perf_counter()
        answer = await stubs[number].RunNow(
            pb.RunNowRequest(playbook_id=playbook_id), metadata=metadata
        )
        took_ms = (time.perf_counter() - began) * 1_000
        await stubs[number].CancelRun(
            pb.CancelRunRequest(run_id=answer.run.id, note="bench"), metadata=metadata
        )
        return took_ms

    await measure("", callers, 0.5, call)
    row = await measure(name, callers, seconds, call)
    for channel in channels:
        await channel.close()
    return row


async def get_playbook(address: str, token: str, callers: int, seconds: float, name: str) -> Row:
    """Measure GetPlaybook."""
    metadata = (("authorization", f"Bearer {token}"),)
    async with grpc.aio.insecure_channel(address) as channel:
        stub = PlaybookServiceStub(channel)

        async def call(number: int) -> float:
            began = time.perf_counter()
            await stub.GetPlaybook(pb.GetPlaybookRequest(id=f"PB-{number:016d}"), metadata=metadata)
            return (time.perf_counter() - began) * 1_000

        return await measure(name, callers, seconds, call)


async def list_runs(address: str, token: str, callers: int, seconds: float, name: str) -> Row:
    """Measure a ListRuns page of 50."""
    metadata = (("authorization", f"Bearer {token}"),)
    async with grpc.aio.insecure_channel(address) as channel:
        stub = PlaybookServiceStub(channel)

        async def call(number: int) -> float:
            del number
            began = time.perf_counter()
            await stub.ListRuns(pb.ListRunsRequest(), metadata=metadata)
            return (time.perf_counter() - began) * 1_000

        return await measure(name, callers, seconds, call)


def bare_write(folder: Path, size_bytes: int, times: int = 200) -> Row:
    """Measure a durable replace of one file, nothing else."""
    data = os.urandom(size_bytes)
    took: list[float] = []
    began = time.perf_counter()
    for _ in range(times):
        start = time.perf_counter()
        replace_durably(folder / "bare", data, lambda: b"", 0)
        took.append((time.perf_counter() - start) * 1_000)
    name = f"bare durable write, {size_bytes // 1024} KiB"
    return row_of(name, took, time.perf_counter() - began)


def bare_echo(callers: int, seconds: float) -> Row:
    """Measure a unary echo of 200 bytes, nothing else."""
    arguments = (sys.executable, "-m", "scripts.bench.echo")
    server = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        return asyncio.run(_echoed(server.stdout.readline().strip(), callers, seconds))
    finally:
        server.communicate()


async def _echoed(port: str, callers: int, seconds: float) -> Row:
    address = f"127.0.0.1:{port}"
    channels = [
        grpc.aio.insecure_channel(address, options=(("grpc.use_local_subchannel_pool", 1),))
        for _ in range(callers)
    ]
    calls: list[grpc.aio.UnaryUnaryMultiCallable[bytes, bytes]] = [
        channel.unary_unary("/bench.Echo/Echo") for channel in channels
    ]

    async def call(number: int) -> float:
        began = time.perf_counter()
        await calls[number](b"x" * 200)
        return (time.perf_counter() - began) * 1_000

    try:
        await measure("", callers, 0.5, call)
        return await measure(f"bare echo, {callers} callers", callers, seconds, call)
    finally:
        for channel in channels:
            await channel.close()


class Served:
    """A console process on a root with the given document."""

    def __init__(self, folder: Path, stored: Document) -> None:
        root = folder / "root"
        asyncio.run(_store(root, stored))
        make_key(root, RandomIds())
        key = KeyFile(root).current()
        assert key is not None
        now = SystemClock().now()
        self.token = issue(
            OPERATOR, timedelta(hours=1), key=key, now=now, token_id=RandomIds().new("TOK")
        )
        env = clean_environment(
            CONSOLE_APPFS_DIR=str(root),
            CONSOLE_GRPC_ADDR="127.0.0.1:0",
            CONSOLE_HTTP_ADDR="127.0.0.1:0",
        )
        began = time.perf_counter()
        self._process = subprocess.Popen(
            (sys.executable, "-m", "core_console", "serve"),
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        self.address = line.split(" gRPC on ")[1].split()[0]
        with grpc.insecure_channel(self.address) as channel:
            PlaybookServiceStub(channel).ListPlaybooks(
                pb.ListPlaybooksRequest(page_size=1),
                metadata=(("authorization", f"Bearer {self.token}"),),
                wait_for_ready=True,
            )
        self.start_s = time.perf_counter() - began

    def rss_mib(self) -> float:
        """Return the memory of the console process in MiB."""
        return rss_mib(self._process.pid)

    def end(self) -> None:
        """Stop the console."""
        self._process.terminate()
        self._process.wait(30)


async def _store(root: Path, stored: Document) -> None:
    store = FileDocument(root / DOCUMENT_PATH)
    await store.swap("", encode(stored))
    store.close()


def measured(folder: Path, seconds: float) -> list[Row]:
    """Measure the baselines, and a console on a small and on a full document."""
    rows = [bare_write(folder, FULL_BYTES)]
    echoes = {callers: bare_echo(callers, seconds) for callers in (1, 16, 64)}
    rows += echoes.values()
    for label, size in (("small", 0), ("full", FULL_BYTES)):
        served = Served(folder / label, document(size))
        SCREEN.print(f"{label}: first answer {served.start_s:.2f} s, {served.rss_mib():.0f} MiB")
        rows += _calls(served, label, seconds, echoes)
        rows += _reads(served, label, seconds / 2)
        SCREEN.print(f"{label}: after the load {served.rss_mib():.0f} MiB")
        served.end()
    return [*rows, ticks()]


def _calls(served: Served, label: str, seconds: float, echoes: dict[int, Row]) -> list[Row]:
    rows = []
    for callers, echo in echoes.items():
        name = f"RunNow, {label}, {callers} callers"
        row = asyncio.run(run_now(served.address, served.token, callers, seconds, name))
        # Each RunNow is followed by a CancelRun: two durable calls.
        ratio = f"{row.rate * 2 / echo.rate:.2f} of echo, run and cancel"
        rows.append(dataclasses.replace(row, ratio=ratio))
    return rows


def _reads(served: Served, label: str, seconds: float) -> list[Row]:
    return [
        asyncio.run(ask(served.address, served.token, 1, seconds, f"{what}, {label}, 1 caller"))
        for ask, what in ((get_playbook, "GetPlaybook"), (list_runs, "ListRuns of 50"))
    ]


def ticks(times: int = 300) -> Row:
    """Measure a tick over 100 ACTIVE playbooks with nothing due, in this process."""
    cron = Trigger("hourly", ScheduleTrigger("0 * * * *"), 60)
    stored = document(0)
    now = SystemClock().now()
    playbooks = {
        key: replace(
            each,
            spec=replace(each.spec, triggers=(cron,)),
            switched_at=now,
            trigger_states={"hourly": TriggerState(slot_done=now)},
        )
        for key, each in stored.playbooks.items()
    }
    stored = replace(stored, playbooks=playbooks)
    context = Context(
        now=now, ids=RandomIds(), replica="bench", admission=Admission(), sender_room=30
    )
    took: list[float] = []
    began = time.perf_counter()
    for _ in range(times):
        start = time.perf_counter()
        batch = METADOC.decide_batch(stored, [Tick()], lambda _: context)
        took.append((time.perf_counter() - start) * 1_000)
        assert batch.document is stored, "a tick with nothing due writes nothing"
    return row_of("tick over 100 schedules, nothing due", took, time.perf_counter() - began)


if __name__ == "__main__":
    run(__doc__, measured)
