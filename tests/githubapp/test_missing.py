"""What keeps the console from dispatching is named, one sentence each, and asked briefly."""

import pytest

from core_console.githubapp.answers import Answer
from core_console.githubapp.app import GitHubApp
from core_console.githubapp.missing import judge_repository
from core_console.standin.faults import Endpoint, Trouble
from tests.fakes import NOON
from tests.githubapp.site import ORG, Site


async def test_nothing_is_missing_when_all_is_there(github: GitHubApp) -> None:
    assert await github.missing() == ()


async def test_no_installation_is_named(site: Site, github: GitHubApp) -> None:
    site.world.uninstall(site.installation)
    [sentence] = await github.missing()
    assert sentence == f"the App is not installed on {ORG}: install it on the organisation"


async def test_a_suspension_is_named(site: Site, github: GitHubApp) -> None:
    site.installation.suspended_at = site.clock.now()
    [sentence] = await github.missing()
    assert "suspended" in sentence


async def test_a_repository_without_the_app_is_named(site: Site, github: GitHubApp) -> None:
    site.installation.repositories.clear()
    [sentence] = await github.missing()
    assert f"no agents repository {ORG}/core" in sentence


async def test_a_renamed_repository_is_named(site: Site, github: GitHubApp) -> None:
    site.world.rename_repository(site.repository, "other")
    [sentence] = await github.missing()
    assert sentence == f"the agents repository {ORG}/core was renamed: correct CORE_AGENTS_REPO"


@pytest.mark.parametrize(
    ("permissions", "named"),
    [
        ({"contents": "read", "issues": "write"}, ["contents"]),
        ({"contents": "write", "issues": "read"}, ["issues"]),
        ({"metadata": "read"}, ["contents", "issues"]),
        ({"contents": "write", "issues": "write"}, []),
    ],
)
async def test_each_missing_permission_is_named(
    site: Site, github: GitHubApp, permissions: dict[str, str], named: list[str]
) -> None:
    site.installation.permissions = permissions
    found = await github.missing()
    assert [sentence.split(" granted ")[1].split(":")[0] for sentence in found] == named


async def test_an_outage_is_a_reason_too(site: Site, github: GitHubApp) -> None:
    site.plan(Trouble.ERROR_BEFORE, Endpoint.INSTALLATIONS)
    [sentence] = await github.missing()
    assert "502" in sentence


async def test_an_unreachable_github_is_a_reason_too(site: Site) -> None:
    client = site.client(api_url="http://127.0.0.1:9")
    assert await client.missing() == ("GitHub could not be reached",)


async def test_a_good_answer_is_kept_for_30_s_and_a_bad_one_for_5(
    site: Site, github: GitHubApp
) -> None:
    assert await github.missing() == ()
    site.installation.suspended_at = site.clock.now()
    site.clock.advance(29)
    assert await github.missing() == ()
    site.clock.advance(1)
    assert await github.missing() != ()
    site.installation.suspended_at = None
    site.clock.advance(5)
    assert await github.missing() == ()
    assert site.asked("/app/installations") == 3


async def test_a_repository_that_cannot_be_checked_is_a_reason_too(
    site: Site, github: GitHubApp
) -> None:
    site.plan(Trouble.ERROR_BEFORE, Endpoint.INSTALLATION)
    [sentence] = await github.missing()
    assert sentence.startswith("the agents repository could not be checked: ")


def test_another_installations_repository_is_not_ours() -> None:
    [sentence] = judge_repository(Answer(200, {}, b'{"id":2}'), "o/core", 1, NOON)
    assert "another installation" in sentence
