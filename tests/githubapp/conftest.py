"""The stand-in, fresh for each test."""

from collections.abc import AsyncIterator

import pytest

from core_console.githubapp.app import GitHubApp
from tests.githubapp.site import Site, serving


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serving() as served:
        yield served


@pytest.fixture
def github(site: Site) -> GitHubApp:
    return site.client()
