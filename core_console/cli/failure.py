"""How a command ends when it does not succeed: its sentence and its exit code.

Owns the exit codes and the one way in which text from elsewhere reaches a terminal. Never prints
a stack.
"""

import unicodedata
from collections.abc import Sequence
from enum import IntEnum
from typing import IO, Any

import click

_UNPRINTABLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, invisible and direction characters: a terminal would obey them, not show them."""


class Exit(IntEnum):
    """What the command's caller is told."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    UNREACHABLE = 3


class Failed(click.ClickException):
    """A command that ends here: one sentence, and one line each for whatever else is to say."""

    def __init__(self, code: Exit, sentence: str, lines: Sequence[str] = ()) -> None:
        super().__init__(sentence)
        self.exit_code = code  # type: ignore[misc]  # click reads it from the instance
        self.lines = tuple(lines)

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the sentence and the lines on standard error."""
        for line in (self.message, *self.lines):
            click.echo(printable(line), file=file, err=True)


def printable(text: str) -> str:
    """Return text from elsewhere on one line and without anything that a terminal would obey."""
    shown = "".join(
        character
        for character in text.replace("\n", " ").replace("\t", " ")
        if unicodedata.category(character) not in _UNPRINTABLE
    )
    return shown.strip()
