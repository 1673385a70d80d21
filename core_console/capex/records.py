"""RFC 4180: text to records, each with the physical line on which it begins.

Owns the quoting. Never guesses: after a quote that does not fit, where cells end is unknown, so
the reading ends there with a ParseIssue.

Nearly every line has no quote at all. Such lines are split together, many at a time: that is
several times faster, and makes no list for each row, which the garbage collector would look at.
"""

import re
from typing import NamedTuple

from core_console.model.capex import ParseCode, ParseIssue

BLOCK_CHARACTERS = 65_536  # a fraction of a millisecond in one call, so no thread waits for long


class Record(NamedTuple):
    """A row of a file: the line on which it begins, from 1, and its cells."""

    line: int
    cells: list[str]


class Lines(NamedTuple):
    """Rows that are a line each: their line numbers, and the cells of all of them in a row."""

    numbers: range
    cells: list[str]


# The quantifiers give nothing back: a huge cell is read once, whatever follows it.
_OPENED = r'"([^"]*+(?:""[^"]*+)*+)'
_CELL = re.compile(rf'(?:{_OPENED}"|([^",\r\n]*+))(,|\r?\n|\r?\Z)')
_OPEN_CELL = re.compile(_OPENED)
# Bounded, for the same reason as a block.
_EMPTY_LINES = re.compile(r"(?:[ \t]*+\r?\n){1,65536}+")
_BARE = re.compile(r'[^",\r\n]*+')


class Reader:
    """Reads a text from its beginning to its end, or to the first thing that does not fit."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._line = 1

    def lines(self, width: int) -> Lines | None:
        """Read the next lines together if each is a row of `width` plain cells.

        None means that one of them is not, or that nothing is left: `record` reads on.
        """
        text, at = self._text, self._at
        end = text.rfind("\n", at, at + BLOCK_CHARACTERS) + 1
        if end <= at:
            return None
        block = text[at:end].replace("\r\n", "\n").removesuffix("\n")
        if '"' in block or "\r" in block:
            return None
        rows = block.split("\n")
        if any(row.count(",") != width - 1 for row in rows):
            return None
        numbers = range(self._line, self._line + len(rows))
        self._at, self._line = end, numbers.stop
        return Lines(numbers, block.replace("\n", ",").split(","))

    def record(self) -> Record | ParseIssue | None:
        """Read the next record, None at the end; empty lines are no records."""
        text = self._text
        while self._at < len(text):
            at, line = self._at, self._line
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            row = text[at:end].removesuffix("\r")
            if '"' in row:
                return self._quoted()
            if "\r" in row:
                return self._ended(_alone(line))
            if row and not row.isspace():
                self._at, self._line = end + 1, line + 1
                return Record(line, row.split(","))
            empty = _EMPTY_LINES.match(text, at)
            self._at = empty.end() if empty else end + 1
            self._line += text.count("\n", at, self._at)
        return None

    def _quoted(self) -> Record | ParseIssue:
        text, start, line = self._text, self._at, self._line
        at, cells = start, list[str]()
        while found := _CELL.match(text, at):
            quoted, bare, ended = found.groups()
            cells.append(bare if quoted is None else quoted.replace('""', '"'))
            at = found.end()
            if ended != ",":
                self._at, self._line = at, line + text.count("\n", start, at)
                return Record(line, cells)
        line += text.count("\n", start, at)
        return self._ended(_misfit(text, at, line, len(cells) + 1))

    def _ended(self, issue: ParseIssue) -> ParseIssue:
        self._at = len(self._text)
        return issue


def _alone(line: int) -> ParseIssue:
    return ParseIssue(
        ParseCode.MALFORMED_CSV,
        "a carriage return stands alone: end lines with LF or CRLF, or put the cell in quotes",
        line,
    )


def _misfit(text: str, at: int, line: int, column: int) -> ParseIssue:
    """Return what is wrong with the cell that begins at `at`."""
    opened = _OPEN_CELL.match(text, at)
    if opened and opened.end() == len(text):
        said = "a quoted cell begins here and never ends: close it with a quote"
    elif opened:
        line += text.count("\n", at, opened.end())
        said = "text follows a closing quote: double every quote inside of a quoted cell"
    elif (bare := _BARE.match(text, at)) and text[bare.end()] == "\r":
        return _alone(line)
    else:
        said = "a quote stands inside of a cell: put the whole cell in quotes and double that one"
    return ParseIssue(ParseCode.MALFORMED_CSV, said, line, column)
