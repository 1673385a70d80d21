"""The environment is read once, and every fault in it is told at once and without its value."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from core_console.addresses import Address
from core_console.decide.identity import Admission
from core_console.settings import Settings, SettingsError, load

BASE = {"CONSOLE_APPFS_DIR": "/srv/console"}


def pem(key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.fixture(scope="module")
def app_key() -> str:
    return pem(rsa.generate_private_key(public_exponent=65537, key_size=2048))


def faults(environ: Mapping[str, str]) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as caught:
        load(environ)
    assert str(caught.value).splitlines() == list(caught.value.faults)
    return caught.value.faults


def fault(**extra: str) -> str:
    (line,) = faults({**BASE, **extra})
    return line


def test_the_root_alone_is_enough() -> None:
    assert load(BASE) == Settings(
        root=Path("/srv/console"),
        grpc_addr=Address("127.0.0.1", 7443),
        http_addr=Address("127.0.0.1", 8080),
        tls=None,
        tick_s=30.0,
        catch_up_minutes=60,
        admission=Admission(),
        four_eyes_all_editors=False,
        local_tokens=False,
        github=None,
        unknown=(),
    )


def test_a_missing_root_is_a_fault() -> None:
    assert faults({}) == ("CONSOLE_APPFS_DIR is not set: name the folder that holds the state",)
    assert faults({"CONSOLE_APPFS_DIR": "  "}) == faults({})


def test_a_file_for_a_root_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert fault(CONSOLE_APPFS_DIR=str(tmp_path / "file")) == "CONSOLE_APPFS_DIR is not a folder"


def test_all_faults_are_told_at_once() -> None:
    found = faults(
        {
            "CONSOLE_GRPC_ADDR": "nowhere",
            "CONSOLE_TICK_SECONDS": "0",
            "CORE_ATLAS_ADMINS": "",
            "CONSOLE_LOCAL_TOKENS": "yes",
            "CORE_GITHUB_API_URL": "http://github.example.com",
        }
    )
    assert [line.split()[0].rstrip(":") for line in found] == [
        "CONSOLE_APPFS_DIR",
        "CONSOLE_GRPC_ADDR",
        "CONSOLE_TICK_SECONDS",
        "CORE_ATLAS_ADMINS",
        "CONSOLE_LOCAL_TOKENS",
        "CORE_GITHUB_API_URL",
    ]


@pytest.mark.parametrize("name", ["CONSOLE_OIDC_ISSUER", "CONSOLE_OIDC_AUDIENCE"])
def test_oidc_is_refused_rather_than_ignored(name: str) -> None:
    assert "OIDC sign-in is not part of this version" in fault(**{name: "https://id.example.com"})


@pytest.mark.parametrize(
    "address",
    ["7443", ":7443", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "::1:7443", "a b:1", "h:٣"],
)
def test_an_address_is_a_host_and_a_port(address: str) -> None:
    assert "must be host:port" in fault(CONSOLE_GRPC_ADDR=address)


@pytest.mark.parametrize("address", ["[::1]:7443", "localhost:0", "127.9.9.9:7443"])
def test_loopback_needs_no_tls(address: str) -> None:
    assert str(load({**BASE, "CONSOLE_GRPC_ADDR": address}).grpc_addr) == address


@pytest.mark.parametrize("name", ["CONSOLE_GRPC_ADDR", "CONSOLE_HTTP_ADDR"])
@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "console.example.com"])
def test_a_bind_beyond_loopback_without_tls_is_refused(name: str, host: str) -> None:
    line = fault(**{name: f"{host}:9000"})
    assert line.startswith(f"{name} is beyond loopback")


def test_a_bind_beyond_loopback_with_tls_is_accepted(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").touch()
    (tmp_path / "key.pem").touch()
    settings = load(
        {
            **BASE,
            "CONSOLE_GRPC_ADDR": "0.0.0.0:7443",
            "CONSOLE_TLS_CERT": str(tmp_path / "cert.pem"),
            "CONSOLE_TLS_KEY": str(tmp_path / "key.pem"),
        }
    )
    assert settings.tls is not None
    assert settings.tls.cert == tmp_path / "cert.pem"


def test_a_certificate_without_its_key_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").touch()
    assert "belong together" in fault(CONSOLE_TLS_CERT=str(tmp_path / "cert.pem"))


def test_a_certificate_that_is_not_there_is_a_fault(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent.pem")
    lines = faults({**BASE, "CONSOLE_TLS_CERT": absent, "CONSOLE_TLS_KEY": absent})
    assert lines == ("CONSOLE_TLS_CERT names no file", "CONSOLE_TLS_KEY names no file")


def test_the_two_servers_may_not_share_an_address() -> None:
    assert "the same address" in fault(CONSOLE_HTTP_ADDR="127.0.0.1:7443")


@pytest.mark.parametrize("text", ["0", "0.5", "301", "-1", "1e2", "nan", "thirty"])
def test_the_tick_is_bounded(text: str) -> None:
    assert fault(CONSOLE_TICK_SECONDS=text) == "CONSOLE_TICK_SECONDS must be a number from 1 to 300"


def test_numbers_are_read_with_their_units() -> None:
    settings = load({**BASE, "CONSOLE_TICK_SECONDS": "1.5", "CORE_SCHEDULE_CATCH_UP_MINUTES": "90"})
    assert (settings.tick_s, settings.catch_up_minutes) == (1.5, 90)


@pytest.mark.parametrize("text", ["0", "1441"])
def test_the_catch_up_is_bounded(text: str) -> None:
    assert "from 1 to 1440" in fault(CORE_SCHEDULE_CATCH_UP_MINUTES=text)


def test_the_catch_up_is_whole_minutes() -> None:
    assert "whole minutes" in fault(CORE_SCHEDULE_CATCH_UP_MINUTES="1.5")


LISTS = ["CONSOLE_ALLOWED_EMAILS", "CORE_ATLAS_ADMINS", "CONSOLE_SESSION_ADMINS"]


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_a_list_that_is_set_and_empty_is_a_fault(name: str, text: str) -> None:
    assert fault(**{name: text}) == (f"{name} is set but empty: list e-mail addresses, or unset it")


def test_lists_hold_the_one_spelling_of_an_address() -> None:
    admission = load(
        {
            **BASE,
            "CONSOLE_ALLOWED_EMAILS": " Ann@Example.com, bob@example.com\n",
            "CONSOLE_ALLOWED_HD": "Example.COM",
            "CORE_ATLAS_ADMINS": "ANN@example.com",
            "CONSOLE_SESSION_ADMINS": "audit@example.com",
        }
    ).admission
    assert admission == Admission(
        allowed_emails=frozenset({"ann@example.com", "bob@example.com"}),
        allowed_domain="example.com",
        admins=frozenset({"ann@example.com"}),
        auditors=frozenset({"audit@example.com"}),
    )


def test_a_bad_address_is_named_by_its_position_and_not_repeated() -> None:
    line = fault(CORE_ATLAS_ADMINS="ann@example.com,hunter2")
    assert line == "CORE_ATLAS_ADMINS: entry 2 is not an e-mail address"


@pytest.mark.parametrize("text", ["", "@example.com", "a b", "example.com,example.org"])
def test_the_domain_is_one_domain(text: str) -> None:
    assert "one mail domain" in fault(CONSOLE_ALLOWED_HD=text)


def test_flags_are_0_or_1() -> None:
    settings = load({**BASE, "CORE_FOUR_EYES_ALL_EDITORS": "1", "CONSOLE_LOCAL_TOKENS": "1"})
    assert settings.four_eyes_all_editors
    assert settings.local_tokens
    assert fault(CORE_FOUR_EYES_ALL_EDITORS="true") == "CORE_FOUR_EYES_ALL_EDITORS must be 0 or 1"


def test_an_app_needs_its_id_and_its_key(app_key: str) -> None:
    assert "belong together" in fault(CORE_GH_APP_ID="12345")
    assert "belong together" in fault(CORE_GH_APP_PRIVATE_KEY=app_key)


def test_an_app_is_read_whole(app_key: str) -> None:
    github = load(
        {
            **BASE,
            "CORE_GH_APP_ID": "Iv23abc",
            "CORE_GH_APP_PRIVATE_KEY": app_key.replace("\n", "\\n"),
            "CORE_GH_APP_INSTALLATION_ID": "77",
            "CORE_GITHUB_ORG": "example-org",
            "CORE_AGENTS_REPO": "agents",
            "CORE_GITHUB_API_URL": "http://127.0.0.1:9999/api/v3",
            "CORE_GITHUB_SERVER_URL": "https://github.example.com",
        }
    ).github
    assert github is not None
    assert github.app_id == "Iv23abc"
    assert github.private_key.strip() == app_key.strip()
    assert github.installation_id == 77
    assert github.org == "example-org"
    assert github.agents_repo == "agents"
    assert github.api_url == "http://127.0.0.1:9999/api/v3"
    assert github.graphql_url == "http://127.0.0.1:9999/api/v3/graphql"
    assert github.server_url == "https://github.example.com"


def test_the_key_may_be_a_file_and_the_defaults_are_githubs(tmp_path: Path, app_key: str) -> None:
    (tmp_path / "app.pem").write_text(app_key)
    github = load(
        {
            **BASE,
            "CORE_GH_APP_ID": "12345",
            "CORE_GH_APP_PRIVATE_KEY_FILE": str(tmp_path / "app.pem"),
        }
    ).github
    assert github is not None
    assert github.private_key == app_key
    assert (github.installation_id, github.org, github.agents_repo) == (None, None, "core")
    assert github.graphql_url == "https://api.github.com/graphql"
    assert github.server_url == "https://github.com"


def test_the_key_is_not_given_twice(app_key: str) -> None:
    line = fault(
        CORE_GH_APP_ID="1", CORE_GH_APP_PRIVATE_KEY=app_key, CORE_GH_APP_PRIVATE_KEY_FILE="k.pem"
    )
    assert line.endswith("are both set; set one")


def test_a_key_file_that_is_not_there_is_a_fault() -> None:
    line = fault(CORE_GH_APP_ID="1", CORE_GH_APP_PRIVATE_KEY_FILE="/nowhere/app.pem")
    assert line == "CORE_GH_APP_PRIVATE_KEY_FILE names no readable PEM file"


@pytest.mark.parametrize("text", ["s3cret", pem(ed25519.Ed25519PrivateKey.generate())])
def test_a_key_of_another_kind_is_refused_without_being_repeated(text: str) -> None:
    line = fault(CORE_GH_APP_ID="1", CORE_GH_APP_PRIVATE_KEY=text)
    assert line.startswith("CORE_GH_APP_PRIVATE_KEY: the App's private key is not an ")
    assert text[:6] not in line.replace("PRIVATE", "")


def test_the_key_is_in_no_repr(app_key: str) -> None:
    settings = load({**BASE, "CORE_GH_APP_ID": "1", "CORE_GH_APP_PRIVATE_KEY": app_key})
    secret = app_key.splitlines()[3]
    assert secret not in repr(settings)
    assert secret not in repr(settings.github)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://github.example.com", "plain http is for loopback only"),
        ("https://github.example.com/", "must not end with a slash"),
        ("https://user:pw@github.example.com", "no user name"),
        ("https://github.example.com?x=1", "no user name, query or fragment"),
        ("ftp://github.example.com", "must be an https URL"),
        ("github.example.com", "must be an https URL"),
        ("https://[bad", "is not a URL"),
        ("https://github.example.com:99999", "is not a URL"),
        ("https://github.example.com/a b", "must be an https URL"),
        ("http://127.0.0.1.example.com", "plain http is for loopback only"),
    ],
)
@pytest.mark.parametrize(
    "name", ["CORE_GITHUB_API_URL", "CORE_GITHUB_GRAPHQL_URL", "CORE_GITHUB_SERVER_URL"]
)
def test_a_base_url_is_https_and_bare(name: str, url: str, reason: str) -> None:
    line = fault(**{name: url})
    assert line.startswith(name)
    assert reason in line
    assert url not in line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("CORE_AGENTS_REPO", "org/agents"),
        ("CORE_AGENTS_REPO", ".."),
        ("CORE_GITHUB_ORG", "-org"),
        ("CORE_GH_APP_INSTALLATION_ID", "0"),
        ("CORE_GH_APP_INSTALLATION_ID", "abc"),
    ],
)
def test_names_have_githubs_form(name: str, text: str) -> None:
    assert fault(**{name: text}) == f"{name} is not of the form that GitHub gives it"


def test_a_variable_that_nobody_reads_is_a_warning_and_no_fault() -> None:
    settings = load(
        {**BASE, "CORE_ATLAS_ADMIN": "ann@example.com", "CONSOLE_ZZZ": "1", "HOME": "/"}
    )
    assert settings.unknown == (
        "CONSOLE_ZZZ is set, but it is no setting of this version",
        (
            "CORE_ATLAS_ADMIN is set, but it is no setting of this version; "
            "did you mean CORE_ATLAS_ADMINS?"
        ),
    )


def test_the_variables_of_the_command_line_are_known() -> None:
    names = ("CORE_CONSOLE_URL", "CORE_CONSOLE_TOKEN", "CORE_CONSOLE_CA", "CORE_CONSOLE_HTTP_URL")
    assert load({**BASE, **dict.fromkeys(names, "x")}).unknown == ()
