import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.github.local_server import Answer, Asked, LocalServer

SCRIPTS = Path(__file__).resolve().parents[2] / "github" / "scripts"
TOKEN = "ghs_" + "Ab0.-_" * 20
PAYLOAD = {
    "agent": "datagov",
    "playbook_id": "PB-1",
    "run_id": "PBR-1",
    "step_id": "detect",
    "chain_depth": 1,
}


@dataclass(frozen=True, slots=True)
class Said:
    """How a script ended, what it printed, and how long it would have waited."""

    code: int
    text: str
    waits_s: list[int]
    env_file: str


@dataclass
class Shell:
    """Runs a shipped script under bash, with a `sleep` that only writes down what it was asked."""

    folder: Path
    url: str
    event: Any = field(default_factory=lambda: {"client_payload": dict(PAYLOAD)})

    def run(self, script: str, *arguments: str, **variables: str | None) -> Said:
        event = self.folder / "event.json"
        event.write_text(self.event if isinstance(self.event, str) else json.dumps(self.event))
        env_file = self.folder / "env"
        env_file.write_text("")
        waits = self.folder / "waits"
        waits.write_text("")
        given: dict[str, str | None] = {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "WAITS": str(waits),
            "TMPDIR": str(self.folder / "tmp"),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_ENV": str(env_file),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "acme/core",
            "GITHUB_RUN_ID": "77",
            "APP_TOKEN": TOKEN,
            "CORE_CONSOLE_HTTP_URL": self.url,
            "AGENT_OUTCOME": "success",
            "AGENT_JOB_RESULT": "success",
        }
        env = given | variables
        done = subprocess.run(
            ("bash", str(SCRIPTS / script), *arguments),
            env={name: value for name, value in env.items() if value is not None},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not list((self.folder / "tmp").iterdir()), "the script left temporary files"
        text = done.stdout + done.stderr
        assert TOKEN not in text
        waited = [int(line) for line in waits.read_text().split()]
        return Said(done.returncode, text, waited, env_file.read_text())


@pytest.fixture
def console() -> Iterator[LocalServer]:
    server = LocalServer(lambda _: Answer(200, {"accepted": True}))
    yield server
    server.close()


@pytest.fixture
def shell(tmp_path: Path, console: LocalServer) -> Shell:
    (tmp_path / "bin").mkdir()
    (tmp_path / "tmp").mkdir()
    sleep = tmp_path / "bin" / "sleep"
    sleep.write_text('#!/bin/sh\necho "$1" >>"$WAITS"\n')
    sleep.chmod(0o755)
    return Shell(tmp_path, console.url)


@pytest.fixture
def in_turn() -> Callable[..., Callable[[Asked], Answer]]:
    """Answers that are given one after the other; the last one again and again."""

    def make(*answers: Answer) -> Callable[[Asked], Answer]:
        left = list(answers)
        return lambda _: left.pop(0) if len(left) > 1 else left[0]

    return make


@pytest.fixture
def agents_repository(tmp_path: Path) -> Path:
    """The shipped files as an organisation lays them out."""
    source = SCRIPTS.parent
    shutil.copytree(source, tmp_path / "repo/.github", ignore=shutil.ignore_patterns("agents"))
    shutil.copytree(source / "agents", tmp_path / "repo/agents")
    return tmp_path / "repo"


def briefly(value: object) -> str:
    """Name a case whose value may be a mebibyte."""
    return ascii(value)[:40]


@dataclass(frozen=True, slots=True)
class Ended:
    """How an agent ended: its exit code, what it printed, its one line, and its report if any."""

    code: int
    text: str
    detail: str
    report: bytes | None

    def json(self) -> Any:  # noqa: ANN401 -- a report is any JSON object
        assert self.report is not None, self.text
        return json.loads(self.report)


class Agents:
    """Runs the shipped agents under their own interpreters, as the workflows do."""

    def __init__(self, repository: Path) -> None:
        self.repository = repository

    def write(self, name: str, content: object) -> Path:
        """Write a file of the repository: a text or bytes as they are, anything else as JSON."""
        path = self.repository / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str | bytes) else json.dumps(content)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def git(self, *arguments: str) -> None:
        """Call git in the repository as somebody."""
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "tag.gpgsign=false")
        subprocess.run(
            ("git", *who, *arguments), cwd=self.repository, check=True, capture_output=True
        )

    def run(self, agent: str, **variables: str) -> Ended:
        output = self.repository.parent / "output"
        output.write_text("")
        given = {"PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(output), "LANG": "C.UTF-8"}
        done = subprocess.run(
            (self.repository / "agents" / agent / "run",),
            cwd=self.repository,
            env=given | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        text = done.stdout + done.stderr
        assert "Traceback" not in text, text
        said = re.fullmatch(r"detail=([^\n]+)\n", output.read_text())
        assert said is not None, "the one line is missing, or is several"
        assert len(said[1].encode()) <= 500
        assert f"{agent}: {said[1]}\n" in done.stdout
        report = self.repository / "report.json"
        data = report.read_bytes() if report.exists() else None
        return Ended(done.returncode, text, said[1], data)


@pytest.fixture
def agents(agents_repository: Path) -> Agents:
    return Agents(agents_repository)
