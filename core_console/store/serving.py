"""Who serves a root: replicas share its lock for as long as they live, a restore takes it alone.

Owns one lock file. The system drops the lock when its holder dies, so nothing has to be cleaned up.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core_console.ports import Fault
from core_console.store.durable import make_folder, opened
from core_console.store.faults import told_as_faults

_LOCK = Path("var/lib/serving.lock")


@contextmanager
def shared(root: Path) -> Iterator[None]:
    """Serve the root while the block runs; raise Fault while it is being restored."""
    with _held(root, fcntl.LOCK_SH, "a restore of this root is under way: start again after it"):
        yield


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Have the root for oneself while the block runs; raise Fault while anybody serves it."""
    with _held(root, fcntl.LOCK_EX, "a console serves this root: stop every replica first"):
        yield


def is_served(root: Path) -> bool:
    """Say whether a replica serves the root now."""
    if not (root / _LOCK).exists():
        return False
    try:
        with alone(root):
            return False
    except Fault:
        return True


@contextmanager
def _held(root: Path, kind: int, taken: str) -> Iterator[None]:
    path = root / _LOCK
    with told_as_faults():
        make_folder(path.parent)
        opening = opened(path, os.O_RDWR | os.O_CREAT)
        descriptor = opening.__enter__()
    try:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Fault(taken, retryable=False) from None
        yield
    finally:
        opening.__exit__(None, None, None)
