"""authorizeReporter: whose bearer passes, and that an outage never looks like a bad one."""

import asyncio
from datetime import timedelta

import pytest

from core_console.githubapp.answers import Answer
from core_console.githubapp.app import GitHubApp, NoGitHub
from core_console.githubapp.probes import not_ok, viewer_id
from core_console.ports import ReporterVerdict, Standing
from core_console.standin.api_tokens import TokenFormat
from core_console.standin.faults import Endpoint, Trouble
from core_console.standin.state import ACTIONS_BOT_ID
from tests.fakes import NOON
from tests.githubapp.site import ORG, Site

PEER = "192.0.2.1"


@pytest.mark.parametrize("shape", list(TokenFormat))
async def test_a_live_token_of_the_app_is_valid(
    site: Site, github: GitHubApp, shape: TokenFormat
) -> None:
    site.world.token_format = shape
    verdict = await github.authorize_reporter(site.bearer(), PEER)
    assert verdict.standing is Standing.VALID
    assert verdict.reason == ""


async def test_a_token_narrowed_to_the_agents_repository_is_valid(
    site: Site, github: GitHubApp
) -> None:
    site.world.add_repository(site.installation, "other")
    narrowed = site.bearer(frozenset({site.repository.id}))
    assert (await github.authorize_reporter(narrowed, PEER)).standing is Standing.VALID


async def test_a_workflows_own_token_is_foreign(site: Site, github: GitHubApp) -> None:
    verdict = await github.authorize_reporter(site.foreign_bearer(ACTIONS_BOT_ID), PEER)
    assert verdict.standing is Standing.FOREIGN
    assert "GITHUB_TOKEN" in verdict.reason


async def test_another_app_is_foreign_even_under_our_name(site: Site, github: GitHubApp) -> None:
    text = site.world.mint_foreign(
        site.installation,
        bot_login=site.world.app.bot_login,
        bot_id=site.world.app.bot_id + 1,
        repositories=frozenset({site.repository.id}),
    )
    verdict = await github.authorize_reporter([f"Bearer {text}"], PEER)
    assert verdict.standing is Standing.FOREIGN


async def test_our_app_on_another_organisation_is_foreign(site: Site, github: GitHubApp) -> None:
    elsewhere = site.world.add_installation("elsewhere")
    site.world.add_repository(elsewhere, "core")
    text, _ = site.world.mint(elsewhere)
    verdict = await github.authorize_reporter([f"Bearer {text}"], PEER)
    assert verdict.standing is Standing.FOREIGN
    assert verdict.reason == "the bearer is for another organisation"


async def test_a_token_without_repositories_is_foreign(site: Site, github: GitHubApp) -> None:
    verdict = await github.authorize_reporter(site.bearer(frozenset()), PEER)
    assert verdict.standing is Standing.FOREIGN
    assert "no repository" in verdict.reason


async def test_a_token_that_does_not_reach_the_agents_repository_is_foreign(
    site: Site, github: GitHubApp
) -> None:
    other = site.world.add_repository(site.installation, "other")
    verdict = await github.authorize_reporter(site.bearer(frozenset({other.id})), PEER)
    assert verdict.standing is Standing.FOREIGN
    assert "core" in verdict.reason


@pytest.mark.parametrize(
    ("others", "standing", "pages"),
    [
        (99, Standing.VALID, 1),
        (100, Standing.VALID, 2),
        (999, Standing.VALID, 10),
        (1000, Standing.FOREIGN, 10),
    ],
)
async def test_the_agents_repository_is_looked_for_on_ten_pages(
    site: Site, others: int, standing: Standing, pages: int
) -> None:
    for number in range(others):
        site.world.add_repository(site.installation, f"other-{number}")
    last = site.world.add_repository(site.installation, "agents")
    reached = site.installation.repositories - {site.repository.id}
    client = site.client(agents_repo=last.name)
    verdict = await client.authorize_reporter(site.bearer(frozenset(reached)), PEER)
    assert verdict.standing is standing
    assert site.asked("/installation/repositories") == pages


async def test_a_fresh_token_that_github_does_not_know_yet_is_asked_again(
    site: Site, github: GitHubApp
) -> None:
    await github.authorize_reporter(site.bearer(), PEER)
    site.world.unready_calls = 3
    verdict = await github.authorize_reporter(site.bearer(), PEER)
    assert verdict.standing is Standing.VALID
    assert site.clock.slept == [1.0, 2.0, 4.0]


async def test_a_401_is_believed_after_seven_seconds(site: Site, github: GitHubApp) -> None:
    await github.authorize_reporter(site.bearer(), PEER)
    site.world.unready_calls = 4
    verdict = await github.authorize_reporter(site.bearer(), PEER)
    assert verdict.standing is Standing.INVALID
    assert "expired or revoked" in verdict.reason
    assert site.clock.slept == [1.0, 2.0, 4.0]


async def test_the_consoles_own_fresh_token_is_given_the_same_time(
    site: Site, github: GitHubApp
) -> None:
    bearer = site.bearer()
    site.world.unready_calls = 2
    assert (await github.authorize_reporter(bearer, PEER)).standing is Standing.VALID


async def test_a_revoked_or_expired_token_is_invalid(site: Site, github: GitHubApp) -> None:
    revoked, expired = site.bearer(), site.bearer()
    del site.world.tokens[revoked[0].removeprefix("Bearer ")]
    site.world.tokens[expired[0].removeprefix("Bearer ")].expires_at -= timedelta(hours=1)
    for bearer in (revoked, expired):
        verdict = await github.authorize_reporter(bearer, PEER)
        assert verdict.standing is Standing.INVALID


@pytest.mark.parametrize("endpoint", [Endpoint.GRAPHQL, Endpoint.REPOSITORIES])
@pytest.mark.parametrize(
    "trouble",
    [
        Trouble.ERROR_BEFORE,
        Trouble.HANG_BEFORE,
        Trouble.RESET_BEFORE,
        Trouble.GARBLED,
        Trouble.GRAPHQL_ERRORS,
        Trouble.LIMIT_PRIMARY,
        Trouble.LIMIT_SECONDARY,
    ],
)
async def test_an_outage_is_unknown_with_a_time_and_never_remembered(
    site: Site, github: GitHubApp, trouble: Trouble, endpoint: Endpoint
) -> None:
    await github.authorize_reporter(site.bearer(), PEER)
    site.plan(trouble, endpoint, wait_s=30)
    bearer = site.bearer()
    verdict = await github.authorize_reporter(bearer, PEER)
    assert verdict.standing is Standing.UNKNOWN
    limited = trouble in {Trouble.LIMIT_PRIMARY, Trouble.LIMIT_SECONDARY}
    assert verdict.retry_after_s == (30 if limited else 10)
    assert (await github.authorize_reporter(bearer, PEER)).standing is Standing.VALID


@pytest.mark.parametrize("endpoint", [Endpoint.INSTALLATIONS, Endpoint.MINT])
async def test_a_console_that_cannot_learn_who_it_is_knows_nothing(
    site: Site, github: GitHubApp, endpoint: Endpoint
) -> None:
    site.plan(Trouble.ERROR_BEFORE, endpoint)
    assert (await github.authorize_reporter(site.bearer(), PEER)).standing is Standing.UNKNOWN


async def test_a_plain_403_is_unknown_for_github_locks_out_good_tokens_too(
    site: Site, github: GitHubApp
) -> None:
    await github.authorize_reporter(site.bearer(), PEER)
    site.plan(Trouble.REFUSED, Endpoint.GRAPHQL, status=403)
    assert (await github.authorize_reporter(site.bearer(), PEER)).standing is Standing.UNKNOWN


def test_a_bearer_that_may_not_ask_is_foreign() -> None:
    not_ours = b'{"message":"Resource not accessible by integration"}'
    assert not_ok(Answer(403, {}, not_ours), NOON).standing is Standing.FOREIGN


@pytest.mark.parametrize(
    "body",
    [
        b'{"data":{"viewer":{"databaseId":9001}},"errors":[{"message":"partial"}]}',
        b'{"data":{"viewer":null}}',
        b'{"data":null}',
        b'{"data":{"viewer":{"databaseId":"9001"}}}',
        b"{}",
        b"",
    ],
)
def test_a_graphql_200_that_does_not_name_the_viewer_cleanly_is_unknown(body: bytes) -> None:
    found = viewer_id(Answer(200, {}, body), NOON)
    assert isinstance(found, ReporterVerdict)
    assert found.standing is Standing.UNKNOWN


async def test_closing_ends_the_verifications_in_flight(site: Site, github: GitHubApp) -> None:
    site.plan(Trouble.HANG_BEFORE, Endpoint.GRAPHQL)
    waiting = asyncio.create_task(github.authorize_reporter(site.bearer(), PEER))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await github.aclose()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_suspended_app_has_no_authority(site: Site, github: GitHubApp) -> None:
    await github.authorize_reporter(site.bearer(), PEER)
    site.installation.suspended_at = site.clock.now()
    verdict = await github.authorize_reporter(site.bearer(), PEER)
    assert verdict.standing is Standing.FOREIGN
    assert "suspended" in verdict.reason


async def test_a_valid_bearer_is_remembered_for_a_minute_and_not_longer(
    site: Site, github: GitHubApp
) -> None:
    bearer = site.bearer()
    await github.authorize_reporter(bearer, PEER)
    asked = len(site.world.calls)
    site.world.tokens.pop(bearer[0].removeprefix("Bearer "))
    site.clock.advance(59.9)
    assert (await github.authorize_reporter(bearer, PEER)).standing is Standing.VALID
    assert len(site.world.calls) == asked
    site.clock.advance(0.1)
    assert (await github.authorize_reporter(bearer, PEER)).standing is Standing.INVALID


async def test_a_refusal_is_remembered_for_30_s_and_a_401_for_5(
    site: Site, github: GitHubApp
) -> None:
    foreign, unknown = site.foreign_bearer(), ["Bearer ghs_" + "x" * 36]
    await github.authorize_reporter(foreign, PEER)
    site.clock.advance(29.9)
    asked = site.asked("/graphql")
    await github.authorize_reporter(foreign, PEER)
    assert site.asked("/graphql") == asked
    site.clock.advance(0.1)
    await github.authorize_reporter(foreign, PEER)
    assert site.asked("/graphql") == asked + 1
    await github.authorize_reporter(unknown, PEER)
    asked = site.asked("/graphql")
    site.clock.advance(4.9)
    await github.authorize_reporter(unknown, PEER)
    assert site.asked("/graphql") == asked
    site.clock.advance(0.1)
    await github.authorize_reporter(unknown, PEER)
    assert site.asked("/graphql") > asked


async def test_one_verification_is_in_flight_per_token(site: Site, github: GitHubApp) -> None:
    bearer = site.bearer()
    verdicts = await asyncio.gather(*(github.authorize_reporter(bearer, PEER) for _ in range(10)))
    assert {verdict.standing for verdict in verdicts} == {Standing.VALID}
    assert site.asked("/installation/repositories") == 1


async def test_a_caller_that_goes_away_does_not_end_the_verification(
    site: Site, github: GitHubApp
) -> None:
    bearer = site.bearer()
    first = asyncio.create_task(github.authorize_reporter(bearer, PEER))
    second = asyncio.create_task(github.authorize_reporter(bearer, PEER))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).standing is Standing.VALID


async def test_the_reporters_token_is_never_revoked(site: Site, github: GitHubApp) -> None:
    bearer = site.bearer()
    await github.authorize_reporter(bearer, PEER)
    assert bearer[0].removeprefix("Bearer ") in site.world.tokens
    assert site.asked("/installation/token") == 0


async def test_an_organisation_that_changed_its_name_is_still_ours(
    site: Site, github: GitHubApp
) -> None:
    await github.authorize_reporter(site.bearer(), PEER)
    site.installation.account.login = f"{ORG}-renamed"
    assert (await github.authorize_reporter(site.bearer(), PEER)).standing is Standing.VALID


async def test_without_an_app_nobody_can_be_judged() -> None:
    verdict = await NoGitHub().authorize_reporter(["Bearer ghs_" + "x" * 36], PEER)
    assert verdict.standing is Standing.UNCONFIGURED
