"""datagov under its own interpreter: five controls, and what its door makes of the report."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.github.conftest import Agents, Ended, briefly
from tests.github.taken import told

MANIFEST = "agents/datagov/connections.json"
GOOD: dict[str, Any] = {
    "name": "ledger",
    "domain": "finance",
    "owner": "a@example.com",
    "environment": "production",
    "transport": "tls",
    "credential": "vault:finance/ledger",
    "settings": {"host": "ledger.example.com", "port": 5432},
}
CONTROLS = [
    "owner",
    "environment",
    "transport-encryption",
    "no-secret-in-settings",
    "own-credential",
]
SECRET = "hunter-2-of-the-ledger"


def assess(agents: Agents, *connections: object) -> Ended:
    agents.write(MANIFEST, {"connections": list(connections)})
    return agents.run("datagov")


def verdicts(ended: Ended, connection: str = "ledger") -> dict[str, str]:
    told("datagov", ended)
    found = [each for each in ended.json()["findings"] if each["connection"] == connection]
    return {each["control"]: each["verdict"] for each in found}


def test_the_shipped_manifest_is_assessed_and_has_something_to_act_on(agents: Agents) -> None:
    ended = agents.run("datagov")
    assert ended.code == 0, ended.text
    assert ended.detail == "3 of 3 connections assessed: 1 fail, 2 warn, 0 unable to assess"
    said = told("datagov", ended)
    assert said.event == "findings.reported"
    assert said.attributes == {"fail_count": "1", "warn_count": "2"}
    assert {
        "control": "transport-encryption",
        "verdict": "fail",
        "domain": "procurement",
        "connection": "supplier-master",
    } in said.rows


def test_every_control_is_reported_for_every_connection(agents: Agents) -> None:
    ended = assess(agents, GOOD, GOOD | {"name": "plan", "credential": "vault:plan"})
    assert ended.code == 0
    assert ended.json()["connectionsAssessed"] == 2
    for name in ("ledger", "plan"):
        assert verdicts(ended, name) == dict.fromkeys(CONTROLS, "pass")


SOMEWHERE = {"environment": "test"}


@pytest.mark.parametrize(
    ("change", "control", "verdict"),
    [
        ({"owner": " "}, "owner", "fail"),
        ({"owner": 5}, "owner", "fail"),
        ({"environment": "prod"}, "environment", "fail"),
        ({"environment": None}, "environment", "fail"),
        ({"transport": "mtls"}, "transport-encryption", "pass"),
        ({"transport": "none"}, "transport-encryption", "fail"),
        ({"transport": "none"} | SOMEWHERE, "transport-encryption", "warn"),
        ({"transport": "none", "environment": "?"}, "transport-encryption", "fail"),
        ({"transport": "maybe"}, "transport-encryption", "unable-to-assess"),
        ({"settings": {"url": "HTTP://x.example.com"}}, "transport-encryption", "fail"),
        ({"settings": {"a": [{"b": "ftp://x.example.com"}]}}, "transport-encryption", "fail"),
        ({"settings": {"url": "http://localhost:9"}}, "transport-encryption", "pass"),
        ({"settings": {"url": "http://localhost.example.com"}}, "transport-encryption", "fail"),
        ({"settings": {"url": "https://x.example.com"}}, "transport-encryption", "pass"),
        ({"settings": None}, "no-secret-in-settings", "unable-to-assess"),
        ({"settings": {}}, "no-secret-in-settings", "pass"),
        ({"credential": ""}, "own-credential", "unable-to-assess"),
    ],
)
def test_a_connection_is_judged_by_each_control(
    agents: Agents, change: dict[str, object], control: str, verdict: str
) -> None:
    ended = assess(agents, GOOD | change)
    assert verdicts(ended) == dict.fromkeys(CONTROLS, "pass") | {control: verdict} | (
        {"environment": "fail"} if change.get("environment") == "?" else {}
    )
    unable = verdict == "unable-to-assess"
    assert ended.code == int(unable), "what could not be assessed is no success"
    assert ended.json()["connectionsAssessed"] == int(not unable)


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ({"password": SECRET}, "fail"),
        ({"db": {"Password": SECRET}}, "fail"),
        ({"list": [{"api-key": SECRET}]}, "fail"),
        ({"client_secret": 12345}, "fail"),
        ({"refresh_token": SECRET}, "fail"),
        ({"note": "ghp_" + SECRET}, "fail"),
        ({"note": "x AKIA" + SECRET}, "fail"),
        ({"github_pat_x": "a"}, "fail"),
        ({"note": "eyJhbGciOi.eyJpc3MiOi.sig"}, "fail"),
        ({"url": f"postgres://me:{SECRET}@x.example.com/"}, "fail"),
        ({"url": f"postgres://:{SECRET}@x.example.com/"}, "fail"),
        ({"password": "vault:ghp_" + SECRET}, "fail"),
        ({"url": "postgres://me:${LEDGER}@x.example.com/"}, "pass"),
        ({"url": "postgres://me@x.example.com/"}, "pass"),
        ({"password": "${LEDGER_PASSWORD}"}, "pass"),
        ({"password": "vault:finance/ledger"}, "pass"),
        ({"password": ""}, "pass"),
        ({"password": None}, "pass"),
        ({"use_token": True}, "pass"),
        ({"token_url": "https://x.example.com"}, "pass"),
        ({"partition_key": "day"}, "pass"),
    ],
)
def test_a_secret_in_the_settings_fails_and_is_never_told(
    agents: Agents, settings: dict[str, object], verdict: str
) -> None:
    ended = assess(agents, GOOD | {"settings": settings})
    assert verdicts(ended)["no-secret-in-settings"] == verdict
    assert ended.code == 0
    assert SECRET not in ended.text + (ended.report or b"").decode()


@pytest.mark.parametrize(("environment", "verdict"), [("production", "warn"), ("test", "fail")])
def test_a_shared_credential_is_worse_across_environments(
    agents: Agents, environment: str, verdict: str
) -> None:
    ended = assess(agents, GOOD, GOOD | {"name": "plan", "environment": environment})
    assert verdicts(ended)["own-credential"] == verdict
    assert verdicts(ended, "plan")["own-credential"] == verdict
    assert GOOD["credential"] not in ended.text + (ended.report or b"").decode()


@pytest.mark.parametrize("odd", [5, None, [], {}, {"name": " "}, {"name": ["x"]}])
def test_an_entry_that_is_none_is_not_assessed_and_not_passed_over(
    agents: Agents, odd: object
) -> None:
    ended = assess(agents, GOOD, odd)
    assert ended.code == 1
    assert verdicts(ended) == dict.fromkeys(CONTROLS, "pass")
    assert verdicts(ended, "connection 2") == dict.fromkeys(CONTROLS, "unable-to-assess")
    assert ended.detail.startswith("1 of 2 connections assessed")


def test_two_of_one_name_are_not_told_apart(agents: Agents) -> None:
    ended = assess(agents, GOOD, GOOD | {"owner": ""})
    assert ended.code == 1
    assert {each["verdict"] for each in ended.json()["findings"]} == {"unable-to-assess"}


@pytest.mark.parametrize(
    "name", ["ghp_" + SECRET, "a\nb", "a\u202eb", "a##[error]b", "x" * 65, "\ud800"]
)
def test_a_name_that_may_not_leave_is_told_by_its_place(agents: Agents, name: str) -> None:
    ended = assess(agents, GOOD | {"name": name, "domain": name})
    found = ended.json()["findings"][0]
    assert (found["connection"], found["domain"]) == ("connection 1", "")
    assert name not in ended.text
    told("datagov", ended)


def many(count: int, name: str) -> Iterator[dict[str, object]]:
    for number in range(count):
        yield GOOD | {"name": f"{name} {number:03}", "credential": f"vault:{number}"}


def test_a_report_of_400_connections_is_taken_and_one_more_is_not_assessed(
    agents: Agents,
) -> None:
    ended = assess(agents, *many(400, "é" * 60))
    assert ended.code == 0
    assert told("datagov", ended).items == 2_000
    ended = assess(agents, *many(401, "é"))
    assert (ended.code, ended.report) == (1, None)
    assert "401 connections" in ended.detail


@pytest.mark.parametrize(
    "filler",
    ["eyJ" * 300_000, "://" * 300_000, "a:" * 400_000, "-" * 900_000],
    ids=briefly,
)
def test_a_huge_setting_is_assessed_in_seconds(agents: Agents, filler: str) -> None:
    began = time.monotonic()
    ended = assess(agents, GOOD | {"settings": {"note": filler}})
    assert ended.code == 0
    assert time.monotonic() - began < 20
