"""Several consoles hammer one root, one of them is killed meanwhile: nothing is lost or doubled.

`HAMMER_SECONDS` says for how long each of the two does it; a minute is what a release is given.
"""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.model.run import RunStatus
from tests.builders import AUTHOR, SECOND
from tests.e2e.site import Caller, Console, a_console, activated, approval

pytestmark = pytest.mark.long

SECONDS = float(os.environ.get("HAMMER_SECONDS", "6"))
CALLERS_A_REPLICA = 4
PLAYBOOKS = 6

LOST_RACE = {grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.ABORTED}
UNKNOWN = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}


@dataclass
class Told:
    """What callers were told: what certainly happened, and how many answers never came."""

    started: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    silent: int = 0


@contextmanager
def replicas(folder: Path, number: int) -> Iterator[list[Console]]:
    """Give that many consoles on one root, started together."""
    with a_console(folder, CONSOLE_TICK_SECONDS="1") as one:
        consoles = [one]
        try:
            for each in range(1, number):
                (folder / str(each)).mkdir()
                other = Console(folder / str(each), CONSOLE_TICK_SECONDS="1")
                other.root = one.root
                other.settings["CONSOLE_APPFS_DIR"] = str(one.root)
                consoles.append(other)
            for console in consoles:
                console.begin()
            for console in consoles:
                assert console.process is not None
                assert console.grpc in console.process.first_line()
            yield consoles
        finally:
            for console in consoles[1:]:
                console.close()


class Hammer:
    """Callers of every console start runs, approve and cancel them, as fast as they are let."""

    def __init__(self, consoles: list[Console], playbooks: list[str]) -> None:
        self.consoles = consoles
        self.playbooks = playbooks
        self.told = Told()
        self._until = time.monotonic() + SECONDS
        self._lock = threading.Lock()

    def strike(self, place: int) -> None:
        """Be one caller until the time is up."""
        console = self.consoles[place % len(self.consoles)]
        author, second = console.caller(AUTHOR), console.caller(SECOND)
        turn = place
        while time.monotonic() < self._until:
            turn += 1
            self._one(author, second, self.playbooks[turn % len(self.playbooks)], turn)

    def _one(self, author: Caller, second: Caller, playbook_id: str, turn: int) -> None:
        run_id = self._asked(lambda: author.start(playbook_id).id, self.told.started)
        if run_id is None:
            return
        if turn % 3:
            self._asked(lambda: second.approve(run_id).id, self.told.ended)
        else:
            cancel = pb.CancelRunRequest(run_id=run_id, note="enough")
            self._asked(lambda: str(author.ask(cancel).run.id), self.told.ended)

    def _asked(self, ask: Callable[[], str], book: list[str]) -> str | None:
        """Return the run id of an answer and write it down, None for a refusal or no answer."""
        try:
            run_id = ask()
        except grpc.RpcError as error:
            if error.code() in UNKNOWN:
                with self._lock:
                    self.told.silent += 1
            elif error.code() not in LOST_RACE:
                raise
            return None
        with self._lock:
            book.append(run_id)
        return run_id


def hammered(consoles: list[Console], kill: Console | None = None) -> Told:
    """Hammer until the time is up; `kill` dies by `kill -9` half way and is started again."""
    one = consoles[0]
    author, second = one.caller(AUTHOR), one.caller(SECOND)
    playbooks = [activated(author, second, approval(), name=f"{each}") for each in range(PLAYBOOKS)]
    hammer = Hammer(consoles, playbooks)
    with ThreadPoolExecutor(CALLERS_A_REPLICA * len(consoles)) as pool:
        striking = [
            pool.submit(hammer.strike, place) for place in range(CALLERS_A_REPLICA * len(consoles))
        ]
        if kill is not None:
            threading.Event().wait(SECONDS / 2)
            kill.kill()
            kill.start()
        for each in striking:
            each.result()
    for console in consoles:
        assert console.process is not None
        assert console.process.terminate() == 0
    return hammer.told


def judge(console: Console, told: Told) -> None:
    """Fail unless everything that was told happened exactly once, and the root is sound."""
    done = console.command("state", "check")
    assert done.returncode == 0, done.stderr
    document = console.document()
    records = [each for each in console.records() if each["outcome"] == "success"]
    started = Counter(
        each["target"].split("/")[1] for each in records if each["action"] == "atlas.playbooks.run"
    )
    ended = Counter(
        each["target"].split("/")[1]
        for each in records
        if each["action"] == "atlas.playbooks.run.end"
    )
    assert len(told.started) > 10, "it was no hammer"
    assert set(started.values()) == {1}
    assert set(ended.values()) == {1}
    assert set(told.started) <= started.keys()
    assert set(told.ended) <= ended.keys()
    assert len(started) <= len(told.started) + told.silent
    in_flight = {run.id for run in document.running.values()}
    assert started.keys() - ended.keys() == in_flight
    finished = sum(each.runs_finished for each in document.playbooks.values())
    assert finished == len(ended)
    kept = {run.id: run.status for run in document.finished.values()}
    assert set(kept.values()) <= {RunStatus.SUCCEEDED, RunStatus.CANCELLED}
    assert list(console.root.rglob("*.tmp")) == []


@pytest.mark.parametrize("number", [2, 3])
def test_nothing_is_lost_or_doubled_while_consoles_hammer_one_root(
    tmp_path: Path, number: int
) -> None:
    with replicas(tmp_path, number) as consoles:
        # Of three one is killed half way: its calls have no answer, and happened at most once.
        told = hammered(consoles, kill=consoles[-1] if number > 2 else None)
        judge(consoles[0], told)
