"""How long RunNow takes on real processes, against a bare echo and a bare durable write.

Run: .venv/bin/python -m scripts.bench.run_now. Prints a table, and ratios to baselines of the same
run, for absolute figures drift with the machine. Bounded: a few seconds a row, loopback only.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from pathlib import Path

import grpc
from msgspec.structs import replace
from rich.console import Console as Screen
from rich.table import Table
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from core_console.app import DOCUMENT_PATH
from core_console.clock import RandomIds, SystemClock
from core_console.decide import runs
from core_console.decide.context import Context
from core_console.decide.identity import Admission
from core_console.governance.rootkey import KeyFile, make_key
from core_console.governance.tokens import issue
from core_console.model.codec import encode, spec_digest
from core_console.model.document import EMPTY, Document
from core_console.model.playbook import (
    Playbook,
    PlaybookStatus,
    RequireApproval,
    Spec,
    Step,
    StepKind,
)
from core_console.model.run import RunStatus, StepRunStatus, TriggerKind
from core_console.store.durable import replace as replace_durably
from core_console.store.file import FileDocument

PLAYBOOKS = 100
FULL_BYTES = 700_000
OPERATOR = "bench@example.com"


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
    """Return a document with 100 playbooks whose finished runs fill it to about `size_bytes`."""
    playbooks = {each.id: each for each in map(playbook, range(PLAYBOOKS))}
    made = replace(EMPTY, revision=1, playbooks=playbooks)
    if len(encode(made)) >= size_bytes:
        return made
    context = Context(
        now=SystemClock().now(),
        ids=RandomIds(),
        replica="bench",
        admission=Admission(),
        sender_room=30,
    )
    first = next(iter(playbooks.values()))
    why = runs.Start(trigger=TriggerKind.MANUAL, initiator=OPERATOR)
    run = runs.start(made, first, why, context).run
    per_run = (size_bytes - len(encode(made))) // runs.FINISHED_MAX - 700
    done = replace(run.steps[0], status=StepRunStatus.SUCCEEDED, detail="x" * max(per_run, 0))
    finished = {}
    for _ in range(runs.FINISHED_MAX):
        each = replace(
            run,
            id=RandomIds().new("PBR"),
            status=RunStatus.SUCCEEDED,
            steps=(done,),
            finished_at=run.started_at,
        )
        finished[each.id] = each
    return replace(made, finished=finished)


class Row:
    """One measurement: milliseconds of every call, and how long they took together."""

    def __init__(self, name: str, times_ms: list[float], wall_s: float) -> None:
        self.name = name
        self.rate = len(times_ms) / wall_s
        ordered = sorted(times_ms)
        self.p50_ms = statistics.median(ordered)
        self.p99_ms = ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


async def measure(
    name: str, callers: int, seconds: float, call: Callable[[int], Awaitable[float]]
) -> Row:
    """Let `callers` call one after another for `seconds`; a call returns its own milliseconds."""
    times: list[float] = []
    began = time.perf_counter()

    async def caller(number: int) -> None:
        while time.perf_counter() - began < seconds:
            times.append(await call(number))

    await asyncio.gather(*(caller(number) for number in range(callers)))
    return Row(name, times, time.perf_counter() - began)


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
    return Row(f"bare durable write, {size_bytes // 1024} KiB", took, time.perf_counter() - began)


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
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CONSOLE_", "CORE_"))}
        env |= {
            "CONSOLE_APPFS_DIR": str(root),
            "CONSOLE_GRPC_ADDR": "127.0.0.1:0",
            "CONSOLE_HTTP_ADDR": "127.0.0.1:0",
        }
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
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) / 1_024

    def end(self) -> None:
        """Stop the console."""
        self._process.terminate()
        self._process.wait(30)


async def _store(root: Path, stored: Document) -> None:
    store = FileDocument(root / DOCUMENT_PATH)
    await store.swap("", encode(stored))
    store.close()


def shown(rows: Sequence[tuple[Row, str]]) -> Table:
    """Return the rows as a table."""
    table = Table("what", "per s", "p50 ms", "p99 ms", "ratio")
    for row, ratio in rows:
        table.add_row(row.name, f"{row.rate:,.0f}", f"{row.p50_ms:.2f}", f"{row.p99_ms:.2f}", ratio)
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="time of each row, at most 30")
    seconds = min(parser.parse_args().seconds, 30.0)
    screen = Screen()
    rows: list[tuple[Row, str]] = []
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        write = bare_write(folder, FULL_BYTES)
        rows.append((write, ""))
        echoes = {callers: bare_echo(callers, seconds) for callers in (1, 16, 64)}
        rows += [(row, "") for row in echoes.values()]
        for label, size in (("small", 0), ("full", FULL_BYTES)):
            served = Served(folder / label, document(size))
            screen.print(
                f"start to first answer, {label} document: {served.start_s:.2f} s, "
                f"{served.rss_mib():.0f} MiB"
            )
            for callers in (1, 16, 64):
                row = asyncio.run(
                    run_now(
                        served.address,
                        served.token,
                        callers,
                        seconds,
                        f"RunNow, {label}, {callers} callers",
                    )
                )
                rows.append(
                    (row, f"{row.rate * 2 / echoes[callers].rate:.2f} of echo (run + cancel)")
                )
            for ask, what in ((get_playbook, "GetPlaybook"), (list_runs, "ListRuns of 50")):
                row = asyncio.run(
                    ask(served.address, served.token, 1, seconds / 2, f"{what}, {label}, 1 caller")
                )
                rows.append((row, ""))
            screen.print(f"after load, {label} document: {served.rss_mib():.0f} MiB")
            served.end()
    screen.print(shown(rows))


if __name__ == "__main__":
    main()
