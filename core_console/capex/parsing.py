"""A file's bytes to a feed's columns, or to everything that is wrong with the file.

Owns the checks of a file before it may be staged (CapEx page, sections 1 and 2). What is wrong
with a file is data; nothing here raises. Cells are trimmed of the white space around them.

Everything is done some rows or one column at a time: a single long call would keep every other
thread of the process waiting.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from msgspec.structs import replace

from core_console.capex.columns import columns_of, flaws
from core_console.capex.feeds import CONTRACTS, CSV_BYTES_MAX, ROWS_MAX, Table
from core_console.capex.records import Reader, Record
from core_console.capex.texts import quoted
from core_console.model.capex import Column, Feed, ParseCode, ParseIssue

ISSUES_MAX = 100  # more than a person corrects before trying again
NAMED_MAX = 20  # a header may have a million columns
RECORDS_AT_ONCE = 500  # then the next lines may be plain ones again

BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, eq=False)
class Parsed:
    """A file without a fault, and what was ignored in it."""

    table: Table
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Read:
    """What has been read so far: cells by column of the contract, and rows that do not fit."""

    lines: list[int]
    cells: list[list[str]]
    misfits: list[ParseIssue]


def parse(feed: Feed, data: bytes) -> Parsed | tuple[ParseIssue, ...]:
    """Return the feed in `data`, or the file's faults in the order of its lines.

    At most 100 faults are listed; the last one listed then says how many more there are.
    """
    if len(data) > CSV_BYTES_MAX:
        said = f"the file has {len(data):,} bytes; at most {CSV_BYTES_MAX:,} (8 MiB)"
        return (ParseIssue(ParseCode.TOO_LARGE, said),)
    text = _decoded(data.removeprefix(BOM))
    if isinstance(text, ParseIssue):
        return (text,)
    reader = Reader(text)
    head = reader.record()
    if head is None:
        return (ParseIssue(ParseCode.EMPTY, "the file is empty; its first line names the columns"),)
    if isinstance(head, ParseIssue):
        return (head,)
    return _below(feed, head, reader)


def _decoded(data: bytes) -> str | ParseIssue:
    if b"\0" in data[:2] or data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        return ParseIssue(ParseCode.NOT_UTF8, "the file looks like UTF-16: save it as UTF-8", 1)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        said = f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8"
        return ParseIssue(ParseCode.NOT_UTF8, said, line)
    if (null := text.find("\0")) >= 0:
        line = text.count("\n", 0, null) + 1
        return ParseIssue(ParseCode.MALFORMED_CSV, "a NUL byte is no text: remove it", line)
    return text


def _below(feed: Feed, head: Record, reader: Reader) -> Parsed | tuple[ParseIssue, ...]:
    line, names = head.line, [name.strip() for name in head.cells]
    wanted = CONTRACTS[feed].columns
    if missing := [column for column in wanted if column not in names]:
        return tuple(
            ParseIssue(ParseCode.MISSING_COLUMN, f"the header has no column {column}", line)
            for column in missing
        )
    places = [names.index(column) for column in wanted]
    read = _read(reader, places, len(names))
    if isinstance(read, ParseIssue):
        return (read,)
    table = columns_of(feed, read.lines, read.cells)
    bad = _listed([read.misfits, *flaws(table, places)])
    if not bad and not read.lines:
        said = "the file has no data row; a feed is emptied with ClearFeed"
        return (ParseIssue(ParseCode.EMPTY, said, line),)
    return bad or Parsed(table, _notes(names, wanted))


def _read(reader: Reader, places: Sequence[int], width: int) -> _Read | ParseIssue:
    """Return the records as columns; a ParseIssue when there are too many."""
    read = _Read([], [[] for _ in places], [])
    while _read_on(reader, read, places, width):
        # A row that does not fit is a row too: else millions of them would be told of.
        if len(read.lines) + len(read.misfits) > ROWS_MAX:
            line = sorted((*read.lines, *(issue.line for issue in read.misfits)))[ROWS_MAX]
            said = f"the file has more than {ROWS_MAX:,} data rows; at most so many are taken"
            return ParseIssue(ParseCode.TOO_LARGE, said, line)
    return read


def _read_on(reader: Reader, read: _Read, places: Sequence[int], width: int) -> bool:
    """Read some more rows; say whether there were any."""
    if lines := reader.lines(width):
        read.lines.extend(lines.numbers)
        _take(read, [lines.cells[place::width] for place in places])
        return True
    records: Iterator[Record | ParseIssue] = iter(reader.record, None)
    batch = list(islice(records, RECORDS_AT_ONCE))
    fitting = [
        each for each in batch if not isinstance(each, ParseIssue) and len(each.cells) == width
    ]
    if len(fitting) < len(batch):
        read.misfits.extend(_misfits(batch, width))
    if fitting:
        read.lines.extend([each.line for each in fitting])
        across = list(zip(*[each.cells for each in fitting], strict=True))
        _take(read, [across[place] for place in places])
    return bool(batch)


def _take(read: _Read, columns: Iterable[Iterable[str]]) -> None:
    for cells, more in zip(read.cells, columns, strict=True):
        cells.extend(map(str.strip, more))


def _misfits(batch: Iterable[Record | ParseIssue], width: int) -> Iterator[ParseIssue]:
    for each in batch:
        if isinstance(each, ParseIssue):
            yield each
        elif len(each.cells) != width:
            yield _ragged(each, width)


def _ragged(record: Record, width: int) -> ParseIssue:
    line, cells = record
    said = f"the row has {len(cells)} cells and the header {width}: each row must have as many"
    return ParseIssue(ParseCode.MALFORMED_CSV, said, line, min(len(cells), width) + 1)


def _listed(found: Sequence[Iterable[ParseIssue]]) -> tuple[ParseIssue, ...]:
    """Return the first issues by place; the last one tells how many more there are."""
    ordered = merge(*found, key=lambda issue: (issue.line, issue.column))
    listed = list(islice(ordered, ISSUES_MAX))
    if more := sum(1 for _ in ordered):
        told = f"{listed[-1].message} ({more:,} more issues are not listed)"
        listed[-1] = replace(listed[-1], message=told)
    return tuple(listed)


def _notes(names: Sequence[str], wanted: Sequence[Column]) -> tuple[str, ...]:
    known = frozenset[str](wanted)
    extra = list(dict.fromkeys(name for name in names if name not in known))
    again = [column for column in wanted if names.count(column) > 1]
    notes = [f"column {column} comes more than once: the first one counts" for column in again]
    if extra:
        named = ", ".join(map(quoted, extra[:NAMED_MAX]))
        more = f" and {len(extra) - NAMED_MAX:,} more" if len(extra) > NAMED_MAX else ""
        notes.append(f"columns that the feed does not have are ignored: {named}{more}")
    return tuple(notes)
