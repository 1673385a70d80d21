"""Does an exported audit log hold? A separate program in spirit.

Owns the judgement, worked out from the bytes alone: it shares the record type with the console
and nothing else, so that a fault in how records are written cannot hide here. It streams in
constant memory and changes nothing.

A record is one line of canonical JSON: sorted keys, no white space, UTF-8. So its hash is taken
over the very bytes of the line without the field `hash`, and a line in any other form was not
written by the console. What it cannot see is a log whose last records were all cut off, or one
that was rewritten as a whole: compare the last hash with one that was kept before.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import BinaryIO

from core_console.model.audit import AuditRecord

_FIRST_PREV_HASH = b"0" * 64
_HASH_KEY = b'"hash":"'
_HASH_END = b'",'
_NO_DOCUMENT = b'""'
_RESTORES = b'{"action":"state.restore",'

_LINE_BYTES_MAX = 66 * 1024
"""An entry of 64 KiB, which is all that an outbox may hold, and its place in the chain."""

_PIECE_BYTES = 256 * 1024

_DOCUMENTS_MAX = 10_000
"""A console has a handful; the memory stays bounded for a log that somebody made up."""

_FIELDS = frozenset(AuditRecord.__struct_fields__)
_INTEGERS = frozenset({"seq", "number"})

_TEXT = r'"[^"\\\x00-\x1f]*+(?:\\(?:["\\bfnrt]|u00[01][0-9a-f])[^"\\\x00-\x1f]*+)*+"'
_HASH = r'"([0-9a-f]{64})"'
_INTEGER = r"(0|[1-9][0-9]{0,18})"
_AT = r'"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z"'
_RECORD = re.compile(
    (
        rf'\{{"action":{_TEXT},"actor":{_TEXT},"at":{_AT},"detail":{_TEXT},"document":({_TEXT}),'
        rf'"hash":{_HASH},"number":{_INTEGER},"outcome":"(?:success|denied|failure)",'
        rf'"prev_hash":{_HASH},"seq":{_INTEGER},"subject":{_TEXT},"target":{_TEXT}\}}'
    ).encode()
)


@dataclass(frozen=True, slots=True)
class Verification:
    """What the log is worth.

    The first `records` records hold and the last of them has `last_hash`. `first_bad_seq` is the
    number of the first that does not, 0 when all do, and `fault` says what is wrong with it.
    """

    intact: bool
    records: int
    last_hash: str
    first_bad_seq: int = 0
    fault: str = ""


@dataclass(frozen=True, slots=True)
class _Line:
    """A line in the form of a record; `sound` when its hash is that of its content."""

    seq: int
    prev_hash: bytes
    hash: bytes
    sound: bool
    document: str
    number: int


@dataclass(slots=True)
class _Held:
    """What held so far; `before` is the hash of the record before the last."""

    seq: int = 0
    hash: bytes = _FIRST_PREV_HASH
    before: bytes = _FIRST_PREV_HASH
    numbers: dict[bytes, int] = field(default_factory=dict)


class _TornError(Exception):
    """The log ends, or a line goes on for too long, without a newline."""


def verify(log: BinaryIO) -> Verification:
    """Return whether the whole log holds, and else its first record that does not."""
    held = _Held()
    lines = _lines(log)
    try:
        for text in lines:
            if not _holds(held, text):
                return _broken(held, text, lines)
    except _TornError:
        return _verdict(held, f"the line of record {held.seq + 1} is torn: it does not end")
    return Verification(intact=True, records=held.seq, last_hash=held.hash.decode())


def _lines(log: BinaryIO) -> Iterator[bytes]:
    rest = b""
    while piece := log.read(_PIECE_BYTES):
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole
        if len(rest) > _LINE_BYTES_MAX:
            break
    if rest:
        raise _TornError


def _holds(held: _Held, text: bytes) -> bool:
    """Say whether the line is the next record, and if so remember it."""
    found = _RECORD.fullmatch(text)
    if found is None:
        return False
    document, claimed, number, prev_hash, seq = found.groups()
    if prev_hash != held.hash or int(seq) != held.seq + 1 or _digest(text, found) != claimed:
        return False
    if document == _NO_DOCUMENT:
        if number != b"0":
            return False
    elif not _numbered(held, document, int(number), text):
        return False
    held.seq, held.before, held.hash = held.seq + 1, held.hash, claimed
    return True


def _digest(text: bytes, found: re.Match[bytes]) -> bytes:
    """Return the hash of the line without its field `hash`; no digest of what is not UTF-8."""
    if not text.isascii():
        try:
            text.decode()
        except UnicodeDecodeError:
            return b""
    start, end = found.span(2)
    start -= len(_HASH_KEY)
    return sha256(text[:start] + text[end + len(_HASH_END) :]).hexdigest().encode()


def _numbered(held: _Held, document: bytes, number: int, text: bytes) -> bool:
    """Say whether the number is the document's next one, and if so remember it.

    A restored document goes on with a higher number, which the record of the restore brings.
    """
    last = held.numbers.get(document, 0)
    if number != last + 1 and not (number > last and text.startswith(_RESTORES)):
        return False
    if last == 0 and len(held.numbers) >= _DOCUMENTS_MAX:
        return False
    held.numbers[document] = number
    return True


def _verdict(held: _Held, fault: str) -> Verification:
    return Verification(
        intact=False,
        records=held.seq,
        last_hash=held.hash.decode(),
        first_bad_seq=held.seq + 1,
        fault=fault,
    )


def _verdict_on_last(held: _Held, fault: str) -> Verification:
    """Return the verdict that the last record that seemed to hold is the bad one."""
    return Verification(
        intact=False,
        records=held.seq - 1,
        last_hash=held.before.decode(),
        first_bad_seq=held.seq,
        fault=fault,
    )


def _broken(held: _Held, text: bytes, lines: Iterator[bytes]) -> Verification:
    """Return what most likely happened where the chain breaks."""
    line = _read(text)
    after = _next(lines)
    seq = held.seq + 1
    if after is not None and _fits(held, after):
        return _verdict(held, f"a line was inserted before record {seq}")
    if isinstance(line, str):
        return _verdict(held, f"record {seq} was edited: {line}")
    if not line.sound:
        return _verdict(held, f"record {seq} was edited: its hash is not that of its content")
    if line.seq > seq:
        return _verdict(held, _gone_or_moved(held, line, after, lines))
    if line.seq < seq:
        return _stands_again(held, line)
    if line.prev_hash != held.hash:
        return _unlinked(held, line, after)
    return _verdict(held, _misnumbered(held, line))


def _next(lines: Iterator[bytes]) -> _Line | None:
    try:
        line = _read(next(lines))
    except (StopIteration, _TornError):
        return None
    return None if isinstance(line, str) else line


def _fits(held: _Held, line: _Line) -> bool:
    """Say whether this is the record that should have come next."""
    return line.sound and line.seq == held.seq + 1 and line.prev_hash == held.hash


def _gone_or_moved(held: _Held, line: _Line, after: _Line | None, lines: Iterator[bytes]) -> str:
    seq = held.seq + 1
    while after is not None:
        after = _next(lines)
        if after is not None and _fits(held, after):
            return f"records were reordered: {line.seq} stands in the place of {seq}"
    if line.seq == seq + 1:
        return f"record {seq} was removed"
    return f"records {seq} to {line.seq - 1} were removed"


def _stands_again(held: _Held, line: _Line) -> Verification:
    if line.seq == held.seq and line.prev_hash == held.before:
        return _verdict_on_last(
            held, f"record {held.seq} stands twice: one of the two was inserted"
        )
    return _verdict(
        held,
        f"record {line.seq} stands in the place of record {held.seq + 1}: it was inserted or moved",
    )


def _unlinked(held: _Held, line: _Line, after: _Line | None) -> Verification:
    """Tell which of two neighbours changed: the one that the record after them does not know."""
    if held.seq > 0 and (after is None or after.prev_hash == line.hash):
        return _verdict_on_last(
            held,
            f"record {held.seq} was edited and given a new hash: "
            f"record {line.seq} holds another one for it",
        )
    return _verdict(
        held, f"record {line.seq} was edited: its prev_hash is not the hash of the record before"
    )


def _misnumbered(held: _Held, line: _Line) -> str:
    last = held.numbers.get(line.document.encode(), 0)
    entry = f"record {line.seq} holds entry {line.number} of document {line.document}"
    if line.document == _NO_DOCUMENT.decode():
        return f"record {line.seq} has a number and no document"
    if line.number <= last:
        return f"{entry}, which the chain has passed: it stands twice or out of order"
    if line.number > last + 1:
        return f"{entry}, but the last one before is {last}: what lies between was removed"
    return f"{entry}, and the log names more than {_DOCUMENTS_MAX} documents"


def _read(text: bytes) -> _Line | str:
    """Return the record on a line, or what keeps the line from being one."""
    found = _RECORD.fullmatch(text)
    if found is None:
        return _why_no_record(text)
    document, claimed, number, prev_hash, seq = found.groups()
    return _Line(
        seq=int(seq),
        prev_hash=prev_hash,
        hash=claimed,
        sound=_digest(text, found) == claimed,
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
