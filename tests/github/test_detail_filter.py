"""The agent's own line: what its script lets through is what the console takes."""

import subprocess

import pytest

from core_console.decide import screen
from tests.github.conftest import SCRIPTS

FACTS = "datagov ended with success"
LIKE_CREDENTIALS = [
    *(f"gh{kind}_x" for kind in "pousr"),
    "github_pat_11A",
    "AKIA",
    *(f"xox{kind}-1" for kind in "abp"),
    "-----BEGIN PRIVATE KEY-----",
    "eyJhbGciOiJ.eyJzdWIiOi.c2lnbmF0dXJl",
    "eyJhbGciOiJ.eyJzdWIiOi.",
    "eyJ12345.12345.",
    "eyJ12345.12345.x",
    "xeyJ12345.12345.x",
    "eyJeyJ12345.12345.",
    "1.eyJ12345.12345.6",
    "eyJ1\u00adeyJ-_345.-_345.",
]
HARMLESS = [
    "3 connections assessed",
    "eyJ1234.12345.x",
    "eyJ12345.1234.x",
    "eyJ12345.12345",
    "customer_orders.daily_totals.net_amount",
    "release-2026.candidate-1.build-77",
    "ghx_a AKIB xoxc-1 ----BEGIN é漢🙂",
]


def written(own: str) -> str:
    """Return the line that the script would report."""
    done = subprocess.run(
        ("jq", "-nr", "-f", str(SCRIPTS / "playbook-detail.jq")),
        env={"FACTS": FACTS, "AGENT_DETAIL": own, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    return done.stdout.removesuffix("\n")


@pytest.mark.parametrize("own", LIKE_CREDENTIALS)
def test_what_the_console_would_refuse_is_withheld_and_the_facts_are_told(own: str) -> None:
    assert screen.flaws("detail", own)
    line = written(f"found {own} here")
    assert line.startswith(f"{FACTS}; the agent's own line is withheld")
    assert screen.text("detail", line, bytes_max=500, required=True) == ()


@pytest.mark.parametrize("own", HARMLESS)
def test_what_the_console_takes_is_told_as_the_agent_wrote_it(own: str) -> None:
    assert screen.flaws("detail", own) == ()
    assert written(own) == own
