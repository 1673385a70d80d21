"""The sites that several modules share, each started once for the whole run."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders import AUTHOR, SECOND, STRANGER
from tests.e2e.processes import Fake
from tests.e2e.site import Caller, Console, StandIn, a_console, silent_tree


@dataclass(frozen=True, slots=True)
class Site:
    """A console, its GitHub, and who uses them; `time` moves both processes' clocks."""

    console: Console
    github: StandIn
    author: Caller
    second: Caller
    stranger: Caller
    time: Fake | None = None


def _site(folder: Path, *, tree: Path | None, time: Fake | None) -> Iterator[Site]:
    settings = {"CORE_ATLAS_ADMINS": f"{AUTHOR},{SECOND}", "CONSOLE_SESSION_ADMINS": SECOND}
    with a_console(folder, None, **settings) as console:
        github = StandIn(folder, console_http=console.http, tree=tree, time=time)
        try:
            console.know(github)
            console.start(time)
            author, second, stranger = map(console.caller, (AUTHOR, SECOND, STRANGER))
            yield Site(console, github, author, second, stranger, time)
        finally:
            console.close()
            github.close()


@pytest.fixture(scope="session")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Give a site whose agents repository holds what ships: a dispatch really runs the agent."""
    yield from _site(tmp_path_factory.mktemp("shipped"), tree=None, time=None)


@pytest.fixture(scope="session")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Give a site in whose agents repository nothing listens: the test reports by itself."""
    folder = tmp_path_factory.mktemp("silent")
    yield from _site(folder, tree=silent_tree(folder / "tree"), time=Fake(folder))
