from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.rpc.site import Site, site


@pytest.fixture
async def console(tmp_path: Path) -> AsyncIterator[Site]:
    async with site(tmp_path) as made:
        yield made


@pytest.fixture
async def open_console(tmp_path: Path) -> AsyncIterator[Site]:
    async with site(tmp_path, is_open=True) as made:
        yield made
