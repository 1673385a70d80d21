"""The pages hold: what the README says to type runs, and what they draw is what the code has."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import click
import pytest

from core_console.cli import cli
from core_console.decide.status import FINAL, RUN_MOVES
from core_console.settings import KNOWN
from tests.e2e.processes import environment, free_port

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
README = (ROOT / "README.md").read_text()

_LINK = re.compile(r"\]\(([^)#\s]+)")
_NAME = re.compile(r"`((?:CONSOLE|CORE)_[A-Z_]+|…_[A-Z_]+)`")
_COMMAND = re.compile(r"core-console ((?:[a-z][a-z-]* ?)+)")

OF_OTHERS = {
    "CORE_CONSOLE_CA",  # the command line's, told by its --help
    "CORE_CONSOLE_HTTP_URL",  # the agents repository's and `report get`'s, told in their pages
    "CONSOLE_LOCAL_TOKENS",  # of OIDC sign-in, which is not part of this version
    "CONSOLE_OIDC_AUDIENCE",
    "CONSOLE_OIDC_ISSUER",
}
"""What the README's table leaves out, each with its reason."""


def blocks(page: str, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_what_the_readme_says_to_type_runs_to_its_end(tmp_path: Path) -> None:
    (script,) = blocks(README, "bash")
    grpc = f"127.0.0.1:{free_port()}"
    env = environment(
        HOME=str(tmp_path),
        CONSOLE_APPFS_DIR=str(tmp_path / "root"),
        CONSOLE_GRPC_ADDR=grpc,
        CONSOLE_HTTP_ADDR=f"127.0.0.1:{free_port()}",
        CORE_CONSOLE_URL=grpc,
    )
    # What `kill %1` ends is waited for; the group is the end of whatever a failure leaves.
    process = subprocess.Popen(
        ("bash", "-euo", "pipefail", "-c", f"{script}\nwait\necho reached-the-end"),
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=120)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, said
    assert said.rstrip().endswith("reached-the-end")
    assert "four eyes: the author may not" in said
    assert "status     SUCCEEDED" in said
    assert re.search(r"^intact: \d+ records", said, re.MULTILINE)


def test_the_table_of_run_moves_is_what_the_code_draws() -> None:
    page = (ROOT / "docs" / "how-it-works.md").read_text()
    (drawn,) = re.findall(r"<!-- run-moves.*?-->\n(.*?)<!-- /run-moves -->", page, re.DOTALL)
    rows = [
        f"| {status} | {', '.join(sorted(moves))} |"
        for status, moves in RUN_MOVES.items()
        if status not in FINAL
    ]
    assert drawn.splitlines() == ["| from | to |", "| --- | --- |", *rows]


def table_names() -> set[str]:
    """Return the variables of the README's table; `…_FILE` is written out from the one before."""
    found: set[str] = set()
    for row in re.findall(r"^\| (`C.*?) \|", README, re.MULTILINE):
        last = ""
        for name in _NAME.findall(row):
            whole = name.replace("…", last if name == "…_FILE" else "CORE_GITHUB")
            last = whole
            found.add(whole)
    return found


def test_the_readme_names_every_setting_and_no_other() -> None:
    assert table_names() == KNOWN - OF_OTHERS
    assert OF_OTHERS <= KNOWN


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    links = [link for link in _LINK.findall(page.read_text()) if "://" not in link]
    missing = [link for link in links if not (page.parent / link).exists()]
    assert missing == []


def commands_of(text: str) -> set[str]:
    """Return the words after `core-console` in code, as far as they are words."""
    code = "\n".join(
        (*re.findall(r"`([^`\n]+)`", text), *re.findall(r"```.*?```", text, re.DOTALL))
    )
    return {found.strip() for found in _COMMAND.findall(code)}


def test_every_command_that_a_page_names_exists() -> None:
    named = {words for page in PAGES for words in commands_of(page.read_text())}
    assert {"init", "serve", "playbook activate", "audit verify"} <= named
    for words in named:
        command: click.Command = cli
        for word in words.split():
            if not isinstance(command, click.Group):
                break
            assert word in command.commands, f"core-console {words}"
            command = command.commands[word]


@pytest.mark.slow
def test_every_command_tells_its_help_in_a_process() -> None:
    for name in cli.commands:
        done = subprocess.run(
            (sys.executable, "-m", "core_console", name, "--help"),
            env={"PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Usage: core-console")
