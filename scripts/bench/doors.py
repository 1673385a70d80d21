"""How many events and step reports the doors take, each one durable, the bearer cached.

Run: .venv/bin/python -m scripts.bench.doors. The console is a real process, GitHub is the
stand-in; the client writes plain HTTP over kept connections. The baseline is GET /healthz, the
same server without bearer, decision and disk.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path

import httpx
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from scripts.bench.measuring import Row, clean_environment, measure, process, run

ORG = "bench-org"
APP_ID = "4242"
HEADER = "POST /api/playbook-events HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"


class Client:
    """One kept connection that sends requests one after another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, request: bytes) -> int:
        """Send one request and read its whole answer; return the status."""
        return (await self.answer(request))[0]

    async def answer(self, request: bytes) -> tuple[int, bytes]:
        """Send one request; return the answer's status and body."""
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        lower = head.lower()
        length = int(lower.split(b"content-length:")[1].split(b"\r\n")[0])
        return int(head[9:12]), await self._reader.readexactly(length)


def event_request(token: str, number: int) -> bytes:
    """Return an event of about 200 bytes as one request."""
    fields = {"agent": "datagov", "event": "bench.tick", "eventId": f"bench-{number}"}
    return request_of(token, fields | {"detail": "x" * 80})


def request_of(token: str, fields: Mapping[str, str]) -> bytes:
    """Return one request to the door of events."""
    body = json.dumps(fields)
    head = f"{HEADER}Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    return (head + body).encode()


async def load(port: int, token: str, connections: int, seconds: float, name: str) -> Row:
    """Measure one kind of request over so many connections."""
    clients = [
        Client(*await asyncio.open_connection("127.0.0.1", port)) for _ in range(connections)
    ]
    numbers = iter(range(10**9))
    health = b"GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n"

    async def call(number: int) -> float:
        request = event_request(token, time.time_ns() + next(numbers)) if token else health
        began = time.perf_counter()
        status = await clients[number].ask(request)
        assert status == HTTPStatus.OK, status
        return (time.perf_counter() - began) * 1_000

    await measure("", connections, 0.5, call)
    return await measure(name, connections, seconds, call)


def key_in(folder: Path) -> Path:
    """Return a fresh App key."""
    key = generate_private_key(public_exponent=65_537, key_size=2_048)
    path = folder / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


def measured(folder: Path, seconds: float) -> list[Row]:
    """Start the stand-in and a console, and measure its doors."""
    key = key_in(folder)
    standin = (
        *("core_console.standin", "--app-id", APP_ID, "--app-key", str(key), "--org", ORG),
        *("--state-dir", str(folder / "github")),
    )
    with process(standin, clean_environment()) as (ready, _):
        github = json.loads(ready)["url"]
        token = httpx.post(
            f"{github}/_standin/tokens", json={"kind": "app", "org": ORG}, timeout=10
        ).json()["token"]
        env = clean_environment(
            CONSOLE_APPFS_DIR=str(folder / "root"),
            CONSOLE_GRPC_ADDR="127.0.0.1:0",
            CONSOLE_HTTP_ADDR="127.0.0.1:0",
            CORE_GH_APP_ID=APP_ID,
            CORE_GH_APP_PRIVATE_KEY_FILE=str(key),
            CORE_GITHUB_ORG=ORG,
            CORE_GITHUB_API_URL=github,
            CORE_GITHUB_GRAPHQL_URL=f"{github}/graphql",
            CORE_GITHUB_SERVER_URL=github,
        )
        with process(("core_console", "serve"), env) as (line, _):
            port = int(line.rsplit(":", 1)[1])
            return asyncio.run(_rows(port, token, seconds))


async def _rows(port: int, token: str, seconds: float) -> list[Row]:
    rows = []
    for connections in (1, 16, 64):
        where = f"{connections} connections"
        bare = await load(port, "", connections, seconds / 2, f"healthz, {where}")
        row = await load(port, token, connections, seconds, f"event, {where}")
        rows += [bare, replace(row, ratio=f"{row.rate / bare.rate:.2f} of healthz")]
    return rows


if __name__ == "__main__":
    run(__doc__, measured)
