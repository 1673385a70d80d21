"""What all six agents share: bounded reading, an honest end, and reports that doors can take."""

import json
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest

from core_console.decide import screen
from core_console.decide.agent_reports import ITEMS_MAX, NAME_BYTES
from core_console.doors import agent_reports, step_report
from tests.github.conftest import SCRIPTS, Agents, briefly
from tests.github.taken import raised, told

FOLDER = SCRIPTS.parent / "agents"
AGENTS = ["compliance", "curator", "datagov", "judge", "recon", "risk"]
FILES = {
    "compliance": "agents/compliance/controls.json",
    "datagov": "agents/datagov/connections.json",
    "judge": "agents/judge/claims.json",
    "recon": "agents/recon/rules.json",
}
INPUTS = {
    "thresholds": {},
    "rules": [{"id": "A", "severity": "LOW", "status": "APPROVED", "thresholds": []}],
}
files = pytest.mark.parametrize("agent", list(FILES))


@pytest.fixture(scope="module")
def reporting() -> ModuleType:
    loader = SourceFileLoader("reporting", str(FOLDER / "reporting.py"))
    spec = spec_from_loader("reporting", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_there_is_a_command_for_each_agent() -> None:
    assert sorted(path.parent.name for path in FOLDER.glob("*/run")) == AGENTS


@files
@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"connections": [], "controls": [], "claims": [], "rules": []}',
        '{"connections": {}, "controls": {}, "claims": {}, "rules": {}}',
        '{"connections": [1], "controls": [1], "claims": [1], "rules": [1], "rules": [1]}',
        '{"x": NaN}',
        "[" * 200_000,
        '{"a":' * 200_000,
        b"\xff\xfe{}",
        " " * 1_048_577,
        '{"x": ' + "9" * 10_000 + "}",
    ],
    ids=briefly,
)
def test_nothing_to_assess_is_never_a_success(
    agents: Agents, agent: str, content: str | bytes | None
) -> None:
    agents.write("handed-on/inputs.json", INPUTS)
    path = agents.repository / FILES[agent]
    path.unlink()
    if content is not None:
        agents.write(FILES[agent], content)
    ended = agents.run(agent)
    assert ended.code == 1
    if agent == "compliance":
        assert raised(agent, ended).attributes == {"verdict": "unable"}
    elif ended.report is not None:
        assert set(told(agent, ended).attributes.values()) != {"0"}


@files
def test_a_folder_a_device_or_a_pipe_is_no_input(agents: Agents, agent: str) -> None:
    agents.write("handed-on/inputs.json", INPUTS)
    path = agents.repository / FILES[agent]
    path.unlink()
    path.symlink_to("/dev/zero")
    assert agents.run(agent).code == 1
    path.unlink()
    os.mkfifo(path)  # nobody writes into it: whoever opened it would wait for ever
    assert agents.run(agent).code == 1
    path.unlink()
    path.mkdir()
    assert agents.run(agent).code == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_a_report_that_lies_in_the_repository_is_not_what_was_found(
    agents: Agents, agent: str
) -> None:
    kept = agents.write("kept.json", "{}")
    (agents.repository / "report.json").symlink_to(kept)
    ended = agents.run(agent)
    assert ended.report != b"{}"
    assert not (agents.repository / "report.json").is_symlink()
    assert kept.read_bytes() == b"{}", "what the link led to is left alone"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_report_that_cannot_be_written_is_a_failure(agents: Agents, agent: str) -> None:
    (agents.repository / "report.json").mkdir()
    ended = subprocess.run(
        (agents.repository / "agents" / agent / "run",),
        cwd=agents.repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert "the runner's files failed" in ended.stdout
    assert str(agents.repository) not in ended.stdout + ended.stderr


@pytest.mark.parametrize("agent", ["datagov", "judge", "compliance", "risk"])
@pytest.mark.parametrize(
    ("run_id", "named"), [("PBR-1", True), ("", False), ("a b", False), ("a\nb", False)]
)
def test_the_run_that_asked_is_named_as_the_cause(
    agents: Agents, agent: str, run_id: str, *, named: bool
) -> None:
    body = agents.run(agent, PLAYBOOK_RUN_ID=run_id).json()
    assert body.get("causedByRunId") == (run_id if named else None)


@pytest.mark.parametrize(
    ("variables", "event_id"),
    [
        ({"GITHUB_RUN_ID": "77", "GITHUB_RUN_ATTEMPT": "3"}, "risk-77-3"),
        ({"GITHUB_RUN_ID": "77"}, "risk-77-1"),
        ({"GITHUB_RUN_ID": "7 7"}, None),
        ({"GITHUB_RUN_ID": "٣"}, None),
        ({}, None),
    ],
)
def test_an_event_that_is_delivered_again_is_one_event(
    agents: Agents, variables: dict[str, str], event_id: str | None
) -> None:
    assert agents.run("risk", **variables).json().get("eventId") == event_id


@pytest.mark.parametrize("agent", AGENTS)
def test_the_checkout_stays_as_it_was(agents: Agents, agent: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in agents.repository.rglob("*/*")}
    agents.run(agent)
    after = {path: path.stat().st_mtime_ns for path in agents.repository.rglob("*/*")}
    assert after == before


def test_the_agents_bounds_are_the_doors(reporting: ModuleType) -> None:
    assert reporting.REPORT_MAX_BYTES == agent_reports.BODY_BYTES
    assert reporting.EVENT_MAX_BYTES == step_report.BODY_BYTES
    assert reporting.ITEMS_MAX == ITEMS_MAX
    assert reporting.NAME_MAX_CHARS * 4 == NAME_BYTES


@pytest.mark.parametrize(
    "text",
    [
        *(f"a {each} b" for each in ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_")),
        *("AKIA", "xoxa-", "xoxb-", "xoxp-", "-----BEGIN", "xeyJhbGci.eyJpc3M.", "a\x00b", "a\tb"),
        *("a\u2028b", "a\x85b", "a\u061cb", "a\u200fb", "a\u202eb", "a\u2069b", "\ud800"),
    ],
)
def test_what_the_doors_refuse_no_agent_shows(reporting: ModuleType, text: str) -> None:
    assert screen.flaws("x", text), "else the case proves nothing"
    assert reporting.shown(text, "instead") == "instead"


@pytest.mark.parametrize("text", ["a", "Müller & Co. (EU)", "🙂", "x" * 64, "a-b_c.d/e"])
def test_an_ordinary_name_is_shown(reporting: ModuleType, text: str) -> None:
    assert reporting.shown(text, "instead") == text


def test_a_report_over_its_doors_bound_is_not_written(
    reporting: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PLAYBOOK_RUN_ID", raising=False)
    with pytest.raises(reporting.Unable):
        reporting.write_report({"a": "é" * 524_288})
    with pytest.raises(reporting.Unable):
        reporting.write_event("risk", "x", "", a="x" * 16_384)
    assert not (tmp_path / "report.json").exists()
    reporting.write_report({"a": "é" * 524_000})
    assert json.loads((tmp_path / "report.json").read_text())["a"][0] == "é"


@pytest.mark.parametrize("agent", AGENTS)
def test_the_agents_keep_the_house_style(agent: str, tmp_path: Path) -> None:
    """No checker looks at a command without a suffix, so they are shown to them here."""
    text = (FOLDER / agent / "run").read_text()
    ruff = (Path(sys.executable).with_name("ruff"), "check", "--quiet")
    # A command prints, starts programs, has its own clock and finds what it shares by its place.
    excused = "--extend-ignore=INP001,T201,S603,S607,TID251,E402"
    root = SCRIPTS.parents[1]
    done = subprocess.run(
        (*ruff, excused, f"--stdin-filename={root / 'github' / 'a_command.py'}", "-"),
        cwd=root,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (tmp_path / "command.py").write_text(text)
    (tmp_path / "reporting.py").write_text((FOLDER / "reporting.py").read_text())
    done = subprocess.run(
        (sys.executable, "-m", "mypy", "--strict", "command.py"),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("agent", AGENTS)
def test_an_agent_needs_the_standard_library_alone(agent: str) -> None:
    text = (FOLDER / agent / "run").read_text() + (FOLDER / "reporting.py").read_text()
    lines = [line.split()[1] for line in text.splitlines() if line.startswith(("import ", "from "))]
    assert {name.split(".")[0] for name in lines} <= sys.stdlib_module_names | {"reporting"}
