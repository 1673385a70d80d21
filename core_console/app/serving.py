"""Serving: the listeners of one console, opened, announced and closed in order.

Owns how a console meets the network and the signals that stop it. It decides nothing.
"""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import click
import uvicorn

from core_console import logs
from core_console.addresses import Address
from core_console.app.console import Console
from core_console.doors import server as door_server
from core_console.ports import Fault
from core_console.settings import Settings


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; raise Fault when the console cannot start."""
    logs.configure()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    console = Console(settings)
    await console.learn_organisation()
    async with console.running():
        listener = console.listener()
        http_socket = _bound(settings.http_addr)
        http = HttpServer(_http_config(console, settings))
        await listener.start()
        http_task = asyncio.create_task(http.serve([http_socket]), name="http")
        host, port = settings.grpc_addr.host, listener.port
        http_port = http_socket.getsockname()[1]
        click.echo(
            f"core-console serves gRPC on {Address(host, port)} "
            f"and HTTP on {Address(settings.http_addr.host, http_port)}"
        )
        await stop.wait()
        http.should_exit = True
        await asyncio.gather(listener.stop(), http_task)


class HttpServer(uvicorn.Server):
    """uvicorn without its own signal handling: one signal stops the whole console in order."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone."""
        yield


def _http_config(console: Console, settings: Settings) -> uvicorn.Config:
    tls = settings.tls
    return door_server.config(
        console.doors(),
        host=settings.http_addr.host,
        port=settings.http_addr.port,
        tls_cert=None if tls is None else str(tls.cert),
        tls_key=None if tls is None else str(tls.key),
    )


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except OSError as error:
        raise Fault(
            f"{address} cannot be bound: {error.strerror or error}", retryable=False
        ) from error
