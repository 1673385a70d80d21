"""`serve` as a process: how it stops, when it refuses to start, and what it never leaves behind."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from tests.builders import AUTHOR, SECOND
from tests.certificates import certificate
from tests.e2e.conftest import Site
from tests.e2e.processes import END_S, eventually
from tests.e2e.site import (
    CALL_S,
    Caller,
    Console,
    StandIn,
    a_console,
    activated,
    app_key,
    approval,
    comment,
    detect,
    ended,
    silent_tree,
    until,
    written,
)

pytestmark = pytest.mark.slow

FLOOD = 3_000
DOOR = "/api/playbook-runs/step-report"


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with a_console(tmp_path) as made:
        yield made


# Stopping.


def hammer(caller: Caller, answered: list[str]) -> grpc.StatusCode:
    """Write playbooks until the console does not take one; return why."""
    while True:
        try:
            answered.append(written(caller, approval()).id)
            caller.ask(pb.DeletePlaybookRequest(id=answered[-1]))
            del answered[-1]
        except grpc.RpcError as error:
            code: grpc.StatusCode = error.code()
            return code


def test_sigterm_refuses_new_calls_and_finishes_what_is_in_flight(console: Console) -> None:
    process = console.start()
    told: list[list[str]] = [[] for _ in range(6)]
    with ThreadPoolExecutor(len(told)) as pool:
        hammering = [pool.submit(hammer, console.caller(AUTHOR), each) for each in told]
        eventually(lambda: len(console.audit_path.read_bytes().splitlines()) > 30)
        process.signal(signal.SIGTERM)
        ends = {each.result() for each in hammering}
    assert process.wait() == 0
    assert ends <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}
    assert console.leftovers() == []
    document = console.document()
    # The last id of each was answered; whether its deletion was is another matter.
    alive = set(document.playbooks)
    deleted = {each["target"] for each in console.records() if each["action"].endswith(".delete")}
    assert {each[-1] for each in told if each} <= alive | deleted
    assert Caller(console.grpc).refused(pb.ListPlaybooksRequest())[0] is grpc.StatusCode.UNAVAILABLE
    assert "Traceback" not in console.log.read_text()


def test_sigterm_waits_for_the_call_to_github_and_records_its_end(tmp_path: Path) -> None:
    with a_console(tmp_path) as console:
        github = StandIn(tmp_path, console_http=console.http, tree=silent_tree(tmp_path / "tree"))
        try:
            console.know(github)
            process = console.start()
            author, second = console.caller(AUTHOR), console.caller(SECOND)
            github.fault("hang_after", "dispatch")
            run = author.start(activated(author, second, detect()))
            eventually(lambda: github.dispatches(run.id))
            assert process.terminate() == 0
        finally:
            github.close()
        (kept,) = console.document().running.values()
        assert kept.steps[0].call == "UNKNOWN"
        assert kept.status == "WAITING_AGENT"


# Refusing to start.


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose root a console has used and left in order."""
    folder = tmp_path_factory.mktemp("lived-in")
    with a_console(folder) as console:
        console.start()
        author = console.caller(AUTHOR)
        author.start(activated(author, console.caller(SECOND), approval()))
        assert console.process is not None
        assert console.process.terminate() == 0
    return folder / "root"


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


def truncated(data: bytes) -> bytes:
    return data[:-7]


def emptied(data: bytes) -> bytes:
    return data[:0]


def other_header(data: bytes) -> bytes:
    return data.replace(b"core-console-document 1 ", b"core-console-document 2 ", 1)


def newer_format(data: bytes) -> bytes:
    head, _, body = data.partition(b"\n")
    newer = json.dumps(json.loads(body) | {"format": 99}).encode()
    name, version, revision, *_ = head.split()
    digest = sha256(newer).hexdigest().encode()
    return b"%s %s %s %012d %s\n" % (name, version, revision, len(newer), digest) + newer


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (flipped, "does not match the digest"),
        (truncated, "not as long as its first line says"),
        (emptied, "first line"),
        (other_header, "first line"),
        (newer_format, "its format is 99"),
    ],
)
def test_a_document_that_cannot_be_read_stops_the_start_and_is_left_alone(
    console: Console, lived_in: Path, damage: Callable[[bytes], bytes], says: str
) -> None:
    shutil.copytree(lived_in, console.root, dirs_exist_ok=True)
    damaged = damage(console.document_path.read_bytes())
    console.document_path.write_bytes(damaged)
    process = console.begin()
    assert process.wait() == 1
    (sentence,) = console.log.read_text().splitlines()
    assert says in sentence
    assert "keep" in sentence
    assert "restore a backup" in sentence
    assert str(console.root) not in sentence
    assert console.document_path.read_bytes() == damaged


@pytest.mark.parametrize("place", ["document_path", "audit_path"])
def test_a_pipe_in_the_place_of_a_file_of_the_store_stops_the_start(
    console: Console, place: str
) -> None:
    path: Path = getattr(console, place)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)  # `init` has recorded the key that it made
    os.mkfifo(path)
    process = console.begin()
    assert process.wait(20) == 1
    assert "is no file" in console.log.read_text()


def test_bad_settings_stop_the_start_with_one_line_each(console: Console) -> None:
    bad = {
        "CONSOLE_GRPC_ADDR": "everywhere",
        "CONSOLE_TICK_SECONDS": "often",
        "CORE_ATLAS_ADMINS": "nobody",
        "CORE_GH_APP_ID": "4242",
    }
    console.settings |= bad
    done = console.command("serve")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == len(bad)
    assert {line.split()[0].rstrip(":") for line in lines} == set(bad)


@pytest.mark.parametrize("name", ["CONSOLE_GRPC_ADDR", "CONSOLE_HTTP_ADDR"])
def test_a_bind_beyond_loopback_without_tls_is_refused(console: Console, name: str) -> None:
    console.settings[name] = "0.0.0.0:0"
    done = console.command("serve")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{name} is beyond loopback")
    assert "CONSOLE_TLS_CERT" in line


@pytest.mark.parametrize("which", ["grpc", "http"])
def test_a_port_that_is_taken_is_told_in_one_sentence(console: Console, which: str) -> None:
    address = console.grpc if which == "grpc" else console.http
    host, port = address.split(":")
    with socket.create_server((host, int(port))):
        done = console.command("serve")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"{address} cannot be bound")
    assert not console.leftovers()


# TLS.


def test_with_a_certificate_both_ports_speak_tls_and_nothing_else(
    console: Console, tmp_path: Path
) -> None:
    cert, key = certificate().in_files(tmp_path)
    console.settings |= {"CONSOLE_TLS_CERT": str(cert), "CONSOLE_TLS_KEY": str(key)}
    console.start()
    ca = tmp_path / "cert.pem"
    credentials = grpc.ssl_channel_credentials(ca.read_bytes())
    author = Caller(console.grpc, console.token(AUTHOR), credentials)
    draft = written(author, approval())
    assert author.ask(pb.ListPlaybooksRequest()).playbooks == [draft]
    author.close()
    listed = console.command(
        "playbook", "list", CORE_CONSOLE_CA=str(ca), CORE_CONSOLE_TOKEN=console.token(AUTHOR)
    )
    assert draft.id in listed.stdout
    code, _ = console.caller(AUTHOR).refused(pb.ListPlaybooksRequest())
    assert code is grpc.StatusCode.UNAVAILABLE

    context = ssl.create_default_context(cafile=ca)
    with httpx.Client(verify=context, trust_env=False) as client:
        assert client.get(f"https://{console.http}/healthz").status_code == 200
        assert client.post(f"https://{console.http}{DOOR}", json={}).status_code in {401, 503}
    with pytest.raises(httpx.HTTPError), httpx.Client(trust_env=False) as client:
        client.get(f"http://{console.http}/healthz")


# A full disk.


class Disk:
    """A place for a root that can be full."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def fill(self, console: Console) -> None:
        """Leave no room."""
        raise NotImplementedError

    def make_room(self, console: Console) -> None:
        """Let there be room again."""
        raise NotImplementedError


class SmallDisk(Disk):
    """A file system of one mebibyte."""

    def fill(self, console: Console) -> None:
        assert console.root.is_relative_to(self.folder)
        ballast = (self.folder / "ballast").open("wb", buffering=0)
        with ballast, pytest.raises(OSError, match="No space left"):
            self._pour(ballast)

    def _pour(self, ballast: FileIO) -> None:
        while True:
            ballast.write(bytes(4_096))

    def make_room(self, console: Console) -> None:
        assert console.root.is_relative_to(self.folder)
        (self.folder / "ballast").unlink()


class LimitedFiles(Disk):
    """The process may write no file as large as the document: the same without being root."""

    BYTES = 16_384

    def _limit(self, console: Console, soft: int) -> None:
        assert console.process is not None
        _, hard = resource.prlimit(console.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(console.process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def fill(self, console: Console) -> None:
        assert console.document_path.stat().st_size > self.BYTES
        self._limit(console, self.BYTES)

    def make_room(self, console: Console) -> None:
        self._limit(console, resource.RLIM_INFINITY)


@pytest.fixture(params=["small disk", "limited files"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Disk]:
    if request.param == "limited files":
        yield LimitedFiles(tmp_path)
        return
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", "size=1m,mode=0700", "tmpfs", str(folder))
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small disk; the limited files are tested all the same")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(("umount", str(folder)), check=True)


def _created_until_refused(console: Console, author: Caller, wordy: pb.Playbook) -> set[str]:
    """Create playbooks until two in a row are refused; return those that were accepted.

    What still fits into the room that the file before had is written; nothing is written half.
    """
    kept: set[str] = set()
    refusals = 0
    while refusals < 2:
        before = console.document_path.read_bytes()
        created, error = _tried(author, pb.CreatePlaybookRequest(playbook=wordy))
        if error is None:
            kept.add(created.playbook.id)
            assert len(kept) < 20, "the disk is full, and everything is taken"
            refusals = 0
            continue
        refusals += 1
        assert error.code() is grpc.StatusCode.UNAVAILABLE
        assert re.search("disk is full|file size limit", error.details() or "")
        assert console.document_path.read_bytes() == before
    return kept


def _tried(author: Caller, request: pb.CreatePlaybookRequest) -> tuple[Any, Any]:
    """Return the answer, or the error that it was refused with."""
    try:
        return author.ask(request), None
    except grpc.RpcError as error:
        return None, error


def test_a_full_disk_refuses_whole_and_recovers_by_itself(disk: Disk) -> None:
    with a_console(disk.folder) as console:
        process = console.start()
        author, second = console.caller(AUTHOR), console.caller(SECOND)
        wordy = pb.Playbook(name="Wordy", description="word " * 390, steps=[approval()])
        for _ in range(12):
            author.ask(pb.CreatePlaybookRequest(playbook=wordy))
        playbook_id = activated(author, second, approval())

        disk.fill(console)
        kept = _created_until_refused(console, author, wordy)
        assert author.ask(pb.GetPlaybookRequest(id=playbook_id)).playbook.id == playbook_id
        listed = author.ask(pb.ListPlaybooksRequest(page_size=50)).playbooks
        assert {each.id for each in listed} >= kept

        disk.make_room(console)
        run = author.start(playbook_id)
        assert second.approve(run.id, "approve").status == pb.RUN_STATUS_SUCCEEDED
        assert process.terminate() == 0
        assert list(console.document().finished) == [run.id]
        started = [each for each in console.records() if run.id in each["target"]]
        assert [each["outcome"] for each in started] == ["success"] * 3
        assert console.leftovers() == []


# What is never left behind.


def test_no_secret_is_in_any_log_record_or_file(shipped: Site) -> None:
    console, github = shipped.console, shipped.github
    tokens = [
        console.token(AUTHOR),
        console.token(SECOND),
        github.token(),
        github.token("other_app"),
    ]
    author, second = (Caller(console.grpc, token) for token in tokens[:2])
    run = author.start(activated(author, second, detect(), approval(), comment()))
    until(author, run.id, lambda run: run.status == pb.RUN_STATUS_WAITING_APPROVAL)
    second.approve(run.id)
    assert until(author, run.id, ended).status == pb.RUN_STATUS_SUCCEEDED
    # A secret in the wrong place is refused, and what is told of that does not hold it.
    for playbook in (
        pb.Playbook(name=f"use {tokens[2]}", steps=[approval()]),
        pb.Playbook(name="x", description=tokens[0], steps=[approval()]),
    ):
        code, sentence = author.refused(pb.CreatePlaybookRequest(playbook=playbook))
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert not any(token in sentence for token in tokens)
    author.refused(pb.GetPlaybookRequest(id=tokens[0]))
    author.refused(pb.CancelRunRequest(run_id=tokens[2], note="x"))
    for token in tokens:
        for bearer in (token, f"{token}x"):
            door = f"http://{console.http}{DOOR}"
            headers = {"Authorization": f"Bearer {bearer}"}
            body = {"runId": run.id, "stepId": token, "agent": "datagov"}
            answer = httpx.post(door, json=body, headers=headers, timeout=CALL_S, trust_env=False)
            assert answer.status_code in {400, 401, 403, 429}
            assert token not in answer.text
        Caller(console.grpc, f"{token}x").refused(pb.CreatePlaybookRequest())
    author.close()
    second.close()
    key = (console.root / "var/lib/operator-key.pem").read_text().splitlines()[1]
    secrets = [*tokens, key, *app_key().decode().splitlines()[1:4]]
    files = [path for path in console.root.rglob("*") if path.is_file()]
    assert console.document_path in files
    for path in (*files, console.log, github.process.log):
        text = path.read_text(errors="replace")
        found = [secret[:12] for secret in secrets if secret in text]
        assert found == ([key[:12]] if path.name == "operator-key.pem" else []), path


def resident_kib(pid: int) -> int:
    """Return how much memory a process holds."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


def test_a_flood_without_an_identity_fills_neither_the_log_nor_the_memory(
    console: Console,
) -> None:
    process = console.start()
    caller = console.caller(AUTHOR)
    assert caller.ask(pb.ListPlaybooksRequest()).playbooks == []
    records, log_bytes = len(console.records()), console.log.stat().st_size
    nobody = [Caller(console.grpc), Caller(console.grpc, "ey.no.token"), Caller(console.grpc)]
    codes: set[grpc.StatusCode] = set()

    def flood(caller: Caller, times: int) -> None:
        for _ in range(times):
            codes.add(caller.refused(pb.CreatePlaybookRequest())[0])

    flood(nobody[0], 50)
    held_kib = resident_kib(process.pid)
    flooding = [threading.Thread(target=flood, args=(each, FLOOD // 3)) for each in nobody]
    for thread in flooding:
        thread.start()
    with httpx.Client(base_url=f"http://{console.http}", trust_env=False, timeout=CALL_S) as client:
        for _ in range(FLOOD // 10):
            answer = client.post(DOOR, json={}, headers={"Authorization": "Bearer nobody"})
            assert answer.status_code in {401, 429, 503}
    for thread in flooding:
        thread.join(END_S)
    assert codes == {grpc.StatusCode.UNAUTHENTICATED}
    assert resident_kib(process.pid) - held_kib < 32 * 1_024
    assert console.log.stat().st_size - log_bytes < 16 * 1_024
    assert process.terminate() == 0
    assert 0 < len(console.records()) - records <= 25
    for each in nobody:
        each.close()
