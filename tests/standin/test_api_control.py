"""The stand-in's own endpoints: what happened, what shall go wrong, and the process itself."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from core_console.clock import SystemClock
from core_console.githubapp.app import GitHubApp
from core_console.githubapp.settings import GitHubSettings
from core_console.model.run import Call
from core_console.ports import Standing
from core_console.standin.api import build_api
from core_console.standin.api_control import Control
from core_console.standin.faults import Plan, Plans, Trouble
from core_console.standin.server import public_key_of
from tests.fakes import nobody_objects
from tests.githubapp.site import (
    ORG,
    PAYLOAD,
    HastyClock,
    Site,
    key_pair,
    new_world,
    plain_client,
    serving,
)

PEER = "192.0.2.1"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as served:
        yield served


@pytest.fixture
async def http(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    async with plain_client(site) as client:
        yield client


async def told(http: httpx.AsyncClient, what: str, **body: object) -> Any:  # noqa: ANN401 -- JSON
    answer = await http.post(f"/_standin/{what}", json=body)
    assert answer.status_code in {200, 204}, answer.text
    return answer.json() if answer.content else None


async def test_what_happened_can_be_read(site: Site, http: httpx.AsyncClient) -> None:
    github = site.client()
    await github.dispatch(PAYLOAD, 60, nobody_objects)
    await github.comment("core", 1, "hello", 60, nobody_objects)
    dispatches = (await http.get("/_standin/dispatches")).json()["dispatches"]
    comments = (await http.get("/_standin/comments")).json()["comments"]
    calls = (await http.get("/_standin/calls")).json()["calls"]
    assert dispatches[0]["client_payload"]["run_id"] == "PBR-1"
    assert comments[0]["body"] == "hello"
    assert {"method": "POST", "path": f"/repos/{ORG}/core/dispatches", "status": 204} in calls
    assert (await http.get("/_standin/runs")).json() == {"runs": []}


async def test_faults_are_planned_and_forgotten(site: Site, http: httpx.AsyncClient) -> None:
    github = site.client()
    await told(http, "faults", trouble="error_after", endpoint="dispatch", times=1)
    assert (await github.dispatch(PAYLOAD, 60, nobody_objects)).call is Call.UNKNOWN
    await told(http, "faults", trouble="error_after", endpoint="dispatch", times=9)
    assert (await http.delete("/_standin/faults")).status_code == 204
    assert (await github.dispatch(PAYLOAD, 60, nobody_objects)).call is Call.ACCEPTED


@pytest.mark.parametrize(
    ("kind", "standing"),
    [
        ("app", Standing.VALID),
        ("other_app", Standing.FOREIGN),
        ("github_token", Standing.FOREIGN),
    ],
)
async def test_every_kind_of_token_can_be_minted(
    site: Site, http: httpx.AsyncClient, kind: str, standing: Standing
) -> None:
    token = (await told(http, "tokens", kind=kind, org=ORG, repositories=["core"]))["token"]
    verdict = await site.client().authorize_reporter([f"Bearer {token}"], PEER)
    assert verdict.standing is standing


async def test_the_world_can_be_changed(site: Site, http: httpx.AsyncClient) -> None:
    await told(http, "world", org=ORG, suspended=True)
    assert "suspended" in (await site.client().missing())[0]
    await told(http, "world", org=ORG, suspended=False, permissions={"contents": "read"})
    assert len(await site.client().missing()) == 2
    await told(http, "world", token_format="short", unready_calls=1)
    token = (await told(http, "tokens", kind="app", org=ORG))["token"]
    assert len(token) == 40
    await told(http, "renames", org=ORG, name="core", new_name="core-2")
    await told(http, "repositories", org=ORG, name="extra", issues=[3])
    assert site.world.repository_named(f"{ORG}/extra")
    await told(http, "installations", org="second")
    await told(http, "world", org=ORG, installed=False)
    assert [one.account.login for one in site.world.installations.values()] == ["second"]


@pytest.mark.parametrize(
    ("what", "body", "status"),
    [
        ("faults", {"trouble": "earthquake"}, 400),
        ("faults", {"trouble": "error_after", "when": "now"}, 400),
        ("faults", {"trouble": "error_after", "times": 0}, 400),
        ("tokens", {"kind": "root", "org": ORG}, 400),
        ("tokens", {"kind": "app", "org": "nobody"}, 404),
        ("tokens", {"kind": "app", "org": ORG, "repositories": ["nothing"]}, 404),
        ("nothing", {}, 404),
    ],
)
async def test_a_wish_that_is_not_understood_is_refused(
    http: httpx.AsyncClient, what: str, body: dict[str, Any], status: int
) -> None:
    assert (await http.post(f"/_standin/{what}", json=body)).status_code == status


def test_what_is_kept_and_planned_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_console.standin.state._KEPT_MAX", 3)
    monkeypatch.setattr("core_console.standin.faults._WAITING_MAX", 3)
    world, plans = new_world(HastyClock()), Plans()
    installation = world.add_installation(ORG)
    texts = [world.mint(installation)[0] for _ in range(5)]
    assert list(world.tokens) == texts[2:]
    for _ in range(3):
        plans.add(Plan(Trouble.ERROR_AFTER))
    with pytest.raises(OverflowError):
        plans.add(Plan(Trouble.ERROR_AFTER))


async def test_only_this_machine_may_ask() -> None:
    api = build_api(new_world(HastyClock()), Plans(), {}, Control())
    for address, status in (("192.0.2.1", 404), ("127.0.0.1", 200), ("::1", 200)):
        transport = httpx.ASGITransport(api, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://standin") as client:
            assert (await client.get("/_standin/calls")).status_code == status


@pytest.mark.parametrize("half", [0, 1])
def test_either_half_of_the_key_will_do(half: int) -> None:
    private, public = key_pair()
    assert public_key_of((private.encode(), public)[half]) == public
    with pytest.raises(ValueError, match="key"):
        public_key_of(b"-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n")


@pytest.mark.slow
async def test_the_process_says_when_it_is_ready_and_ends_in_order(tmp_path: Path) -> None:
    key = tmp_path / "app.pem"
    key.write_text(key_pair()[0])
    command = [sys.executable, "-m", "core_console.standin", "--app-key", str(key)]
    command += ["--org", ORG, "--state-dir", str(tmp_path / "state")]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        facts = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
        settings = GitHubSettings(
            app_id=facts["client_id"], private_key=key.read_text(), api_url=facts["url"]
        )
        github = GitHubApp(settings, SystemClock())
        assert await github.resolve() == facts["org"] == ORG
        assert await github.missing() == ()
        await github.aclose()
    finally:
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), 20) == 0


@pytest.mark.slow
def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "core_console.standin", "--org", ORG]
    command += ["--app-key", str(tmp_path / "none.pem"), "--state-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert done.stderr.startswith("the stand-in cannot start: ")
    assert done.stdout == ""
