"""Two consoles on one root: what any of them is asked happens once, and both tell the same."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import grpc
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from tests.builders import AUTHOR, SECOND
from tests.e2e.processes import Fake, eventually
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

PLAYBOOKS = 3
CALLERS_A_REPLICA = 4
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Pair:
    """Two consoles on one root, and their GitHub."""

    consoles: tuple[Console, Console]
    github: StandIn
    time: Fake

    def callers(self, email: str) -> list[Caller]:
        """Return one operator as a caller of each."""
        return [console.caller(email) for console in self.consoles]

    def start(self, time: Fake | None = None) -> None:
        """Start both at once."""
        for console in self.consoles:
            console.begin(time)
        for console in self.consoles:
            assert console.process is not None
            assert str(console.grpc) in console.process.first_line()

    def stop(self) -> None:
        """Stop both; each must end well."""
        for console in self.consoles:
            assert console.process is not None
            assert console.process.terminate() == 0


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    time = Fake(tmp_path)
    (tmp_path / "other").mkdir()
    with a_console(tmp_path) as one:
        other = Console(tmp_path / "other")
        other.root = one.root
        other.settings["CONSOLE_APPFS_DIR"] = str(one.root)
        tree = silent_tree(tmp_path / "tree")
        github = StandIn(tmp_path, console_http=one.http, tree=tree, time=time)
        one.know(github)
        other.know(github)
        try:
            yield Pair((one, other), github, time)
        finally:
            other.close()
            github.close()


def storm(pair: Pair, playbooks: list[str]) -> dict[str, list[str]]:
    """Let many callers of both start every playbook at once; return the runs of each."""
    together = threading.Barrier(CALLERS_A_REPLICA * len(pair.consoles))
    started: dict[str, list[str]] = {each: [] for each in playbooks}

    def start_all(caller: Caller) -> None:
        together.wait(60)
        for playbook_id in playbooks:
            try:
                started[playbook_id].append(caller.start(playbook_id).id)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                    raise

    callers = [each for _ in range(CALLERS_A_REPLICA) for each in pair.callers(AUTHOR)]
    with ThreadPoolExecutor(len(callers)) as pool:
        for done in [pool.submit(start_all, caller) for caller in callers]:
            done.result()
    return started


def test_many_callers_of_both_start_one_run_and_each_dispatch_leaves_once(pair: Pair) -> None:
    pair.start()
    one, other = pair.callers(AUTHOR)
    second = pair.consoles[1].caller(SECOND)
    playbooks = [activated(one, second, detect(), approval()) for _ in range(PLAYBOOKS)]
    run_ids = []
    for _ in range(ROUNDS):
        started = storm(pair, playbooks)
        assert {len(runs) for runs in started.values()} == {1}
        for (run_id,) in started.values():
            sent = until(other, run_id, lambda run: run.steps[0].call == pb.CALL_ACCEPTED)
            assert sent.status == pb.RUN_STATUS_WAITING_AGENT
            other.ask(pb.CancelRunRequest(run_id=run_id, note="the round is over"))
            run_ids.append(run_id)
    for request in (pb.ListPlaybooksRequest(), pb.ListRunsRequest()):
        assert one.ask(request) == other.ask(request)
    assert [pair.github.dispatches(run_id) for run_id in run_ids] == [1] * len(run_ids)
    pair.stop()
    console = pair.consoles[0]
    document = console.document()
    assert set(document.finished) == set(run_ids)
    claimed = {run.steps[0].claimed_by for run in document.finished.values()}
    assert 1 <= len(claimed) <= 2
    started_once = Counter(
        part
        for each in console.records()
        if each["action"] == "atlas.playbooks.run" and each["outcome"] == "success"
        for part in each["target"].split("/")
    )
    assert [started_once[run_id] for run_id in run_ids] == [1] * len(run_ids)
    assert console.leftovers() == []


def test_the_same_request_to_both_is_one_run(pair: Pair) -> None:
    pair.start()
    callers = pair.callers(AUTHOR)
    playbook_id = activated(callers[0], pair.consoles[1].caller(SECOND), approval())
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(caller.start, playbook_id, "one") for caller in callers * 4]
        assert len({each.result().id for each in asked}) == 1


def test_a_deadline_expires_once(pair: Pair) -> None:
    pair.start(pair.time)
    one, other = pair.callers(AUTHOR)
    second = pair.consoles[0].caller(SECOND)
    chains = [[approval(hours=1)], [approval(hours=1)], [detect(minutes=30)]]
    runs = [one.start(activated(one, second, *steps)).id for steps in chains]
    until(other, runs[2], lambda run: run.steps[0].call == pb.CALL_ACCEPTED)
    pair.time.move("+61m")
    final = [until(other, run_id, ended).status for run_id in runs]
    assert final == [pb.RUN_STATUS_EXPIRED, pb.RUN_STATUS_EXPIRED, pb.RUN_STATUS_TIMED_OUT]
    assert [one.run(run_id) for run_id in runs] == [other.run(run_id) for run_id in runs]
    pair.stop()
    told = Counter(
        (each["action"].rpartition(".")[2], run_id)
        for each in pair.consoles[0].records()
        for run_id in runs
        if run_id in each["target"] and each["action"].endswith((".expire", ".timeout", ".end"))
    )
    expected = {
        (word, run_id) for run_id, word in zip(runs, ("expire", "expire", "timeout"), strict=True)
    }
    assert told == dict.fromkeys(expected | {("end", run_id) for run_id in runs}, 1)


def more_than(runs: Callable[[], list[pb.Run]], count: int) -> bool:
    """Say whether there are more runs than that."""
    return len(runs()) > count


def test_each_slot_starts_one_run_whichever_of_them_ticks_first(pair: Pair) -> None:
    pair.start(pair.time)
    author, other = pair.callers(AUTHOR)
    hourly = pb.Trigger(id="hourly", schedule=pb.ScheduleTrigger(cron="17 * * * *"))
    draft = pb.Playbook(name="Tell it hourly", steps=[comment()], triggers=[hourly])
    playbook = author.ask(pb.CreatePlaybookRequest(playbook=draft)).playbook
    activation = pb.ActivatePlaybookRequest(id=playbook.id, revision=playbook.revision)
    pair.consoles[1].caller(SECOND).ask(activation)

    def runs() -> list[pb.Run]:
        return list(other.ask(pb.ListRunsRequest(playbook_id=playbook.id)).runs)

    for hours in (1, 2, 3):
        pair.time.move(f"+{hours * 60 + hours}m")
        assert eventually(partial(more_than, runs, hours - 1))
        until(author, runs()[0].id, ended)
    final = runs()
    assert [run.trigger for run in final] == [pb.TRIGGER_KIND_SCHEDULE] * 3
    assert len({run.slot.seconds for run in final}) == 3
    assert {run.status for run in final} == {pb.RUN_STATUS_SUCCEEDED}
    assert [pair.github.comments(run.id) for run in final] == [1, 1, 1]
    pair.stop()
    told = Counter(each["action"] for each in pair.consoles[0].records())
    assert told["atlas.playbooks.run.start"] == 3
