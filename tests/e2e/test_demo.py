"""`core-console demo` as people start it: it ends by itself, it stays, it fails honestly."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.processes import Process, environment, eventually

pytestmark = pytest.mark.slow

DEMO = (sys.executable, "-m", "core_console", "demo")
DEMO_S = 60.0
PATIENCE_S = 150.0
GRPCURL = str(Path(sys.executable).with_name("grpcurl"))

STEPS = (
    "the console serves gRPC on",
    "the stand-in for GitHub answers on",
    "author@example.com wrote PB-",
    "the author may not activate it: PERMISSION_DENIED: four eyes: author@example.com wrote",
    "second@example.com activated revision 1",
    "author@example.com started PBR-",
    "GitHub ran the shipped datagov workflow",
    "the initiator may not approve: PERMISSION_DENIED: four eyes: author@example.com started",
    "second@example.com approved",
    "one comment landed on the issue",
    "author@example.com committed capital_plan, capital_request, spend: 84 findings",
    "was drafted from the findings, without a model: CapEx:",
    "second@example.com activated revision 1 of PB-",
    "author@example.com started PBR-",
    "its first scan counted 84 scored findings",
    "author@example.com committed capital_plan_corrected",
    "is SUCCEEDED",
    "author@example.com started PBR-",
    "its first scan counted",
    "author@example.com committed capital_plan_worse",
    "is FAILED: the findings of",
    "second@example.com activated revision 1 of PB-",
    "second@example.com activated revision 1 of PB-",
    "author@example.com started PBR-",
    "datagov reported findings: event PBE-",
    "dispatched judge at chain depth 1, and is SUCCEEDED",
    "judge's own report matched the playbook too: a run is in flight (PBR-",
    "audit records holds, verified offline",
)


def descendants(pid: int) -> set[int]:
    """Return the ids of a process's children, and of theirs."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = {int(child) for child in children}
    return found.union(*(descendants(child) for child in found))


def alive(pids: set[int]) -> set[int]:
    """Return those that still run."""
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def demo(folder: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Play the demo to its end."""
    return subprocess.run(
        (*DEMO, *arguments),
        env=environment(TMPDIR=str(folder), **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )


def test_it_ends_by_itself_and_shows_every_step_in_order(tmp_path: Path) -> None:
    began = time.monotonic()
    done = demo(tmp_path)
    took_s = time.monotonic() - began
    assert done.returncode == 0, done.stdout + done.stderr
    assert took_s < DEMO_S
    told = [line for line in done.stdout.splitlines() if line.startswith("✓ ")]
    assert len(told) == len(STEPS)
    for line, step in zip(told, STEPS, strict=True):
        assert step in line
    assert "Every step happened, in " in done.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def broken_agent(tmp_path: Path) -> str:
    """Return a PATH on which the agent's interpreter fails; the reporting scripts need none."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "python3").write_text(
        "#!/bin/sh\necho 'this machine has no Python today' >&2\nexit 1\n"
    )
    (tools / "python3").chmod(0o755)
    return os.pathsep.join((str(tools), *os.get_exec_path()))


def test_a_step_that_does_not_happen_is_named(tmp_path: Path, broken_agent: str) -> None:
    folder = tmp_path / "demo"
    folder.mkdir()
    done = demo(folder, PATH=broken_agent)
    assert done.returncode == 1
    assert "Every step happened" not in done.stdout
    last = done.stdout.strip().splitlines()[-1]
    assert last.startswith("This step did not happen: ")
    assert "detect" in last
    assert "STEP_RUN_STATUS_FAILED" in last
    assert list(folder.iterdir()) == []


class Kept:
    """A demo that stays up, and what it printed."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.printed = ""
        while "_standin/runs" not in self.printed:
            line = process.stdout.readline()
            assert line, self.printed + process.log.read_text()
            self.printed += line


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    env = environment(TMPDIR=str(tmp_path))
    process = Process((*DEMO, "--keep"), env, tmp_path.with_suffix(".log"))
    try:
        yield Kept(process)
    finally:
        process.close()


def test_it_stays_up_and_its_lines_work(kept: Kept, tmp_path: Path) -> None:
    exports = re.findall(r"^ +(export .+)$", kept.printed, re.MULTILINE)
    lines = re.findall(r"^ +(grpcurl .+)$", kept.printed, re.MULTILINE)
    assert len(exports) == 2
    assert len(lines) == 2
    script = "\n".join(("set -eu", *exports, *lines, "core-console playbook list"))
    done = subprocess.run(
        ("bash", "-c", script),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    assert "runink.core.atlas.v1.PlaybookService" in done.stdout
    assert "RUN_STATUS_SUCCEEDED" in done.stdout
    assert "Check the connections" in done.stdout

    servers = descendants(kept.process.pid)
    assert len(servers) >= 2
    kept.process.signal(signal.SIGINT)
    assert kept.process.wait() == 0
    assert eventually(lambda: not alive(servers))
    assert list(tmp_path.iterdir()) == []


def test_a_terminated_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    process = Process(DEMO, environment(TMPDIR=str(tmp_path)), tmp_path.with_suffix(".log"))
    try:
        assert STEPS[0] in process.first_line()
        servers = descendants(process.pid)
        assert len(servers) >= 2
        assert process.terminate() == 1
    finally:
        process.close()
    assert eventually(lambda: not alive(servers))
    assert list(tmp_path.iterdir()) == []
