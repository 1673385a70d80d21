import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from core_console.doors.agent_reports import DATAGOV_PATH, JUDGE_PATH, RECON_PATH
from core_console.doors.events import PATH as EVENTS_PATH
from core_console.doors.inputs import PATH as INPUTS_PATH
from core_console.standin.actions import KNOWN

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / "github" / "workflows").glob("*.yml"))
AGENTS = ["compliance", "curator", "datagov", "judge", "recon", "risk"]
DOORS = {
    "datagov": DATAGOV_PATH,
    "recon": RECON_PATH,
    "judge": JUDGE_PATH,
    "compliance": EVENTS_PATH,
    "risk": EVENTS_PATH,
    "curator": EVENTS_PATH,
}


def agent_of(path: Path) -> str:
    return path.stem.removeprefix("core-agent-")


def tool(name: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    assert found is not None, f"{name} is not installed"
    return found


def test_there_is_one_workflow_for_each_agent() -> None:
    assert [agent_of(path) for path in WORKFLOWS] == AGENTS


def test_shellcheck_has_nothing_to_say() -> None:
    scripts = sorted((ROOT / "github" / "scripts").glob("*.sh"))
    done = subprocess.run(
        (
            tool("shellcheck"),
            "-x",
            "--enable=all",
            "--exclude=SC2250,SC2310,SC2312",
            *scripts,
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_zizmor_has_nothing_to_say() -> None:
    done = subprocess.run(
        (tool("zizmor"), "--offline", "--no-config", "--no-progress", *WORKFLOWS),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", WORKFLOWS, ids=agent_of)
def test_no_job_of_the_agent_holds_a_secret_or_a_token(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    assert "secrets" not in str(jobs["agent"])
    assert "app-token" not in str(jobs["agent"])
    assert "secrets.CORE_GH_APP_PRIVATE_KEY" in str(jobs["report"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=agent_of)
def test_the_step_report_comes_last_and_the_findings_before_it(path: Path) -> None:
    agent = agent_of(path)
    jobs = yaml.safe_load(path.read_text())["jobs"]
    runs = [step["run"] for step in jobs["report"]["steps"] if "run" in step]
    assert runs == [
        f"bash .github/scripts/agent-report.sh {DOORS[agent]} handed-on/report.json",
        f"bash .github/scripts/playbook-step-report.sh {agent}",
    ]
    assert jobs["report"]["steps"][-1]["run"] == runs[-1]


@pytest.mark.parametrize("path", WORKFLOWS, ids=agent_of)
def test_on_a_cron_the_findings_go_to_the_same_door_and_no_step_is_reported(path: Path) -> None:
    findings = yaml.safe_load(path.read_text())["jobs"]["findings"]
    runs = [step["run"] for step in findings["steps"] if "run" in step]
    door = DOORS[agent_of(path)]
    assert runs == [f"bash .github/scripts/agent-report.sh {door} handed-on/report.json"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=agent_of)
def test_the_report_job_is_for_its_own_agents_dispatches_only(path: Path) -> None:
    jobs = yaml.safe_load(path.read_text())["jobs"]
    assert jobs["report"]["if"] == (
        "always() && github.event_name == 'repository_dispatch'"
        f" && github.event.client_payload.agent == '{agent_of(path)}'"
    )


@pytest.mark.parametrize("path", WORKFLOWS, ids=agent_of)
def test_every_job_grants_only_what_a_checkout_needs(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {}
    for job in workflow["jobs"].values():
        assert job["permissions"] == {"contents": "read"}
        assert "timeout-minutes" in job


@pytest.mark.parametrize("path", WORKFLOWS, ids=agent_of)
def test_every_action_is_pinned_and_says_its_version(path: Path) -> None:
    uses = re.findall(r"uses: (.*)", path.read_text())
    assert uses
    for use in uses:
        assert use in {f"{name}@{known.commit} # {known.version}" for name, known in KNOWN.items()}


@pytest.mark.parametrize("path", WORKFLOWS, ids=agent_of)
def test_the_six_files_differ_only_where_their_agents_do(path: Path) -> None:
    """What all six share is written once, in datagov's file: the report job, word for word."""

    def shared(file: Path) -> str:
        agent = agent_of(file)
        report = file.read_text().split("  # Tells the console how the step ended")[1]
        return report.replace(DOORS[agent], "DOOR").replace(agent, "AGENT")

    assert shared(path) == shared(ROOT / "github/workflows/core-agent-datagov.yml")


def test_only_recon_is_given_inputs_and_by_a_job_of_its_own() -> None:
    for path in WORKFLOWS:
        jobs = yaml.safe_load(path.read_text())["jobs"]
        if agent_of(path) == "recon":
            runs = [step.get("run") for step in jobs["inputs"]["steps"]]
            wanted = f"bash .github/scripts/agent-inputs.sh {INPUTS_PATH} inputs.json"
            assert wanted in runs
            assert jobs["agent"]["needs"] == "inputs"
        else:
            assert set(jobs) == {"agent", "report", "findings"}


def test_no_two_agents_share_a_cron_minute() -> None:
    crons = [re.findall(r'cron: "(\d+) ', path.read_text()) for path in WORKFLOWS]
    minutes = [minute for found in crons for minute in found]
    assert len(set(minutes)) == len(AGENTS)
    assert "0" not in minutes, "GitHub is busiest at the full hour"
