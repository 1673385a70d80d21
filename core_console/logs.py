"""How the service logs: one JSON object a line on standard error.

Owns the configuration, and that nothing that looks like a credential gets through it. Never
configured at import: tests and the command line log as they like.
"""

import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

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
