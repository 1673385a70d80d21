"""What a command prints: a table for people, canonical proto3 JSON for machines.

Owns the form of every value on the screen. Whatever came from a server is cleaned first, so that
nobody's text can drive the reader's terminal.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import TypeVar

import click
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.table import Table
from rich.text import Text

from core_console.cli.failure import printable

_PIPE_COLUMNS = 100_000
"""Into a pipe nothing is folded: a line is a record for the next program."""

Response = TypeVar("Response", bound=Message)


class Form(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"


def terminal(*, to_errors: bool = False) -> Console:
    """Return the screen as it is now; it never reads markup in a text."""
    console = Console(stderr=to_errors, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _PIPE_COLUMNS
    return console


class Page:
    """Where a command's answer goes, in the form that was asked for."""

    def __init__(self, form: Form) -> None:
        self.form = form

    def answer(self, response: Response, show: Callable[[Response], None]) -> None:
        """Print a response: as JSON, or as `show` prints it for people."""
        if self.form is Form.JSON:
            click.echo(MessageToJson(response))
        else:
            show(response)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print rows under their columns."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        grid.add_column(Text(column), overflow="fold")
    for row in rows:
        grid.add_row(*(Text(printable(cell)) for cell in row))
    _print(grid)


def facts(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names with their values, leaving out what is empty."""
    grid = Table(box=None, pad_edge=False, show_header=False)
    grid.add_column(overflow="fold", style="bold")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            grid.add_row(Text(name), Text(printable(value)))
    _print(grid)


def _print(grid: Table) -> None:
    """Print a grid without the blanks that fill its last column."""
    console = terminal()
    with console.capture() as captured:
        console.print(grid)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())


def say(sentence: str) -> None:
    """Print one line."""
    click.echo(printable(sentence))


def more(next_page_token: str) -> None:
    """Say how to go on when a list goes on."""
    if next_page_token:
        say(f"there is more: --page-token {next_page_token}")


def instant(timestamp: Timestamp) -> str:
    """Return a time in UTC to the second, "" when it is not set."""
    if not timestamp.seconds and not timestamp.nanos:
        return ""
    try:
        return timestamp.ToDatetime().strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError):
        return "no time of this calendar"


def enum_prefix(enum: EnumDescriptor) -> str:
    """Return what all names of the enum begin with, such as `RUN_STATUS_`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_"


def short_name(enum: EnumDescriptor, number: int) -> str:
    """Return a value's name without its type; "" for none, the number for one that is not known."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    name = value.name.removeprefix(enum_prefix(enum))
    return "" if name == "UNSPECIFIED" else name
