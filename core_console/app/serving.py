"""Serving: the listeners of one console, opened, announced and closed in order.

Owns how a console meets the network and the signals that stop it. It decides nothing.
"""

import asyncio
import signal
import socket

import click
import structlog
import uvicorn

from core_console import logs
from core_console.addresses import Address
from core_console.app import descriptors
from core_console.app.console import Console
from core_console.doors import server as door_server
from core_console.ports import Fault
from core_console.rpc import server as rpc_server
from core_console.settings import Settings
from core_console.store import serving

_log = structlog.get_logger(__name__)


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; raise Fault when the console cannot start."""
    logs.configure()
    connections_max = _connections_max()
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(logs.LoopTroubles())
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    console = Console(settings)
    await console.learn_organisation()
    with serving.shared(settings.root):
        await _serve(console, connections_max, stop)


async def _serve(console: Console, connections_max: int, stop: asyncio.Event) -> None:
    settings = console.settings
    async with console.running():
        listener = console.listener(connections_max=connections_max)
        answered_max = connections_max // door_server.ACCEPTED_PER_ANSWERED
        doors = door_server.listening(_bound(settings.http_addr), connections_max=answered_max)
        http = door_server.DoorServer(_http_config(console, settings, answered_max), doors)
        await listener.start()
        http_task = asyncio.create_task(http.serve(), name="http")
        host, port = settings.grpc_addr.host, listener.port
        click.echo(
            f"core-console serves gRPC on {Address(host, port)} "
            f"and HTTP on {Address(settings.http_addr.host, doors.port)}"
        )
        await stop.wait()
        console.engine.release()
        http.should_exit = True
        await asyncio.gather(listener.stop(), http_task)


def _connections_max() -> int:
    """Return how many connections each port may have, and tell when they are few."""
    most, files = rpc_server.CONNECTIONS_MAX, descriptors.raise_limit()
    found = descriptors.connections_of(files, most)
    if found < most:
        _log.warning("few_files_may_be_open", files=files, connections_of_each_port=found)
    return found


def _http_config(console: Console, settings: Settings, connections_max: int) -> uvicorn.Config:
    tls = settings.tls
    return door_server.config(
        console.doors(),
        host=settings.http_addr.host,
        port=settings.http_addr.port,
        tls_cert=None if tls is None else str(tls.cert),
        tls_key=None if tls is None else str(tls.key),
        connections_max=connections_max,
    )


def _bound(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        listening = socket.create_server((address.host, address.port), family=family)
        # What is accepted inherits it. asyncio sets it only on sockets that name their protocol,
        # and without it an answer in two pieces waits 40 ms for the peer's acknowledgement.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as error:
        raise Fault(
            f"{address} cannot be bound: {error.strerror or error}", retryable=False
        ) from error
    return listening
