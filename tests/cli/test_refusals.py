"""What a person is told when a call is refused or nobody answers: once, and with what to do."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import grpc
import pytest
from click.testing import Result
from google.protobuf import any_pb2
from google.rpc.error_details_pb2 import BadRequest  # type: ignore[import-untyped]  # it ships none
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # it ships none

from core_console.addresses import Address
from core_console.cli.failure import Exit
from core_console.cli.probe import Found
from core_console.cli.refusal import SIGN_IN, Target, no_answer
from tests.cli.conftest import LaidDownConsole

Cli = Callable[..., Result]

FILE = "name: Quality\nsteps:\n- id: detect\n  kind: DETECT\n  dispatchAgent: {agent: datagov}\n"
INVALID = grpc.StatusCode.INVALID_ARGUMENT


def refused(code: grpc.StatusCode, sentence: str, **fields: str) -> Status:
    bad = [BadRequest.FieldViolation(field=name, description=text) for name, text in fields.items()]
    detail = any_pb2.Any()
    detail.Pack(BadRequest(field_violations=bad))
    return Status(code=code.value[0], message=sentence, details=[detail])


def told(console: LaidDownConsole, ask: Cli, answer: Status | grpc.StatusCode) -> list[str]:
    console.lay_down("RunNow", answer)
    result = ask("run", "now", "PB-1", "-o", "json")
    assert result.stdout == ""
    lines: list[str] = result.stderr.splitlines()
    return [str(result.exit_code), *lines]


def test_a_refusal_is_one_sentence_and_one_line_per_field(
    console: LaidDownConsole, ask: Cli
) -> None:
    answer = refused(INVALID, "two fields are bad", note="is\x1b long", request_id="is odd")
    assert told(console, ask, answer) == [
        "1",
        "INVALID_ARGUMENT: two fields are bad",
        "note: is long",
        "request_id: is odd",
    ]


def test_a_sentence_that_repeats_the_first_field_is_left_out(
    console: LaidDownConsole, ask: Cli
) -> None:
    one = refused(INVALID, "note: is long", note="is long")
    assert told(console, ask, one) == ["1", "INVALID_ARGUMENT: note: is long"]
    two = refused(INVALID, "note: is long (and 1 more)", note="is long", request_id="is odd")
    assert told(console, ask, two) == ["1", "INVALID_ARGUMENT: note: is long", "request_id: is odd"]


def test_a_field_is_not_named_twice(console: LaidDownConsole, ask: Cli) -> None:
    answer = refused(INVALID, "note: note is late", note="note is late")
    assert told(console, ask, answer) == ["1", "INVALID_ARGUMENT: note is late"]


def test_fields_for_which_the_answer_had_no_room_are_counted(
    console: LaidDownConsole, ask: Cli
) -> None:
    answer = refused(INVALID, "note: is long (and 40 more)", note="is long", request_id="is odd")
    assert told(console, ask, answer)[-1] == (
        "and 39 more, of which the answer has no room to tell"
    )


def test_a_field_that_the_file_leaves_out_is_placed_where_it_belongs(
    console: LaidDownConsole, ask: Cli
) -> None:
    answer = refused(
        INVALID,
        "bad",
        **{
            "playbook.steps[0].dispatch_agent.timeout_minutes": "is odd",
            "playbook.steps[0].title": "is required",
            "playbook.triggers": "has 9 items",
            "playbook.steps[0].dispatch_agent": "is late",
        },
    )
    console.lay_down("CreatePlaybook", answer)
    result = ask("playbook", "create", "-f", "-", stdin=FILE)
    assert result.exit_code == Exit.REFUSED
    assert set(result.stderr.splitlines()) == {
        "INVALID_ARGUMENT: bad",
        "standard input, line 5: dispatchAgent.timeout_minutes: is odd",
        "standard input, line 3: steps[0].title: is required",
        "standard input: triggers: has 9 items",
        "standard input, line 5: dispatchAgent: is late",
    }


def test_who_is_not_signed_in_is_told_how(console: LaidDownConsole, ask: Cli) -> None:
    assert told(console, ask, grpc.StatusCode.UNAUTHENTICATED) == [
        "1",
        "UNAUTHENTICATED: as laid down",
        SIGN_IN,
    ]


def test_what_the_console_itself_cannot_do_now_is_its_own_sentence(
    console: LaidDownConsole, ask: Cli
) -> None:
    assert told(console, ask, grpc.StatusCode.UNAVAILABLE) == [
        "3",
        f"the console at {console.address} cannot answer now: as laid down",
    ]
    assert told(console, ask, grpc.StatusCode.DEADLINE_EXCEEDED) == [
        "3",
        f"the console at {console.address} did not answer in time; it may be busy",
    ]


def test_a_port_on_which_nothing_answers_is_told_as_such(run: Cli) -> None:
    result = run("agents", "--url", "127.0.0.1:1")
    assert result.exit_code == Exit.UNREACHABLE
    assert result.stderr == "nothing answers at 127.0.0.1:1; is core-console serve running?\n"


@contextmanager
def http_port() -> Iterator[str]:
    class Quiet(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    class Calm(HTTPServer):
        def handle_error(self, *_: object) -> None:
            pass

    with Calm(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_http_port_is_told_from_the_grpc_one(run: Cli) -> None:
    with http_port() as address:
        result = run("agents", CORE_CONSOLE_URL=address)
    assert result.exit_code == Exit.UNREACHABLE
    assert result.stderr.startswith(f"{address} is an HTTP port; CORE_CONSOLE_URL takes the gRPC")


def test_a_console_without_tls_is_told_from_one_with_it(console: LaidDownConsole, run: Cli) -> None:
    result = run("agents", CORE_CONSOLE_URL=f"https://{console.address}")
    assert result.exit_code == Exit.UNREACHABLE
    assert result.stderr.startswith(f"{console.address} does not speak TLS: write ")


def test_a_host_that_does_not_exist_is_told_as_such(run: Cli) -> None:
    result = run("agents", CORE_CONSOLE_URL="https://console.invalid:7443")
    assert result.exit_code == Exit.UNREACHABLE
    assert result.stderr == "there is no host named console.invalid; check CORE_CONSOLE_URL\n"


@pytest.mark.parametrize("found", Found)
@pytest.mark.parametrize("is_secure", [True, False])
def test_nothing_that_is_found_is_told_in_grpc_s_own_words(
    found: Found, *, is_secure: bool
) -> None:
    said = no_answer(found, Target(Address("127.0.0.1", 7443), is_secure))
    assert "console" in said.lower() or "127.0.0.1:7443" in said
    assert not any(word in said for word in ("ipv4", "StatusCode", "handshake", "errno"))


def test_who_accepts_and_says_nothing_is_not_waited_for_long(
    run: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core_console.cli.client._CALL_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        result = run("agents", CORE_CONSOLE_URL=f"127.0.0.1:{mute.getsockname()[1]}")
    assert result.exit_code == Exit.UNREACHABLE
    assert len(result.stderr.splitlines()) == 1
