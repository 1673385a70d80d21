"""The state at rest on real processes: backed up under load, restored, checked; the store away."""

import fcntl
import json
import os
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1 import playbook_pb2_grpc

from core_console.engine import STORE_PATIENCE_S
from core_console.model.run import RunStatus
from tests.builders import AUTHOR, SECOND
from tests.e2e.processes import eventually
from tests.e2e.site import Console, a_console, activated, approval, detect, ended, until, written

pytestmark = pytest.mark.slow

AT_ONCE_S = 1.0
"""Generous for a machine that is busy with other tests; a time-out would take five seconds."""


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Console]:
    with a_console(tmp_path, CONSOLE_SESSION_ADMINS=SECOND) as made:
        yield made


def state(console: Console, *arguments: str, code: int = 0) -> str:
    """Return what `core-console state …` says; it must end with that code."""
    done = console.command("state", *arguments)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def figure(console: Console, name: str, **labels: str) -> float:
    text = httpx.get(f"http://{console.http}/metrics", trust_env=False).text
    (found,) = (
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == f"core_console_{name}" and labels.items() <= sample.labels.items()
    )
    return found


@pytest.mark.long
def test_a_backup_under_load_is_restored_and_everything_holds(
    console: Console, tmp_path: Path
) -> None:
    console.start()
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    playbooks = [activated(author, second, approval(), name=f"number {each}") for each in range(3)]
    waiting = author.start(playbooks[0])
    stop = threading.Event()

    def load() -> None:
        while not stop.is_set():
            run = author.start(playbooks[1])
            second.approve(run.id)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for number in range(3):
            said = state(console, "backup", str(tmp_path / f"{number}.backup"))
            assert "atlas-playbooks at revision" in said
            assert "all is well" in state(console, "check")
    finally:
        stop.set()
        thread.join()
    shown = json.loads(state(console, "show", "-o", "json"))
    assert shown["served"]
    assert [each["run_id"] for each in shown["in_flight"]] == [waiting.id]
    assert "a console serves this root" in state(console, "show")
    refused = state(console, "restore", str(tmp_path / "2.backup"), code=1)
    assert refused == "a console serves this root: stop every replica first\n"
    draft = written(author, approval(), name="after the backup")
    assert console.process is not None
    assert console.process.terminate() == 0
    before = console.document()

    said = state(console, "restore", str(tmp_path / "2.backup"))
    # The one that waits, and perhaps the one that the load had just started.
    assert said.endswith((": 1 runs ended\n", ": 2 runs ended\n"))
    assert "all is well" in state(console, "check")
    document = console.document()
    assert document.revision > before.revision
    assert draft.id not in document.playbooks
    ended_run = document.finished[waiting.id]
    assert ended_run.status is RunStatus.FAILED
    assert ended_run.detail.startswith("restored from a backup of ")
    assert len(list(console.document_path.parent.glob("atlas-playbooks.replaced-*"))) == 1
    assert console.verified().intact
    assert [each["actor"] for each in console.records() if each["action"] == "state.restore"]

    console.start()
    again = author.start(playbooks[0])
    assert second.approve(again.id).status == pb.RUN_STATUS_SUCCEEDED
    assert "all is well" in state(console, "check")


def test_a_root_that_is_lost_comes_back_from_its_backup(console: Console, tmp_path: Path) -> None:
    console.start()
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    playbook_id = activated(author, second, approval())
    state(console, "backup", str(tmp_path / "b"))
    assert console.process is not None
    assert console.process.terminate() == 0
    chain = tmp_path / "chain"
    shutil.copy(console.audit_path, chain)
    shutil.rmtree(console.root / "var/lib", ignore_errors=False)
    console.audit_path.unlink()

    assert "put a newer copy" in state(console, "restore", str(tmp_path / "b"), code=1)
    shutil.copy(chain, console.audit_path)
    state(console, "restore", str(tmp_path / "b"))
    assert "all is well" in state(console, "check")
    console.init()
    console.start()
    author = console.caller(AUTHOR)
    assert author.start(playbook_id).status == pb.RUN_STATUS_WAITING_APPROVAL


def test_a_damaged_document_is_named_and_a_restore_mends_it(
    console: Console, tmp_path: Path
) -> None:
    console.start()
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    activated(author, second, approval())
    state(console, "backup", str(tmp_path / "b"))
    assert console.process is not None
    assert console.process.terminate() == 0
    damaged = console.document_path.read_bytes().replace(b"ACTIVE", b"PAUSED", 1)
    console.document_path.write_bytes(damaged)
    told = state(console, "check", code=1)
    assert told.startswith("the state is NOT sound\natlas-playbooks: the document's content")
    state(console, "size", code=1)
    state(console, "backup", str(tmp_path / "c"), code=1)
    assert not (tmp_path / "c").exists()
    state(console, "restore", str(tmp_path / "b"))
    assert "all is well" in state(console, "check")
    (kept,) = console.document_path.parent.glob("atlas-playbooks.replaced-*")
    assert kept.read_bytes() == damaged


def test_an_old_copy_of_the_document_stops_the_start(console: Console, tmp_path: Path) -> None:
    process = console.start()
    author = console.caller(AUTHOR)
    written(author, approval(), name="one")
    eventually(lambda: figure(console, "outbox_entries", document="atlas-playbooks") == 0)
    shutil.copy(console.document_path, tmp_path / "old")
    written(author, approval(), name="two")
    assert process.terminate() == 0
    shutil.copy(tmp_path / "old", console.document_path)
    assert "the chain holds entry 2 of it" in state(console, "check", code=1)
    refused = console.begin()
    assert refused.wait() == 1
    assert "older than the audit chain" in console.log.read_text()
    assert console.document_path.read_bytes() == (tmp_path / "old").read_bytes()


def test_an_empty_root_is_no_backup_and_looking_makes_nothing(tmp_path: Path) -> None:
    console = Console(tmp_path)
    console.root.mkdir()
    assert "judged: no document, 0 records" in state(console, "check")
    assert "no run is in flight" in state(console, "show")
    assert "free" in state(console, "size")
    assert "nothing to back up" in state(console, "backup", str(tmp_path / "b"), code=1)
    assert list(console.root.iterdir()) == []
    assert sorted(each.name for each in tmp_path.iterdir()) == ["root"]


def test_what_takes_the_room_is_shown_to_people_and_machines(console: Console) -> None:
    console.start()
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    playbook_id = activated(author, second, approval())
    author.start(playbook_id)
    found = json.loads(state(console, "size", "-o", "json"))
    assert found["size_bytes"] == figure(console, "document_bytes", document="atlas-playbooks")
    assert found["reserve_bytes"] + found["spare_bytes"] == figure(console, "reserve_bytes")
    assert sum(kind["size_bytes"] for kind in found["kinds"]) == found["size_bytes"]
    said = state(console, "size")
    assert playbook_id in said
    assert "786,432 bytes" in said


@contextmanager
def lock_held(path: Path) -> Iterator[None]:
    """Hold the store's lock, as a process does that hangs on its disk."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def provenance(console: Console, request: pb.GetRunRequest) -> tuple[pb.Run, str]:
    """Return a run as a read shows it, and what its trailing metadata say."""
    metadata = (("authorization", f"Bearer {console.token(AUTHOR)}"),)
    with grpc.insecure_channel(console.grpc, [("grpc.enable_http_proxy", 0)]) as channel:
        stub = playbook_pb2_grpc.PlaybookServiceStub(channel)
        answer, call = stub.GetRun.with_call(request, metadata=metadata, timeout=30)
        said = dict(call.trailing_metadata() or ()).get("core-console-provenance", "")
    return answer.run, str(said)


def test_with_the_store_away_writes_are_told_at_once_and_reads_say_so(console: Console) -> None:
    process = console.start()
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    playbook_id = activated(author, second, approval())
    run = author.start(playbook_id)
    assert provenance(console, pb.GetRunRequest(id=run.id)) == (author.run(run.id), "")
    away = console.folder / "elsewhere"
    console.document_path.rename(away)
    for request in (
        pb.DecideApprovalRequest(
            run_id=run.id, step_id="approve", decision=pb.APPROVAL_DECISION_APPROVE
        ),
        pb.CancelRunRequest(run_id=run.id, note="no"),
    ):
        began = time.monotonic()
        code, _ = second.refused(request)
        assert code is grpc.StatusCode.UNAVAILABLE
        assert time.monotonic() - began < AT_ONCE_S
    seen, said = provenance(console, pb.GetRunRequest(id=run.id))
    assert seen.status == pb.RUN_STATUS_WAITING_APPROVAL
    assert said.startswith("last known state of revision ")
    assert said.endswith(", the store cannot be asked")
    eventually(lambda: figure(console, "tick_failures_total") >= 2)
    away.rename(console.document_path)
    assert second.approve(run.id).status == pb.RUN_STATUS_SUCCEEDED
    assert provenance(console, pb.GetRunRequest(id=run.id))[1] == ""
    assert process.running
    assert "all is well" in state(console, "check")


def test_a_store_that_hangs_holds_up_one_write_and_no_second(console: Console) -> None:
    console.start()
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    playbooks = [activated(author, second, approval(), name=each) for each in ("a", "b")]
    waiting = author.start(playbooks[0])
    lock = console.document_path.with_name("atlas-playbooks.lock")
    with lock_held(lock):
        began = time.monotonic()
        code, said = author.refused(pb.RunNowRequest(playbook_id=playbooks[1]))
        assert code is grpc.StatusCode.UNAVAILABLE
        assert "the store" in said
        assert time.monotonic() - began < STORE_PATIENCE_S + AT_ONCE_S
        for _ in range(3):
            began = time.monotonic()
            code, said = author.refused(pb.RunNowRequest(playbook_id=playbooks[1]))
            assert code is grpc.StatusCode.UNAVAILABLE
            assert time.monotonic() - began < AT_ONCE_S
        assert author.run(waiting.id).status == pb.RUN_STATUS_WAITING_APPROVAL
        assert figure(console, "store_away", document="atlas-playbooks") == 1
    eventually(lambda: figure(console, "store_away", document="atlas-playbooks") == 0)
    assert second.approve(waiting.id).status == pb.RUN_STATUS_SUCCEEDED
    assert "all is well" in state(console, "check")


def test_the_figures_follow_what_happens(console: Console) -> None:
    console.start()
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    playbook_id = activated(author, second, approval())
    run = author.start(playbook_id)
    author.refused(pb.RunNowRequest(playbook_id=playbook_id))
    assert figure(console, "runs_in_flight") == 1
    assert figure(console, "swaps_total", document="atlas-playbooks") == 3
    assert (
        figure(console, "refusals_total", document="atlas-playbooks", code="FAILED_PRECONDITION")
        == 1
    )
    assert figure(console, "calls_turned_away_total", outcome="failure") == 1
    console.caller().refused(pb.RunNowRequest(playbook_id=playbook_id))
    assert figure(console, "calls_turned_away_total", outcome="denied") == 1
    second.approve(run.id)
    assert figure(console, "runs_in_flight") == 0
    eventually(lambda: figure(console, "ticks_total") >= 2)
    assert figure(console, "tick_last_seconds") < 1
    dispatching = activated(author, second, detect(), name="without GitHub")
    failed = author.start(dispatching)
    until(author, failed.id, ended)
    assert figure(console, "effects_total", kind="dispatch", result="refused") == 1
    text = httpx.get(f"http://{console.http}/metrics", trust_env=False).text
    assert not [each for each in (AUTHOR, SECOND, playbook_id, run.id) if each in text]
