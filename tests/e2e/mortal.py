"""The real `serve`, killed at every single durable write of one story, and started again.

Run as `python -m tests.e2e.mortal ROOT FOLDER AUTHOR SECOND`: ROOT is copied for each point, the
tokens are the operators'. Point N is the N-th call that changes the disk: the process dies before
it, or in the middle of it when it is a write. Every server and every client is a fork of this
process, which itself uses no gRPC, so that a start costs no import.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import grpc
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console import app
from core_console.settings import load
from tests.e2e.site import Caller, activated, approval, written

CALLS = ("write", "fsync", "fdatasync", "rename", "replace", "ftruncate", "link")
POINTS_MAX = 200
REQUEST = "the-one-run"


def mortal(die_at: int) -> None:
    """Make this process die at its call number `die_at`; 0 is never."""
    made = 0

    def strike(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:  # noqa: ANN401 -- passed on as they are
            nonlocal made
            made += 1
            if made == die_at:
                if name == "write":
                    real(args[0], args[1][: len(args[1]) * 2 // 3])
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **options)

        return call

    for name in CALLS:
        setattr(os, name, strike(name, getattr(os, name)))


def fork(work: Callable[[], None]) -> int:
    """Return the id of a child that does this work and ends."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        work()
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def serve(root: Path, die_at: int) -> tuple[int, str]:
    """Start a server on the root; return its id and its address, "" when it died before."""
    reader, writer = os.pipe()

    def work() -> None:
        os.dup2(writer, 1)
        log = os.open(root.parent / "console.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(log, 2)
        environ = {
            "CONSOLE_APPFS_DIR": str(root),
            "CONSOLE_GRPC_ADDR": "127.0.0.1:0",
            "CONSOLE_HTTP_ADDR": "127.0.0.1:0",
            "CONSOLE_TICK_SECONDS": "300",
        }
        mortal(die_at)
        asyncio.run(app.serve(load(environ)))

    child = fork(work)
    os.close(writer)
    with os.fdopen(reader) as said:
        words = said.readline().split()
    return child, words[4] if words else ""


class Story:
    """The story as far as it was answered; `told` is written after every answer."""

    def __init__(self, address: str, tokens: tuple[str, str], told: Path) -> None:
        self._author, self._second = (Caller(address, token) for token in tokens)
        self._told = told
        self._facts: dict[str, str] = {}

    def _answered(self, name: str, fact: str) -> None:
        self._facts[name] = fact
        self._told.write_text(json.dumps(self._facts))

    def first(self) -> None:
        """Write, activate, run, approve; end at the first call that is not answered."""
        with suppress(grpc.RpcError):
            draft = written(self._author, approval())
            self._answered("create", draft.id)
            self._second.ask(pb.ActivatePlaybookRequest(id=draft.id, revision=draft.revision))
            self._answered("activate", draft.id)
            run = self._author.start(draft.id, REQUEST)
            self._answered("run", run.id)
            self._second.approve(run.id)
            self._answered("approve", run.id)

    def second(self) -> None:
        """Go on from whatever is there, as an operator does who does not know what landed."""
        found = self._author.ask(pb.ListPlaybooksRequest()).playbooks
        if not found:
            activated(self._author, self._second, approval())
            found = self._author.ask(pb.ListPlaybooksRequest()).playbooks
        (playbook,) = found
        if playbook.status == pb.PLAYBOOK_STATUS_DRAFT:
            request = pb.ActivatePlaybookRequest(id=playbook.id, revision=playbook.revision)
            self._second.ask(request)
        self._answered("create", playbook.id)
        self._answered("activate", playbook.id)
        run = self._author.start(playbook.id, REQUEST)
        self._answered("run", run.id)
        self._second.approve(run.id)
        self._answered("approve", run.id)


def tell(address: str, tokens: tuple[str, str], told: Path, chapter: str) -> bool:
    """Tell a chapter in a process of its own; return whether that process ended well."""
    told.write_text("{}")

    def work() -> None:
        story = Story(address, tokens, told)  # its channels belong to the child alone
        (story.first if chapter == "first" else story.second)()

    child = fork(work)
    return os.waitpid(child, 0)[1] == 0


def die_and_live(root: Path, tokens: tuple[str, str], die_at: int) -> bool:
    """Kill at one point, start again and go on; return whether the point was reached."""
    before, after = root.parent / "before.json", root.parent / "after.json"
    server, address = serve(root, die_at)
    before.write_text("{}")
    if address:
        assert tell(address, tokens, before, "first")
        # What the answers left to be written is written now, or the point is reached in it.
        with suppress(ProcessLookupError):
            os.kill(server, signal.SIGTERM)
    reached = os.WIFSIGNALED(os.waitpid(server, 0)[1])
    server, address = serve(root, 0)
    assert tell(address, tokens, after, "second")
    os.kill(server, signal.SIGTERM)
    assert os.waitpid(server, 0)[1] == 0
    return reached


def main(root: Path, folder: Path, *tokens: str) -> NoReturn:
    """Go through the points until one is not reached any more."""
    author, second = tokens
    for point in range(1, POINTS_MAX):
        place = folder / f"{point:03}"
        shutil.copytree(root, place / "root")
        if not die_and_live(place / "root", (author, second), point):
            sys.exit(0)
    sys.exit(f"after {POINTS_MAX} points there were still more")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
