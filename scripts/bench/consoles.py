"""Console processes for the benchmarks: a root that holds a document, and those that serve it.

Owns no measurement. Every console is a real process on loopback, and ends with its block.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import httpx

from core_console.app import DOCUMENT_PATH
from core_console.clock import RandomIds, SystemClock
from core_console.governance.rootkey import KeyFile, make_key
from core_console.governance.tokens import issue
from core_console.model.codec import encode
from core_console.model.document import Document
from core_console.store.file import FileDocument
from scripts.bench.doors import APP_ID, ORG, key_in
from scripts.bench.measuring import clean_environment, process
from scripts.bench.run_now import OPERATOR

SERVE = ("core_console", "serve")
_TOKEN_LASTS = timedelta(hours=3)
"""Longer than the longest benchmark."""


@dataclass(frozen=True)
class Root:
    """A console's folder, and an operator's token for it."""

    path: Path
    token: str


@dataclass(frozen=True)
class Console:
    """A console process: where it serves, and its id."""

    address: str
    http_port: int
    pid: int

    def written_bytes(self) -> int:
        """Return how many bytes the process gave the system to write.

        `write_bytes` would count a large page whole when a part of it changes again: nearly twice
        what reaches the disk, where these bytes differ from it by its own book-keeping alone.
        """
        counts = Path(f"/proc/{self.pid}/io").read_text(encoding="ascii")
        return int(counts.split("wchar:")[1].split()[0])


@dataclass(frozen=True)
class GitHub:
    """The stand-in: the settings that name it, and an installation token that it gave out."""

    settings: Mapping[str, str]
    token: str


def root_with(path: Path, stored: Document) -> Root:
    """Make a root that holds the document."""
    asyncio.run(_store(path, stored))
    make_key(path, RandomIds())
    key = KeyFile(path).current()
    assert key is not None
    now, token_id = SystemClock().now(), RandomIds().new("TOK")
    return Root(path, issue(OPERATOR, _TOKEN_LASTS, key=key, now=now, token_id=token_id))


async def _store(path: Path, stored: Document) -> None:
    store = FileDocument(path / DOCUMENT_PATH)
    await store.swap("", encode(stored))
    store.close()


def launched(*options: str) -> tuple[str, ...]:
    """Return how to serve with the launcher's options."""
    return ("scripts.bench.launch", *options, "serve")


@contextmanager
def serving(
    root: Root, how: tuple[str, ...] = SERVE, settings: Mapping[str, str] | None = None
) -> Iterator[Console]:
    """Serve the root by one process; `settings` are variables of its environment."""
    env = clean_environment(
        CONSOLE_APPFS_DIR=str(root.path),
        CONSOLE_GRPC_ADDR="127.0.0.1:0",
        CONSOLE_HTTP_ADDR="127.0.0.1:0",
    )
    with process(how, {**env, **(settings or {})}) as (line, pid):
        assert " gRPC on " in line, "the console did not start"
        address = line.split(" gRPC on ")[1].split()[0]
        yield Console(address, int(line.rsplit(":", 1)[1]), pid)


@contextmanager
def github(folder: Path) -> Iterator[GitHub]:
    """Run the stand-in for GitHub."""
    key = key_in(folder)
    arguments = (
        *("core_console.standin", "--app-id", APP_ID, "--app-key", str(key), "--org", ORG),
        *("--state-dir", str(folder / "github")),
    )
    with process(arguments, clean_environment()) as (ready, _):
        url = json.loads(ready)["url"]
        asked = {"kind": "app", "org": ORG}
        answer = httpx.post(f"{url}/_standin/tokens", json=asked, timeout=10)
        settings = {
            "CORE_GH_APP_ID": APP_ID,
            "CORE_GH_APP_PRIVATE_KEY_FILE": str(key),
            "CORE_GITHUB_ORG": ORG,
            "CORE_GITHUB_API_URL": url,
            "CORE_GITHUB_GRAPHQL_URL": f"{url}/graphql",
            "CORE_GITHUB_SERVER_URL": url,
        }
        yield GitHub(settings, answer.json()["token"])
