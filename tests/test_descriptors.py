"""How many files a process may open, and what strangers get of them."""

import resource
from collections.abc import Iterator

import pytest

from core_console.app import descriptors
from core_console.ports import Fault


@pytest.fixture
def limits() -> Iterator[tuple[int, int]]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield before
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_is_raised_as_far_as_it_may(limits: tuple[int, int]) -> None:
    _, hard = limits
    resource.setrlimit(resource.RLIMIT_NOFILE, (512, hard))
    raised = descriptors.raise_limit()
    assert raised == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert raised == (
        descriptors.WANTED if hard == resource.RLIM_INFINITY else min(hard, descriptors.WANTED)
    )
    assert descriptors.raise_limit() == raised


@pytest.mark.parametrize(
    ("files", "connections"), [(65_536, 1_024), (2_176, 1_024), (1_024, 448), (192, 32)]
)
def test_both_ports_together_leave_what_the_console_needs(files: int, connections: int) -> None:
    assert descriptors.connections_of(files, 1_024) == connections
    assert files - 2 * connections >= descriptors.RESERVED


def test_too_few_files_are_a_fault_that_says_what_to_do() -> None:
    with pytest.raises(Fault, match="needs 192: raise its limit"):
        descriptors.connections_of(191, 1_024)
