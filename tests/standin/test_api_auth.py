"""The stand-in takes no credential that GitHub would refuse."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import httpx
import jwt
import pytest

from core_console.standin.api_tokens import TokenFormat
from core_console.standin.state import ACTIONS_BOT_ID
from tests.githubapp.site import ORG, Site, key_pair, plain_client, serving


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as served:
        yield served


@pytest.fixture
async def http(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    async with plain_client(site) as client:
        yield client


def claims(site: Site, **changes: object) -> dict[str, Any]:
    now = int(site.clock.now().timestamp())
    given = {"iat": now - 60, "exp": now + 540, "iss": str(site.world.app.id)} | changes
    return {name: value for name, value in given.items() if value is not None}


def signed(site: Site, **changes: object) -> dict[str, str]:
    text = jwt.encode(claims(site, **changes), key_pair()[0], algorithm="RS256")
    return {"Authorization": f"Bearer {text}"}


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


async def test_a_good_jwt_shows_the_app_and_its_installations(
    site: Site, http: httpx.AsyncClient
) -> None:
    app = (await http.get("/app", headers=signed(site))).json()
    assert (app["id"], app["slug"]) == (4711, "runink-core")
    for path in (
        f"/app/installations/{site.installation.id}",
        f"/orgs/{ORG}/installation",
        f"/repos/{ORG}/core/installation",
    ):
        found = (await http.get(path, headers=signed(site))).json()
        assert found["id"] == site.installation.id
        assert found["account"]["id"] == site.installation.account.id
        assert found["suspended_at"] is None
    [listed] = (await http.get("/app/installations", headers=signed(site))).json()
    assert listed["permissions"]["contents"] == "write"


@pytest.mark.parametrize(
    ("shift", "status"),
    [
        ({"exp": 600}, 200),
        ({"exp": 601}, 401),
        ({"exp": 0}, 401),
        ({"iat": 0}, 200),
        ({"iat": 1}, 401),
    ],
)
async def test_a_jwt_lives_ten_minutes_by_githubs_clock(
    site: Site, http: httpx.AsyncClient, shift: dict[str, int], status: int
) -> None:
    now = int(site.clock.now().timestamp())
    headers = signed(site, **{name: now + seconds for name, seconds in shift.items()})
    assert (await http.get("/app", headers=headers)).status_code == status


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"iat": None}, 401),
        ({"exp": None}, 401),
        ({"iat": "yesterday"}, 401),
        ({"iss": None}, 404),
        ({"iss": "1"}, 404),
        ({"iss": "Iv23liStandin"}, 200),
    ],
)
async def test_a_jwt_needs_its_claims(
    site: Site, http: httpx.AsyncClient, changes: dict[str, Any], status: int
) -> None:
    assert (await http.get("/app", headers=signed(site, **changes))).status_code == status


async def test_other_keys_and_algorithms_are_refused(site: Site, http: httpx.AsyncClient) -> None:
    private = key_pair()[0]
    texts = [
        jwt.encode(claims(site), key_pair("another")[0], algorithm="RS256"),
        jwt.encode(claims(site), private, algorithm="RS512"),
        jwt.encode(claims(site), "s" * 64, algorithm="HS256"),
        jwt.encode(claims(site), "", algorithm="none"),
        "nonsense",
    ]
    for text in texts:
        assert (await http.get("/app", headers=bearer(text))).status_code == 401
    token_scheme = {"Authorization": signed(site)["Authorization"].replace("Bearer", "token")}
    assert (await http.get("/app", headers=token_scheme)).status_code == 401


async def test_a_token_is_no_jwt_and_a_jwt_is_no_token(site: Site, http: httpx.AsyncClient) -> None:
    text, _ = site.world.mint(site.installation)
    for path in ("/app", "/app/installations", f"/orgs/{ORG}/installation"):
        assert (await http.get(path, headers=bearer(text))).status_code == 401
    for path in ("/installation/repositories", f"/repos/{ORG}/core"):
        assert (await http.get(path, headers=signed(site))).status_code == 401


async def test_a_user_agent_and_a_known_version_are_demanded(
    site: Site, http: httpx.AsyncClient
) -> None:
    nobody = signed(site) | {"User-Agent": ""}
    assert (await http.get("/app", headers=nobody)).status_code == 403
    for version, status in (("2022-11-28", 200), ("2026-03-10", 200), ("2020-01-01", 400)):
        headers = signed(site) | {"X-GitHub-Api-Version": version}
        assert (await http.get("/app", headers=headers)).status_code == status


async def test_a_token_lives_one_hour(site: Site, http: httpx.AsyncClient) -> None:
    answer = await http.post(_mint(site), headers=signed(site))
    assert answer.status_code == 201
    assert answer.json()["expires_at"] == "2026-11-30T13:00:00Z"
    headers = bearer(answer.json()["token"])
    site.clock.advance(3599)
    assert (await http.get("/installation/repositories", headers=headers)).status_code == 200
    site.clock.advance(1)
    assert (await http.get("/installation/repositories", headers=headers)).status_code == 401


async def test_a_revoked_token_is_dead(site: Site, http: httpx.AsyncClient) -> None:
    headers = site.bearer()[0]
    revoke = {"Authorization": headers}
    assert (await http.delete("/installation/token", headers=revoke)).status_code == 204
    assert (await http.delete("/installation/token", headers=revoke)).status_code == 401


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 201),
        ({"repositories": ["core"]}, 201),
        ({"repositories": ["CORE"], "permissions": {"contents": "read"}}, 201),
        ({"permissions": {"metadata": "read"}}, 201),
        ({"permissions": {"contents": "admin"}}, 422),
        ({"permissions": {"administration": "read"}}, 422),
        ({"permissions": {"contents": "all"}}, 422),
        ({"permissions": "write"}, 422),
        ({"repositories": ["elsewhere"]}, 422),
        ({"repositories": []}, 422),
        ({"repository_ids": [1]}, 422),
        ({"scope": "all"}, 422),
        ([], 422),
    ],
)
async def test_a_mint_gives_no_more_than_was_granted(
    site: Site, http: httpx.AsyncClient, body: object, status: int
) -> None:
    answer = await http.post(_mint(site), headers=signed(site), json=body)
    assert answer.status_code == status


async def test_a_narrowed_token_can_do_only_that(site: Site, http: httpx.AsyncClient) -> None:
    site.world.add_repository(site.installation, "other")
    body = {"repositories": ["core"], "permissions": {"metadata": "read"}}
    minted = (await http.post(_mint(site), headers=signed(site), json=body)).json()
    assert [one["name"] for one in minted["repositories"]] == ["core"]
    headers = bearer(minted["token"])
    listed = (await http.get("/installation/repositories", headers=headers)).json()
    assert [one["name"] for one in listed["repositories"]] == ["core"]
    dispatch = {"event_type": "x"}
    core, other = f"/repos/{ORG}/core/dispatches", f"/repos/{ORG}/other/dispatches"
    assert (await http.post(core, headers=headers, json=dispatch)).status_code == 403
    assert (await http.post(other, headers=headers, json=dispatch)).status_code == 404


async def test_a_suspended_installation_mints_nothing(site: Site, http: httpx.AsyncClient) -> None:
    headers = {"Authorization": site.bearer()[0]}
    site.installation.suspended_at = site.clock.now()
    minted = await http.post(_mint(site), headers=signed(site))
    listed = await http.get("/installation/repositories", headers=headers)
    for answer in (minted, listed):
        assert answer.status_code == 403
        assert "suspended" in answer.json()["message"]
    seen = (await http.get(f"/orgs/{ORG}/installation", headers=signed(site))).json()
    assert seen["suspended_at"].startswith("2026-11-30T12:00:00")


async def test_tokens_have_the_shapes_that_are_in_use(site: Site) -> None:
    text, _ = site.world.mint(site.installation)
    assert text.startswith("ghs_4711_")
    assert text.count(".") == 2
    assert 370 <= len(text) <= 390
    site.world.token_format = TokenFormat.SHORT
    text, _ = site.world.mint(site.installation)
    assert len(text) == 40


async def test_the_viewer_is_the_bot_of_the_token(site: Site, http: httpx.AsyncClient) -> None:
    own, foreign = site.bearer()[0], site.foreign_bearer(ACTIONS_BOT_ID)[0]
    for text, bot_id in ((own, 9_001), (foreign, ACTIONS_BOT_ID)):
        answer = await http.post(
            "/graphql",
            headers={"Authorization": text},
            json={"query": "query {\n  viewer { login databaseId }\n}"},
        )
        assert answer.json()["data"]["viewer"]["databaseId"] == bot_id


async def test_graphql_answers_200_with_errors_to_anything_else(
    site: Site, http: httpx.AsyncClient
) -> None:
    headers = {"Authorization": site.bearer()[0]}
    for query in ("query { viewer { id } }", "", None):
        answer = await http.post("/graphql", headers=headers, json={"query": query})
        assert answer.status_code == 200
        assert answer.json()["errors"]
    assert (await http.post("/graphql", json={"query": ""})).status_code == 401


async def test_pages_are_at_most_a_hundred(site: Site, http: httpx.AsyncClient) -> None:
    for number in range(130):
        site.world.add_repository(site.installation, f"r-{number}")
    headers = {"Authorization": site.bearer()[0]}

    async def names(query: str) -> list[str]:
        found = (await http.get(f"/installation/repositories{query}", headers=headers)).json()
        assert found["total_count"] == 131
        return [one["name"] for one in found["repositories"]]

    assert len(await names("")) == 30
    assert len(await names("?per_page=1000")) == 100
    assert len(await names("?per_page=100&page=2")) == 31
    assert await names("?per_page=100&page=3") == []
    assert await names("?per_page=1&page=1") == ["core"]


async def test_a_token_that_is_not_ready_is_unknown_for_some_calls(
    site: Site, http: httpx.AsyncClient
) -> None:
    site.world.unready_calls = 2
    headers = {"Authorization": site.bearer()[0]}
    statuses = [
        (await http.get("/installation/repositories", headers=headers)).status_code
        for _ in range(3)
    ]
    assert statuses == [401, 401, 200]


async def test_an_expired_foreign_token_is_dead_too(site: Site, http: httpx.AsyncClient) -> None:
    headers = {"Authorization": site.foreign_bearer()[0]}
    site.clock.advance(timedelta(hours=1).total_seconds())
    assert (await http.get("/installation/repositories", headers=headers)).status_code == 401


def _mint(site: Site) -> str:
    return f"/app/installations/{site.installation.id}/access_tokens"
