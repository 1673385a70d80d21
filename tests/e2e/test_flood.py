"""A crowd of connections that say nothing: the store goes on, and standard error stays small."""

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import grpc
import httpx
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from tests.builders import AUTHOR
from tests.e2e.processes import Process, eventually
from tests.e2e.site import Console, a_console, approval, written

pytestmark = pytest.mark.long

FILES = 256
CROWD = 400
HANDSHAKE_S = 10.0


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with a_console(tmp_path) as made:
        yield made


def start_with_few_files(console: Console) -> Process:
    """Start `serve` under a hard limit, as `ulimit -n` sets it."""
    process = console.begin()
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
    assert process.first_line()
    return process


def connect(address: str, held: ExitStack) -> None:
    """Connect and say nothing; being hung up on is as good as being taken."""
    host, _, port = address.rpartition(":")
    with suppress(OSError):
        held.enter_context(closing(socket.create_connection((host, int(port)), timeout=2)))


def descriptors(process: Process) -> int:
    return len(list(Path(f"/proc/{process.pid}/fd").iterdir()))


def is_healthy(console: Console) -> bool:
    try:
        answer = httpx.get(f"http://{console.http}/healthz", trust_env=False, timeout=5)
    except httpx.HTTPError:
        return False
    return answer.status_code == 200


def can_connect(console: Console) -> bool:
    caller = console.caller(AUTHOR)
    try:
        return bool(caller.ask(pb.ListPlaybooksRequest(), within_s=5).playbooks)
    except grpc.RpcError:
        return False


def test_a_crowd_of_idle_connections_stops_neither_writes_nor_ticks(console: Console) -> None:
    process = start_with_few_files(console)
    operator = console.caller(AUTHOR)
    first = written(operator, approval()).id
    with ExitStack() as held:
        for _ in range(CROWD):
            connect(console.grpc, held)
            connect(console.http, held)
        assert descriptors(process) < FILES - 32
        second = written(operator, approval()).id
        assert {first, second} <= {each.id for each in console.document().playbooks.values()}
        assert eventually(lambda: can_connect(console), within_s=2 * HANDSHAKE_S)
        assert eventually(lambda: is_healthy(console), within_s=2 * HANDSHAKE_S)
    assert "tick_failed" not in console.log.read_text()
    assert console.log.stat().st_size < 8 * 1_024
    assert process.terminate() == 0


def test_a_process_that_may_open_hardly_any_file_says_so_and_does_not_start(
    console: Console,
) -> None:
    process = console.begin()
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (128, 128))
    assert process.wait() == 1
    assert "raise its limit" in console.log.read_text()
