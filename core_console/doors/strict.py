"""Strict JSON: a body is taken whole and as meant, or not at all.

Owns what a body may look like: one object in UTF-8, no field unknown, null, given twice or of
another type. Most JSON readers let the last of two equal keys win and NaN pass; two readers that
differ on one body are how a check is slipped past. Faults name the field and never a value.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from math import isfinite
from typing import Any, NoReturn, TypeVar

import msgspec

from core_console.decide import screen

T = TypeVar("T", bound=msgspec.Struct)

# The deepest body of the contract has 4 levels (a report, its findings, one of them, its texts);
# the reader recurses, so the bound must be far below the interpreter's own.
DEPTH_MAX = 16

# 64 bits and a sign. Python refuses to read integers of some thousand digits in its own words.
_DIGITS_MAX = 20

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_BRACKET = re.compile(rb"[\[\]{}]")
_OPENING = b"[{"
_NAME = re.compile(r"[A-Za-z0-9_]{1,40}")

SENTENCE_MAX = 300
"""A place deep in a body, with a name of 40 characters; more is the caller's own text."""


class BadBody(Exception):  # noqa: N818 -- what the caller sent, not a fault of ours
    """A body that a door does not take; its text is one sentence that may be answered."""


def read(body: bytes, wanted: type[T]) -> T:
    """Return `body` as a `wanted`; raise BadBody naming the field and what is wrong with it."""
    found = parse(body)
    known, required = _fields(wanted)
    for name in found:
        if name not in known:
            takes = ", ".join(sorted(known))
            raise BadBody(f"{_shown(name)}: is not a field of this door; it takes {takes}")
    for name in required:
        if name not in found:
            raise BadBody(f"{name}: is required")
    return _convert(found, wanted)


def parse(body: bytes) -> dict[str, Any]:
    """Return the one object in `body`, its values of any type but null; raise BadBody."""
    _check_depth(body)
    try:
        found = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_no_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except UnicodeDecodeError:
        raise BadBody("the body is not valid UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadBody(f"the body is not one JSON object: it cannot be read at {place}") from None
    if not isinstance(found, dict):
        raise BadBody("the body is not one JSON object")
    for value in _lists(found):
        if value is None:
            raise BadBody("a list holds a null; leave it out")
    return found


@cache  # a handful of types, and looking into one takes longer than reading a body
def _fields(wanted: type[msgspec.Struct]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of all fields, and those of the required ones in their order."""
    fields = msgspec.structs.fields(wanted)
    required = tuple(field.encode_name for field in fields if field.required)
    return frozenset(field.encode_name for field in fields), required


def _check_depth(body: bytes) -> None:
    depth = 0
    for bracket in _BRACKET.finditer(_STRING.sub(b"", body)):
        depth += 1 if bracket[0] in _OPENING else -1
        if depth > DEPTH_MAX:
            raise BadBody(f"the body is nested deeper than {DEPTH_MAX} levels")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise BadBody(f"{_shown(name)}: is given twice")
        if value is None:
            raise BadBody(f"{_shown(name)}: is null; leave the field out or give it a value")
        if not _is_unicode(name) or (isinstance(value, str) and not _is_unicode(value)):
            raise BadBody(f"{_shown(name)}: holds half a surrogate pair, which is no character")
        found[name] = value
    return found


def _lists(value: object) -> Iterator[object]:
    """Yield every item of every list in `value`, at any depth."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from _lists(inner)
    elif isinstance(value, list):
        for inner in value:
            if isinstance(inner, str) and not _is_unicode(inner):
                raise BadBody("a list holds half a surrogate pair, which is no character")
            yield inner
            yield from _lists(inner)


def _convert(found: dict[str, Any], wanted: type[T]) -> T:
    try:
        return msgspec.convert(found, wanted)
    except msgspec.ValidationError as error:
        # Its text names the types and the place; the keys of a nested object may be in it too.
        sentence = f"a field has another type than this door takes: {error}"
        plain = sentence.isascii() and sentence.isprintable() and len(sentence) <= SENTENCE_MAX
        if not plain or screen.flaws("body", sentence):
            raise BadBody("a field has another type than this door takes") from None
        raise BadBody(sentence) from None


def _no_constant(name: str) -> NoReturn:
    raise BadBody(f"the body holds {name}, which is not JSON")


def _float(text: str) -> float:
    if not isfinite(value := float(text)):
        raise BadBody("the body holds a number that is out of range")
    return value


def _int(text: str) -> int:
    if len(text) > _DIGITS_MAX:
        raise BadBody("the body holds a number that is out of range")
    return int(text)


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _shown(name: str) -> str:
    """Return a caller's field name if it may be repeated: short, plain and no credential."""
    fit = _NAME.fullmatch(name) and not screen.flaws("name", name)
    return name if fit else "a field (whose name is not repeated here)"
