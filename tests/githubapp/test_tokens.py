"""The App's JWT, its one live token, and which installation is its own."""

import asyncio
from contextlib import suppress

import jwt
import pytest

from core_console.githubapp.answers import Answer
from core_console.githubapp.app import GitHubApp
from core_console.githubapp.jwt import app_jwt
from core_console.githubapp.settings import load_key
from core_console.githubapp.tokens import read_mint
from core_console.githubapp.transport import NoAnswer, Timeouts, Transport
from core_console.model.run import Call
from core_console.ports import Fault
from core_console.standin.faults import Endpoint, Trouble
from tests.fakes import NOON, nobody_objects
from tests.githubapp.site import ORG, PAYLOAD, Site, key_pair


def test_the_jwt_starts_a_minute_back_and_ends_nine_minutes_ahead() -> None:
    private, public = key_pair()
    text = app_jwt("4711", load_key(private), NOON)
    claims = jwt.decode(
        text, public, algorithms=["RS256"], options={"verify_exp": False, "verify_iat": False}
    )
    now = int(NOON.timestamp())
    assert claims == {"iat": now - 60, "exp": now + 540, "iss": "4711"}
    assert jwt.get_unverified_header(text)["alg"] == "RS256"


async def test_a_token_is_used_until_five_minutes_before_its_end(
    site: Site, github: GitHubApp
) -> None:
    await github.dispatch(PAYLOAD, 60, nobody_objects)
    site.clock.advance(3600 - 300 - 2)
    await github.dispatch(PAYLOAD, 60, nobody_objects)
    assert site.asked("/access_tokens") == 1
    site.clock.advance(2)
    await github.dispatch(PAYLOAD, 60, nobody_objects)
    assert site.asked("/access_tokens") == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (201, b'{"token":"opaque","expires_at":"2026-11-30T13:00:00Z"}'),
        (201, b'{"token":"ghs_x","expires_at":"2026-11-30T13:00:00"}'),
        (201, b'{"token":"ghs_x","expires_at":null}'),
        (201, b"[" * 100_000),
        (200, b'{"token":"ghs_x","expires_at":"2026-11-30T13:00:00Z"}'),
        (404, b""),
    ],
)
def test_what_is_no_minted_token_is_a_fault(status: int, body: bytes) -> None:
    with pytest.raises(Fault):
        read_mint(Answer(status, {}, body), NOON)


async def test_one_mint_is_in_flight(site: Site, github: GitHubApp) -> None:
    outcomes = await asyncio.gather(
        *(github.dispatch(PAYLOAD, 60, nobody_objects) for _ in range(5))
    )
    assert {outcome.call for outcome in outcomes} == {Call.ACCEPTED}
    assert site.asked("/access_tokens") == 1


async def test_the_client_id_is_an_issuer_too(site: Site) -> None:
    assert await site.client(app_id=site.world.app.client_id).resolve() == ORG


async def test_the_organisation_is_the_installations_account(site: Site) -> None:
    assert await site.client(org=None).resolve() == ORG
    assert await site.client(org=ORG.upper()).resolve() == ORG
    assert await site.client(org=None, installation_id=site.installation.id).resolve() == ORG


async def test_another_organisation_than_the_installations_stops_for_good(site: Site) -> None:
    for given in (None, site.installation.id):
        with pytest.raises(Fault, match="CORE_GITHUB_ORG is elsewhere") as caught:
            await site.client(org="elsewhere", installation_id=given).resolve()
        assert not caught.value.retryable


async def test_several_installations_need_an_id_or_the_organisation(site: Site) -> None:
    second = site.world.add_installation("second-org")
    with pytest.raises(Fault, match="set CORE_GH_APP_INSTALLATION_ID") as caught:
        await site.client(org=None).resolve()
    assert not caught.value.retryable
    assert await site.client(org=ORG).resolve() == ORG
    assert await site.client(org=None, installation_id=second.id).resolve() == "second-org"


async def test_no_installation_yet_is_worth_asking_again(site: Site) -> None:
    site.world.uninstall(site.installation)
    with pytest.raises(Fault, match="the App is not installed on runink-demo") as caught:
        await site.client().resolve()
    assert caught.value.retryable
    with pytest.raises(Fault, match="the App has no installation 77: check its id"):
        await site.client(installation_id=77).resolve()


@pytest.mark.parametrize(
    "trouble", [Trouble.ERROR_BEFORE, Trouble.HANG_BEFORE, Trouble.RESET_BEFORE, Trouble.GARBLED]
)
async def test_an_outage_is_worth_asking_again(site: Site, trouble: Trouble) -> None:
    site.plan(trouble, Endpoint.INSTALLATIONS)
    with pytest.raises(Fault) as caught:
        await site.client().resolve()
    assert caught.value.retryable


async def test_a_limit_says_when_to_ask_again(site: Site) -> None:
    site.plan(Trouble.LIMIT_SECONDARY, Endpoint.INSTALLATIONS, wait_s=33)
    with pytest.raises(Fault) as caught:
        await site.client().resolve()
    assert caught.value.retry_after_s == 33


async def test_a_wrong_key_names_what_to_check(site: Site) -> None:
    with pytest.raises(Fault, match="CORE_GH_APP_ID, the App's private key and this") as caught:
        await site.client(private_key=key_pair("another")[0]).resolve()
    assert not caught.value.retryable


async def test_an_unknown_app_is_said(site: Site) -> None:
    with pytest.raises(Fault, match="Integration not found"):
        await site.client(app_id="1").resolve()


async def test_an_app_that_was_installed_anew_is_found_again(site: Site, github: GitHubApp) -> None:
    await github.dispatch(PAYLOAD, 60, nobody_objects)
    site.world.uninstall(site.installation)
    again = site.world.add_installation(ORG)
    again.account.id = site.installation.account.id
    again.repositories = set(site.installation.repositories)
    first = await github.dispatch(PAYLOAD, 60, nobody_objects)
    assert first.call is Call.REFUSED
    assert "install the App again" in first.detail
    assert (await github.dispatch(PAYLOAD, 60, nobody_objects)).call is Call.ACCEPTED


async def test_an_account_that_took_over_the_name_is_not_ours(
    site: Site, github: GitHubApp
) -> None:
    await github.resolve()
    site.world.uninstall(site.installation)
    site.world.add_installation(ORG)
    with pytest.raises(Fault, match="another account"):
        await github.resolve()


async def test_an_answer_beyond_the_bound_is_dropped(
    site: Site, github: GitHubApp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_console.githubapp.transport._BODY_BYTES_MAX", 40)
    with pytest.raises(Fault, match="could not be understood"):
        await github.resolve()
    assert site.asked("/app/installations") == 1


async def test_an_answer_that_never_ends_is_bounded_in_time() -> None:
    cut = asyncio.Event()

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Never-Ends: ")
        with suppress(ConnectionError):
            while not writer.is_closing():
                writer.write(b"x")
                await writer.drain()
                await asyncio.sleep(0.02)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        cut.set()

    server = await asyncio.start_server(drip, "127.0.0.1", 0)
    transport = Transport(Timeouts(connect_s=1.0, read_s=5.0, total_s=0.2))
    port = server.sockets[0].getsockname()[1]
    with pytest.raises(NoAnswer):
        await transport.send("GET", f"http://127.0.0.1:{port}/", bearer="x")
    await transport.aclose()
    await asyncio.wait_for(cut.wait(), 5)
    server.close()
    await server.wait_closed()
