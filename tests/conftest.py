"""What holds for every test: nothing of the developer's environment, and chance that repeats."""

import os
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import settings

# A variable of whoever runs the tests must not decide what they prove.
for name in [name for name in os.environ if name.startswith(("CONSOLE_", "CORE_"))]:
    del os.environ[name]

# gRPC's own account of connections that were meant to break; read when it is first imported.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")

# On CI the same commit gives the same answer; at a desk every run looks somewhere else. No
# deadline: on a shared machine one slow example says nothing.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture(autouse=True)
def _logs_of_its_own() -> Iterator[None]:
    """Forget how a test configured the logs: they would go to a stream that has been closed."""
    yield
    structlog.reset_defaults()
