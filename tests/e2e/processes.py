"""Real processes for a test: started, waited for, and ended by their own ids.

Owns nothing of what they do. Each process writes its standard error to a file, so that a failure
can be read and a log can be searched.
"""

import os
import selectors
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

READY_S = 60.0
"""A start takes a second; the machine that runs the tests may be busy with others."""

END_S = 60.0

POLL_S = 0.05

_pause = threading.Event()

T = TypeVar("T")


def free_port() -> int:
    """Return a loopback port that nobody listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without a console's settings, and with these.

    gRPC writes its verbosity into the environment of whoever imports it, such as the tests.
    """
    own = ("CONSOLE_", "CORE_", "FAKETIME", "GRPC_VERBOSITY")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    venv = str(Path(sys.executable).parent)
    path = os.pathsep.join((venv, kept.get("PATH", os.defpath)))
    return kept | {"PYTHONUNBUFFERED": "1", "PATH": path} | variables


def eventually(look: Callable[[], T], *, within_s: float = READY_S) -> T:
    """Return what `look` finds once it is true; fail with what it saw last."""
    until = time.monotonic() + within_s
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < until, f"it did not happen within {within_s:.0f} s: {found!r}"
        _pause.wait(POLL_S)


class Process:
    """One process; `log` is the file with its standard error."""

    def __init__(
        self,
        arguments: Sequence[str],
        env: Mapping[str, str],
        log: Path,
        *,
        cwd: Path | None = None,
    ) -> None:
        self.log = log
        with log.open("ab") as errors:
            self.popen = subprocess.Popen(
                arguments,
                env=dict(env),
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    @property
    def pid(self) -> int:
        """Its id."""
        return self.popen.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.popen.poll() is None

    @property
    def stdout(self) -> IO[str]:
        """Its standard output."""
        assert self.popen.stdout is not None
        return self.popen.stdout

    def first_line(self) -> str:
        """Return the line by which a server says that it is ready; fail with its log."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.stdout, selectors.EVENT_READ)
            came = selector.select(READY_S)
        line = self.stdout.readline() if came else ""
        if not line:
            self.kill()
        assert line, f"it did not get ready:\n{self.log.read_text()[-4_000:]}"
        return line.strip()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self.popen.send_signal(number)

    def wait(self, within_s: float = END_S) -> int:
        """Return its exit code."""
        code = self.popen.wait(within_s)
        self.stdout.close()
        return code

    def kill(self) -> None:
        """End it at once, as `kill -9` does."""
        self.popen.kill()
        self.wait()

    def terminate(self) -> int:
        """Ask it to end, and return its exit code."""
        self.popen.terminate()
        return self.wait()

    def close(self) -> None:
        """End it if it still runs: terminated, and killed if that does not help."""
        if not self.running:
            self.stdout.close()
            return
        self.popen.terminate()
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self.kill()


class Fake:
    """A wall clock that a test moves while processes run; what never jumps stays real.

    Debian's faketime; the product has no clock for tests.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "faketime"
        self.move("+0")
        done = subprocess.run(
            ("faketime", "-m", "-f", "+0", "printenv", "LD_PRELOAD"),
            capture_output=True,
            text=True,
            check=True,
        )
        self.env = {
            "LD_PRELOAD": done.stdout.strip(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def move(self, offset: str) -> None:
        """Let the processes' wall clock be this far from the real one, such as `+25h`."""
        draft = self._file.with_name("faketime.new")
        draft.write_text(offset + "\n")
        draft.replace(self._file)
