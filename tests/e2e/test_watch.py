"""WatchActivity on real consoles: through a restart, a kill -9, and from one replica to another."""

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from tests.builders import AUTHOR, SECOND
from tests.e2e.processes import Process, environment
from tests.e2e.site import Caller, Console, a_console, activated, approval, written

pytestmark = pytest.mark.slow

STOP_S = 8.0
"""A console with an open stream must not wait for it: it gives calls under way 10 s."""


class Follower:
    """Keeps what it is told, and goes on from the last revision when a stream ends."""

    def __init__(self) -> None:
        self.revision = 0
        self.playbooks: dict[str, pb.Playbook] = {}
        self.runs: dict[str, pb.Run] = {}
        self.told: list[str] = []
        self._stream: Any = iter(())

    def follow(self, caller: Caller) -> None:
        """Go on at this console."""
        self.told.clear()
        self._stream = caller.ask(pb.WatchActivityRequest(after_revision=self.revision))

    def hear(self, enough: Callable[[], object]) -> None:
        """Listen until it is enough."""
        while not enough():
            self._take(next(self._stream))

    def ending(self) -> grpc.StatusCode:
        """Return how the stream ends; whatever is still told before is kept."""
        try:
            self.hear(lambda: False)
        except grpc.RpcError as error:
            return error.code()
        raise AssertionError("it never ends by itself")

    def _take(self, message: pb.WatchActivityResponse) -> None:
        what = message.WhichOneof("change")
        assert what not in {None, "gap"}, message
        match what:
            case "playbook":
                self.playbooks[message.playbook.id] = message.playbook
                self.told.append(message.playbook.id)
            case "run":
                self.runs[message.run.id] = message.run
                self.told.append(message.run.id)
            case "deleted_playbook_id":
                del self.playbooks[message.deleted_playbook_id]
            case _:
                pass
        assert message.revision >= self.revision
        self.revision = message.revision

    def knows(self, run: pb.Run) -> bool:
        """Say whether the run is known as it is."""
        return self.runs.get(run.id) == run

    def agrees_with(self, caller: Caller) -> None:
        """Assert that it knows exactly what a read shows."""
        playbooks = caller.ask(pb.ListPlaybooksRequest()).playbooks
        runs = caller.ask(pb.ListRunsRequest()).runs
        assert self.playbooks == {each.id: each for each in playbooks}
        assert self.runs == {each.id: each for each in runs}


def cancelled(caller: Caller, run_id: str) -> pb.Run:
    run: pb.Run = caller.ask(pb.CancelRunRequest(run_id=run_id, note="enough")).run
    return run


def test_a_follower_misses_nothing_through_a_restart_and_a_kill(tmp_path: Path) -> None:
    with a_console(tmp_path) as console:
        console.start()
        author, second = console.caller(AUTHOR), console.caller(SECOND)
        follower = Follower()
        follower.follow(author)
        playbook_id = activated(author, second, approval())
        other = written(author, approval(), name="Another")
        run = author.start(playbook_id)
        follower.hear(lambda: follower.knows(run))
        follower.agrees_with(author)

        begun = time.monotonic()
        assert console.process is not None
        assert console.process.terminate() == 0
        assert time.monotonic() - begun < STOP_S
        assert follower.ending() is grpc.StatusCode.UNAVAILABLE
        console.start()
        author, second = console.caller(AUTHOR), console.caller(SECOND)
        approved = second.approve(run.id)
        follower.follow(author)
        follower.hear(lambda: follower.knows(approved))
        assert other.id not in follower.told, "only what changed since is told"

        run = author.start(playbook_id)
        follower.hear(lambda: follower.knows(run))
        console.kill()
        assert follower.ending() is grpc.StatusCode.UNAVAILABLE
        console.start()
        author = console.caller(AUTHOR)
        ended = cancelled(author, run.id)
        author.ask(pb.DeletePlaybookRequest(id=other.id))
        follower.follow(author)
        follower.hear(lambda: follower.knows(ended) and other.id not in follower.playbooks)
        follower.agrees_with(author)


def test_run_watch_follows_a_run_through_a_restart(tmp_path: Path) -> None:
    with a_console(tmp_path) as console:
        console.start()
        author, second = console.caller(AUTHOR), console.caller(SECOND)
        run = author.start(activated(author, second, approval()))
        env = environment(CORE_CONSOLE_URL=console.grpc, CORE_CONSOLE_TOKEN=console.token(AUTHOR))
        arguments = (sys.executable, "-m", "core_console", "run", "watch", run.id, "--for", "2m")
        watching = Process(arguments, env, tmp_path / "watch.log")
        try:
            assert "WAITING_APPROVAL" in watching.first_line()
            console.kill()
            console.start()
            console.caller(SECOND).approve(run.id)
            assert "SUCCEEDED" in watching.stdout.read()
            assert watching.wait() == 0
        finally:
            watching.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Console, Console]]:
    (tmp_path / "other").mkdir()
    with a_console(tmp_path) as one:
        other = Console(tmp_path / "other")
        other.root = one.root
        other.settings["CONSOLE_APPFS_DIR"] = str(one.root)
        try:
            one.start()
            other.start()
            yield one, other
        finally:
            other.close()


def test_what_one_replica_changes_is_told_by_the_other_and_either_goes_on_where_one_stopped(
    pair: tuple[Console, Console],
) -> None:
    one, other = pair
    here, there, second = one.caller(AUTHOR), other.caller(AUTHOR), other.caller(SECOND)
    follower = Follower()
    follower.follow(here)
    playbook_id = activated(there, second, approval())
    run = there.start(playbook_id)
    follower.hear(lambda: follower.knows(run))
    follower.agrees_with(there)
    one.kill()
    ended = cancelled(there, run.id)
    assert follower.ending() is grpc.StatusCode.UNAVAILABLE
    follower.follow(there)
    follower.hear(lambda: follower.knows(ended))
    follower.agrees_with(there)
