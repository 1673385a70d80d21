"""risk under its own interpreter, with tools that answer as pip-audit 2 and npm 10 do."""

import json
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.github.conftest import Agents, Ended, briefly
from tests.github.taken import raised

CLEAN = {"name": "jinja2", "version": "3.1.6", "vulns": []}
BAD = {
    "name": "jinja2",
    "version": "2.4.1",
    "vulns": [
        {"id": "PYSEC-2014-8", "fix_versions": ["2.7.2"], "aliases": [], "description": "a"},
        {"id": "PYSEC-2019-217", "fix_versions": ["2.10.1"], "aliases": [], "description": "b"},
    ],
}
SKIPPED = {
    "name": "mine",
    "skip_reason": "Dependency not found on PyPI and could not be audited: mine (1.0)",
}


def npm(total: int = 0, critical: int = 0, high: int = 0, packages: int = 0) -> dict[str, Any]:
    counts = {"info": 0, "low": 0, "moderate": 0, "high": high, "critical": critical}
    return {
        "auditReportVersion": 2,
        "vulnerabilities": {
            f"p{n}": {"name": f"p{n}", "severity": "high"} for n in range(packages)
        },
        "metadata": {"vulnerabilities": counts | {"total": total}, "dependencies": {"total": 9}},
    }


class Tools:
    """A PATH with nothing but what the agent's interpreter needs, and the tools that are put."""

    def __init__(self, folder: Path, agents: Agents) -> None:
        self.folder = folder
        self.agents = agents
        folder.mkdir()
        for name in ("env", "python3", "sh", "cat", "head", "yes", "kill"):
            found = sys.executable if name == "python3" else shutil.which(name)
            assert found is not None
            (folder / name).write_text(f'#!/bin/sh\nexec {shlex.quote(found)} "$@"\n')
            (folder / name).chmod(0o755)

    def put(self, name: str, answer: object, code: int = 0, *, script: str = "") -> None:
        said = self.folder / f"{name}.json"
        said.write_text(answer if isinstance(answer, str) else json.dumps(answer))
        body = script or f"cat {shlex.quote(str(said))}\necho a warning >&2\nexit {code}"
        called = shlex.quote(str(self.folder / f"{name}.called"))
        tool = self.folder / name
        tool.write_text(f'#!/bin/sh\necho "$PWD: $@" >>{called}\n{body}\n')
        tool.chmod(0o755)

    def called(self, name: str) -> list[str]:
        log = self.folder / f"{name}.called"
        return log.read_text().splitlines() if log.exists() else []

    def run(self) -> Ended:
        return self.agents.run("risk", PATH=str(self.folder))


@pytest.fixture
def tools(tmp_path: Path, agents: Agents) -> Tools:
    return Tools(tmp_path / "tools", agents)


def attributes(ended: Ended) -> dict[str, str]:
    event = raised("risk", ended)
    assert event.event == "dependencies.audited"
    assert event.detail == ended.detail
    return event.attributes


def test_as_shipped_there_is_nothing_to_audit_and_that_is_no_success(tools: Tools) -> None:
    ended = tools.run()
    assert ended.code == 1
    assert attributes(ended) == {"verdict": "unable", "files": "0"}


@pytest.mark.parametrize("file", ["requirements.txt", "package-lock.json"])
def test_without_its_tool_a_file_is_not_audited(tools: Tools, file: str) -> None:
    tools.agents.write(file, "{}")
    ended = tools.run()
    assert (ended.code, attributes(ended)["verdict"]) == (1, "unable")
    assert attributes(ended)["unaudited"] == "1"
    assert "is not on PATH" in ended.text


@pytest.mark.parametrize(
    ("dependencies", "exit_code", "code", "verdict", "figures"),
    [
        ([CLEAN], 0, 0, "pass", ("0", "0", "0")),
        ([CLEAN, BAD], 1, 0, "fail", ("2", "1", "0")),
        ([CLEAN, SKIPPED], 0, 1, "unable", ("0", "0", "1")),
        ([BAD, SKIPPED], 1, 1, "fail", ("2", "1", "1")),
    ],
)
def test_what_pip_audit_says_is_reported(
    tools: Tools,
    dependencies: list[object],
    exit_code: int,
    code: int,
    verdict: str,
    figures: tuple[str, ...],
) -> None:
    path = tools.agents.write("requirements.txt", "jinja2==2.4.1\n")
    tools.put("pip-audit", {"dependencies": dependencies, "fixes": []}, exit_code)
    ended = tools.run()
    found = attributes(ended)
    assert (ended.code, found["verdict"]) == (code, verdict), ended.text
    assert tuple(found[name] for name in ("vulnerabilities", "vulnerable", "skipped")) == figures
    (called,) = tools.called("pip-audit")
    assert called.endswith(f"--disable-pip --no-deps --requirement {path}")


@pytest.mark.parametrize(
    ("answer", "exit_code", "code", "verdict", "figures"),
    [
        (npm(), 0, 0, "pass", ("0", "0", "0", "0")),
        (npm(total=5, critical=1, high=3, packages=4), 1, 0, "fail", ("5", "4", "1", "3")),
    ],
)
def test_what_npm_audit_says_is_reported(
    tools: Tools,
    answer: object,
    exit_code: int,
    code: int,
    verdict: str,
    figures: tuple[str, ...],
) -> None:
    tools.agents.write("package-lock.json", "{}")
    tools.put("npm", answer, exit_code)
    ended = tools.run()
    found = attributes(ended)
    assert (ended.code, found["verdict"]) == (code, verdict), ended.text
    names = ("vulnerabilities", "vulnerable", "critical", "high")
    assert tuple(found[name] for name in names) == figures
    assert tools.called("npm") == [f"{tools.agents.repository}: audit --json --package-lock-only"]


LONG = " " * 16_777_216
UNREACHABLE = {
    "message": "405 Method Not Allowed",
    "statusCode": 405,
    "error": {"summary": "", "detail": ""},
}


@pytest.mark.parametrize(
    ("tool", "file", "answer", "exit_code"),
    [
        ("npm", "package-lock.json", UNREACHABLE, 1),
        ("npm", "package-lock.json", npm() | {"error": {"code": "ENOLOCK"}}, 1),
        ("npm", "package-lock.json", npm() | {"metadata": {}}, 0),
        ("npm", "package-lock.json", {"metadata": npm()["metadata"]}, 0),
        ("npm", "package-lock.json", npm(total="no"), 0),  # type: ignore[arg-type]  # it is the point
        ("npm", "package-lock.json", npm(), 2),
        ("npm", "package-lock.json", "", 0),
        ("pip-audit", "requirements.txt", {"dependencies": []}, 0),
        ("pip-audit", "requirements.txt", {"dependencies": {}}, 0),
        ("pip-audit", "requirements.txt", [CLEAN], 0),
        ("pip-audit", "requirements.txt", "No known vulnerabilities found", 0),
        ("pip-audit", "requirements.txt", "[" * 100_000, 0),
        ("pip-audit", "requirements.txt", {"dependencies": [CLEAN]}, 3),
        ("pip-audit", "requirements.txt", json.dumps({"dependencies": [CLEAN]}) + LONG, 0),
    ],
    ids=briefly,
)
def test_an_answer_that_is_none_is_unable_and_never_a_pass(
    tools: Tools, tool: str, file: str, answer: object, exit_code: int
) -> None:
    tools.agents.write(file, "{}")
    tools.put(tool, answer, exit_code)
    ended = tools.run()
    assert (ended.code, attributes(ended)["verdict"]) == (1, "unable")
    assert "gave no answer that is known" in ended.text


def test_an_endless_answer_and_a_killed_tool_are_no_answers(tools: Tools) -> None:
    tools.agents.write("requirements.txt", "a==1")
    tools.agents.write("package-lock.json", "{}")
    tools.put("pip-audit", "", script="yes | head -c 20000000")
    tools.put("npm", "", script="kill -9 $$")
    ended = tools.run()
    assert (ended.code, attributes(ended)["unaudited"]) == (1, "2")


def test_what_is_known_to_be_bad_comes_before_what_is_not_known(tools: Tools) -> None:
    tools.agents.write("requirements/run.txt", "a==1")
    tools.agents.write("package-lock.json", "{}")
    tools.put("pip-audit", {"dependencies": [BAD], "fixes": []}, 1)
    ended = tools.run()
    found = attributes(ended)
    assert (ended.code, found["verdict"], found["unaudited"]) == (1, "fail", "1")


def test_npm_is_asked_once_and_the_files_are_bounded(tools: Tools) -> None:
    tools.agents.write("package-lock.json", "{}")
    tools.agents.write("npm-shrinkwrap.json", "{}")
    tools.put("npm", npm())
    assert tools.run().code == 0
    assert len(tools.called("npm")) == 1
    for number in range(11):
        tools.agents.write(f"requirements-{number}.txt", "")
    ended = tools.run()
    assert (ended.code, attributes(ended)["files"]) == (1, "12")
    assert len(tools.called("npm")) == 1, "nobody is asked"
