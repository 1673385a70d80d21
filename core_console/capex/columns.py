"""Columns of cells as columns of values, and the cells that hold none.

Owns which cell is a fault of the file (`blank`, `not_a_number`) and which only a missing value.
Each distinct cell is read once: in real feeds dates, types and prices repeat.
"""

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TypeVar

from core_console.capex import dates, numbers
from core_console.capex.feeds import CONTRACTS, Table
from core_console.capex.texts import quoted
from core_console.model.capex import Column, Feed, ParseCode, ParseIssue

Value = TypeVar("Value")

_NUMBER_RULE = "is no number; write digits with a point, such as 1,234.50"
_WHOLE_RULE = "is no whole number of 0 or more"


def columns_of(feed: Feed, lines: list[int], cells: Sequence[list[str]]) -> Table:
    """Return the table of `cells`, which stand in the order of the contract's columns."""
    contract = CONTRACTS[feed]
    texts = {column: _shared(found) for column, found in zip(contract.columns, cells, strict=True)}
    return Table(
        feed=feed,
        lines=lines,
        texts=texts,
        numbers={column: _values(texts[column], numbers.number) for column in contract.numbers},
        wholes={column: _values(texts[column], numbers.whole) for column in contract.wholes},
        days={column: _values(texts[column], dates.day) for column in contract.dates},
    )


def flaws(table: Table, places: Sequence[int]) -> list[Iterator[ParseIssue]]:
    """Return the faults of the cells, each column's in the order of its rows.

    `places` says where in the file's rows each column of the contract stands, from 0.
    """
    contract = CONTRACTS[table.feed]
    found = []
    for column, place in zip(contract.columns, places, strict=True):
        if column in contract.not_blank:
            found.append(_blanks(table, column, place + 1))
        if column in contract.numbers:
            values = table.numbers[column]
            found.append(_unread(table, column, place + 1, values, _NUMBER_RULE))
        if column in contract.wholes:
            weeks = table.wholes[column]
            found.append(_unread(table, column, place + 1, weeks, _WHOLE_RULE))
    return found


def _shared(cells: list[str]) -> list[str]:
    """Return the cells with equal texts kept once."""
    known: dict[str, str] = {}
    return list(map(known.setdefault, cells, cells))


def _values(cells: list[str], read: Callable[[str], Value | None]) -> list[Value | None]:
    known = {cell: read(cell) for cell in set(cells)}
    return list(map(known.__getitem__, cells))


def _blanks(table: Table, column: Column, place: int) -> Iterator[ParseIssue]:
    if "" not in table.texts[column]:
        return
    for line, cell in zip(table.lines, table.texts[column], strict=True):
        if not cell:
            yield ParseIssue(ParseCode.BLANK, f"{column} is blank; fill it in", line, place)


def _unread(
    table: Table,
    column: Column,
    place: int,
    values: Sequence[Decimal | int | None],
    rule: str,
) -> Iterator[ParseIssue]:
    if None not in values:
        return
    for line, cell, value in zip(table.lines, table.texts[column], values, strict=True):
        if value is None and cell:
            said = f"{column} {quoted(cell)} {rule}"
            yield ParseIssue(ParseCode.NOT_A_NUMBER, said, line, place)
