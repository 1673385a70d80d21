"""The stand-in as a server: its world, its API, its runner, on a loopback port.

Owns the wiring and the connections that a fault may cut. Never listens beyond this machine.
"""

import socket
from asyncio import Transport
from typing import cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from core_console.standin.api import Connections

_HOST = "127.0.0.1"

# A call that hangs on purpose must not keep the process.
_GRACE_S = 2


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
