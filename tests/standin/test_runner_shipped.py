"""The shipped workflows, from the dispatch to the report, against a small GitHub and console."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from core_console.standin.runner import Runner
from core_console.standin.runner_layout import lay_out, shipped_github
from core_console.standin.runner_records import Outcome, WorkflowRun
from core_console.standin.state import DispatchEvent
from tests.github.local_server import Answer, Asked, LocalServer

TOKEN = "ghs_7_" + "Xy9.-_" * 60
PAYLOAD = {
    "agent": "datagov",
    "playbook_id": "PB-1",
    "run_id": "PBR-1",
    "step_id": "detect",
    "chain_depth": 0,
}
STEP_REPORT = "/api/playbook-runs/step-report"
INPUTS = {
    "thresholds": {},
    "rules": [{"id": "R1", "severity": "LOW", "status": "APPROVED", "thresholds": []}],
}


@pytest.fixture(scope="module")
def key() -> str:
    made = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    return made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    ).decode()


class World:
    """GitHub's App endpoints and the console's doors, on one address."""

    def __init__(self) -> None:
        self.revoked = False
        self.refusals: list[int] = []
        self.door_status = 200
        self.server = LocalServer(self.answer)

    def answer(self, asked: Asked) -> Answer:
        match asked.method, asked.path:
            case "GET", "/repos/acme/core/installation":
                if self.refusals:
                    return Answer(self.refusals.pop(0))
                return Answer(200, {"id": 7, "app_slug": "core-console"})
            case "POST", "/app/installations/7/access_tokens":
                self.revoked = False
                return Answer(201, {"token": TOKEN})
            case "DELETE", "/installation/token":
                self.revoked = True
                return Answer(204, b"")
            case "POST", "/api/playbook-runs/step-report":
                assert not self.revoked, "the token was revoked before it was used"
                return Answer(self.door_status, {"accepted": True})
            case "GET", "/api/rules-recon/inputs":
                return Answer(200, INPUTS)
            case "POST", path if path.startswith("/api/"):
                return Answer(200, {})
            case _:
                return Answer(404)

    def posted(self, path: str) -> list[Asked]:
        return [a for a in self.server.asked if (a.method, a.path) == ("POST", path)]


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.server.close()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    lay_out(shipped_github(), tmp_path / "tree")
    return tmp_path / "tree"


@pytest.fixture
async def runner(tree: Path, tmp_path: Path, world: World, key: str) -> AsyncIterator[Runner]:
    made = Runner(
        tree,
        api_url=world.server.url,
        graphql_url=f"{world.server.url}/graphql",
        server_url="https://github.com",
        repository="acme/core",
        variables={"CORE_GH_APP_ID": "Iv1.abc", "CORE_CONSOLE_HTTP_URL": world.server.url},
        secrets={"CORE_GH_APP_PRIVATE_KEY": key},
        work_dir=tmp_path / "work",
    )
    yield made
    await made.close()
    assert list((tmp_path / "work").glob("*")) == [], "a run left files"


def event(**payload: object) -> DispatchEvent:
    return DispatchEvent("acme/core", "core-playbook", PAYLOAD | payload, "core-console[bot]", 42)


async def run(runner: Runner, **payload: object) -> WorkflowRun:
    """Dispatch and return the only run whose jobs ran."""
    await runner.dispatch(event(**payload))
    await runner.settle()
    (ran,) = (one for one in runner.runs if one.conclusion is not Outcome.SKIPPED)
    return ran


def ended(ran: WorkflowRun) -> dict[str, str]:
    return {job.name: str(job.conclusion) for job in ran.jobs}


def logs(ran: WorkflowRun) -> str:
    return "\n".join(job.log for job in ran.jobs)


async def test_a_dispatch_is_run_and_reported(runner: Runner, world: World, key: str) -> None:
    ran = await run(runner)
    assert ended(ran) == {"agent": "success", "report": "success", "findings": "skipped"}, logs(ran)
    assert ran.run_name == "datagov PBR-1 detect"
    (asked,) = world.posted(STEP_REPORT)
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.json() == {
        "runId": "PBR-1",
        "stepId": "detect",
        "agent": "datagov",
        "conclusion": "success",
        "detail": "3 of 3 connections assessed: 1 fail, 2 warn, 0 unable to assess",
        "githubRunUrl": f"https://github.com/acme/core/actions/runs/{ran.run_id}",
    }
    assert world.revoked
    assert TOKEN not in logs(ran)
    assert key.splitlines()[1] not in logs(ran)


async def test_six_workflows_hear_it_and_five_skip_all_their_jobs(
    runner: Runner, world: World
) -> None:
    await run(runner)
    assert len(runner.runs) == 6
    skipped = [one for one in runner.runs if one.conclusion is Outcome.SKIPPED]
    assert len(skipped) == 5
    assert all(set(ended(one).values()) == {"skipped"} for one in skipped)
    assert len(world.posted(STEP_REPORT)) == 1


async def test_the_token_is_asked_for_as_the_action_does(
    runner: Runner, world: World, key: str
) -> None:
    await run(runner)
    (mint,) = world.posted("/app/installations/7/access_tokens")
    assert mint.json() == {"repositories": ["core"], "permissions": {"metadata": "read"}}
    private = serialization.load_pem_private_key(key.encode(), password=None)
    public = private.public_key()
    assert isinstance(public, rsa.RSAPublicKey)
    bearer = mint.headers["authorization"].removeprefix("Bearer ")
    claims = jwt.decode(bearer, public, algorithms=["RS256"])
    assert claims["iss"] == "Iv1.abc"
    assert claims["exp"] - claims["iat"] == 600


async def test_an_agent_that_fails_is_reported_as_failed(
    runner: Runner, world: World, tree: Path
) -> None:
    (tree / "agents/datagov/run").write_text(
        '#!/bin/sh\necho "detail=bad" >>"$GITHUB_OUTPUT"\nexit 3\n'
    )
    ran = await run(runner)
    assert ended(ran)["agent"] == "failure"
    assert ended(ran)["report"] == "success", logs(ran)
    report = world.posted(STEP_REPORT)[0].json()
    assert (report["conclusion"], report["detail"]) == ("failure", "bad")


async def test_findings_are_delivered_before_the_step(
    runner: Runner, world: World, tree: Path
) -> None:
    (tree / "agents/datagov/run").write_text("#!/bin/sh\necho '{\"a\": 1}' >report.json\n")
    ran = await run(runner)
    assert ran.conclusion is Outcome.SUCCESS, logs(ran)
    doors = [a.path for a in world.server.asked if a.path.startswith("/api/")]
    assert doors == ["/api/data-governance-findings", STEP_REPORT]
    assert world.posted("/api/data-governance-findings")[0].body == b'{"a": 1}\n'
    assert world.posted(STEP_REPORT)[0].json()["conclusion"] == "success"


async def test_findings_that_cannot_be_delivered_fail_the_step(
    runner: Runner, world: World, tree: Path
) -> None:
    (tree / "agents/datagov/run").write_text("#!/bin/sh\necho '[]' >report.json\n")
    ran = await run(runner)
    assert ended(ran) == {"agent": "success", "report": "failure", "findings": "skipped"}
    assert world.posted(STEP_REPORT)[0].json()["conclusion"] == "failure"


async def test_a_bad_payload_never_reaches_the_agent_and_is_not_reported(
    runner: Runner, world: World, tree: Path
) -> None:
    (tree / "agents/datagov/run").write_text("#!/bin/sh\necho the agent ran\n")
    ran = await run(runner, step_id="x\nPATH=/tmp")
    assert ended(ran)["agent"] == "failure"
    assert ended(ran)["report"] == "failure"
    assert "the agent ran" not in logs(ran)
    assert world.posted(STEP_REPORT) == []


async def test_an_undelivered_report_fails_the_run(runner: Runner, world: World) -> None:
    world.door_status = 409
    ran = await run(runner)
    assert ended(ran)["report"] == "failure"
    assert ran.conclusion is Outcome.FAILURE


async def test_without_a_token_nothing_is_sent_and_the_run_fails(
    runner: Runner, world: World
) -> None:
    world.refusals = [404]
    ran = await run(runner)
    assert ended(ran)["report"] == "failure"
    assert world.posted(STEP_REPORT) == []
    assert "GitHub answered 404" in logs(ran)


async def test_the_agents_job_sees_no_secret_and_little_of_this_machine(
    runner: Runner, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_THIS_MACHINE", "1")
    (tree / "agents/datagov/run").write_text("#!/bin/sh\nenv\n")
    text = (await run(runner)).jobs[0].log
    assert "OF_THIS_MACHINE" not in text
    assert "PRIVATE_KEY" not in text
    assert "APP_TOKEN" not in text
    assert "PLAYBOOK_STEP_ID=detect" in text
    assert "GITHUB_REPOSITORY=acme/core" in text


async def test_recon_gets_its_inputs_from_a_job_before(runner: Runner, world: World) -> None:
    ran = await run(runner, agent="recon")
    assert ended(ran)["inputs"] == "success", logs(ran)
    assert ran.conclusion is Outcome.SUCCESS, logs(ran)
    assert world.posted(STEP_REPORT)[0].json()["detail"].startswith("25 rules reconciled")


async def test_recon_without_inputs_is_reported_as_failed(runner: Runner, world: World) -> None:
    world.refusals = [403]
    ran = await run(runner, agent="recon")
    assert ended(ran)["inputs"] == "failure"
    assert ended(ran)["agent"] == "skipped"
    assert ended(ran)["report"] == "success", logs(ran)
    assert world.posted(STEP_REPORT)[0].json()["conclusion"] == "failure"


@pytest.mark.parametrize(
    ("agent", "door"),
    [
        ("datagov", "/api/data-governance-findings"),
        ("judge", "/api/judgements"),
        ("recon", "/api/rules-recon/report"),
        ("compliance", "/api/playbook-events"),
        ("curator", None),
    ],
)
async def test_every_other_agent_succeeds_as_shipped_and_reports_through_its_door(
    runner: Runner, world: World, agent: str, door: str | None
) -> None:
    ran = await run(runner, agent=agent)
    assert ran.conclusion is Outcome.SUCCESS, logs(ran)
    posted = [a.path for a in world.server.asked if a.method == "POST" and a.path[:5] == "/api/"]
    assert posted == [*([door] if door else []), STEP_REPORT]
    step = world.posted(STEP_REPORT)[0].json()
    assert (step["agent"], step["conclusion"]) == (agent, "success")


async def test_risk_without_anything_to_audit_says_unable_and_its_step_fails(
    runner: Runner, world: World
) -> None:
    ran = await run(runner, agent="risk")
    assert ended(ran) == {"agent": "failure", "report": "success", "findings": "skipped"}
    (event,) = world.posted("/api/playbook-events")
    assert event.json()["attributes"]["verdict"] == "unable"
    assert event.json()["eventId"] == f"risk-{ran.run_id}-1"
    assert world.posted(STEP_REPORT)[0].json()["conclusion"] == "failure"


async def test_a_curator_that_is_not_dry_hands_on_its_notes(
    tree: Path, tmp_path: Path, world: World, key: str
) -> None:
    made = Runner(
        tree,
        api_url=world.server.url,
        graphql_url=f"{world.server.url}/graphql",
        server_url="https://github.com",
        repository="acme/core",
        variables={
            "CORE_GH_APP_ID": "Iv1.abc",
            "CORE_CONSOLE_HTTP_URL": world.server.url,
            "CURATOR_CRON_DRY_RUN": "false",
        },
        secrets={"CORE_GH_APP_PRIVATE_KEY": key},
        work_dir=tmp_path / "work",
    )
    try:
        ran = await run(made, agent="curator")
    finally:
        await made.close()
    assert ran.conclusion is Outcome.SUCCESS, logs(ran)
    (event,) = world.posted("/api/playbook-events")
    assert event.json()["event"] == "release.noted"
    assert event.json()["causedByRunId"] == "PBR-1"


async def test_by_hand_findings_are_delivered_and_no_step_is_reported(
    runner: Runner, world: World, tree: Path
) -> None:
    (tree / "agents/datagov/run").write_text("#!/bin/sh\necho '{}' >report.json\n")
    await runner.run_by_hand("core-agent-datagov.yml")
    await runner.settle()
    (ran,) = runner.runs
    assert ended(ran) == {"agent": "success", "report": "skipped", "findings": "success"}
    assert [a.path for a in world.server.asked if a.path.startswith("/api/")] == [
        "/api/data-governance-findings"
    ]


async def test_another_event_or_repository_starts_nothing(runner: Runner) -> None:
    await runner.dispatch(DispatchEvent("acme/core", "core-other", PAYLOAD, "x", 1))
    await runner.dispatch(DispatchEvent("acme/other", "core-playbook", PAYLOAD, "x", 1))
    await runner.settle()
    assert runner.runs == []


async def test_no_agent_of_that_name_skips_everything(runner: Runner, world: World) -> None:
    await runner.dispatch(event(agent="nobody"))
    await runner.settle()
    assert {one.conclusion for one in runner.runs} == {Outcome.SKIPPED}
    assert world.server.asked == []


async def test_the_event_file_holds_the_payload_as_it_was_sent(runner: Runner, tree: Path) -> None:
    (tree / "agents/datagov/run").write_text('#!/bin/sh\njq -c . "$GITHUB_EVENT_PATH"\n')
    text = (await run(runner, extra={"a": [1, "é"]})).jobs[0].log
    line = next(line for line in text.splitlines() if line.startswith("{"))
    seen = json.loads(line)
    assert seen["client_payload"]["extra"] == {"a": [1, "é"]}
    assert seen["sender"] == {"login": "core-console[bot]", "id": 42, "type": "Bot"}
