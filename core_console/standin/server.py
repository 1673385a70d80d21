"""The stand-in as a server: its world, its API, its runner, on a loopback port.

Owns the wiring and the connections that a fault may cut. Never listens beyond this machine.
"""

from asyncio import Transport
from typing import cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from core_console.standin.api import Connections

_HOST = "127.0.0.1"


def build_server(app: Starlette, connections: Connections, *, port: int = 0) -> uvicorn.Server:
    """Return a server for `app` on a loopback port (0: any), whose connections can be cut."""

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
            host=_HOST,
            port=port,
            http=Cuttable,
            lifespan="off",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=2,
        )
    )


def port_of(server: uvicorn.Server) -> int:
    """Return the port that a started server listens on."""
    port: int = server.servers[0].sockets[0].getsockname()[1]
    return port
