"""One line of an exported audit log: the form of a record, and the hash of its content.

Owns the form, for the verifier alone: it shares the record type with the console and nothing
else. A record is canonical JSON: sorted keys, no white space, UTF-8. So its hash is taken over
the very bytes of the line without the field `hash`, and a line in any other form was not written
by the console. Never judges how lines stand together.
"""

import json
import re
from dataclasses import dataclass
from hashlib import sha256

from core_console.model.audit import AuditRecord

_HASH_KEY = b'"hash":"'
_HASH_END = b'",'

_FIELDS = frozenset(AuditRecord.__struct_fields__)
_INTEGERS = frozenset({"seq", "number"})

_TEXT = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\bfnrt]|u00[01][0-9a-f])[^"\\\x00-\x1f]*+)*+"'
_HASH = r'"([0-9a-f]{64})"'
_INTEGER = r"(0|[1-9][0-9]{0,18})"
_AT = r'"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"'
RECORD = re.compile(
    (
        rf'\{{"action":{_TEXT},"actor":{_TEXT},"at":{_AT},"detail":{_TEXT},"document":({_TEXT}),'
        rf'"hash":{_HASH},"number":{_INTEGER},"outcome":"(?:success|denied|failure)",'
        rf'"prev_hash":{_HASH},"seq":{_INTEGER},"subject":{_TEXT},"target":{_TEXT}\}}'
    ).encode()
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line in the form of a record; `sound` when its hash is that of its content."""

    seq: int
    prev_hash: bytes
    hash: bytes
    sound: bool
    document: str
    number: int


def digest(text: bytes, found: re.Match[bytes]) -> bytes:
    """Return the hash of the line without its field `hash`; no digest of what is not UTF-8."""
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return b""
    start, end = found.span(2)
    start -= len(_HASH_KEY)
    return sha256(text[:start] + text[end + len(_HASH_END) :]).hexdigest().encode()


def read_line(text: bytes) -> Line | str:
    """Return the record on a line, or what keeps the line from being one."""
    found = RECORD.fullmatch(text)
    if found is None:
        return _why_no_record(text)
    document, claimed, number, prev_hash, seq = found.groups()
    return Line(
        seq=int(seq),
        prev_hash=prev_hash,
        hash=claimed,
        sound=digest(text, found) == claimed,
        document=document.decode(errors="replace"),
        number=int(number),
    )


def _why_no_record(text: bytes) -> str:
    try:
        pairs = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(pairs, _Pairs):
        return "it is not an object"
    names = [name for name, _ in pairs]
    if len(names) != len(set(names)):
        return "a field stands twice"
    if missing := _FIELDS.difference(names):
        return f"the field {min(missing)} is missing"
    if unknown := set(names) - _FIELDS:
        return f"it has {len(unknown)} unknown fields"
    for name, value in pairs:
        if type(value) is not (int if name in _INTEGERS else str):
            return f"the field {name} has the wrong type"
    return "it is not written the way the console writes records"


class _Pairs(list[tuple[str, object]]):
    """The fields of a JSON object as they stand there, doubles included."""
