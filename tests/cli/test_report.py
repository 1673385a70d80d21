"""The latest report of an agent on the command line, asked of real doors over real HTTP."""

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from core_console.cli.failure import Exit
from tests.certificates import certificate
from tests.doors.house import House, get
from tests.doors.site import Site
from tests.e2e.processes import free_port

Cli = Callable[..., Result]

DOORS = {
    "datagov": "/api/data-governance-findings",
    "recon": "/api/rules-recon/report",
    "judge": "/api/judgements",
}
BODIES: dict[str, dict[str, Any]] = {
    "datagov": {
        "agent": "datagov",
        "connectionsAssessed": 1,
        "findings": [
            {
                "control": "owner",
                "verdict": "fail",
                "domain": "sales",
                "connection": "warehouse",
                "detail": "names no owner",
            }
        ],
    },
    "recon": {
        "tenant": "north",
        "verdicts": [{"rule": "CP-002", "verdict": "drift", "detail": "tolerance is 21 days"}],
    },
    "judge": {
        "judgements": [{"id": "claim-2", "outcome": "dissent", "reason": "the ratio is 0.4"}]
    },
}
LINES = {
    "datagov": ("CONTROL VERDICT DOMAIN CONNECTION DETAIL", "owner fail sales warehouse names no "),
    "recon": ("RULE VERDICT DETAIL", "CP-002 drift tolerance is 21 days"),
    "judge": ("ID OUTCOME REASON", "claim-2 dissent the ratio is 0.4"),
}
ATTRIBUTES = {
    "datagov": "fail_count=1, warn_count=0",
    "recon": "drift=1",
    "judge": "dissent=1, unable=0",
}
agents = pytest.mark.parametrize("agent", list(DOORS))


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def ask_door(run: Cli) -> Callable[..., Any]:
    """Run `report get` beside the loop that the doors are served by."""

    async def invoke(door: Site, *args: str, token: str = "operator") -> Result:
        environ = {
            "CORE_CONSOLE_HTTP_URL": f"http://127.0.0.1:{door.port}",
            "CORE_CONSOLE_TOKEN": token,
        }
        return await asyncio.to_thread(run, "report", "get", *args, **environ)

    return invoke


@agents
async def test_the_latest_report_is_shown_with_who_sent_it_and_when(
    ask_door: Callable[..., Any], agent: str
) -> None:
    async with House().open() as door:
        assert (await door.post(BODIES[agent], path=DOORS[agent])).status == 200
        stored = (await get(door, DOORS[agent])).json
        result = await ask_door(door, agent)

    assert result.exit_code == Exit.OK, result.stderr
    shown = flat(result.stdout)
    for line in (
        f"agent {agent} reported by agent:{agent} at 2026-11-30 12:00:00 UTC",
        f"digest {stored['digest']} size {stored['sizeBytes']:,} bytes",
        *LINES[agent],
    ):
        assert line in shown
    assert ATTRIBUTES[agent] in shown


@agents
async def test_machines_get_the_answer_of_the_door_as_it_is(
    ask_door: Callable[..., Any], agent: str
) -> None:
    async with House().open() as door:
        await door.post(BODIES[agent], path=DOORS[agent])
        stored = (await get(door, DOORS[agent])).json
        result = await ask_door(door, agent, "-o", "json")

    assert (result.exit_code, result.stderr) == (Exit.OK, "")
    assert json.loads(result.stdout) == stored


@agents
async def test_an_agent_that_has_not_reported_is_told_in_one_sentence(
    ask_door: Callable[..., Any], agent: str
) -> None:
    async with House().open() as door:
        result = await ask_door(door, agent)

    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert result.stderr == f"{agent} has not reported yet\n"


@pytest.mark.parametrize("token", ["", "somebody-else"])
async def test_nobody_but_an_operator_reads_a_report(
    ask_door: Callable[..., Any], token: str
) -> None:
    async with House().open() as door:
        await door.post(BODIES["judge"], path=DOORS["judge"])
        result = await ask_door(door, "judge", token=token)

    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert "core-console token --email" in result.stderr
    assert "somebody-else" not in result.stderr


async def test_a_console_that_cannot_read_its_store_gives_no_answer(
    ask_door: Callable[..., Any],
) -> None:
    house = House()
    async with house.open() as door:
        await door.post(BODIES["judge"], path=DOORS["judge"])
        for digest in list(house.blobs.held):
            del house.blobs.held[digest]
        result = await ask_door(door, "judge")

    assert (result.exit_code, result.stdout) == (Exit.UNREACHABLE, "")
    assert "cannot answer now" in result.stderr


def test_a_port_where_nobody_listens_is_no_answer(run: Cli) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    result = run("report", "get", "recon", CORE_CONSOLE_HTTP_URL=url)

    assert result.exit_code == Exit.UNREACHABLE
    assert f"answers at {url}; is core-console serve running?" in result.stderr


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://console.example.com:8080", "plain http is for loopback only"),
        ("127.0.0.1:8080", "must be an https URL"),
        ("http://me:secret@127.0.0.1:8080", "must hold no user name"),
    ],
)
def test_an_address_that_is_none_or_would_tell_the_token_is_refused_before_anything_is_sent(
    run: Cli, url: str, told: str
) -> None:
    result = run("report", "get", "judge", CORE_CONSOLE_HTTP_URL=url, CORE_CONSOLE_TOKEN="token")

    assert result.exit_code == Exit.USAGE
    assert told in result.stderr
    assert "secret" not in result.stderr


def test_an_agent_without_a_report_door_is_a_usage_fault(run: Cli) -> None:
    result = run("report", "get", "curator")

    assert result.exit_code == Exit.USAGE
    assert "is not one of 'datagov', 'recon', 'judge'" in result.stderr


class Elsewhere:
    """Something at the address that is no console: it answers what the test lays down."""

    def __init__(self) -> None:
        self.status, self.body, self.location = 200, b"", ""
        self.paths: list[str] = []
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                told.paths.append(self.path)
                self.send_response(told.status)
                if told.location:
                    self.send_header("location", told.location)
                self.send_header("content-length", str(len(told.body)))
                self.end_headers()
                self.wfile.write(told.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- its base's
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def elsewhere() -> Iterator[Elsewhere]:
    found = Elsewhere()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.server.shutdown()
    thread.join()
    found.server.server_close()


HOSTILE = "\x1b[2J\x9b31m\u202e\r\nsays more"


@pytest.mark.parametrize("form", ["table", "json"])
def test_no_text_of_a_report_drives_the_terminal(run: Cli, elsewhere: Elsewhere, form: str) -> None:
    item = {"id": HOSTILE, "outcome": HOSTILE, "reason": HOSTILE}
    told = {"agent": HOSTILE, "reportedBy": HOSTILE, "reportedAt": "2026-11-30T12:00:00Z"}
    more = {"digest": HOSTILE, "sizeBytes": 1, "attributes": {HOSTILE: HOSTILE}}
    whole = {**told, **more, "report": {"judgements": [item]}}
    elsewhere.body = json.dumps(whole).encode()
    result = run("report", "get", "judge", "-o", form, CORE_CONSOLE_HTTP_URL=elsewhere.url)

    assert result.exit_code == Exit.OK, result.stderr
    assert "says more" in result.stdout
    assert result.stdout.replace("\n", "").isprintable()
    if form == "json":
        assert json.loads(result.stdout) == whole


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (200, b"<html>", Exit.UNREACHABLE),
        (200, b"\xff\xfe", Exit.UNREACHABLE),
        (200, b"[" * 100_000, Exit.UNREACHABLE),
        (200, b" " * (2 * 1024 * 1024 + 1), Exit.UNREACHABLE),
        (404, b"<html>\x1b[2J", Exit.REFUSED),
        (403, b'{"error": "no \\u001b[2J"}', Exit.REFUSED),
        (500, b"", Exit.UNREACHABLE),
    ],
)
def test_whatever_else_answers_there_is_told_in_one_printable_sentence(
    run: Cli, elsewhere: Elsewhere, status: int, body: bytes, code: Exit
) -> None:
    elsewhere.status, elsewhere.body = status, body
    result = run("report", "get", "judge", CORE_CONSOLE_HTTP_URL=elsewhere.url)

    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.rstrip("\n").isprintable()


def test_a_token_is_never_carried_on_by_a_redirect(run: Cli, elsewhere: Elsewhere) -> None:
    elsewhere.status, elsewhere.location = 302, f"{elsewhere.url}/taken"
    result = run(
        "report", "get", "judge", CORE_CONSOLE_HTTP_URL=elsewhere.url, CORE_CONSOLE_TOKEN="token"
    )

    assert result.exit_code == Exit.REFUSED
    assert elsewhere.paths == [DOORS["judge"]]


def test_over_tls_the_named_authority_is_trusted_and_nobody_else(
    run: Cli, elsewhere: Elsewhere, tmp_path: Path
) -> None:
    chain, key = certificate()
    own, ca = tmp_path / "own.pem", tmp_path / "ca.pem"
    own.write_bytes(key + chain)
    ca.write_bytes(chain)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    elsewhere.server.socket = context.wrap_socket(elsewhere.server.socket, server_side=True)
    elsewhere.status, elsewhere.body = 404, b'{"error": "judge has not reported yet"}'
    url = elsewhere.url.replace("http://", "https://")

    def asked(**environ: str) -> Result:
        return run("report", "get", "judge", CORE_CONSOLE_HTTP_URL=url, **environ)

    trusted = asked(CORE_CONSOLE_CA=str(ca))
    assert (trusted.exit_code, trusted.stderr) == (Exit.REFUSED, "judge has not reported yet\n")
    assert asked().exit_code == Exit.UNREACHABLE
    assert len(elsewhere.paths) == 1
    for path, told in ((tmp_path / "none.pem", "cannot be read"), (Path(__file__), "no PEM file")):
        refused = asked(CORE_CONSOLE_CA=str(path))
        assert (refused.exit_code, told in refused.stderr) == (Exit.USAGE, True), refused.stderr
