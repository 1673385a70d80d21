"""Does an exported audit log hold? A separate program in spirit.

Owns the judgement, worked out from the bytes alone: it shares the record type with the console
and nothing else, so that a fault in how records are written cannot hide here. It streams in
constant memory and changes nothing.

What it cannot see is a log whose last records were all cut off, or one that was rewritten as a
whole: compare the last hash with one that was kept before.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from core_console.governance.recordline import RECORD, Line, digest, read_line

_FIRST_PREV_HASH = b"0" * 64
_NO_DOCUMENT = b'""'
_RESTORES = b'{"action":"state.restore",'

_LINE_BYTES_MAX = 66 * 1024
"""An entry of 64 KiB, which is all that an outbox may hold, and its place in the chain."""

_PIECE_BYTES = 256 * 1024

_DOCUMENTS_MAX = 10_000
"""A console has a handful; the memory stays bounded for a log that somebody made up."""


class Readable(Protocol):
    """A file opened for reading bytes, or what reads like one."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, or somewhat more; none at the end."""
        ...


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


@dataclass(slots=True)
class _Held:
    """What held so far; `before` is the hash of the record before the last."""

    seq: int = 0
    hash: bytes = _FIRST_PREV_HASH
    before: bytes = _FIRST_PREV_HASH
    numbers: dict[bytes, int] = field(default_factory=dict)


class _TornError(Exception):
    """The log ends, or a line goes on for too long, without a newline."""


def verify(log: Readable) -> Verification:
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


def _lines(log: Readable) -> Iterator[bytes]:
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
    found = RECORD.fullmatch(text)
    if found is None:
        return False
    document, claimed, number, prev_hash, seq = found.groups()
    if prev_hash != held.hash or int(seq) != held.seq + 1 or digest(text, found) != claimed:
        return False
    if document == _NO_DOCUMENT:
        if number != b"0":
            return False
    elif not _numbered(held, document, int(number), text):
        return False
    held.seq, held.before, held.hash = held.seq + 1, held.hash, claimed
    return True


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
    line = read_line(text)
    rest = _records(lines)
    seq = held.seq + 1
    if isinstance(line, Line) and line.sound and line.seq > seq:
        return _verdict(held, _ahead(held, line, rest))
    after = next(rest, None)
    if after is not None and _fits(held, after):
        return _verdict(held, f"a line was inserted before record {seq}")
    if isinstance(line, str):
        return _verdict(held, f"record {seq} was edited: {line}")
    if not line.sound:
        return _verdict(held, f"record {seq} was edited: its hash is not that of its content")
    if line.seq < seq:
        return _behind(held, line)
    if line.prev_hash != held.hash:
        return _unlinked(held, line, after)
    return _verdict(held, _misnumbered(held, line))


def _records(lines: Iterator[bytes]) -> Iterator[Line]:
    """Yield those of the lines that have the form of a record."""
    with suppress(_TornError):
        for text in lines:
            line = read_line(text)
            if isinstance(line, Line):
                yield line


def _fits(held: _Held, line: Line) -> bool:
    """Say whether this is the record that should have come next."""
    return line.sound and line.seq == held.seq + 1 and line.prev_hash == held.hash


def _ahead(held: _Held, line: Line, rest: Iterator[Line]) -> str:
    """Tell why a later record stands here: what comes after it shows what became of the others."""
    seq = held.seq + 1
    comes_later = comes_again = False
    for other in rest:
        comes_later = comes_later or _fits(held, other)
        comes_again = comes_again or other.hash == line.hash
    if comes_later and comes_again:
        return f"a line was inserted before record {seq}"
    if comes_later:
        return f"records were reordered: {line.seq} stands in the place of {seq}"
    if line.seq == seq + 1:
        return f"record {seq} was removed"
    return f"records {seq} to {line.seq - 1} were removed"


def _behind(held: _Held, line: Line) -> Verification:
    """Tell why a record with a number that was passed stands here."""
    rivals = line.seq == held.seq and line.prev_hash == held.before and line.hash != held.hash
    if rivals:
        return _verdict_on_last(
            held, f"there are two records {held.seq}: one of them was inserted or edited"
        )
    return _verdict(
        held,
        f"record {line.seq} stands in the place of record {held.seq + 1}: it was inserted or moved",
    )


def _unlinked(held: _Held, line: Line, after: Line | None) -> Verification:
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


def _misnumbered(held: _Held, line: Line) -> str:
    last = held.numbers.get(line.document.encode(), 0)
    entry = f"record {line.seq} holds entry {line.number} of document {line.document}"
    if line.document == _NO_DOCUMENT.decode():
        return f"record {line.seq} has a number and no document"
    if line.number <= last:
        return f"{entry}, which the chain has passed: it stands twice or out of order"
    if line.number > last + 1:
        return f"{entry}, but the last one before is {last}: what lies between was removed"
    return f"{entry}, and the log names more than {_DOCUMENTS_MAX} documents"
