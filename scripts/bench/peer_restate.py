"""Restate: a run is an invocation that its server has stored, and its step is a `ctx.run`.

Run in the peers' virtualenv by `scripts.bench.peers`; BENCH_RESTATE is the ports of the server's
ingress and of its administration. The handlers are a process of their own; the callers ask the
ingress over kept connections.
"""

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
from importlib import import_module
from typing import Any

from scripts.bench.peer_load import Starts, asked, load, step_started

JSON = {"Content-Type": "application/json"}


def serve(port: int) -> None:
    """Serve the handlers over HTTP/2."""
    restate = import_module("restate")
    service = restate.Service("Bench")

    async def start(ctx: Any, name: str) -> None:  # noqa: ANN401 -- the package is not there to name its types
        async def step() -> None:
            step_started(name)

        await ctx.run_typed("step", step)

    service.handler()(start)
    config = import_module("hypercorn.config").Config()
    config.bind = [f"127.0.0.1:{port}"]
    asyncio.run(import_module("hypercorn.asyncio").serve(restate.app([service]), config))


class Ingress(threading.local):
    """A kept connection to the server's ingress for each thread."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def start(self, name: str) -> None:
        """Have a run started; the answer says that it is stored."""
        post(self._connection, "/Bench/start/send", name)


def post(connection: http.client.HTTPConnection, path: str, body: object) -> None:
    """Post JSON; anything but success stops the benchmark."""
    connection.request("POST", path, json.dumps(body), JSON)
    answer = connection.getresponse()
    said = answer.read()
    assert answer.status < http.HTTPStatus.MULTIPLE_CHOICES, said


def main() -> None:
    """Serve the handlers, register them, and load the server; or be the handlers' process."""
    if sys.argv[1] == "--serve":
        serve(int(sys.argv[2]))
        return
    ingress_port, admin_port = map(int, os.environ["BENCH_RESTATE"].split(","))
    starts = Starts()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = (sys.executable, "-m", "scripts.bench.peer_restate", "--serve", str(port))
    handlers = subprocess.Popen(command, stdout=sys.stderr)
    try:
        register(admin_port, port)
        ingress = Ingress(ingress_port)
        callers, seconds = asked()
        for each in callers:
            load(starts, ingress.start, each, seconds)
    finally:
        # Asked to end, they would wait for the server to hang up first; they hold nothing.
        handlers.kill()
        handlers.wait(30)


def register(admin_port: int, port: int) -> None:
    """Tell the server of the handlers, once they listen."""
    pause = threading.Event()
    for _ in range(100):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                break
        pause.wait(0.1)
    admin = http.client.HTTPConnection("127.0.0.1", admin_port, timeout=30)
    post(admin, "/deployments", {"uri": f"http://127.0.0.1:{port}"})


if __name__ == "__main__":
    main()
