"""The servers that the peers need: Redis, PostgreSQL, Restate's own; each durable, in a folder.

Owns how they are found, started and ended. They listen on loopback alone and sync every write:
Redis is told to, the others do so unless told otherwise.
"""

import os
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from core_console.clock import SystemClock

_TRIES, _PAUSE_S = 150, 0.2
_POSTGRES = "usr/lib/postgresql"
"""Debian keeps the programs of each version apart and off the path."""


def redis_server(venv: Path) -> str | None:
    """Return where Redis is, None when it is not installed."""
    del venv
    return shutil.which("redis-server")


def postgres(venv: Path) -> str | None:
    """Return where PostgreSQL's programs are, None when it is not installed."""
    del venv
    debian = map(str, Path("/").glob(f"{_POSTGRES}/*/bin/initdb"))
    found = shutil.which("initdb") or max(debian, default=None)
    return str(Path(found).parent) if found else None


def restate_server(venv: Path) -> str | None:
    """Return where Restate's server is, in the virtualenv or on the path; None when nowhere."""
    return shutil.which("restate-server", path=f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port


@contextmanager
def running(
    arguments: Sequence[str], port: int, *, user: str | None = None, env: Mapping[str, str]
) -> Iterator[None]:
    """Run a server until it listens on the port, and end it with the block."""
    server = subprocess.Popen(
        arguments, user=user, env={**os.environ, **env}, stdout=subprocess.DEVNULL
    )
    try:
        for _ in range(_TRIES):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, f"{arguments[0]} ended at once"
            SystemClock().pause(_PAUSE_S)
        yield
    finally:
        server.terminate()
        server.wait(60)


@contextmanager
def redis(program: str, folder: Path) -> Iterator[dict[str, str]]:
    """Serve a Redis that syncs its log before it answers."""
    port = free_port()
    durable = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")
    where = ("--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder))
    with running((program, *where, *durable), port, env={}):
        yield {"BENCH_REDIS": str(port)}


@contextmanager
def database(programs: str, folder: Path) -> Iterator[dict[str, str]]:
    """Serve a PostgreSQL with its defaults; it refuses to be root, so then it is `postgres`."""
    user = "postgres" if os.geteuid() == 0 else None
    data, port = folder / "data", free_port()
    if user:
        shutil.chown(folder, user)
    initdb = (f"{programs}/initdb", "-D", str(data), "-U", "postgres", "-A", "trust")
    subprocess.run(initdb, user=user, check=True, stdout=subprocess.DEVNULL, cwd=folder)
    where = ("-h", "127.0.0.1", "-p", str(port), "-k", "", "-c", "log_min_messages=fatal")
    with running((f"{programs}/postgres", "-D", str(data), *where), port, user=user, env={}):
        yield {"BENCH_POSTGRES": f"postgresql://postgres@127.0.0.1:{port}/bench"}


@contextmanager
def restate(program: str, folder: Path) -> Iterator[dict[str, str]]:
    """Serve a Restate with its defaults."""
    node, ingress, admin = free_port(), free_port(), free_port()
    env = {
        "RESTATE_BIND_ADDRESS": f"127.0.0.1:{node}",
        "RESTATE_ADVERTISED_ADDRESS": f"http://127.0.0.1:{node}",
        "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
        "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
        "RESTATE_LOG_FILTER": "off",
        "DO_NOT_TRACK": "1",
    }
    arguments = (program, "--base-dir", str(folder), "--node-name", "bench")
    with running(arguments, ingress, env=env):
        _healthy(f"http://127.0.0.1:{ingress}/restate/health")
        _healthy(f"http://127.0.0.1:{admin}/health")
        yield {"BENCH_RESTATE": f"{ingress},{admin}"}


def _healthy(url: str) -> None:
    for _ in range(_TRIES):
        with suppress(OSError), urllib.request.urlopen(url, timeout=2):  # noqa: S310 -- our own server
            return
        SystemClock().pause(_PAUSE_S)
    raise AssertionError(f"{url} never became healthy")
