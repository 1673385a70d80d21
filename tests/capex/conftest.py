from collections.abc import AsyncIterator

import pytest

from core_console.app.feeds import FeedParts
from tests.capex.house import House


@pytest.fixture
def house() -> House:
    return House()


@pytest.fixture
async def feeds(house: House) -> AsyncIterator[FeedParts]:
    async with house.replica() as parts:
        yield parts
