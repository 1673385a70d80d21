"""A console on a real socket that answers what the test lays down, and a way to run the CLI."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeAlias

import grpc
import pytest
from click.testing import CliRunner, Result
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it ships none
from grpc_status import rpc_status
from runink.core.atlas.v1 import (
    audit_pb2_grpc,
    capex_pb2_grpc,
    governance_pb2_grpc,
    playbook_pb2_grpc,
)

from core_console.cli import cli, output, tables
from core_console.cli.failure import Exit
from tests.cli.site import Served, Site

Answer: TypeAlias = Message | Status | grpc.StatusCode


class LaidDownConsole:
    """Answers each method with what `answers` holds, the last of a list for ever."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {}
        self.streams: list[list[Answer]] = []
        self.requests: list[tuple[str, Message]] = []
        self.watched: list[Message] = []
        self.authorization: list[str] = []
        self.address = ""

    def lay_down(self, method: str, *answers: Answer) -> None:
        self.answers[method] = list(answers)

    def lay_down_stream(self, *messages: Answer) -> None:
        """Let the next stream tell this; without one WatchActivity is UNIMPLEMENTED."""
        self.streams.append(list(messages))

    def watch(self, request: Message, context: grpc.ServicerContext) -> Iterator[Message]:
        self.watched.append(request)
        told = self.streams.pop(0) if self.streams else [grpc.StatusCode.UNIMPLEMENTED]
        for each in told:
            if isinstance(each, grpc.StatusCode):
                context.abort(each, "as laid down")
            assert isinstance(each, Message)
            yield each

    def the_request(self) -> Message:
        ((_, request),) = self.requests
        return request

    def answer(self, method: str, request: Message, context: grpc.ServicerContext) -> Message:
        self.requests.append((method, request))
        metadata = dict(context.invocation_metadata())
        self.authorization.append(str(metadata.get("authorization", "")))
        answers = self.answers[method]
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(found, Status):
            context.abort_with_status(rpc_status.to_status(found))
        if isinstance(found, grpc.StatusCode):
            context.abort(found, "as laid down")
        assert isinstance(found, Message)
        return found


def _servicer(base: type, console: LaidDownConsole) -> object:
    """Return a servicer of `base` whose every method asks the console."""

    def method(name: str) -> Callable[..., Message]:
        return lambda _self, request, context: console.answer(name, request, context)

    names = [name for name in vars(base) if name[0].isupper()]
    methods: dict[str, Callable[..., object]] = {name: method(name) for name in names}
    if "WatchActivity" in methods:
        methods["WatchActivity"] = lambda _self, request, context: console.watch(request, context)
    return type(base.__name__, (base,), methods)()


@pytest.fixture
def console() -> Iterator[LaidDownConsole]:
    laid = LaidDownConsole()
    server = grpc.server(ThreadPoolExecutor(max_workers=2))
    for module, name in (
        (playbook_pb2_grpc, "PlaybookService"),
        (governance_pb2_grpc, "GovernanceService"),
        (audit_pb2_grpc, "AuditService"),
        (capex_pb2_grpc, "CapexService"),
    ):
        servicer = _servicer(getattr(module, f"{name}Servicer"), laid)
        getattr(module, f"add_{name}Servicer_to_server")(servicer, server)
    laid.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    yield laid
    server.stop(None).wait()


@pytest.fixture
def run() -> Callable[..., Result]:
    """Run the command line with only the environment that is given."""

    def invoke(*args: str, stdin: str | bytes | None = None, **environ: str) -> Result:
        bare = {
            "CORE_CONSOLE_URL": None,
            "CORE_CONSOLE_TOKEN": None,
            "CORE_CONSOLE_CA": None,
            "CONSOLE_APPFS_DIR": None,
            "COLUMNS": "400",
            "NO_COLOR": "1",
        }
        result = CliRunner().invoke(cli, args, input=stdin, env={**bare, **environ})
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def ask(console: LaidDownConsole, run: Callable[..., Result]) -> Callable[..., Result]:
    """Run a command against the laid-down console, with a token."""

    def invoke(*args: str, stdin: str | bytes | None = None) -> Result:
        return run(
            *args, stdin=stdin, CORE_CONSOLE_URL=console.address, CORE_CONSOLE_TOKEN="the-token"
        )

    return invoke


@pytest.fixture
def on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Let the answers be printed as on a terminal of so many columns."""

    def fit(columns: int) -> None:
        for module in (output, tables):
            monkeypatch.setattr(module, "screen_columns", lambda: columns)

    return fit


@pytest.fixture
def site(tmp_path: Path, run: Callable[..., Result]) -> Iterator[Site]:
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
