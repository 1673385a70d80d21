"""What a command prints: a text for people, canonical proto3 JSON for machines.

Owns the two forms of an answer and what goes where: the answer on standard output, advice on what
to do next on standard error and only for people, so that no script ever reads it. Whatever came
from a server is cleaned first, so that nobody's text can drive the reader's terminal.
"""

import re
import shutil
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

import click
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from rich.console import Console

from core_console.cli.failure import printable

PIPE_COLUMNS = 100_000
"""Into a pipe nothing is folded: a line is a record for the next program."""

_COLUMNS_MIN = 40
"""A terminal that says less than this is not read by anybody."""

Response = TypeVar("Response", bound=Message)


class Form(StrEnum):
    """How an answer is printed."""

    TABLE = "table"
    JSON = "json"


def screen_columns() -> int | None:
    """Return how wide the reader's terminal is, None when standard output is no terminal."""
    if not sys.stdout.isatty():
        return None
    return max(_COLUMNS_MIN, shutil.get_terminal_size().columns)


def is_asked_by_a_person() -> bool:
    """Say whether somebody sits at the other end who can answer a question."""
    return sys.stdin.isatty()


def terminal(*, to_errors: bool = False) -> Console:
    """Return the screen as it is now; it never reads markup in a text."""
    console = Console(stderr=to_errors, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = PIPE_COLUMNS
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

    def hint(self, advice: str) -> None:
        """Tell people what to do next; machines are told nothing."""
        if self.form is Form.TABLE:
            click.echo(printable(advice), err=True)


def say(sentence: str) -> None:
    """Print one line."""
    click.echo(printable(sentence))


def more(next_page_token: str) -> None:
    """Say how to go on when a list goes on."""
    if next_page_token:
        say(f"there is more: --page-token {next_page_token}")


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


def short_names(enum: EnumDescriptor) -> list[str]:
    """Return the names that a person may give for the values of an enum."""
    return [short_name(enum, value.number) for value in enum.values if value.number]
