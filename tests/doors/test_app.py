"""What stands around every path: one shape of error, security headers, health, other paths."""

import pytest

from tests.doors.site import PATH, Site, site


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/nothing",
        PATH + "/",
        "/API/playbook-runs/step-report",
        "//healthz",
        "/healthz/",
        "/%00",
    ],
)
async def test_an_unknown_path_is_404_in_the_shape_of_every_error(door: Site, path: str) -> None:
    answer = await door.post(path=path)

    assert answer.status == 404
    assert "nothing at this path" in answer.error
    assert "location" not in answer.headers


async def test_healthz_says_serving_to_anyone(door: Site) -> None:
    answer = await door.post(b"", method="GET", path="/healthz", headers={"Authorization": None})

    assert (answer.status, answer.json) == (200, {"status": "serving"})


async def test_healthz_is_503_while_the_console_does_not_serve() -> None:
    async with site(serving=False) as door:
        answer = await door.post(b"", method="GET", path="/healthz")

        assert (answer.status, answer.error) == (503, "the console is not serving now")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
async def test_healthz_takes_get_and_head_only(door: Site, method: str) -> None:
    answer = await door.post(b"", method=method, path="/healthz")

    assert answer.status == 405
    assert {"get", "head"} == set(answer.headers["allow"].split(", "))
    assert answer.error


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/healthz", 200), ("POST", PATH, 200), ("GET", PATH, 405), ("GET", "/x", 404)],
)
async def test_every_answer_has_the_security_headers(
    door: Site, method: str, path: str, status: int
) -> None:
    answer = await door.post(method=method, path=path)

    assert answer.status == status
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-frame-options"] == "deny"
    assert "server" not in answer.headers


async def test_no_origin_is_let_in(door: Site) -> None:
    answer = await door.post(headers={"Origin": "https://example.org"})

    assert not [name for name in answer.headers if name.startswith("access-control")]
