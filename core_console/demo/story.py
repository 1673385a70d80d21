"""The story of the demo: write, activate by a second operator, run, dispatch, report, decide.

Owns the steps and what each must show. A step that does not happen raises DemoError; nothing is
printed before it was seen.
"""

import json
import re
from pathlib import Path

from core_console.demo import capital, echo
from core_console.demo.stage import AUTHOR, SECOND, Stage, at, ended, must

PLAYBOOK = Path(__file__).with_name("playbook.yaml")

_DIGEST = re.compile(r"(sha256 [0-9a-f]{12})[0-9a-f]{52}")
"""Sixty-four digits say nothing to whoever watches; the log has them all."""


def tell(stage: Stage) -> None:
    """Tell the whole story; raise DemoError at the first step that does not happen."""
    stage.say(f"the console serves gRPC on {stage.grpc} and HTTP on {stage.http}")
    stage.say(f"the stand-in for GitHub answers on {stage.github}")
    stage.title("1. An agent, two operators, one comment")
    playbook_id, revision = _write(stage)
    _activate(stage, playbook_id, revision)
    run_id = _run(stage, playbook_id)
    _agent_reports(stage, run_id)
    _approve(stage, run_id)
    _comment_lands(stage, run_id)
    stage.title("2. Feeds, findings, and a playbook that verifies them")
    capital.tell(stage)
    stage.title("3. A report starts a playbook, and the guard stops the echo")
    echo.tell(stage)
    stage.title("4. The record")
    _decisions(stage)
    _chain_holds(stage)


def _write(stage: Stage) -> tuple[str, str]:
    created = stage.ask(AUTHOR, "playbook", "create", "-f", str(PLAYBOOK))["playbook"]
    must(created["status"] == "PLAYBOOK_STATUS_DRAFT", "the playbook is not a DRAFT")
    stage.say(f"{AUTHOR} wrote {created['id']}, a DRAFT: detect → approve → notify")
    return created["id"], created["revision"]


def _activate(stage: Stage, playbook_id: str, revision: str) -> None:
    activate = ("playbook", "activate", playbook_id, "--revision", revision)
    stage.say(f"the author may not activate it: {stage.refused(AUTHOR, *activate)}")
    active = stage.ask(SECOND, *activate)["playbook"]
    must(active["status"] == "PLAYBOOK_STATUS_ACTIVE", "the playbook is not ACTIVE")
    stage.say(f"{SECOND} activated revision {active['activatedRevision']}")


def _run(stage: Stage, playbook_id: str) -> str:
    run = stage.ask(AUTHOR, "run", "now", playbook_id, "--note", "the demo")["run"]
    must(run["status"] == "RUN_STATUS_WAITING_AGENT", f"the run is {run['status']}")
    run_id: str = run["id"]
    stage.say(f"{AUTHOR} started {run_id}: its first step is claimed, then dispatched once")
    return run_id


def _agent_reports(stage: Stage, run_id: str) -> None:
    run = stage.run_when(run_id, at("WAITING_APPROVAL"), "the agent's report")
    step = run["steps"][0]
    must(step["status"] == "STEP_RUN_STATUS_SUCCEEDED", f"the step is {json.dumps(step)}")
    dispatches = [each for each in stage.happened("dispatches") if run_id in json.dumps(each)]
    must(len(dispatches) == 1, f"GitHub saw {len(dispatches)} dispatches, not one")
    stage.say("GitHub ran the shipped datagov workflow, and its script reported through the door:")
    stage.screen.print(f"    {step['conclusion']}: {step.get('detail') or step['githubRunUrl']}")


def _approve(stage: Stage, run_id: str) -> None:
    decide = ("approval", "decide", run_id, "approve", "--approve", "--note", "in order")
    stage.say(f"the initiator may not approve: {stage.refused(AUTHOR, *decide)}")
    stage.ask(SECOND, *decide)
    stage.say(f"{SECOND} approved")


def _comment_lands(stage: Stage, run_id: str) -> None:
    run = stage.run_when(run_id, ended, "the end")
    must(
        run["status"] == "RUN_STATUS_SUCCEEDED", f"the run is {run['status']}: {run.get('detail')}"
    )
    comments = [each for each in stage.happened("comments") if run_id in json.dumps(each)]
    must(len(comments) == 1, f"GitHub holds {len(comments)} comments of this run, not one")
    stage.say(f"one comment landed on the issue, and {run_id} is SUCCEEDED")


def _decisions(stage: Stage) -> None:
    decisions = stage.ask(SECOND, "decisions")["decisions"]
    words = {each["decision"] for each in decisions}
    expected = {"created", "activated", "run started", "dispatched", "reported", "approved"}
    must(expected <= words, f"the decision log lacks {', '.join(sorted(expected - words))}")
    stage.screen.print("\n[bold]The decision log[/]")
    for each in reversed(decisions):
        outcome = each["outcome"].removeprefix("AUDIT_OUTCOME_")
        sentence = _DIGEST.sub(r"\1…", each["sentence"])
        line = f"{each['auditSeq']:>4}  {each['decision']:<16} {outcome:<8} {sentence}"
        stage.screen.print(line, markup=False)
    stage.screen.print()


def _chain_holds(stage: Stage) -> None:
    log = stage.folder / "root" / "var" / "log" / "audit"
    verified = stage.ask(SECOND, "audit", "verify", "--file", str(log))
    must(verified["intact"] is True, f"the chain does not hold: {verified}")
    stage.say(f"the chain of {verified['records']} audit records holds, verified offline")


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
