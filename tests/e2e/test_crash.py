"""kill -9: at any instant under load, at every single write, and in the middle of a call."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.clock import RandomIds, SystemClock
from core_console.model.document import Document
from core_console.model.run import Call
from tests.builders import AUTHOR, SECOND
from tests.e2e.processes import Fake, environment, eventually
from tests.e2e.site import (
    Caller,
    Console,
    StandIn,
    a_console,
    activated,
    approval,
    comment,
    detect,
    ended,
    silent_tree,
    until,
)

pytestmark = pytest.mark.long

ROUNDS = 5
RUNS_A_ROUND_MAX = 30  # five rounds stay below the 200 finished runs that a console keeps
WORDS = {"create": "create", "activate": "activate", "run": "run", "approve": "approval.decide"}


def counted(records: list[dict[str, Any]]) -> Counter[tuple[str, str]]:
    """Return how often each (action, last id of the target) succeeded."""
    done = [each for each in records if each["outcome"] == "success" and each["number"]]
    return Counter(
        (each["action"].removeprefix("atlas.playbooks."), part)
        for each in done
        for part in each["target"].split("/")
    )


@pytest.fixture(scope="module")
def killed_at_every_write(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return the folder of each point at which the real `serve` was killed."""
    folder = tmp_path_factory.mktemp("mortal")
    console = Console(folder)
    console.init()
    tokens = (console.token(AUTHOR), console.token(SECOND))
    points = folder / "points"
    done = subprocess.run(
        (sys.executable, "-m", "tests.e2e.mortal", str(console.root), str(points), *tokens),
        cwd=Path(__file__).parents[2],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=230,
    )
    assert done.returncode == 0, done.stderr[-4_000:]
    return sorted(points.iterdir())


def test_killed_at_any_write_nothing_is_lost_and_nothing_happens_twice(
    killed_at_every_write: list[Path],
) -> None:
    assert len(killed_at_every_write) > 25, "four swaps alone make twenty writes"
    for point in killed_at_every_write:
        before, after = (
            json.loads((point / f"{name}.json").read_text()) for name in ("before", "after")
        )
        console = Console(point)
        document = console.document()
        # What was answered before the kill is what is there after it.
        assert before.items() <= after.items(), point
        assert list(document.playbooks) == [after["create"]], point
        assert list(document.finished) == [after["run"]], point
        assert not document.running, point
        done = counted(console.records())
        expected = {(word, after[name]): 1 for name, word in WORDS.items()}
        assert {each: done[each] for each in expected} == expected, point
        assert done["run.end", after["run"]] == 1, point
        assert console.leftovers() == [], point


def test_the_kills_fall_between_all_the_answers(killed_at_every_write: list[Path]) -> None:
    told = [json.loads((point / "before.json").read_text()) for point in killed_at_every_write]
    assert {len(each) for each in told} == {0, 1, 2, 3, 4}


@dataclass(slots=True)
class Answered:
    """What the operators were told, over all rounds."""

    runs: dict[str, str] = field(default_factory=dict)
    asked: dict[str, str] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)
    approved: set[str] = field(default_factory=set)


class Load:
    """Operators who start, approve and cancel until the console is gone."""

    def __init__(self, console: Console, playbooks: list[str], answered: Answered) -> None:
        self._console = console
        self._playbooks = playbooks
        self._answered = answered
        self._ids = RandomIds()
        self._left = threading.Semaphore(RUNS_A_ROUND_MAX)

    def go(self, until_killed: float) -> None:
        """Put load on the console and kill it after so many seconds."""
        with ThreadPoolExecutor(len(self._playbooks)) as pool:
            operators = [pool.submit(self._operate, each) for each in self._playbooks]
            SystemClock().pause(until_killed)
            self._console.kill()
            for operator in operators:
                operator.result()

    def _operate(self, playbook_id: str) -> None:
        author, second = self._console.caller(AUTHOR), self._console.caller(SECOND)
        try:
            while self._left.acquire(blocking=False):
                self._start_and_end(author, second, playbook_id)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.UNAVAILABLE:
                raise

    def _start_and_end(self, author: Caller, second: Caller, playbook_id: str) -> None:
        request_id = self._ids.new("REQ")
        self._answered.asked[request_id] = playbook_id
        try:
            run = author.start(playbook_id, request_id)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            self._clear_the_way(author, playbook_id)
            return
        self._answered.runs[request_id] = run.id
        assert author.start(playbook_id, request_id).id == run.id
        if self._ids.jitter(1.0) < 1.0 and len(run.steps) == 1:
            second.approve(run.id)
            self._answered.approved.add(run.id)
        else:
            author.ask(pb.CancelRunRequest(run_id=run.id, note="enough"))
            self._answered.cancelled.add(run.id)

    def _clear_the_way(self, author: Caller, playbook_id: str) -> None:
        """Cancel what an earlier kill left in flight, as an operator who finds it does."""
        for run in author.ask(pb.ListRunsRequest(playbook_id=playbook_id)).runs:
            if not ended(run):
                author.ask(pb.CancelRunRequest(run_id=run.id, note="left over"))
                self._answered.cancelled.add(run.id)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Console, StandIn, Fake]]:
    """Give a console and a silent GitHub on a clock that moves; the console is not started."""
    time = Fake(tmp_path)
    with a_console(tmp_path) as console:
        tree = silent_tree(tmp_path / "tree")
        github = StandIn(tmp_path, console_http=console.http, tree=tree, time=time)
        console.know(github)
        try:
            yield console, github, time
        finally:
            github.close()


def test_killed_under_load_nothing_answered_is_lost_and_nothing_runs_twice(
    site: tuple[Console, StandIn, Fake],
) -> None:
    console, github, time = site
    console.start()  # a faked clock is read from a file each time, which slows the load
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    chains = [[approval()], [approval()], [detect(), approval()], [comment(), approval()]]
    playbooks = [activated(author, second, *steps) for steps in chains]
    answered = Answered()
    for number in range(ROUNDS):
        if number:
            console.start()
        Load(console, playbooks, answered).go(1.2 * RandomIds().jitter(0.8))
    assert len(answered.runs) > 2 * ROUNDS
    console.start(time)
    author = console.caller(AUTHOR)
    # A caller who was not answered asks again with the same request id, and one who was as well.
    for request_id, run_id in answered.runs.items():
        assert author.start(answered.asked[request_id], request_id).id == run_id
    time.move("+3m")
    eventually(lambda: not pending(console.document()))
    assert console.process is not None
    assert console.process.terminate() == 0
    assert console.leftovers() == []
    check(console, github, answered)


def pending(document: Document) -> list[str]:
    """Return the runs with a call whose outcome is not recorded."""
    return [
        run.id
        for run in document.running.values()
        if any(step_run.call is Call.PENDING for step_run in run.steps)
    ]


def check(console: Console, github: StandIn, answered: Answered) -> None:
    """Check the document, the chain and GitHub against what was answered."""
    document = console.document()
    runs = {run.id: run for run in (*document.running.values(), *document.finished.values())}
    asked = Counter((run.playbook_id, run.request_id) for run in runs.values())
    assert set(asked.values()) == {1}, "a request id started two runs"
    assert set(answered.runs.values()) <= set(runs), "an answered run is lost"
    assert {run.request_id for run in runs.values()} <= set(answered.asked)
    done = counted(console.records())
    for run in runs.values():
        assert done["run", run.id] == 1
        assert done["run.end", run.id] == (run.id in document.finished)
        assert done["run.cancel", run.id] == (run.status == "CANCELLED")
        assert github.dispatches(run.id) <= 1
        assert github.comments(run.id) <= 1
    assert {runs[each].status for each in answered.cancelled} <= {"CANCELLED"}
    for run_id in answered.approved:
        assert runs[run_id].status == "SUCCEEDED"
        assert done["approval.decide", run_id] == 1
    assert not document.outbox or document.outbox_number in {
        each["number"] for each in console.records()
    }


@pytest.mark.parametrize(
    ("steps", "endpoint"), [((detect(), approval()), "dispatch"), ((comment(),), "comment")]
)
def test_a_claim_whose_process_was_killed_ends_failed_and_is_never_sent_again(
    site: tuple[Console, StandIn, Fake], steps: tuple[pb.Step, ...], endpoint: str
) -> None:
    console, github, time = site
    console.start(time)
    author, second = console.caller(AUTHOR), console.caller(SECOND)
    github.fault("hang_after", endpoint)
    run = author.start(activated(author, second, *steps))
    sent = {"dispatch": github.dispatches, "comment": github.comments}[endpoint]
    assert eventually(lambda: sent(run.id))
    console.kill()

    console.start(time)
    author = console.caller(AUTHOR)
    assert not ended(author.run(run.id)), "nobody may know yet that the claim is abandoned"
    time.move("+121s")
    failed = until(author, run.id, ended)
    assert failed.status == pb.RUN_STATUS_FAILED
    assert failed.steps[0].detail.startswith("abandoned: ")
    assert sent(run.id) == 1
