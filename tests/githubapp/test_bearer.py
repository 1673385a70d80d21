"""The shape of a bearer, judged for free, and the limits on those that were not good."""

import pytest

from core_console.githubapp.app import GitHubApp
from core_console.githubapp.bearer import fingerprint, read_bearer
from core_console.githubapp.limits import BearerLimits, peer_key
from core_console.githubapp.probes import EXPIRED, VALID, foreign, unknown
from core_console.githubapp.verdicts import Verdicts
from core_console.ports import ReporterVerdict, Standing
from tests.githubapp.site import HastyClock, Site

PEER = "192.0.2.1"


def token(length: int, fill: str = "aB3.-_") -> str:
    return ("ghs_" + fill * length)[:length]


@pytest.mark.parametrize("length", [40, 383, 520, 1500, 4096])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_tokens_of_every_length_that_github_makes_pass(length: int, scheme: str) -> None:
    assert read_bearer([f"{scheme} {token(length)}"]) == token(length)


@pytest.mark.parametrize(
    "header",
    [
        [],
        [""],
        ["   "],
        ["Bearer"],
        ["Bearer "],
        ["Basic eDp5"],
        [f"token {token(40)}"],
        [token(40)],
    ],
)
def test_no_bearer_is_said_in_the_contracts_words(header: list[str]) -> None:
    found = read_bearer(header)
    assert found == ReporterVerdict(Standing.INVALID, "missing bearer token")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ghp_" + "a" * 36, "personal access token"),
        ("github_pat_" + "a" * 60, "personal access token"),
        ("gho_" + "a" * 36, "OAuth token"),
        ("ghu_" + "a" * 36, "user's token"),
    ],
)
def test_other_kinds_are_refused_by_kind(text: str, kind: str) -> None:
    found = read_bearer([f"Bearer {text}"])
    assert isinstance(found, ReporterVerdict)
    assert found.standing is Standing.INVALID
    assert kind in found.reason


@pytest.mark.parametrize(
    "text",
    [
        token(39),
        token(4097),
        "GHS_" + "a" * 36,
        "ghs_" + "a" * 36 + "!",
        "ghs_" + "a" * 18 + " " + "a" * 18,
        "ghs_" + "\u0430" * 36,
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJ4In0.c2ln",
    ],
)
def test_what_is_no_installation_token_is_refused_and_not_repeated(text: str) -> None:
    found = read_bearer([f"Bearer {text}"])
    assert isinstance(found, ReporterVerdict)
    assert found.standing is Standing.INVALID
    assert text not in found.reason


def test_two_headers_are_refused() -> None:
    found = read_bearer([f"Bearer {token(40)}", f"Bearer {token(40)}"])
    assert isinstance(found, ReporterVerdict)
    assert found.standing is Standing.INVALID


async def test_a_bad_shape_costs_github_nothing(site: Site, github: GitHubApp) -> None:
    for header in ([], ["Bearer ghp_" + "a" * 36], ["Bearer nonsense"]):
        assert (await github.authorize_reporter(header, PEER)).standing is Standing.INVALID
    assert not site.world.calls


async def test_a_peer_with_many_bad_bearers_is_limited_and_recovers(
    site: Site, github: GitHubApp
) -> None:
    for _ in range(30):
        await github.authorize_reporter([], PEER)
    verdict = await github.authorize_reporter(site.bearer(), PEER)
    assert verdict.standing is Standing.LIMITED
    assert verdict.retry_after_s == 2
    assert (await github.authorize_reporter(site.bearer(), "192.0.2.2")).standing is Standing.VALID
    site.clock.advance(2)
    assert (await github.authorize_reporter(site.bearer(), PEER)).standing is Standing.VALID


async def test_a_cached_valid_bearer_is_never_counted(site: Site, github: GitHubApp) -> None:
    bearer = site.bearer()
    for _ in range(200):
        assert (await github.authorize_reporter(bearer, PEER)).standing is Standing.VALID
    for _ in range(29):
        await github.authorize_reporter([], PEER)
    assert (await github.authorize_reporter([], PEER)).standing is Standing.LIMITED
    assert (await github.authorize_reporter(bearer, PEER)).standing is Standing.VALID


async def test_a_cached_refusal_is_counted(site: Site, github: GitHubApp) -> None:
    bearer = site.foreign_bearer()
    standings = [(await github.authorize_reporter(bearer, PEER)).standing for _ in range(31)]
    assert standings == [Standing.FOREIGN] * 30 + [Standing.LIMITED]


async def test_verifications_are_capped_over_all_peers(site: Site, github: GitHubApp) -> None:
    for number in range(60):
        await github.authorize_reporter(site.bearer(), f"192.0.2.{number}")
    asked = len(site.world.calls)
    verdict = await github.authorize_reporter(site.bearer(), "198.51.100.1")
    assert verdict.standing is Standing.LIMITED
    assert len(site.world.calls) == asked


def test_bad_shapes_do_not_use_up_the_cap_of_all() -> None:
    limits = BearerLimits(HastyClock())
    for number in range(100):
        limits.take_peer(f"192.0.2.{number}")
    assert limits.take_verification() == 0


def test_the_peers_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_console.githubapp.limits._PEERS_MAX", 3)
    limits = BearerLimits(HastyClock())
    for number in range(9):
        limits.take_peer(f"192.0.2.{number}")
    assert len(limits._peers) == 3


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.1", "192.0.2.2", False),
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("unix", "unix", True),
    ],
)
def test_a_peer_is_an_address_or_its_ipv6_network(one: str, other: str, *, same: bool) -> None:
    assert (peer_key(one) == peer_key(other)) is same


def test_the_cache_is_bounded_and_keeps_no_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_console.githubapp.verdicts._ENTRIES_MAX", 2)
    verdicts = Verdicts(HastyClock())
    verdicts.put(b"unknown", unknown())
    for key, verdict in ((b"a", VALID), (b"b", EXPIRED), (b"c", foreign("no"))):
        verdicts.put(key, verdict)
    assert verdicts.get(b"unknown") is None
    assert verdicts.get(b"a") is None
    assert verdicts.get(b"b") == EXPIRED
    assert verdicts.get(b"c") == foreign("no")


def test_a_fingerprint_holds_nothing_of_the_token() -> None:
    assert len(fingerprint(token(383))) == 32
    assert token(383).encode() not in fingerprint(token(383))
