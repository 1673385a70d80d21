"""The stand-in as a server: its world, its API and its runner on a loopback port.

Owns the wiring and the connections that a fault may cut. Never listens beyond this machine.
"""

import asyncio
import signal
import socket
from asyncio import Transport
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import uvicorn
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from core_console.clock import SystemClock
from core_console.standin.api import Connections, build_api
from core_console.standin.api_control import Control
from core_console.standin.faults import Plans
from core_console.standin.runner import Runner
from core_console.standin.state import App, World

_HOST = "127.0.0.1"

# A call that hangs on purpose must not keep the process.
_GRACE_S = 2

# What the demo and the tests may comment on in the agents repository.
_ISSUES = range(1, 11)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the process is told: the App's id and key (PEM, either half), names and places."""

    port: int
    app_id: int
    app_key: bytes
    org: str
    agents_repo: str
    workflows: Path
    console_url: str
    server_url: str
    state_dir: Path


def public_key_of(pem: bytes) -> bytes:
    """Return the public half (PEM) of an RSA key of which either half is given.

    Raises:
        ValueError: it is no such key.
    """
    try:
        private = b"PRIVATE KEY" in pem
        key = load_pem_private_key(pem, None).public_key() if private else load_pem_public_key(pem)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("the App's key is not an unencrypted PEM key") from None
    if not isinstance(key, RSAPublicKey):
        raise ValueError("the App's key is not an RSA key")  # noqa: TRY004 -- a bad file, not a bad type
    return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def listening(port: int) -> socket.socket:
    """Return a socket that listens on a loopback port, 0 for any that is free."""
    return socket.create_server((_HOST, port))


def address_of(listener: socket.socket) -> str:
    """Return the address that a client calls."""
    return f"http://{_HOST}:{listener.getsockname()[1]}"


def build_server(app: Starlette, connections: Connections) -> uvicorn.Server:
    """Return a server for `app` whose connections can be cut."""

    class Cuttable(H11Protocol):
        """HTTP as uvicorn speaks it, with the connection in reach of a fault."""

        def connection_made(self, transport: Transport) -> None:  # type: ignore[override] # as in the base
            super().connection_made(transport)
            connections[cast("tuple[str, int]", self.client)] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            connections.pop(cast("tuple[str, int]", self.client), None)
            super().connection_lost(exc)

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Cuttable,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE_S,
        )
    )


def build_world(options: Options, runner: Runner) -> World:
    """Return a world with one organisation, its agents repository and the App on it."""
    client_id, key = f"Iv23li{options.app_id:014d}", public_key_of(options.app_key)
    app = App(options.app_id, client_id, "core-console", 90_001, key)
    world = World(SystemClock(), app, on_dispatch=runner.dispatch)
    installation = world.add_installation(options.org)
    world.add_repository(installation, options.agents_repo, issues=set(_ISSUES))
    return world


def told(world: World, url: str) -> dict[str, Any]:
    """Return what a caller needs to know, once the server is ready."""
    [installation] = world.installations.values()
    [repository] = world.repositories.values()
    return {
        "url": url,
        "graphql_url": f"{url}/graphql",
        "app_id": world.app.id,
        "client_id": world.app.client_id,
        "installation_id": installation.id,
        "org": installation.account.login,
        "org_id": installation.account.id,
        "agents_repo": repository.name,
        "issues": sorted(repository.issues),
    }


@asynccontextmanager
async def _running(options: Options, url: str) -> AsyncIterator[Runner]:
    """Give a runner of the organisation's workflows; its runs end with the block."""
    private = b"PRIVATE KEY" in options.app_key
    runner = Runner(
        options.workflows,
        api_url=url,
        graphql_url=f"{url}/graphql",
        server_url=options.server_url or url,
        repository=f"{options.org}/{options.agents_repo}",
        variables={
            "CORE_GH_APP_ID": str(options.app_id),
            "CORE_CONSOLE_HTTP_URL": options.console_url,
        },
        secrets={"CORE_GH_APP_PRIVATE_KEY": options.app_key.decode()} if private else {},
        work_dir=options.state_dir,
    )
    try:
        yield runner
    finally:
        await runner.close()


async def serve(options: Options, ready: Callable[[dict[str, Any]], None]) -> None:
    """Serve until SIGTERM or SIGINT; `ready` is told the addresses once they answer.

    Raises:
        OSError: the port or the folder cannot be used.
        ValueError: the key is no App key.
        WorkflowFault: a workflow would not run at GitHub.
    """
    options.state_dir.mkdir(parents=True, exist_ok=True)
    _outlive_signals()
    with listening(options.port) as listener:
        async with _running(options, address_of(listener)) as runner:
            world, connections = build_world(options, runner), cast("Connections", {})
            api = build_api(world, Plans(), connections, Control(runs=lambda: runner.runs))
            ready(told(world, address_of(listener)))
            await build_server(api, connections).serve(sockets=[listener])


def _outlive_signals() -> None:
    """Let the server end in order on a signal, with the runner's processes after it.

    The server catches the signal, and raises it again when it is done.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, lambda: None)
