"""The processes of the demo: started, waited for, and ended by their own ids.

Owns the two servers and every run of the command line. Each server's output goes to a file in
the demo's folder, so that a failure can be read.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

READY_S = 30.0
"""A server that has not said that it is ready by then never will; a start takes under a second."""

COMMAND_S = 60.0
END_S = 20.0
"""A console lets the calls under way end for up to 15 s."""


class DemoError(Exception):
    """A step of the demo did not happen; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Done:
    """What one command came to."""

    code: int
    stdout: str
    stderr: str

    @property
    def answer(self) -> Any:  # noqa: ANN401 -- whatever the command printed as JSON
        """The command's JSON."""
        return json.loads(self.stdout)


def free_port() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without a console's own settings, and with these."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CONSOLE_", "CORE_"))
    }
    return kept | {"PYTHONUNBUFFERED": "1"} | variables


def command(arguments: Sequence[str], env: Mapping[str, str]) -> Done:
    """Run `core-console` with these arguments to its end."""
    done = subprocess.run(  # noqa: S603 -- our own command
        (sys.executable, "-m", "core_console", *arguments),
        env=dict(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=COMMAND_S,
        stdin=subprocess.DEVNULL,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def server(
    name: str, arguments: Sequence[str], env: Mapping[str, str], folder: Path
) -> Iterator[str]:
    """Run a server while the block runs; yield the first line that it prints, which says ready.

    Raises:
        DemoError: it did not get ready; the end of its output is in the message.
    """
    errors = folder / f"{name}.log"
    with errors.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603 -- our own command
            (sys.executable, "-m", *arguments),
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield _ready(name, process, errors)
    finally:
        _end(process)


def _ready(name: str, process: subprocess.Popen[str], errors: Path) -> str:
    assert process.stdout is not None  # noqa: S101 -- it was asked for
    timer = signal.signal(signal.SIGALRM, _too_late)
    signal.setitimer(signal.ITIMER_REAL, READY_S)
    try:
        line = process.stdout.readline()
    except TimeoutError:
        line = ""
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, timer)
    if not line:
        tail = errors.read_text(errors="replace")[-2_000:]
        raise DemoError(f"the {name} did not get ready:\n{tail}")
    return line.strip()


def _too_late(*_: object) -> None:
    raise TimeoutError


def _end(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(END_S)
    if process.stdout is not None:
        process.stdout.close()
