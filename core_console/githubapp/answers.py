"""What GitHub's answers say, read without side effects.

Owns the shape of an answer and the rules that every call shares: rate limits, GitHub's own
sentence, and the fault that a failed question becomes. Never sends anything.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import TypeVar

import msgspec
from msgspec import Struct

from core_console.ports import Fault

_Read = TypeVar("_Read")

SUSPENDED = "the App's installation is suspended: an owner of the organisation must unsuspend it"

NOT_THE_APP = (
    "GitHub does not accept the App's signature (401): check CORE_GH_APP_ID, the App's private"
    " key and this machine's clock"
)

# GitHub: wait at least a minute after a secondary limit that names no time.
_UNTOLD_WAIT_S = 60.0

# No limit of GitHub's lasts longer than its hourly window; a larger figure is a broken header.
_WAIT_S_MAX = 3600.0

# A sentence of GitHub's inside one of ours has to fit into a step's detail of 500 bytes.
_MESSAGE_CHARS_MAX = 160

_SECRET = re.compile(
    r"gh[a-z]_[A-Za-z0-9._-]+|github_pat_\w+|eyJ[A-Za-z0-9_.-]+|-----BEGIN[^\n]*", re.ASCII
)
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]+")


class Answer(Struct, frozen=True):
    """One answer of GitHub's; header names are lower case."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""


class _Message(Struct, frozen=True):
    message: str = ""


class NotUnderstood(Exception):  # noqa: N818 -- an answer that is not what was asked for
    """GitHub answered, but not with what was asked for."""


def read(answer: Answer, kind: type[_Read]) -> _Read:
    """Return the body as `kind`, ignoring fields that we do not know.

    Raises:
        NotUnderstood: the body is not JSON of that shape.
    """
    try:
        return msgspec.json.decode(answer.body, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        raise NotUnderstood from None


def expect(answer: Answer, kind: type[_Read], now: datetime, *, status: int = 200) -> _Read:
    """Return the body of an answer of that status as `kind`.

    Raises:
        Fault: another status, or a body that is not of that shape.
    """
    if answer.status != status:
        raise fault_of(answer, now)
    try:
        return read(answer, kind)
    except NotUnderstood:
        raise fault_of(answer, now) from None


def redact(text: str) -> str:
    """Return one printable, bounded line of `text` without anything that looks like a secret."""
    line = _UNPRINTABLE.sub(" ", _SECRET.sub("(redacted)", text)).strip()
    return line if len(line) <= _MESSAGE_CHARS_MAX else line[: _MESSAGE_CHARS_MAX - 3] + "..."


def message(answer: Answer) -> str:
    """Return GitHub's own sentence, made safe to show; "" when it gave none."""
    try:
        return redact(read(answer, _Message).message)
    except NotUnderstood:
        return ""


def _number(text: str | None) -> float | None:
    return float(text) if text is not None and text.isascii() and text.isdigit() else None


def limit_wait_s(answer: Answer, now: datetime) -> float | None:
    """Return how long a rate limit asks to wait, in seconds; None when it is no limit.

    GitHub documents no other sign of a secondary limit without headers than its message.
    """
    if answer.status not in {HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}:
        return None
    retry_after = answer.headers.get("retry-after")
    exhausted = answer.headers.get("x-ratelimit-remaining") == "0"
    secondary = "secondary" in message(answer).lower()
    told_so = secondary or exhausted or retry_after is not None
    if not told_so and answer.status != HTTPStatus.TOO_MANY_REQUESTS:
        return None
    told = _number(retry_after)
    if retry_after is None and exhausted:
        reset = _number(answer.headers.get("x-ratelimit-reset"))
        told = None if reset is None else reset - now.timestamp()
    return min(max(_UNTOLD_WAIT_S if told is None else told, 1.0), _WAIT_S_MAX)


def is_redirect(answer: Answer) -> bool:
    """Say whether GitHub points elsewhere: a repository was renamed or moved."""
    return HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST


def is_suspended(answer: Answer) -> bool:
    """Say whether GitHub refuses because the installation is suspended (it has no other sign)."""
    return answer.status == HTTPStatus.FORBIDDEN and "suspended" in message(answer).lower()


def fault_of(answer: Answer, now: datetime) -> Fault:
    """Return the fault that a failed question to GitHub is; whether to ask again is in it."""
    wait_s = limit_wait_s(answer, now)
    if wait_s is not None:
        return Fault(f"GitHub's rate limit asks to wait {wait_s:.0f} s", retry_after_s=wait_s)
    if is_suspended(answer):
        return Fault(SUSPENDED, retryable=False)
    if answer.status == HTTPStatus.UNAUTHORIZED:
        return Fault(NOT_THE_APP, retryable=False)
    if is_redirect(answer):
        return Fault(
            f"GitHub answered {answer.status}: it has moved, and redirects are not followed",
            retryable=False,
        )
    if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR or answer.status < HTTPStatus.BAD_REQUEST:
        return Fault(f"GitHub answered {answer.status} and could not be understood")
    said = message(answer)
    return Fault(
        f"GitHub refused to answer ({answer.status}){f': {said}' if said else ''}", retryable=False
    )
