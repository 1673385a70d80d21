"""The console and a strict GitHub, both as processes: dispatch, report, and all that goes wrong.

Where an agent really runs it is the shipped workflow; where the test plays the reporter, nothing
listens in the agents repository.
"""

import json
import subprocess
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import httpx
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.governance_pb2 import ListDecisionsRequest

from core_console.standin.runner_layout import shipped_github
from tests.e2e.conftest import Site
from tests.e2e.processes import environment, eventually
from tests.e2e.site import (
    AGENTS_REPO,
    ORG,
    activated,
    approval,
    comment,
    detect,
    ended,
    step_of,
    until,
)

pytestmark = pytest.mark.slow

DOOR = "/api/playbook-runs/step-report"

_run_numbers = count(9_001)


@pytest.fixture(autouse=True)
def one_github_at_a_time(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave no fault, suspension or moved clock to the next test."""
    yield
    for name in {"shipped", "silent"} & set(request.fixturenames):
        site: Site = request.getfixturevalue(name)
        site.github.no_faults()
        site.github.tell("world", org=ORG, suspended=False)


def started(site: Site, *steps: pb.Step) -> pb.Run:
    """Return a run of a new playbook with these steps, or with one dispatch."""
    return site.author.start(activated(site.author, site.second, *(steps or (detect(),))))


def waiting(site: Site, *steps: pb.Step) -> pb.Run:
    """Return a run whose dispatch GitHub has accepted and whose agent has not reported."""
    run = started(site, *steps)
    return until(site.author, run.id, lambda run: run.steps[0].call == pb.CALL_ACCEPTED)


def report(site: Site, run: pb.Run, token: str = "", **changes: str) -> httpx.Response:
    """Report the run's first step as its agent's workflow would."""
    url = f"{site.github.url}/{ORG}/{AGENTS_REPO}/actions/runs/9000"
    body = {
        "runId": run.id,
        "stepId": "detect",
        "agent": "datagov",
        "conclusion": "success",
        "detail": "",
        "githubRunUrl": url,
    }
    return httpx.post(
        f"http://{site.console.http}{DOOR}",
        json=body | changes,
        headers={"Authorization": f"Bearer {token or site.github.token()}"},
        timeout=60,
        trust_env=False,
    )


@pytest.mark.parametrize("trouble", ["error_after", "hang_after", "reset_after"])
def test_an_ambiguous_dispatch_is_never_sent_again_and_its_report_counts(
    shipped: Site, trouble: str
) -> None:
    before = shipped.github.dispatch_calls()
    shipped.github.fault(trouble, "dispatch")
    run = started(shipped)
    done = until(shipped.author, run.id, ended)
    assert done.status == pb.RUN_STATUS_SUCCEEDED
    assert done.steps[0].conclusion == "success"
    assert shipped.github.dispatches(run.id) == 1
    assert shipped.github.dispatch_calls() == before + 1
    agents = [each for each in shipped.github.seen("runs") if run.id in each["run_name"]]
    ran = [each for each in agents if each["jobs"][0]["conclusion"] != "skipped"]
    assert [each["workflow_file"] for each in ran] == ["core-agent-datagov.yml"]


def test_a_dispatch_that_was_not_accepted_is_not_sent_again_either(silent: Site) -> None:
    """Nobody can tell a 502 before from a 502 after: the deadline decides."""
    silent.github.fault("error_before", "dispatch", status=502)
    run = started(silent)
    told = until(silent.author, run.id, lambda run: run.steps[0].call == pb.CALL_UNKNOWN)
    assert told.status == pb.RUN_STATUS_WAITING_AGENT
    assert "may have been accepted: not sent again" in told.steps[0].detail
    assert silent.github.dispatches(run.id) == 0


@pytest.mark.parametrize(
    ("status", "says"),
    [
        (403, "grant the App contents: write on example-org/core"),
        (404, "check CORE_AGENTS_REPO"),
        (422, "GitHub did not accept the dispatch (422)"),
    ],
)
def test_a_refused_dispatch_fails_the_step_and_says_what_to_fix(
    silent: Site, status: int, says: str
) -> None:
    silent.github.fault("refused", "dispatch", status=status)
    run = until(silent.author, started(silent, detect(), approval()).id, ended)
    assert run.status == pb.RUN_STATUS_FAILED
    assert run.steps[0].call == pb.CALL_REFUSED
    assert says in run.steps[0].detail
    assert run.steps[1].status == pb.STEP_RUN_STATUS_SKIPPED
    assert silent.github.dispatches(run.id) == 0


def test_a_renamed_agents_repository_is_not_followed(silent: Site) -> None:
    silent.github.tell("renames", org=ORG, name=AGENTS_REPO, new_name="agents")
    try:
        run = until(silent.author, started(silent).id, ended)
        assert run.status == pb.RUN_STATUS_FAILED
        assert "was renamed or moved" in run.steps[0].detail
        assert silent.github.dispatches(run.id) == 0
    finally:
        silent.github.tell("renames", org=ORG, name="agents", new_name=AGENTS_REPO)


def test_a_suspended_installation_fails_the_step_and_is_a_reason_not_to_dispatch(
    silent: Site,
) -> None:
    silent.github.tell("world", org=ORG, suspended=True)
    run = until(silent.author, started(silent).id, ended)
    assert run.status == pb.RUN_STATUS_FAILED
    assert "suspended" in run.steps[0].detail
    agents = silent.author.ask(pb.ListDispatchableAgentsRequest())
    assert not agents.can_dispatch
    assert any("suspended" in reason for reason in agents.reasons)


@pytest.mark.parametrize("kind", ["other_app", "github_token"])
def test_a_bearer_of_somebody_else_is_turned_away(silent: Site, kind: str) -> None:
    run = waiting(silent)
    answer = report(silent, run, silent.github.token(kind))
    assert answer.status_code == 403
    assert set(answer.json()) == {"error"}
    assert silent.author.run(run.id).status == pb.RUN_STATUS_WAITING_AGENT


def test_a_github_that_cannot_be_asked_is_no_verdict(silent: Site) -> None:
    run = waiting(silent)
    token = silent.github.token()
    silent.github.fault("error_before", "graphql", times=20)
    answer = report(silent, run, token)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) > 0
    silent.github.no_faults()
    assert report(silent, run, token).json() == {"accepted": True}


def test_the_same_report_twice_is_a_duplicate_and_another_one_conflicts(silent: Site) -> None:
    run = waiting(silent, detect(), approval())
    assert report(silent, run).json() == {"accepted": True}
    moved = silent.author.run(run.id)
    again = report(silent, run, detail="in other words")
    assert (again.status_code, again.json()) == (200, {"accepted": True, "duplicate": True})
    conflicting = report(silent, run, conclusion="failure")
    assert conflicting.status_code == 409
    assert "already reported success" in conflicting.json()["error"]
    assert silent.author.run(run.id) == moved
    assert moved.status == pb.RUN_STATUS_WAITING_APPROVAL


def test_another_agents_step_is_not_reported(silent: Site) -> None:
    run = waiting(silent)
    answer = report(silent, run, agent="judge")
    assert answer.status_code == 409
    assert "awaits datagov, not judge" in answer.json()["error"]


def test_a_cancelled_run_takes_no_report(silent: Site) -> None:
    run = waiting(silent)
    silent.author.ask(pb.CancelRunRequest(run_id=run.id, note="not today"))
    assert report(silent, run).status_code == 409
    assert silent.author.run(run.id).status == pb.RUN_STATUS_CANCELLED


def test_a_report_after_the_deadline_is_too_late(silent: Site) -> None:
    assert silent.time is not None
    run = waiting(silent, detect(minutes=5))
    silent.time.move("+301s")
    try:
        assert report(silent, run).status_code == 409
        late = until(silent.author, run.id, ended)
        assert late.status == pb.RUN_STATUS_TIMED_OUT
        assert late.steps[0].conclusion == ""
        assert report(silent, run).status_code == 409
    finally:
        silent.time.move("+0")


def test_a_report_before_the_dispatch_was_answered_is_accepted(silent: Site) -> None:
    silent.github.fault("hang_after", "dispatch")
    run = started(silent, detect(), approval())
    assert eventually(lambda: silent.github.dispatches(run.id))
    assert silent.author.run(run.id).steps[0].call == pb.CALL_PENDING
    assert report(silent, run).json() == {"accepted": True}
    moved = silent.author.run(run.id)
    assert moved.status == pb.RUN_STATUS_WAITING_APPROVAL
    assert moved.steps[0].call == pb.CALL_PENDING, "a report proves no dispatch by itself"
    settled = until(silent.author, run.id, lambda now: now.steps[0].call != pb.CALL_PENDING)
    assert settled.steps[0].call == pb.CALL_ACCEPTED, "but it settles an answer that never came"
    decisions = silent.author.ask(ListDecisionsRequest()).decisions
    told = [each.decision for each in decisions if run.id in each.sentence]
    assert told == ["dispatched", "reported", "run started"]


def test_an_ambiguous_comment_fails_and_is_not_posted_again(silent: Site) -> None:
    silent.github.fault("error_after", "comment")
    run = until(silent.author, started(silent, comment()).id, ended)
    assert run.status == pb.RUN_STATUS_FAILED
    assert "the comment may have been posted: not sent again" in run.steps[0].detail
    assert silent.github.comments(run.id) == 1


class Job:
    """The last step of a report job: the shipped script under bash, with a minted token."""

    def __init__(self, site: Site, folder: Path, run: pb.Run) -> None:
        payload = {
            "agent": "datagov",
            "playbook_id": run.playbook_id,
            "run_id": run.id,
            "step_id": "detect",
            "chain_depth": 0,
        }
        event = folder / "event.json"
        event.write_text(json.dumps({"action": "core-playbook", "client_payload": payload}))
        self._env = environment(
            APP_TOKEN=site.github.token(),
            CORE_CONSOLE_HTTP_URL=f"http://{site.console.http}",
            GITHUB_EVENT_PATH=str(event),
            GITHUB_SERVER_URL=site.github.url,
            GITHUB_REPOSITORY=f"{ORG}/{AGENTS_REPO}",
            GITHUB_RUN_ID=str(next(_run_numbers)),
            TMPDIR=str(folder),
        )

    def report(self, outcome: str) -> subprocess.CompletedProcess[str]:
        script = shipped_github() / "scripts" / "playbook-step-report.sh"
        return subprocess.run(
            ("bash", str(script), "datagov"),
            env=self._env | {"AGENT_OUTCOME": outcome, "AGENT_JOB_RESULT": outcome},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def test_the_shipped_script_delivers_to_the_real_door(silent: Site, tmp_path: Path) -> None:
    run = waiting(silent, detect(), approval())
    job = Job(silent, tmp_path, run)
    first = job.report("success")
    assert first.returncode == 0, first.stderr
    assert "success delivered" in first.stdout
    assert "the console had it already" in job.report("success").stdout
    assert silent.author.run(run.id).status == pb.RUN_STATUS_WAITING_APPROVAL
    conflicting = job.report("failure")
    assert conflicting.returncode == 1
    assert "409" in conflicting.stdout + conflicting.stderr


def test_a_failed_agent_fails_the_run(silent: Site, tmp_path: Path) -> None:
    run = waiting(silent, detect(), approval())
    assert Job(silent, tmp_path, run).report("failure").returncode == 0
    done = silent.author.run(run.id)
    assert done.status == pb.RUN_STATUS_FAILED
    assert step_of(done, "approve").status == pb.STEP_RUN_STATUS_SKIPPED
