"""The command line against a real console: engine, store, chain and all, on a real socket."""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest
import yaml
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
            listener = console.listener()
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


@pytest.fixture
def site(tmp_path: Path, run: Cli) -> Iterator[Site]:
    environ = {
        "CONSOLE_APPFS_DIR": str(tmp_path),
        "CONSOLE_GRPC_ADDR": "127.0.0.1:0",
        "CORE_ATLAS_ADMINS": "author@example.com,second@example.com",
        "CONSOLE_SESSION_ADMINS": "auditor@example.com",
    }
    assert run("init", **environ).exit_code == Exit.OK
    tokens = {
        name: run("token", "--email", f"{name}@example.com", **environ).stdout.strip()
        for name in ("author", "second", "auditor", "stranger")
    }
    with Served(environ) as served:
        yield Site(served.address, tmp_path, run, tokens)


def test_the_main_job_is_done_from_the_command_line(site: Site) -> None:
    playbook_id = site.created()
    refused = site.as_("author", "playbook", "activate", playbook_id, "--revision", "1")
    assert refused.exit_code == Exit.REFUSED
    assert refused.stderr.startswith("PERMISSION_DENIED: four eyes: ")
    activated = site.as_("second", "playbook", "activate", playbook_id, "--revision", "1")
    assert "is ACTIVE at revision 2" in activated.stdout
    started = site.inner("run", "author", "run", "now", playbook_id, "--note", "November")
    run_id = str(started["id"])
    assert started["status"] == "RUN_STATUS_WAITING_APPROVAL"
    assert run_id in site.as_("second", "approval", "list").stdout

    own = site.as_("author", "approval", "decide", run_id, "approve", "--approve")
    assert own.exit_code == Exit.REFUSED
    assert own.stderr.startswith("PERMISSION_DENIED: four eyes: ")
    decided = site.as_("second", "approval", "decide", run_id, "approve", "--approve")
    assert decided.exit_code == Exit.OK, decided.stderr
    assert site.as_("author", "run", "watch", run_id).exit_code == Exit.OK

    shown = site.as_("stranger", "decisions").stdout
    for word in ("created", "activated", "run started", "approved"):
        assert word in shown
    verified = site.as_("auditor", "audit", "verify")
    assert verified.exit_code == Exit.OK, verified.stderr
    log = site.root / "var/log/audit"
    assert site.run("audit", "verify", "--file", str(log)).exit_code == Exit.OK


def test_a_playbook_is_read_edited_and_written_back(site: Site) -> None:
    playbook_id = site.created()
    document = site.json("author", "playbook", "get", playbook_id)
    text = yaml.safe_dump(document).replace("May it close?", "May it really close?")
    updated = site.inner(
        "playbook", "second", "playbook", "update", playbook_id, "--revision", "1", "-f", "-",
        stdin=text,
    )  # fmt: skip
    assert updated["revision"] == "2"
    assert "May it really close?" in json.dumps(updated)
    args = ("playbook", "update", playbook_id, "--revision", "1", "-f", "-")
    stale = site.as_("author", *args, stdin=PLAYBOOK)
    assert stale.exit_code == Exit.REFUSED
    assert stale.stderr.startswith("ABORTED: ")


def test_every_bad_field_has_its_line(site: Site) -> None:
    bad = PLAYBOOK.replace("id: approve", "id: ..").replace("Ask before", "x" * 121)
    result = site.as_("author", "playbook", "create", "-f", "-", stdin=bad)
    assert result.exit_code == Exit.REFUSED
    first, *lines = result.stderr.splitlines()
    assert first.startswith("INVALID_ARGUMENT: ")
    assert {line.partition(": ")[0] for line in lines} == {
        "playbook.name",
        "playbook.steps[0].id",
    }


def test_who_may_not_is_refused(site: Site) -> None:
    no_admin = site.as_("stranger", "playbook", "create", "-f", "-", stdin=PLAYBOOK)
    assert (no_admin.exit_code, no_admin.stdout) == (Exit.REFUSED, "")
    assert no_admin.stderr.startswith("PERMISSION_DENIED: stranger@example.com is not an Atlas")
    no_auditor = site.as_("author", "audit", "list")
    assert no_auditor.stderr.startswith("PERMISSION_DENIED: author@example.com may not read")
    for token in ("", "no-token-of-ours"):
        nobody = site.as_(token, "playbook", "list")
        assert nobody.exit_code == Exit.REFUSED
        assert nobody.stderr.startswith("UNAUTHENTICATED: ")


def test_a_cancelled_run_is_a_failure_to_its_watcher(site: Site) -> None:
    run_id = site.run_of_an_active_playbook()
    assert site.as_("author", "run", "cancel", run_id, "--note", "wrong").exit_code == Exit.OK
    watched = site.as_("author", "run", "watch", run_id)
    assert watched.exit_code == Exit.REFUSED
    assert "CANCELLED" in watched.stdout
    again = site.as_("author", "run", "cancel", run_id, "--note", "wrong")
    assert again.exit_code in {Exit.OK, Exit.REFUSED}


def test_the_lists_answer_and_page(site: Site) -> None:
    ids = {site.created(PLAYBOOK.replace("Ask", f"Ask {number}")) for number in range(3)}
    first = site.json("author", "playbook", "list", "--page-size", "2")
    token = str(first["nextPageToken"])
    second = site.json("author", "playbook", "list", "--page-size", "2", "--page-token", token)
    listed = [found for page in (first, second) for found in page["playbooks"]]  # type: ignore[attr-defined]  # JSON has no types
    assert {found["id"] for found in listed} == ids
    assert site.as_("author", "run", "list").exit_code == Exit.OK
    assert "why not: " in site.as_("author", "agents").stdout
    assert "identity.token.issue" in site.as_("auditor", "audit", "list").stdout


def test_a_rotated_key_ends_the_tokens_of_a_running_console(site: Site) -> None:
    assert site.as_("author", "playbook", "list").exit_code == Exit.OK
    assert site.run("init", "--rotate", CONSOLE_APPFS_DIR=str(site.root)).exit_code == Exit.OK
    ended = site.as_("author", "playbook", "list")
    assert ended.exit_code == Exit.REFUSED
    assert "issue a new one" in ended.stderr


def test_an_open_console_reads_and_refuses_to_write(tmp_path: Path, run: Cli) -> None:
    environ = {"CONSOLE_APPFS_DIR": str(tmp_path), "CONSOLE_GRPC_ADDR": "127.0.0.1:0"}
    with Served(environ) as served:
        assert run("playbook", "list", CORE_CONSOLE_URL=served.address).exit_code == Exit.OK
        write = run(
            "playbook", "create", "-f", "-", stdin=PLAYBOOK, CORE_CONSOLE_URL=served.address
        )
    assert write.exit_code == Exit.REFUSED
    assert write.stderr.startswith("UNAUTHENTICATED: this console has no sign-in configured")
