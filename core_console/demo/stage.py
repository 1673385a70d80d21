"""Where the demo plays: the addresses, the operators, and how a step is asked for and waited for.

Owns the ways of asking and waiting, and what counts as a step that did not happen. Knows nothing
of the story.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import grpc
import httpx
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from rich.console import Console as Screen
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from core_console.demo.processes import DemoError, Done, command, environment

AUTHOR = "author@example.com"
SECOND = "second@example.com"

WAIT_S = 40.0
"""The longest that the demo waits for one thing; an agent's workflow takes a few seconds."""

_POLL_S = 0.2

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the story plays: the folder, the settings, the operators' tokens, the addresses."""

    screen: Screen
    folder: Path
    settings: Mapping[str, str]
    tokens: Mapping[str, str]
    grpc: str
    http: str
    github: str

    def say(self, sentence: str) -> None:
        """Print what happened."""
        self.screen.print(f"[green]✓[/] {sentence}", markup=True)

    def title(self, sentence: str) -> None:
        """Print where the next part begins."""
        self.screen.print(f"\n[bold]{sentence}[/]", markup=True)

    def run(self, operator: str, *arguments: str) -> Done:
        """Run the command line as one operator, and show the command."""
        who = operator.partition("@")[0]
        self.screen.print(f"[dim]{who}$ core-console {' '.join(arguments)}[/]", markup=True)
        env = environment(CORE_CONSOLE_URL=self.grpc, CORE_CONSOLE_TOKEN=self.tokens[operator])
        return command((*arguments, "-o", "json"), env)

    def ask(self, operator: str, *arguments: str) -> Any:  # noqa: ANN401 -- the answer's JSON
        """Run a command that must succeed, and return its JSON."""
        done = self.run(operator, *arguments)
        if done.code != 0:
            raise DemoError(f"core-console {' '.join(arguments)}: {done.stderr.strip()}")
        return done.answer

    def refused(self, operator: str, *arguments: str) -> str:
        """Run a command that must be refused by four eyes, and return why."""
        done = self.run(operator, *arguments)
        if done.code != 1 or "four eyes: " not in done.stderr:
            raise DemoError(
                f"core-console {' '.join(arguments)} was not refused by four eyes: "
                f"{(done.stderr or done.stdout).strip()}"
            )
        return done.stderr.strip().splitlines()[0]

    def happened(self, what: str) -> Any:  # noqa: ANN401 -- the stand-in's JSON
        """Ask the stand-in what came to it."""
        return httpx.get(f"{self.github}/_standin/{what}", timeout=10).json()[what]

    def activated(self, file: Path) -> str:
        """Have the author write a playbook and the second operator activate it; return its id."""
        written = self.ask(AUTHOR, "playbook", "create", "-f", str(file))["playbook"]
        self.activate(written)
        return str(written["id"])

    def activate(self, playbook: Any) -> None:  # noqa: ANN401 -- the playbook's JSON
        """Have the second operator activate the playbook as it was read."""
        revision = playbook["revision"]
        self.ask(SECOND, "playbook", "activate", playbook["id"], "--revision", revision)
        self.say(f"{SECOND} activated revision {revision} of {playbook['id']}")

    def started(self, playbook_id: str) -> str:
        """Have the author start a run; return its id."""
        run = self.ask(AUTHOR, "run", "now", playbook_id, "--note", "the demo")["run"]
        self.say(f"{AUTHOR} started {run['id']}")
        return str(run["id"])

    def run_when(self, run_id: str, done: Callable[[Any], bool], what: str) -> Any:  # noqa: ANN401 -- the run's JSON
        """Wait until the run is so, and return it."""

        def looked_at() -> Any:  # noqa: ANN401 -- the run's JSON
            run = self._asked("GetRun", pb.GetRunRequest(id=run_id))["run"]
            return run if done(run) else None

        return eventually(looked_at, f"{what} of {run_id}")

    def events(self) -> list[Any]:
        """Return the events that the console keeps, newest first."""
        return list(self._asked("ListEvents", pb.ListEventsRequest()).get("events", []))

    def _asked(self, method: str, request: Message) -> Any:  # noqa: ANN401 -- the answer's JSON
        """Ask over gRPC: looking again and again by commands would keep the machine busy."""
        bearer = (("authorization", f"Bearer {self.tokens[AUTHOR]}"),)
        with grpc.insecure_channel(self.grpc) as channel:
            call = getattr(PlaybookServiceStub(channel), method)
            return MessageToDict(call(request, metadata=bearer, timeout=WAIT_S))


def eventually(look: Callable[[], T | None], what: str) -> T:
    """Look again and again until there is something; raise DemoError when it does not come."""
    until = time.monotonic() + WAIT_S
    while True:
        found = look()
        if found is not None:
            return found
        if time.monotonic() > until:
            raise DemoError(f"{what} did not come within {WAIT_S:.0f} s")
        time.sleep(_POLL_S)  # noqa: TID251 -- it waits for processes, not for the product's time


def ended(run: Any) -> bool:  # noqa: ANN401 -- the run's JSON
    """Say whether the run has ended."""
    return bool(run.get("finishedAt"))


def at(status: str) -> Callable[[Any], bool]:
    """Return whether a run stands so, by the status's short name; an ended one counts too."""
    return lambda run: run["status"] == f"RUN_STATUS_{status}" or ended(run)


def must(condition: bool, otherwise: str) -> None:  # noqa: FBT001 -- it reads as a sentence
    """Raise DemoError unless it is so."""
    if not condition:
        raise DemoError(otherwise)


def address_in(line: str) -> str:
    """Return the address in the line by which a server says that it is ready."""
    found = re.search(r"https?://[0-9.:]+", line)
    if found is None:
        raise DemoError(f"the stand-in did not say where it answers: {line}")
    return found[0]
