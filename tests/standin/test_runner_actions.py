"""What the actions do when GitHub, the files or the settings are not as hoped."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from core_console.standin import actions_run
from core_console.standin.actions import ActionName
from core_console.standin.actions_run import ActionFault, Artifacts, Desk, perform
from core_console.standin.runner_records import JobLog
from tests.github.local_server import Answer, Asked, LocalServer

FOUND = Answer(200, {"id": 7, "app_slug": "core-console"})
MINTED = Answer(201, {"token": "ghs_minted"})


class NotingClock:
    """A clock that stands still and writes down how long it was asked to wait."""

    def __init__(self) -> None:
        self.waits_s: list[float] = []

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.waits_s.append(seconds)


@pytest.fixture(scope="module")
def key() -> str:
    made = rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    return made.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()


@pytest.fixture
def github() -> Iterator[LocalServer]:
    server = LocalServer(lambda asked: FOUND if asked.method == "GET" else MINTED)
    yield server
    server.close()


@pytest.fixture
def clock() -> NotingClock:
    return NotingClock()


@pytest.fixture
def desk(tmp_path: Path, github: LocalServer, clock: NotingClock) -> Desk:
    (tmp_path / "workspace").mkdir()
    return Desk(
        workspace=tmp_path / "workspace",
        snapshot=tmp_path / "snapshot",
        artifacts=Artifacts(tmp_path / "artifacts"),
        log=JobLog([]),
        clock=clock,
        api_url=github.url,
        repository="acme/core",
        posts=[],
    )


async def mint(desk: Desk, key: str, client_id: str = "Iv1.a") -> dict[str, str]:
    inputs = {"client-id": client_id, "private-key": key, "permission-metadata": "read"}
    return await perform(ActionName.APP_TOKEN, inputs, desk)


async def test_a_token_is_made_hidden_and_revoked_at_the_end(
    desk: Desk, github: LocalServer, key: str
) -> None:
    made = await mint(desk, key)
    assert made == {"token": "ghs_minted", "installation-id": "7", "app-slug": "core-console"}
    assert desk.log.hides("x ghs_minted y")
    (post,) = desk.posts
    github.answer = lambda _: Answer(204, b"")
    await post()
    assert (github.asked[-1].method, github.asked[-1].path) == ("DELETE", "/installation/token")
    assert github.asked[-1].headers["authorization"] == "Bearer ghs_minted"
    assert "Token revoked" in desk.log.text()


@pytest.mark.parametrize("status", [401, 403, None])
async def test_a_revocation_that_fails_only_says_so(
    desk: Desk, github: LocalServer, key: str, status: int | None
) -> None:
    await mint(desk, key)
    github.answer = lambda _: Answer(status)
    await desk.posts[0]()
    assert "revo" in desk.log.text()


@pytest.mark.parametrize("status", [500, 502, 503, None])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_failing_github_is_tried_again(
    desk: Desk, github: LocalServer, clock: NotingClock, key: str, status: int | None, method: str
) -> None:
    bad = [Answer(status), Answer(status)]

    def answer(asked: Asked) -> Answer:
        if asked.method == method and bad:
            return bad.pop()
        return FOUND if asked.method == "GET" else MINTED

    github.answer = answer
    assert (await mint(desk, key))["token"] == "ghs_minted"
    assert clock.waits_s == [1, 2]


async def test_a_github_that_stays_down_is_given_up(
    desk: Desk, github: LocalServer, clock: NotingClock, key: str
) -> None:
    github.answer = lambda _: Answer(503)
    with pytest.raises(ActionFault, match="503"):
        await mint(desk, key)
    assert clock.waits_s == [1, 2, 4]


@pytest.mark.parametrize("status", [301, 401, 403, 404, 422])
async def test_a_refusal_is_final(
    desk: Desk, github: LocalServer, clock: NotingClock, key: str, status: int
) -> None:
    github.answer = lambda _: Answer(status)
    with pytest.raises(ActionFault, match=str(status)):
        await mint(desk, key)
    assert (clock.waits_s, desk.posts) == ([], [])


@pytest.mark.parametrize("body", [b"<html>", {}, [], {"id": 7}])
async def test_an_answer_that_is_not_githubs_fails_the_step(
    desk: Desk, github: LocalServer, key: str, body: object
) -> None:
    github.answer = lambda asked: Answer(200 if asked.method == "GET" else 201, body)
    with pytest.raises(ActionFault, match="not what the action knows"):
        await mint(desk, key)


@pytest.mark.parametrize(("client_id", "text"), [("", None), ("a", ""), ("a", "no key at all")])
async def test_settings_that_are_missing_or_wrong_fail_the_step(
    desk: Desk, github: LocalServer, key: str, client_id: str, text: str | None
) -> None:
    with pytest.raises(ActionFault):
        await mint(desk, key if text is None else text, client_id)
    assert github.asked == []


async def upload(desk: Desk, path: str, name: str = "it", **inputs: str) -> dict[str, str]:
    return await perform(ActionName.UPLOAD, {"name": name, "path": path, **inputs}, desk)


async def test_a_folder_is_handed_on_with_its_shape(desk: Desk) -> None:
    (desk.workspace / "out/deep").mkdir(parents=True)
    (desk.workspace / "out/a").write_text("1")
    (desk.workspace / "out/deep/b").write_text("2")
    assert await upload(desk, "out") == {"artifact-id": "1"}
    await perform(ActionName.DOWNLOAD, {"name": "it", "path": "in"}, desk)
    assert (desk.workspace / "in/a").read_text() == "1"
    assert (desk.workspace / "in/deep/b").read_text() == "2"


@pytest.mark.parametrize(("limit", "size"), [("ARTIFACT_MAX_BYTES", 2), ("ARTIFACTS_MAX", 0)])
async def test_artifacts_are_bounded(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, limit: str, size: int
) -> None:
    monkeypatch.setattr(actions_run, limit, size)
    (desk.workspace / "a").write_text("123")
    with pytest.raises(ActionFault):
        await upload(desk, "a")


async def test_a_missing_file_is_only_a_line_unless_it_must_be_there(desk: Desk) -> None:
    assert await upload(desk, "none") == {}
    assert "no files were found" in desk.log.text()
    with pytest.raises(ActionFault, match="no files were found"):
        await upload(desk, "none", **{"if-no-files-found": "error"})


@pytest.mark.parametrize(
    "act",
    [
        lambda desk: perform(ActionName.CHECKOUT, {}, desk),
        lambda desk: perform(ActionName.DOWNLOAD, {"name": "it", "path": "taken/in"}, desk),
    ],
)
async def test_files_that_cannot_be_written_fail_the_step(
    desk: Desk, act: Callable[[Desk], object]
) -> None:
    (desk.workspace / "a").write_text("1")
    (desk.workspace / "taken").write_text("a file where a folder is wanted")
    await upload(desk, "a")
    with pytest.raises(ActionFault, match="could not read or write"):
        await act(desk)  # type: ignore[misc] # a coroutine; the table's type is wider
