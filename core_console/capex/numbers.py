"""Cells as exact numbers, and the arithmetic that never rounds.

Owns the number grammar of the feeds (CapEx page, section 1). Never makes a float.
"""

import re
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation, Overflow

CHARACTERS_MAX = 64
"""A longer cell is no number: no currency has such amounts, and arithmetic stays bounded."""

_NUMBER = re.compile(r"-?[$€£]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")  # what nearly every cell is
_WHOLE = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+")
_NO_SIGNS = str.maketrans("", "", "$€£,")

EXACT = Context(
    # The sum of 50,000 numbers of 64 digits on both sides of the point, times a threshold of as
    # many, has under 270 digits. Beyond 400 an operation raises, it does not round.
    prec=400,
    Emax=MAX_EMAX,
    Emin=MIN_EMIN,
    traps=[Inexact, InvalidOperation, Overflow],
)
"""The only context that the CapEx engine adds, subtracts and multiplies in."""


def number(text: str) -> Decimal | None:
    """Return the number that a trimmed cell holds, None when it holds none."""
    if len(text) > CHARACTERS_MAX:
        return None
    if _PLAIN.fullmatch(text):
        return Decimal(text)
    if not _NUMBER.fullmatch(text):
        return None
    return Decimal(text.translate(_NO_SIGNS))


def whole(text: str) -> int | None:
    """Return the whole number, 0 or more, that a trimmed cell holds; None when it holds none."""
    if len(text) > CHARACTERS_MAX or not _WHOLE.fullmatch(text):
        return None
    return int(text.translate(_NO_SIGNS))


def plain(value: Decimal | None) -> str:
    """Return the number in digits, without an exponent, as a message shows it."""
    return "blank" if value is None else format(value, "f")
