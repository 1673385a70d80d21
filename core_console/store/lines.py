"""Finding a line in a file of numbered lines, without an index.

Owns how long a line may be and the search by halving. Only reads.
"""

import msgspec
from msgspec import Struct

from core_console.store.durable import read_at
from core_console.store.faults import CorruptStore

LINE_BYTES_MAX = 66 * 1024
"""An entry of 64 KiB, which is all that an outbox may hold, and its place in the chain."""

SCAN_BYTES = 2 * LINE_BYTES_MAX
"""Where halving ends and reading through begins: it always holds a whole line."""

_PROBE_BYTES = 4096
"""Enough for nearly every line, so that a step of the search costs one page."""


class _Numbered(Struct, frozen=True, gc=False):
    seq: int


_decoder = msgspec.json.Decoder(_Numbered)


def seq_of(line: bytes) -> int:
    """Return the number that a line holds; raise CorruptStore when it holds none."""
    try:
        return _decoder.decode(line).seq
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise CorruptStore("a line of the log is not a record with its number") from None


def fits(line: bytes, seq: int) -> bool:
    """Say whether this is a line that may stand at `seq`."""
    if b"\n" in line or len(line) > LINE_BYTES_MAX:
        return False
    try:
        return _decoder.decode(line).seq == seq
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return False


def last_line(descriptor: int, size: int) -> tuple[int, int]:
    """Return where the last whole line of a file of `size` bytes ends, and its number.

    Bytes after that end are a torn line. Without a whole line the answer is (0, 0).
    """
    start = max(0, size - SCAN_BYTES)
    data = read_at(descriptor, start, size - start)
    end = data.rfind(b"\n") + 1
    if (end == 0 and start > 0) or len(data) - end > LINE_BYTES_MAX:
        raise CorruptStore("the log's last line is longer than any that the console writes")
    if end == 0:
        return 0, 0
    begin = data.rfind(b"\n", 0, end - 1) + 1
    return start + end, seq_of(data[begin : end - 1])


def find_line(descriptor: int, seq: int, size: int) -> int:
    """Return the offset of line `seq` in a file of `size` bytes that holds it.

    The numbers run from 1 without a gap, so wherever the search looks it knows the direction;
    it ends by counting lines through a short piece.
    """
    low, low_seq, high = 0, 1, size
    while high - low > SCAN_BYTES:
        middle = (low + high) // 2
        start, found = _line_after(descriptor, middle, size)
        if found > seq:
            high = middle + 1
        else:
            low, low_seq = start, found
    data = read_at(descriptor, low, high - low)
    pieces = data.split(b"\n", seq - low_seq)
    if len(pieces) != seq - low_seq + 1:
        raise CorruptStore("the log's lines are not numbered without a gap")
    return high - len(pieces[-1])


def _line_after(descriptor: int, offset: int, size: int) -> tuple[int, int]:
    """Return the start and number of the first line that begins after `offset`."""
    for probe_bytes in (_PROBE_BYTES, SCAN_BYTES):
        data = read_at(descriptor, offset, min(probe_bytes, size - offset))
        begin = data.find(b"\n") + 1
        end = data.find(b"\n", begin)
        if begin > 0 and end > 0:
            return offset + begin, seq_of(data[begin:end])
    raise CorruptStore("a line of the log is longer than any that the console writes")
