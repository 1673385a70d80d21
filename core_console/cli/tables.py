"""Tables and lists of facts: whole in a pipe, fitted on a terminal.

Owns what gives way when a terminal is narrow: first the columns that a sentence beside them
repeats, then the room of prose, which wraps, and of names, which are cut, as is a digest after 12
characters. An id, a status and a figure are never folded and never cut.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

import click
from google.protobuf.timestamp_pb2 import Timestamp
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core_console.cli.failure import printable
from core_console.cli.output import PIPE_COLUMNS, say, screen_columns
from core_console.cli.times import instant, near
from core_console.clock import SystemClock

NOTHING = "—"
"""Stands where there is no value, so that a column is never mistaken for its neighbour."""

_GAP = 2


class Fit(Enum):
    """What may become of a cell when the terminal is narrow."""

    WHOLE = auto()
    NAME = auto()
    PROSE = auto()


_LEAST = {Fit.NAME: 20, Fit.PROSE: 36}
"""Below this a name says nothing any more, and prose is a column of single words: rather than
that, a column with a rank goes."""

_DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")


@dataclass(frozen=True, slots=True)
class Column:
    """A column; of those that do not fit a terminal the highest `rank` goes first, 0 never."""

    name: str
    fit: Fit = Fit.WHOLE
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Short:
    """A value with a short form for terminals."""

    whole: str
    short: str


Cell: TypeAlias = str | int | Timestamp | Short


def name(title: str, rank: int = 0) -> Column:
    """Return a column of names."""
    return Column(title, Fit.NAME, rank)


def prose(title: str, rank: int = 0) -> Column:
    """Return a column of sentences."""
    return Column(title, Fit.PROSE, rank)


def table(columns: Sequence[Column], rows: Iterable[Sequence[Cell]], *, empty: str) -> None:
    """Print rows under their columns; print the sentence `empty` when there is none."""
    rows = [tuple(row) for row in rows]
    screen = screen_columns()
    texts = [[_text(cell, short=screen is not None) for cell in row] for row in rows]
    if not texts:
        say(empty)
        return
    needs = [
        max(cell_len(text) for text in (column.name, *found))
        for column, found in zip(columns, zip(*texts, strict=True), strict=True)
    ]
    shown = list(range(len(columns)))
    widths = dict(enumerate(needs))
    if screen is not None:
        shown = _fitting(columns, needs, screen)
        widths = _shared(columns, needs, shown, screen)
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for index in shown:
        is_prose = columns[index].fit is Fit.PROSE
        grid.add_column(
            Text(columns[index].name),
            width=widths[index],
            no_wrap=not is_prose,
            overflow="fold" if is_prose else "ellipsis",
        )
    for row in texts:
        grid.add_row(*(Text(row[index]) for index in shown))
    _print(grid, PIPE_COLUMNS)
    if screen is not None:
        for reason in _reasons(rows, shown):
            say(f"{NOTHING} {reason}")


def _reasons(rows: Sequence[Sequence[Cell]], shown: Sequence[int]) -> list[str]:
    """Return why figures of the shown columns are absent, each reason once."""
    cells = (row[index] for row in rows for index in shown)
    absent = (cell.whole for cell in cells if isinstance(cell, Short) and cell.short == NOTHING)
    return [reason for reason in dict.fromkeys(absent) if reason]


def _text(cell: Cell, *, short: bool) -> str:
    match cell:
        case Timestamp():
            shown = near(cell, SystemClock().now()) if short else instant(cell)
        case Short():
            shown = cell.short if short else cell.whole
        case _:
            shown = str(cell)
    if short:
        shown = _DIGEST.sub(r"\1…", shown)
    return printable(shown) or NOTHING


def _fitting(columns: Sequence[Column], needs: Sequence[int], screen: int) -> list[int]:
    """Return the columns that fit the screen, those without a rank in any case."""
    shown = list(range(len(columns)))
    while _least(columns, needs, shown) > screen:
        last = max(shown, key=lambda index: columns[index].rank)
        if not columns[last].rank:
            break
        shown.remove(last)
    return shown


def _least(columns: Sequence[Column], needs: Sequence[int], shown: Sequence[int]) -> int:
    widths = (min(needs[index], _LEAST.get(columns[index].fit, needs[index])) for index in shown)
    return sum(widths) + _GAP * (len(shown) - 1)


def _shared(
    columns: Sequence[Column], needs: Sequence[int], shown: Sequence[int], screen: int
) -> dict[int, int]:
    """Return each column's width: whole where nothing gives way, a fair share of the rest else."""
    fixed = [index for index in shown if columns[index].fit is Fit.WHOLE]
    giving = [index for index in shown if columns[index].fit is not Fit.WHOLE]
    widths = {index: needs[index] for index in fixed}
    room = screen - sum(widths.values()) - _GAP * (len(shown) - 1)
    # Whoever needs least is served first, so that what they leave goes to the others; prose, which
    # can wrap, comes after the names.
    giving.sort(key=lambda index: (columns[index].fit is Fit.PROSE, needs[index]))
    for place, index in enumerate(giving):
        kept = sum(min(needs[other], _LEAST[columns[other].fit]) for other in giving[place + 1 :])
        least = min(needs[index], _LEAST[columns[index].fit])
        widths[index] = max(least, min(needs[index], room - kept))
        room -= widths[index]
    return widths


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names with their values, leaving out what is empty."""
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for title, value in pairs:
        if value:
            grid.add_row(Text(title), Text(printable(value)))
    _print(grid, screen_columns() or PIPE_COLUMNS)


def _print(grid: Table, width: int) -> None:
    """Print a grid without the blanks that fill its last column."""
    console = Console(markup=False, emoji=False, highlight=False, width=width)
    with console.capture() as captured:
        console.print(grid)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())
