"""Dispatches and comments are checked as GitHub checks them, and recorded only when accepted."""

from collections.abc import AsyncIterator

import httpx
import pytest

from core_console.standin.faults import Endpoint, Trouble
from core_console.standin.state import DispatchEvent
from tests.githubapp.site import ORG, Site, plain_client, serving

DISPATCHES = f"/repos/{ORG}/core/dispatches"
COMMENTS = f"/repos/{ORG}/core/issues/1/comments"


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as served:
        yield served


@pytest.fixture
async def http(site: Site) -> AsyncIterator[httpx.AsyncClient]:
    async with plain_client(site) as client:
        client.headers["Authorization"] = site.bearer()[0]
        yield client


def payload(keys: int) -> dict[str, int]:
    return {f"k{number}": number for number in range(keys)}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"event_type": "core-playbook"}, 204),
        ({"event_type": "x", "client_payload": {}}, 204),
        ({"event_type": "x", "client_payload": payload(10)}, 204),
        ({"event_type": "x", "client_payload": payload(11)}, 422),
        ({"event_type": "x", "client_payload": '{"agent":"datagov"}'}, 422),
        ({"event_type": "x", "client_payload": None}, 422),
        ({"event_type": "x", "client_payload": []}, 422),
        ({"event_type": "x", "client_payload": {"a": "b" * 65_527}}, 204),
        ({"event_type": "x", "client_payload": {"a": "b" * 65_528}}, 422),
        ({"event_type": "x" * 100}, 204),
        ({"event_type": "x" * 101}, 422),
        ({"event_type": ""}, 422),
        ({"event_type": 3}, 422),
        ({"client_payload": {}}, 422),
        ({"event_type": "x", "inputs": {}}, 422),
        ([], 422),
        ("core-playbook", 422),
    ],
)
async def test_a_dispatch_needs_a_body_that_github_takes(
    site: Site, http: httpx.AsyncClient, body: object, status: int
) -> None:
    answer = await http.post(DISPATCHES, json=body)
    assert answer.status_code == status
    assert len(site.world.dispatches) == (status == 204)
    assert (answer.content == b"") is (status == 204)


async def test_a_body_that_is_no_json_is_400(http: httpx.AsyncClient) -> None:
    assert (await http.post(DISPATCHES, content=b"{")).status_code == 400
    assert (await http.post(DISPATCHES, content=b"")).status_code == 422
    assert (await http.post(DISPATCHES, content=b"x" * 1_100_000)).status_code == 413


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"body": "hello"}, 201),
        ({"body": "x" * 65_536}, 201),
        ({"body": "x" * 65_537}, 422),
        ({"body": " "}, 422),
        ({"body": 3}, 422),
        ({}, 422),
        ({"body": "x", "title": "y"}, 422),
    ],
)
async def test_a_comment_needs_a_body_that_github_takes(
    site: Site, http: httpx.AsyncClient, body: object, status: int
) -> None:
    assert (await http.post(COMMENTS, json=body)).status_code == status
    assert len(site.world.comments) == (status == 201)


async def test_what_the_token_does_not_reach_is_404(site: Site, http: httpx.AsyncClient) -> None:
    elsewhere = site.world.add_installation("elsewhere")
    site.world.add_repository(elsewhere, "core")
    body = {"event_type": "x"}
    for path in ("/repos/elsewhere/core", f"/repos/{ORG}/nothing"):
        assert (await http.get(path)).status_code == 404
        assert (await http.post(f"{path}/dispatches", json=body)).status_code == 404
    other_issue = COMMENTS.replace("/1/", "/2/")
    assert (await http.post(other_issue, json={"body": "x"})).status_code == 404
    assert (await http.get(f"/repos/{ORG}/CORE")).status_code == 200


@pytest.mark.parametrize(
    ("permissions", "dispatched", "commented"),
    [
        ({"contents": "write", "issues": "write"}, 204, 201),
        ({"contents": "read", "issues": "write"}, 403, 201),
        ({"actions": "write", "issues": "read"}, 403, 403),
    ],
)
async def test_each_call_needs_its_permission(
    site: Site, permissions: dict[str, str], dispatched: int, commented: int
) -> None:
    site.installation.permissions = permissions
    async with plain_client(site) as http:
        http.headers["Authorization"] = site.bearer()[0]
        dispatch = await http.post(DISPATCHES, json={"event_type": "x"})
        comment = await http.post(COMMENTS, json={"body": "x"})
    assert (dispatch.status_code, comment.status_code) == (dispatched, commented)
    if dispatched == 403:
        assert dispatch.json()["message"] == "Resource not accessible by integration"


async def test_a_renamed_repository_redirects(site: Site, http: httpx.AsyncClient) -> None:
    site.world.rename_repository(site.repository, "new")
    looked = await http.get(f"/repos/{ORG}/core")
    posted = await http.post(DISPATCHES, json={"event_type": "x"})
    assert (looked.status_code, posted.status_code) == (301, 307)
    assert looked.headers["location"] == f"{site.url}/repositories/{site.repository.id}"
    assert posted.headers["location"].endswith(f"/repositories/{site.repository.id}/dispatches")
    assert not site.world.dispatches


async def test_an_accepted_dispatch_is_handed_on_once(site: Site, http: httpx.AsyncClient) -> None:
    handed: list[DispatchEvent] = []

    async def take(event: DispatchEvent) -> None:
        handed.append(event)

    site.world.on_dispatch = take
    await http.post(DISPATCHES, json={"event_type": "x", "client_payload": {"a": 1}})
    await http.post(DISPATCHES, json={"event_type": "x", "client_payload": payload(11)})
    assert handed == [
        DispatchEvent(f"{ORG}/core", "x", {"a": 1}, "runink-core[bot]", site.world.app.bot_id)
    ]


async def test_a_path_or_method_that_is_not_there_is_404(http: httpx.AsyncClient) -> None:
    assert (await http.get("/user")).status_code == 404
    assert (await http.get(DISPATCHES)).status_code == 404
    assert (await http.get("/user")).json()["message"] == "Not Found"


async def test_every_answer_shows_the_limit(http: httpx.AsyncClient) -> None:
    for path in (f"/repos/{ORG}/core", f"/repos/{ORG}/nothing"):
        assert (await http.get(path)).headers["x-ratelimit-remaining"] == "4999"


@pytest.mark.parametrize(
    ("trouble", "accepted"),
    [
        (Trouble.ERROR_BEFORE, 0),
        (Trouble.ERROR_AFTER, 1),
        (Trouble.RESET_BEFORE, 0),
        (Trouble.RESET_AFTER, 1),
        (Trouble.HANG_BEFORE, 0),
        (Trouble.HANG_AFTER, 1),
    ],
)
async def test_a_trouble_comes_before_or_after_the_call_was_accepted(
    site: Site, http: httpx.AsyncClient, trouble: Trouble, accepted: int
) -> None:
    site.plan(trouble, Endpoint.DISPATCH)
    http.timeout = httpx.Timeout(0.3)
    body = {"event_type": "x"}
    if trouble in {Trouble.ERROR_BEFORE, Trouble.ERROR_AFTER}:
        assert (await http.post(DISPATCHES, json=body)).status_code == 502
    else:
        with pytest.raises((httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.ReadError)):
            await http.post(DISPATCHES, json=body)
    assert len(site.world.dispatches) == accepted
    assert (await http.post(DISPATCHES, json=body)).status_code == 204


async def test_a_trouble_after_changes_no_refusal(site: Site, http: httpx.AsyncClient) -> None:
    site.plan(Trouble.ERROR_AFTER, Endpoint.DISPATCH)
    assert (await http.post(DISPATCHES, json={})).status_code == 422


async def test_a_trouble_meets_only_its_endpoint_and_only_as_often_as_told(
    site: Site, http: httpx.AsyncClient
) -> None:
    site.plan(Trouble.ERROR_BEFORE, Endpoint.COMMENT, times=2, status=503)
    assert (await http.post(DISPATCHES, json={"event_type": "x"})).status_code == 204
    statuses = [(await http.post(COMMENTS, json={"body": "x"})).status_code for _ in range(3)]
    assert statuses == [503, 503, 201]


async def test_the_limits_look_like_githubs(site: Site, http: httpx.AsyncClient) -> None:
    site.plan(Trouble.LIMIT_PRIMARY, wait_s=90)
    primary = await http.get(f"/repos/{ORG}/core")
    site.plan(Trouble.LIMIT_SECONDARY, status=429, wait_s=60)
    secondary = await http.get(f"/repos/{ORG}/core")
    assert primary.status_code == 403
    assert primary.headers["x-ratelimit-remaining"] == "0"
    assert int(primary.headers["x-ratelimit-reset"]) == site.clock.now().timestamp() + 90
    assert secondary.status_code == 429
    assert secondary.headers["retry-after"] == "60"
    assert "secondary" in secondary.json()["message"]
