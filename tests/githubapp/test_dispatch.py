"""Dispatches and comments: each row of the table in 05, section 2, against the stand-in."""

import pytest

from core_console.githubapp.app import GitHubApp, NoGitHub
from core_console.model.run import Call, DispatchPayload
from core_console.standin.faults import Endpoint, Trouble
from tests.fakes import nobody_objects
from tests.githubapp.site import ORG, PAYLOAD, Site

PATIENCE_S = 60.0
AMBIGUOUS = [Trouble.ERROR_AFTER, Trouble.HANG_AFTER, Trouble.RESET_AFTER]


async def test_an_accepted_dispatch_carries_exactly_the_five_fields(
    site: Site, github: GitHubApp
) -> None:
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.ACCEPTED
    [event] = site.world.dispatches
    assert event.repository == f"{ORG}/core"
    assert event.event_type == "core-playbook"
    assert event.client_payload == {
        "agent": "datagov",
        "playbook_id": "PB-1",
        "run_id": "PBR-1",
        "step_id": "detect",
        "chain_depth": 0,
    }
    assert event.sender_id == site.world.app.bot_id


@pytest.mark.parametrize("trouble", AMBIGUOUS)
async def test_an_ambiguous_answer_is_unknown_and_the_dispatch_is_never_sent_again(
    site: Site, github: GitHubApp, trouble: Trouble
) -> None:
    site.plan(trouble, Endpoint.DISPATCH)
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.UNKNOWN
    assert outcome.detail == "the dispatch may have been accepted: not sent again"
    assert len(site.world.dispatches) == 1
    assert site.asked("/dispatches") == 1


@pytest.mark.parametrize("trouble", [Trouble.ERROR_BEFORE, Trouble.HANG_BEFORE, Trouble.GARBLED])
async def test_what_looks_ambiguous_is_unknown_even_when_it_was_not_accepted(
    site: Site, github: GitHubApp, trouble: Trouble
) -> None:
    site.plan(trouble, Endpoint.DISPATCH)
    assert (await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)).call is Call.UNKNOWN
    assert site.asked("/dispatches") == 1


@pytest.mark.parametrize("trouble", AMBIGUOUS)
async def test_an_ambiguous_comment_is_unknown_in_the_contracts_words(
    site: Site, github: GitHubApp, trouble: Trouble
) -> None:
    site.plan(trouble, Endpoint.COMMENT)
    outcome = await github.comment("core", 1, "hello", PATIENCE_S, nobody_objects)
    assert outcome.call is Call.UNKNOWN
    assert outcome.detail == "the comment may have been posted: not sent again"
    assert len(site.world.comments) == 1


async def test_a_comment_is_posted_once(site: Site, github: GitHubApp) -> None:
    outcome = await github.comment("core", 1, "run PBR-1 succeeded", PATIENCE_S, nobody_objects)
    assert outcome.call is Call.ACCEPTED
    [comment] = site.world.comments
    assert (comment.issue, comment.body) == (1, "run PBR-1 succeeded")


async def test_a_401_mints_once_more_and_then_succeeds(site: Site, github: GitHubApp) -> None:
    site.plan(Trouble.REFUSED, Endpoint.DISPATCH, status=401)
    assert (await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)).call is Call.ACCEPTED
    assert site.asked("/access_tokens") == 2
    assert len(site.world.dispatches) == 1


async def test_a_second_401_fails(site: Site, github: GitHubApp) -> None:
    site.plan(Trouble.REFUSED, Endpoint.DISPATCH, status=401, times=9)
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert "401" in outcome.detail
    assert "clock" in outcome.detail
    assert site.asked("/dispatches") == 2


async def test_a_revoked_token_is_replaced(site: Site, github: GitHubApp) -> None:
    await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    site.world.tokens.clear()
    assert (await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)).call is Call.ACCEPTED


@pytest.mark.parametrize("status", [403, 429])
@pytest.mark.parametrize("trouble", [Trouble.LIMIT_PRIMARY, Trouble.LIMIT_SECONDARY])
async def test_a_limit_within_the_patience_is_waited_out(
    site: Site, github: GitHubApp, trouble: Trouble, status: int
) -> None:
    site.plan(trouble, Endpoint.DISPATCH, status=status, wait_s=20)
    assert (await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)).call is Call.ACCEPTED
    assert 20 in site.clock.slept
    assert len(site.world.dispatches) == 1


async def test_a_limit_beyond_the_patience_fails_at_once(site: Site, github: GitHubApp) -> None:
    site.plan(Trouble.LIMIT_SECONDARY, Endpoint.DISPATCH, wait_s=61)
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert outcome.detail == (
        "not sent: GitHub's rate limit asks to wait 61 s, and only 60 s are left"
    )
    assert not site.clock.slept


async def test_a_secondary_limit_that_names_no_time_asks_for_a_minute(
    site: Site, github: GitHubApp
) -> None:
    site.plan(Trouble.LIMIT_UNTOLD, Endpoint.DISPATCH)
    outcome = await github.dispatch(PAYLOAD, 59, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert "wait 60 s" in outcome.detail


async def test_a_limit_is_met_at_most_three_times(site: Site, github: GitHubApp) -> None:
    site.plan(Trouble.LIMIT_SECONDARY, Endpoint.DISPATCH, wait_s=2, times=9)
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert site.asked("/dispatches") == 3
    assert not site.world.dispatches


async def test_a_missing_permission_is_named(site: Site, github: GitHubApp) -> None:
    site.installation.permissions["contents"] = "read"
    del site.installation.permissions["issues"]
    dispatched = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    commented = await github.comment("core", 1, "hello", PATIENCE_S, nobody_objects)
    assert dispatched.call is commented.call is Call.REFUSED
    assert "contents: write" in dispatched.detail
    assert "issues: write" in commented.detail


async def test_an_unknown_repository_names_what_to_check(site: Site) -> None:
    outcome = await site.client(agents_repo="elsewhere").dispatch(
        PAYLOAD, PATIENCE_S, nobody_objects
    )
    assert outcome.call is Call.REFUSED
    assert f"{ORG}/elsewhere" in outcome.detail
    assert "CORE_AGENTS_REPO" in outcome.detail


async def test_an_unknown_issue_is_refused(github: GitHubApp) -> None:
    outcome = await github.comment("core", 99, "hello", PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert "no issue 99" in outcome.detail


async def test_a_renamed_repository_is_not_followed(site: Site, github: GitHubApp) -> None:
    site.world.rename_repository(site.repository, "core-agents")
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert "renamed or moved (GitHub answered 307)" in outcome.detail
    assert not site.world.dispatches


async def test_a_suspended_installation_is_said(site: Site, github: GitHubApp) -> None:
    await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    site.installation.suspended_at = site.clock.now()
    with_old_token = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    site.clock.advance(3600)
    without = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert with_old_token.call is without.call is Call.REFUSED
    assert "suspended" in with_old_token.detail
    assert "suspended" in without.detail


@pytest.mark.parametrize("status", [400, 410, 422])
async def test_a_permanent_refusal_repeats_what_github_said(
    site: Site, github: GitHubApp, status: int
) -> None:
    site.plan(Trouble.REFUSED, Endpoint.DISPATCH, status=status)
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert f"({status})" in outcome.detail
    assert "GitHub says" in outcome.detail
    assert site.asked("/dispatches") == 1


async def test_no_connection_means_not_sent(site: Site) -> None:
    client = site.client(api_url="http://127.0.0.1:9")
    outcome = await client.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert outcome.detail == "not sent: GitHub could not be reached"


async def test_github_lost_between_mint_and_dispatch_means_not_sent(site: Site) -> None:
    client = site.client()
    assert (await client.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)).call is Call.ACCEPTED
    client._settings = site.settings(api_url="http://127.0.0.1:9")
    outcome = await client.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert outcome.detail == "not sent: GitHub could not be reached"


async def test_a_mint_that_fails_for_a_moment_is_tried_again(site: Site, github: GitHubApp) -> None:
    site.plan(Trouble.ERROR_BEFORE, Endpoint.MINT, times=2)
    assert (await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)).call is Call.ACCEPTED
    assert site.asked("/access_tokens") == 3


async def test_no_token_means_not_sent(site: Site, github: GitHubApp) -> None:
    site.plan(Trouble.ERROR_BEFORE, Endpoint.MINT, times=9)
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert outcome.detail.startswith("not sent: ")
    assert site.asked("/dispatches") == 0


async def test_an_organisation_that_cannot_be_learnt_means_not_sent(
    site: Site, github: GitHubApp
) -> None:
    site.plan(Trouble.ERROR_BEFORE, Endpoint.INSTALLATIONS, times=2)
    dispatched = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    commented = await github.comment("core", 1, "hello", PATIENCE_S, nobody_objects)
    assert dispatched.call is commented.call is Call.REFUSED
    assert dispatched.detail.startswith("not sent: ")
    assert commented.detail.startswith("not sent: ")


async def test_a_second_passes_between_two_changing_calls(site: Site, github: GitHubApp) -> None:
    for _ in range(3):
        assert (await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)).call is Call.ACCEPTED
    await github.comment("core", 1, "hello", PATIENCE_S, nobody_objects)
    assert site.clock.elapsed_s == 3


async def test_nothing_is_sent_after_the_patience_has_ended(site: Site, github: GitHubApp) -> None:
    await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    outcome = await github.dispatch(PAYLOAD, 0.5, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert outcome.detail.startswith("not sent: ")
    assert len(site.world.dispatches) == 1


async def test_a_payload_beyond_githubs_bound_is_not_sent(site: Site, github: GitHubApp) -> None:
    large = DispatchPayload("datagov", "PB-1", "x" * 65_536, "detect", 0)
    assert (await github.dispatch(large, PATIENCE_S, nobody_objects)).call is Call.REFUSED
    assert not site.world.calls


@pytest.mark.parametrize(
    ("repo", "issue", "body"),
    [
        ("owner/core", 1, "hello"),
        ("..", 1, "hello"),
        ("core", 0, "hello"),
        ("core", 1, "  "),
        ("core", 1, "x" * 65_537),
    ],
)
async def test_a_comment_that_cannot_be_posted_is_not_sent(
    site: Site, github: GitHubApp, repo: str, issue: int, body: str
) -> None:
    assert (
        await github.comment(repo, issue, body, PATIENCE_S, nobody_objects)
    ).call is Call.REFUSED
    assert not site.world.calls


async def test_without_an_app_everything_is_refused_by_name() -> None:
    nothing = NoGitHub()
    for outcome in (
        await nothing.dispatch(PAYLOAD, PATIENCE_S, nobody_objects),
        await nothing.comment("core", 1, "hello", PATIENCE_S, nobody_objects),
    ):
        assert outcome.call is Call.REFUSED
        assert outcome.detail == "no GitHub App is configured"
    [sentence] = await nothing.missing()
    assert sentence.startswith("no GitHub App is configured")
    await nothing.aclose()


async def test_a_call_that_is_no_longer_wanted_when_its_turn_comes_is_not_sent(
    site: Site, github: GitHubApp
) -> None:
    asked_at: list[float] = []

    async def cancelled_meanwhile() -> str:
        asked_at.append(site.clock.elapsed_s)
        return "" if len(asked_at) == 1 else "the run is CANCELLED"

    site.plan(Trouble.LIMIT_SECONDARY, Endpoint.DISPATCH, wait_s=15)
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, cancelled_meanwhile)
    assert outcome.call is Call.REFUSED
    assert outcome.detail == "not sent: the run is CANCELLED"
    assert asked_at == [0, 15], "it is asked before each sending, after the wait"
    assert not site.world.dispatches


async def test_a_process_that_stood_still_while_it_waited_for_its_turn_sends_nothing(
    site: Site, github: GitHubApp
) -> None:
    await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    sleep = site.clock.sleep

    async def stopped(seconds: float) -> None:
        await sleep(seconds + 130)

    site.clock.sleep = stopped  # type: ignore[method-assign] # SIGSTOP for two minutes
    outcome = await github.dispatch(PAYLOAD, PATIENCE_S, nobody_objects)
    assert outcome.call is Call.REFUSED
    assert len(site.world.dispatches) == 1
