from collections.abc import AsyncIterator

import pytest

from tests.doors.site import Site, site


@pytest.fixture
async def door() -> AsyncIterator[Site]:
    async with site() as found:
        yield found
