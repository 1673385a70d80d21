"""RFC 4180: text to records, each with the physical line on which it begins.

Owns the quoting. Never guesses: after a quote that does not fit, where cells end is unknown, so
the reading ends there with a ParseIssue. A line without any quote is split at its commas at once,
which is what nearly every line is.
"""

import re
from collections.abc import Iterator

from core_console.model.capex import ParseCode, ParseIssue

Record = tuple[int, list[str]]

# The quantifiers give nothing back: a huge cell is read once, whatever follows it.
_OPENED = r'"([^"]*+(?:""[^"]*+)*+)'
_CELL = re.compile(rf'(?:{_OPENED}"|([^",\r\n]*+))(,|\r?\n|\r?\Z)')
_OPEN_CELL = re.compile(_OPENED)


def records(text: str) -> Iterator[Record | ParseIssue]:
    """Yield each record; a ParseIssue is the last to come. Empty lines are no records."""
    at, line = 0, 1
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        row = text[at:end].removesuffix("\r")
        if '"' in row:
            cells, after = _quoted(text, at)
            if after < 0:
                yield _misfit(text, at, -after - 1, line, len(cells) + 1)
                return
            yield line, cells
            line += text.count("\n", at, after)
            at = after
        else:
            if "\r" in row:
                yield _alone(line)
                return
            if row and not row.isspace():
                yield line, row.split(",")
            at, line = end + 1, line + 1


def _quoted(text: str, at: int) -> tuple[list[str], int]:
    """Return a record's cells and where the next begins; -1 - place when a cell does not fit."""
    cells: list[str] = []
    while found := _CELL.match(text, at):
        quoted, bare, ended = found.groups()
        cells.append(bare if quoted is None else quoted.replace('""', '"'))
        at = found.end()
        if ended != ",":
            return cells, at
    return cells, -1 - at


def _alone(line: int) -> ParseIssue:
    return ParseIssue(
        ParseCode.MALFORMED_CSV,
        "a carriage return stands alone: end lines with LF or CRLF, or put the cell in quotes",
        line,
    )


def _misfit(text: str, start: int, at: int, line: int, column: int) -> ParseIssue:
    """Return what is wrong with the cell at `at`, in the record that begins at `start`."""
    line += text.count("\n", start, at)
    opened = _OPEN_CELL.match(text, at)
    if opened and opened.end() == len(text):
        said = "a quoted cell begins here and never ends: close it with a quote"
    elif opened:
        line += text.count("\n", at, opened.end())
        said = "text follows a closing quote: double every quote inside of a quoted cell"
    elif text[_bare_end(text, at)] == "\r":
        return _alone(line)
    else:
        said = "a quote stands inside of a cell: put the whole cell in quotes and double that one"
    return ParseIssue(ParseCode.MALFORMED_CSV, said, line, column)


_BARE = re.compile(r'[^",\r\n]*+')


def _bare_end(text: str, at: int) -> int:
    found = _BARE.match(text, at)
    return found.end() if found else at
