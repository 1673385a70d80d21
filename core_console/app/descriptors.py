"""How many files this process may have open, and who gets them: connections never get them all.

Owns the division alone. A store that finds no descriptor can write nothing, and no deadline is
judged while it cannot; so what strangers can take is bounded below what the process has.
"""

import resource
from contextlib import suppress

from core_console.ports import Fault

WANTED = 65_536
"""Far above what both ports may take; a higher limit is of no use."""

RESERVED = 128
"""For ourselves: about 40 of the loop, gRPC and Python, 20 connections to GitHub, a few files of
the store at a time, and as many again."""

LEAST = 32
"""Connections of each port, below which a console serves nobody in earnest."""


def raise_limit() -> int:
    """Raise this process's limit as far as it may by itself, and return what it is then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = WANTED if hard == resource.RLIM_INFINITY else min(hard, WANTED)
    if soft == resource.RLIM_INFINITY or soft >= most:
        return WANTED if soft == resource.RLIM_INFINITY else soft
    with suppress(OSError, ValueError):  # some systems say that the limit is higher than it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def connections_of(files: int, most: int) -> int:
    """Return how many connections each of the two ports may have, at most `most`.

    Raises:
        Fault: this process may open so few files that hardly any is left for connections.
    """
    share = min(most, (files - RESERVED) // 2)
    if share < LEAST:
        raise Fault(
            f"this process may have {files} files open and needs {RESERVED + 2 * LEAST}: raise "
            "its limit (ulimit -n)",
            retryable=False,
        )
    return share
