"""The gate itself: what CI runs, what is locked, and what the wheel carries."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LOCKED = re.compile(r"^([a-z0-9-]+)==(\S+)", re.MULTILINE)


def run(*command: str, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of the project; `path` replaces where commands are looked for."""
    # The gate may itself have been started by make, whose flags are not meant for these runs.
    environment = {name: value for name, value in os.environ.items() if name[:4] != "MAKE"}
    if path:
        environment["PATH"] = str(path)
    return subprocess.run(
        command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )


def command(folder: Path, name: str, text: str) -> None:
    """Put a small bash command into a folder."""
    (folder / name).write_text(f"#!/bin/bash\n{text}\n", encoding="utf-8")
    (folder / name).chmod(0o755)


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """Make a folder of commands that holds only what every system has."""
    for name in ("bash", "dirname", "env"):
        (tmp_path / name).symlink_to(next(p / name for p in SYSTEM if (p / name).exists()))
    return tmp_path


SYSTEM = (Path("/usr/bin"), Path("/bin"))


def test_ci_runs_the_static_part_and_ends_with_the_tests(bare: Path) -> None:
    command(bare, "make", 'echo "make $*"')
    done = run("bash", ".ci/run", path=bare)
    assert done.returncode == 0
    parts = "make --keep-going static coverage simulate test-long"
    assert done.stdout.splitlines() == [parts, "make test"]


@pytest.mark.parametrize("failing", ["--keep-going", "test"])
def test_ci_fails_when_a_part_of_the_gate_fails_and_still_runs_the_tests(
    bare: Path, failing: str
) -> None:
    command(bare, "make", f'echo "make $*"; [ "$1" != {failing} ]')
    done = run("bash", ".ci/run", path=bare)
    assert done.returncode != 0
    assert done.stdout.splitlines()[-1] == "make test"


def test_a_run_without_tests_is_a_failure(tmp_path: Path) -> None:
    ready = ("--old-file=.venv/installed", "--old-file=tools-test")
    done = run("make", *ready, "test", f"ARGS=-p no:cacheprovider {tmp_path}")
    assert done.returncode != 0
    assert "no tests ran" in done.stdout


def test_the_whole_gate_is_what_ci_runs() -> None:
    planned = run("make", "--dry-run", "check").stdout
    for part in (
        "ruff format --check",
        "ruff check",
        "mypy core_console tests scripts",
        "gen_proto.py --check",
        "buf lint",
        "actionlint.mjs",
        "shellcheck",
        "zizmor",
        "--fail-under=100",
        "scripts.simulate --seeds 2000",
        "-m long",
    ):
        assert part in planned
    assert "-m pytest" in planned.splitlines()[-1]


def make_targets() -> set[str]:
    """Read the targets that people type."""
    declared = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return {name for line in declared for name in line.split() if not name.startswith("tools-")}


def test_the_pages_name_only_targets_that_exist() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        name
        for page in pages
        for name in re.findall(
            r"(?m)(?:`|^(?:\$ )?)make ([a-z-]+)\b", page.read_text(encoding="utf-8")
        )
    }
    assert "check" in named
    assert named - make_targets() == set()


def test_make_alone_lists_every_target() -> None:
    targets = make_targets()
    listed = {line.split()[0] for line in run("make").stdout.splitlines()}
    assert {"check", "demo", "test"} <= targets
    assert listed == targets


def test_a_missing_tool_is_named_in_one_line_when_it_cannot_be_installed(bare: Path) -> None:
    command(bare, "id", "echo 1000")
    done = run("bash", "scripts/tools.sh", "bash", "jq", "node", path=bare)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("missing: jq nodejs ")


def test_nothing_is_installed_when_nothing_is_missing(bare: Path) -> None:
    command(bare, "id", "echo 0")
    command(bare, "apt-get", "echo must not be called; exit 9")
    done = run("bash", "scripts/tools.sh", "bash", "dirname", path=bare)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_older_python_is_refused_by_name(bare: Path) -> None:
    command(bare, "python3", '[ "$1" = --version ] && echo Python 3.9.2')
    done = run("bash", "scripts/venv.sh", path=bare)
    assert done.returncode == 1
    assert "Python 3.9.2 is too old" in done.stderr


WORKFLOW = """\
jobs:
  agent:
    steps:
      - uses: actions/checkout@0123456789
      - run: |
          echo '${{ github.event.client_payload.agent }}'
          LINE
"""


@pytest.mark.parametrize(("line", "status"), [('echo "$HOME"', 0), ("echo $HOME", 1)])
def test_shell_inside_a_workflow_is_checked_too(tmp_path: Path, line: str, status: int) -> None:
    workflow = tmp_path / "w.yml"
    workflow.write_text(WORKFLOW.replace("LINE", line), encoding="utf-8")
    done = run(sys.executable, "scripts/check_run_blocks.py", str(workflow))
    assert (done.returncode, "SC2086" in done.stdout) == (status, status == 1)
    assert "job agent, step 2" in done.stdout or status == 0


def test_generated_code_that_is_not_current_fails_the_gate(tmp_path: Path) -> None:
    """Run the check on a copy of the project whose contract says something new."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    check = (sys.executable, str(tmp_path / "scripts/gen_proto.py"), "--check")
    assert run(*check).returncode == 0
    contract = tmp_path / "proto/runink/core/atlas/v1/common.proto"
    contract.write_text(contract.read_text() + "message Novelty {}\n", encoding="utf-8")
    (tmp_path / "proto/python/runink/notes.py").write_text("by_hand = 1\n", encoding="utf-8")
    done = run(*check)
    assert done.returncode == 1
    assert "common_pb2.py" in done.stderr
    assert "runink/notes.py" in done.stderr


def locked(name: str) -> dict[str, str]:
    """Read the versions of a lock; every entry has a hash, and nothing else is in the file."""
    text = (ROOT / "requirements" / name).read_text(encoding="utf-8")
    versions = dict(LOCKED.findall(text))
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert re.fullmatch(
            r"\S+==\S+( ; [^\n]+)? \\(\n +--hash=sha256:[0-9a-f]{64}( \\)?)+", entry
        )
    return versions


def test_every_lock_is_hashed_and_they_agree() -> None:
    dev = locked("dev.txt")
    assert len(dev) > 50
    for name in ("run.txt", "build.txt"):
        assert locked(name).items() <= dev.items()


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    asked += [each for group in groups.values() for each in group if isinstance(each, str)]
    names = {re.split(r"[\[<>=! ]", each)[0] for each in asked}
    assert names - locked("dev.txt").keys() == set()


def test_the_npm_lock_has_a_hash_for_everything() -> None:
    lock = json.loads((ROOT / "package-lock.json").read_text(encoding="utf-8"))
    wanted = json.loads((ROOT / "package.json").read_text(encoding="utf-8"))["devDependencies"]
    assert lock["packages"].pop("")["devDependencies"] == wanted
    assert all(entry["integrity"].startswith("sha512-") for entry in lock["packages"].values())
    assert all(re.fullmatch(r"[0-9.]+", version) for version in wanted.values())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Build the wheel and name what is in it."""
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("core_console-*.whl")
    return set(zipfile.ZipFile(built).namelist())


def test_the_wheel_carries_the_contract_and_all_of_the_package(wheel: set[str]) -> None:
    contract = {path.stem for path in (ROOT / "proto/runink").rglob("*.proto")}
    assert {f"runink/core/atlas/v1/{name}_pb2.py" for name in contract} <= wheel
    tracked = run("git", "ls-files", "core_console").stdout.split()
    assert len(tracked) > 10
    assert set(tracked) - wheel == set()


def test_the_wheel_carries_what_an_agents_repository_needs(wheel: set[str]) -> None:
    shipped = run("git", "ls-files", "github").stdout.split()
    assert shipped
    assert {f"core_console/_{name}" for name in shipped} - wheel == set()


def test_the_wheel_carries_nothing_else(wheel: set[str]) -> None:
    tops = {name.split("/")[0] for name in wheel}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"core_console", "runink"}
    assert not any("__pycache__" in name for name in wheel)
