"""The App's settings are checked once, and no secret of theirs is ever shown."""

import logging

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from core_console.githubapp.app import GitHubApp
from core_console.githubapp.settings import GitHubSettings, load_key
from core_console.githubapp.tokens import _Minted
from core_console.ports import Fault
from core_console.standin.faults import Endpoint, Trouble
from tests.fakes import NOON, nobody_objects
from tests.githubapp.site import PAYLOAD, Site, key_pair


def settings(**changes: object) -> GitHubSettings:
    given: dict[str, object] = {"app_id": "4711", "private_key": key_pair()[0]} | changes
    return GitHubSettings(**given)  # type: ignore[arg-type] # any field, by name


def pem_of(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def test_the_defaults_are_githubs_own_addresses() -> None:
    given = settings()
    assert given.api_url == "https://api.github.com"
    assert given.graphql_url == "https://api.github.com/graphql"
    assert given.server_url == "https://github.com"
    assert given.agents_repo == "core"
    assert settings(api_url="https://ghe.example.com/api/v3/").graphql_url == (
        "https://ghe.example.com/api/v3/graphql"
    )


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"app_id": " "}, "CORE_GH_APP_ID"),
        ({"private_key": "not a key"}, "CORE_GH_APP_PRIVATE_KEY"),
        ({"private_key": pem_of(ec.generate_private_key(ec.SECP256R1()))}, "RSA key"),
        ({"private_key": pem_of(rsa.generate_private_key(65537, 1024))}, "2048 bits"),
        ({"org": "a/b"}, "CORE_GITHUB_ORG"),
        ({"agents_repo": "owner/core"}, "CORE_AGENTS_REPO"),
        ({"agents_repo": ".."}, "CORE_AGENTS_REPO"),
        ({"api_url": "http://api.example.com"}, "CORE_GITHUB_API_URL: must be https"),
        ({"api_url": "https://user@example.com"}, "CORE_GITHUB_API_URL"),
        ({"api_url": "https://example.com:port"}, "CORE_GITHUB_API_URL"),
        ({"graphql_url": "https://example.com/?x"}, "CORE_GITHUB_GRAPHQL_URL"),
        ({"server_url": "ftp://example.com"}, "CORE_GITHUB_SERVER_URL"),
    ],
)
def test_each_bad_setting_is_named(changes: dict[str, object], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        settings(**changes)


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(ValueError, match="CORE_GH_APP_ID") as caught:
        settings(app_id="", private_key="x", agents_repo="")
    assert len(str(caught.value).splitlines()) == 3


def test_a_key_may_come_from_one_line() -> None:
    one_line = key_pair()[0].strip().replace("\n", "\\n")
    assert load_key(one_line).key_size == 2048


def test_neither_key_nor_token_is_in_a_repr() -> None:
    assert "PRIVATE" not in repr(settings())
    assert "ghs_" not in repr(_Minted("ghs_" + "a" * 36, NOON))


async def test_no_secret_reaches_a_log_or_a_sentence(
    site: Site,
    github: GitHubApp,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.DEBUG)
    bearer = site.bearer()
    said = [(await github.dispatch(PAYLOAD, 60, nobody_objects)).detail]
    for trouble in (Trouble.ERROR_BEFORE, Trouble.RESET_BEFORE, Trouble.GARBLED):
        site.plan(trouble, Endpoint.DISPATCH)
        said.append((await github.dispatch(PAYLOAD, 60, nobody_objects)).detail)
        site.plan(trouble, Endpoint.GRAPHQL)
        said.append((await github.authorize_reporter(bearer, "192.0.2.1")).reason)
    site.plan(Trouble.ERROR_BEFORE, Endpoint.INSTALLATIONS)
    with pytest.raises(Fault) as caught:
        await github.resolve()
    printed = capsys.readouterr()
    shown = "\n".join([*said, caught.value.message, caplog.text, printed.out, printed.err])
    for text in site.world.tokens:
        assert text not in shown
        assert text.split(".", maxsplit=1)[0] not in shown
    assert "eyJ" not in shown
    assert "PRIVATE" not in shown
