"""How the service logs: one JSON object a line on standard error.

Owns the configuration, and that nothing that looks like a credential gets through it. Never
configured at import: tests and the command line log as they like.
"""

import asyncio
import errno
import re
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog

_log = structlog.get_logger(__name__)

TROUBLES_APART_S = 60.0
"""Who looks sees it within the minute, and a year of one kind is about 100 MB."""

_FRAMES_LOGGED = 8

_CREDENTIAL = re.compile(
    r"gh[pousr]_[A-Za-z0-9._-]+|github_pat_[A-Za-z0-9_]+|xox[abp]-[A-Za-z0-9-]+"
    r"|AKIA[A-Z0-9]+|-----BEGIN[^-]*-----"
    # Looked for once in each run of letters, so that no text costs the square of its length.
    r"|(?<![A-Za-z0-9_-])(?>[A-Za-z0-9_-]*?eyJ)[A-Za-z0-9_-]++\.[A-Za-z0-9_-]++\.[A-Za-z0-9_-]*"
)


def configure() -> None:
    """Log JSON lines to standard error from now on."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            redact,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def redact(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Replace in every text of the event whatever looks like a credential."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = _CREDENTIAL.sub("[redacted]", value)
    return event


class LoopTroubles:
    """Tells what the event loop could not hand to anybody: one line, and once a minute a kind.

    The loop's own way is a traceback each time, and strangers can make it happen as often as they
    like. What it says of an error is left out: it may quote what somebody sent.
    """

    def __init__(self) -> None:
        self._told_at: dict[str, float] = {}
        self._untold: dict[str, int] = {}

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Take the trouble, as asyncio's exception handler."""
        error = context.get("exception")
        kind = _kind_of(error)
        last, now = self._told_at.get(kind), loop.time()
        if last is not None and now - last < TROUBLES_APART_S:
            self._untold[kind] = self._untold.get(kind, 0) + 1
            return
        self._told_at[kind] = now
        untold = self._untold.pop(kind, 0)
        _log.error("loop_trouble", error=kind, where=_where(error), since_last_told=untold)


def _kind_of(error: object) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return errno.errorcode.get(number or 0, type(error).__name__)


def _where(error: object) -> list[str]:
    if not isinstance(error, BaseException):
        return []
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES_LOGGED:]
    return [f"{frame.name}:{frame.lineno}" for frame in frames]
