from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.certificates import certificate
from tests.doors.site import Site, site


@pytest.fixture
async def door() -> AsyncIterator[Site]:
    async with site() as found:
        yield found


@pytest.fixture(scope="session")
def tls_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the files of a certificate and of its key."""
    return certificate().in_files(tmp_path_factory.mktemp("tls"))
