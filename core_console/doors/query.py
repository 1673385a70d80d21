"""Strict query strings: every parameter is known, given once and well formed.

Owns how the parameters of a reading door are taken. A filter that is misspelt must not be
ignored, for the answer would then show more, or other, than was asked for.
"""

import re
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from core_console.decide import screen
from core_console.doors import errors
from core_console.doors.errors import Rejection

# The longest parameter of any door is an e-mail of 254 bytes; the rest is room for a clearer no.
TEXT_BYTES = 256

_PARAMETERS_MAX = 16
_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


def parameters(request: Request, known: Collection[str]) -> dict[str, str]:
    """Return the parameters, each once and each in `known`; raise the 400 otherwise."""
    raw: bytes = request.scope["query_string"]
    try:
        pairs = parse_qsl(
            raw.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_PARAMETERS_MAX,
        )
    except ValueError:  # not ASCII, not UTF-8 behind its %, or too many
        raise bad("the query string cannot be read") from None
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise bad(f"a parameter is not one of this path; {takes}")
        if name in found:
            raise bad(f"{name}: is given twice")
        for fault in screen.text(name, value, bytes_max=TEXT_BYTES):
            raise bad(f"{fault.field}: {fault.description}")
        if not value:
            raise bad(f"{name}: is empty; leave it out or give it a value")
        found[name] = value
    return found


def number(name: str, text: str, *, most: int | None = None) -> int:
    """Return a whole number of at least 1; raise the 400 when `text` is not one, or is larger."""
    if not _NUMBER.fullmatch(text) or (most is not None and int(text) > most):
        bound = f" up to {most}" if most is not None else ""
        raise bad(f"{name}: is not a whole number from 1{bound}")
    return int(text)


def moment(name: str, text: str) -> datetime:
    """Return a time in RFC 3339 as UTC; raise the 400 when `text` is not one."""
    try:
        return msgspec.convert(text, _Moment).astimezone(UTC)
    except (msgspec.ValidationError, OverflowError):  # a zone can push a time out of the calendar
        raise bad(f"{name}: is not a time such as 2026-11-30T12:00:00Z") from None


def bad(sentence: str) -> Rejection:
    """Return the 400 of a parameter."""
    return errors.rejection(400, sentence)
