"""The story of the demo: write, activate by a second operator, run, dispatch, report, decide.

Owns the steps and what each must show. A step that does not happen raises DemoError; nothing is
printed before it was seen.
"""

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console as Screen

from core_console.demo.processes import DemoError, Done, command, environment

AUTHOR = "author@example.com"
SECOND = "second@example.com"

PLAYBOOK = Path(__file__).with_name("playbook.yaml")

WAIT_S = 40.0
"""The longest that the demo waits for one thing; the agent's workflow takes a few seconds."""

_POLL_S = 0.2


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


def tell(stage: Stage) -> None:
    """Tell the whole story; raise DemoError at the first step that does not happen."""
    stage.say(f"the console serves gRPC on {stage.grpc} and HTTP on {stage.http}")
    stage.say(f"the stand-in for GitHub answers on {stage.github}")
    playbook_id, revision = _write(stage)
    _activate(stage, playbook_id, revision)
    run_id = _run(stage, playbook_id)
    _agent_reports(stage, run_id)
    _approve(stage, run_id)
    _comment_lands(stage, run_id)
    _decisions(stage)
    _chain_holds(stage)


def _write(stage: Stage) -> tuple[str, str]:
    created = stage.ask(AUTHOR, "playbook", "create", "-f", str(PLAYBOOK))["playbook"]
    _must(created["status"] == "PLAYBOOK_STATUS_DRAFT", "the playbook is not a DRAFT")
    stage.say(f"{AUTHOR} wrote {created['id']}, a DRAFT: detect → approve → notify")
    return created["id"], created["revision"]


def _activate(stage: Stage, playbook_id: str, revision: str) -> None:
    activate = ("playbook", "activate", playbook_id, "--revision", revision)
    stage.say(f"the author may not activate it: {stage.refused(AUTHOR, *activate)}")
    active = stage.ask(SECOND, *activate)["playbook"]
    _must(active["status"] == "PLAYBOOK_STATUS_ACTIVE", "the playbook is not ACTIVE")
    stage.say(f"{SECOND} activated revision {active['activatedRevision']}")


def _run(stage: Stage, playbook_id: str) -> str:
    run = stage.ask(AUTHOR, "run", "now", playbook_id, "--note", "the demo")["run"]
    _must(run["status"] == "RUN_STATUS_WAITING_AGENT", f"the run is {run['status']}")
    run_id: str = run["id"]
    stage.say(f"{AUTHOR} started {run_id}: its first step is claimed, then dispatched once")
    return run_id


def _agent_reports(stage: Stage, run_id: str) -> None:
    run = _await(
        stage,
        run_id,
        lambda run: run["status"] != "RUN_STATUS_WAITING_AGENT",
        "the agent's report",
    )
    step = run["steps"][0]
    _must(step["status"] == "STEP_RUN_STATUS_SUCCEEDED", f"the step is {json.dumps(step)}")
    dispatches = [each for each in stage.happened("dispatches") if run_id in json.dumps(each)]
    _must(len(dispatches) == 1, f"GitHub saw {len(dispatches)} dispatches, not one")
    stage.say("GitHub ran the shipped datagov workflow, and its script reported through the door:")
    stage.screen.print(f"    {step['conclusion']}: {step.get('detail') or step['githubRunUrl']}")


def _approve(stage: Stage, run_id: str) -> None:
    decide = ("approval", "decide", run_id, "approve", "--approve", "--note", "in order")
    stage.say(f"the initiator may not approve: {stage.refused(AUTHOR, *decide)}")
    stage.ask(SECOND, *decide)
    stage.say(f"{SECOND} approved")


def _comment_lands(stage: Stage, run_id: str) -> None:
    run = _await(stage, run_id, lambda run: bool(run.get("finishedAt")), "the end of the run")
    _must(
        run["status"] == "RUN_STATUS_SUCCEEDED", f"the run is {run['status']}: {run.get('detail')}"
    )
    comments = [each for each in stage.happened("comments") if run_id in json.dumps(each)]
    _must(len(comments) == 1, f"GitHub holds {len(comments)} comments of this run, not one")
    stage.say(f"one comment landed on the issue, and {run_id} is SUCCEEDED")


def _decisions(stage: Stage) -> None:
    decisions = stage.ask(SECOND, "decisions")["decisions"]
    words = {each["decision"] for each in decisions}
    expected = {"created", "activated", "run started", "dispatched", "reported", "approved"}
    _must(expected <= words, f"the decision log lacks {', '.join(sorted(expected - words))}")
    stage.screen.print("\n[bold]The decision log[/]")
    for each in reversed(decisions):
        outcome = each["outcome"].removeprefix("AUDIT_OUTCOME_")
        line = f"{each['auditSeq']:>4}  {each['decision']:<12} {outcome:<8} {each['sentence']}"
        stage.screen.print(line, markup=False)
    stage.screen.print()


def _chain_holds(stage: Stage) -> None:
    log = stage.folder / "root" / "var" / "log" / "audit"
    verified = stage.ask(SECOND, "audit", "verify", "--file", str(log))
    _must(verified["intact"] is True, f"the chain does not hold: {verified}")
    stage.say(f"the chain of {verified['records']} audit records holds, verified offline")


def _await(stage: Stage, run_id: str, done: Callable[[Any], bool], what: str) -> Any:  # noqa: ANN401 -- the run's JSON
    env = environment(CORE_CONSOLE_URL=stage.grpc, CORE_CONSOLE_TOKEN=stage.tokens[AUTHOR])
    until = time.monotonic() + WAIT_S
    while True:
        answer = command(("run", "get", run_id, "-o", "json"), env)
        if answer.code == 0 and done(answer.answer["run"]):
            return answer.answer["run"]
        if time.monotonic() > until:
            raise DemoError(f"{what} did not come within {WAIT_S:.0f} s; the run: {answer.stdout}")
        time.sleep(_POLL_S)  # noqa: TID251 -- it waits for processes, not for the product's time


def _must(condition: bool, otherwise: str) -> None:  # noqa: FBT001 -- it reads as a sentence
    if not condition:
        raise DemoError(otherwise)


def address_in(line: str) -> str:
    """Return the address in the line by which a server says that it is ready."""
    found = re.search(r"https?://[0-9.:]+", line)
    if found is None:
        raise DemoError(f"the stand-in did not say where it answers: {line}")
    return found[0]


def how_to_go_on(stage: Stage) -> str:
    """Return the addresses and commands for a person who wants to look around."""
    service = "runink.core.atlas.v1.PlaybookService"
    return f"""
Both servers stay up until Ctrl-C. In another terminal:

  export CORE_CONSOLE_URL={stage.grpc}
  export CORE_CONSOLE_TOKEN={stage.tokens[SECOND]}
  core-console playbook list
  grpcurl -plaintext -H "authorization: Bearer $CORE_CONSOLE_TOKEN" {stage.grpc} list
  grpcurl -plaintext -H "authorization: Bearer $CORE_CONSOLE_TOKEN" {stage.grpc} {service}/ListRuns

The author's token, for four eyes:

  {stage.tokens[AUTHOR]}

HTTP (doors, health): http://{stage.http}/healthz
The stand-in for GitHub: {stage.github}/_standin/runs
"""
