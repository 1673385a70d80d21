"""A running console and the command line as one operator or another.

Owns the starting and stopping of a real console, engine, store, chain and all, on a real socket.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from click.testing import Result

from core_console.app import Console
from core_console.cli.failure import Exit
from core_console.settings import load

Cli = Callable[..., Result]

PLAYBOOK = """\
name: Ask before the month closes
steps:
  - id: approve
    kind: VALIDATE
    require_approval: {prompt: "May it close?"}
"""


class Served:
    """A console that serves gRPC from a thread of its own until it is stopped."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.address = ""
        self._environ = environ
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    async def _serve(self) -> None:
        console = Console(load(self._environ))
        async with console.running():
            listener = console.listener(connections_max=64)
            await listener.start()
            self.address = f"127.0.0.1:{listener.port}"
            self._ready.set()
            await self._stop.wait()
            await listener.stop()

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
        self._loop.close()


@dataclass
class Site:
    """A running console, and the command line as one operator or another."""

    address: str
    root: Path
    run: Cli
    tokens: dict[str, str]

    def as_(self, name: str, *args: str, stdin: str | None = None) -> Result:
        token = self.tokens.get(name, name)
        return self.run(*args, stdin=stdin, CORE_CONSOLE_URL=self.address, CORE_CONSOLE_TOKEN=token)

    def json(self, name: str, *args: str, stdin: str | None = None) -> dict[str, object]:
        result = self.as_(name, *args, "-o", "json", stdin=stdin)
        assert result.exit_code == Exit.OK, result.stderr
        found = json.loads(result.stdout)
        assert isinstance(found, dict)
        return found

    def created(self, text: str = PLAYBOOK) -> str:
        return str(
            self.inner("playbook", "author", "playbook", "create", "-f", "-", stdin=text)["id"]
        )

    def inner(self, key: str, name: str, *args: str, stdin: str | None = None) -> dict[str, object]:
        found = self.json(name, *args, stdin=stdin)[key]
        assert isinstance(found, dict)
        return found

    def run_of_an_active_playbook(self) -> str:
        playbook_id = self.created()
        self.json("second", "playbook", "activate", playbook_id, "--revision", "1")
        return str(self.inner("run", "author", "run", "now", playbook_id)["id"])
