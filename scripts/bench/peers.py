"""An outside call arrives, a durable run exists and its first step has started: us and our peers.

Run: .venv/bin/python -m scripts.bench.peers --venv FOLDER. The peers are no dependencies of the
project: they are looked for in that virtualenv (celery and redis; dbos and psycopg; restate-sdk
and hypercorn) and on the path (Debian's redis-server and PostgreSQL; restate-server may also lie
in the virtualenv's bin), and what is missing is said in a line and left out.

Ours is a console process on a full document, asked over gRPC; its step waits for an approval. The
first rate of its ratio counts RunNow and the CancelRun that ends the run, two durable calls; the
one in brackets only RunNow, so that a run is ended in both. A peer's step says that it started;
its run then ends by itself.
"""

import argparse
import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console as Screen

from scripts.bench import peer_servers
from scripts.bench.consoles import root_with, serving
from scripts.bench.measuring import Row, row_of, show
from scripts.bench.peer_load import Loaded
from scripts.bench.run_now import FULL_BYTES, document
from scripts.bench.transitions import start_and_end

CALLERS = (1, 16)
SCREEN = Screen()


@dataclass(frozen=True)
class Peer:
    """A peer: the packages and the server that it needs, and the module that loads it."""

    name: str
    module: str
    packages: tuple[str, ...]
    server: str
    find: Callable[[Path], str | None]
    serve: Callable[[str, Path], AbstractContextManager[dict[str, str]]]


PEERS = (
    Peer(
        "Celery + Redis",
        "peer_celery",
        ("celery", "redis"),
        "redis-server",
        peer_servers.redis_server,
        peer_servers.redis,
    ),
    Peer(
        "DBOS + PostgreSQL",
        "peer_dbos",
        ("dbos", "psycopg"),
        "PostgreSQL",
        peer_servers.postgres,
        peer_servers.database,
    ),
    Peer(
        "Restate",
        "peer_restate",
        ("restate", "hypercorn"),
        "restate-server",
        peer_servers.restate_server,
        peer_servers.restate,
    ),
)


def missing(peer: Peer, venv: Path) -> list[str]:
    """Return what the peer lacks."""
    python = venv / "bin/python"
    if not python.exists():
        return [f"a virtualenv at {venv}"]
    code = (
        "import sys, importlib.util as u; print(*(n for n in sys.argv[1:] if not u.find_spec(n)))"
    )
    asked = (str(python), "-c", code, *peer.packages)
    lacks = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.split()
    return lacks if peer.find(venv) else [*lacks, peer.server]


def of_peer(peer: Peer, folder: Path, venv: Path, seconds: float) -> list[Row]:
    """Serve what the peer needs, and measure it."""
    folder.mkdir()
    program = peer.find(venv)
    assert program is not None
    with peer.serve(program, folder) as env:
        command = (venv / "bin/python", "-m", f"scripts.bench.{peer.module}")
        done = subprocess.run(
            (*command, *map(str, CALLERS), str(seconds)),
            check=True,
            env={**os.environ, **env, "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.PIPE,
            text=True,
        )
    loads = [Loaded(**json.loads(line)) for line in done.stdout.splitlines()]
    assert [each.callers for each in loads] == list(CALLERS), done.stdout
    return [
        row_of(f"{peer.name}, {_callers(each.callers)}", each.times_ms, each.wall_s)
        for each in loads
    ]


def ours(folder: Path, seconds: float) -> list[Row]:
    """Measure a console; it is measured anew beside each peer, for the machine drifts."""
    root = root_with(folder, document(FULL_BYTES))
    rows = []
    with serving(root) as console:
        for callers in CALLERS:
            load = asyncio.run(start_and_end([console.address], root.token, callers, seconds))
            rows.append(load.row(f"core-console, {_callers(callers)}"))
    return rows


def _callers(number: int) -> str:
    return f"{number} caller{'s' if number > 1 else ''}"


def compared(our: Row, their: Row) -> tuple[Row, Row]:
    """Return both rows, the peer's with what ours is to it."""
    calls = our.rate / their.rate
    ratio = f"ours is {calls:.2f} x ({calls / 2:.2f} x)"
    return our, replace(their, ratio=ratio)


def measured(folder: Path, venv: Path, seconds: float) -> list[Row]:
    """Measure each peer that is there, and ours beside it."""
    rows: list[Row] = []
    for peer in PEERS:
        if lacks := missing(peer, venv):
            SCREEN.print(f"{peer.name} is left out: {', '.join(lacks)} is not installed")
            continue
        our = ours(folder / f"ours-{peer.module}", seconds)
        their = of_peer(peer, folder / peer.module, venv, seconds)
        for pair in zip(our, their, strict=True):
            rows += compared(*pair)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--venv", type=Path, default=Path("peers"), help="where the peers are")
    parser.add_argument("--seconds", type=float, default=4.0, help="time of each row, at most 30")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name).absolute()
        folder.chmod(0o755)  # a database that runs as another user has to get to its own
        rows = measured(folder, given.venv, min(given.seconds, 30.0))
    show(rows, json_path=given.json)


if __name__ == "__main__":
    main()
