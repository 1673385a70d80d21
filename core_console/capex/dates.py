"""Cells as days.

Owns the one date form of the feeds. A day is its ordinal (1 = 0001-01-01), so that adding days
never leaves the calendar.
"""

import re
from datetime import date

_ISO = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")


def day(text: str) -> int | None:
    """Return the ordinal of a `YYYY-MM-DD`, None when the text is none."""
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2]), int(found[3])).toordinal()
    except ValueError:  # the calendar has no such day
        return None


def shown_day(ordinal: int | None) -> str:
    """Return the day as `YYYY-MM-DD`; a day less many weeks may lie before the calendar."""
    if ordinal is None:
        return "no date"
    if ordinal < 1:
        return "a day before 0001-01-01"
    return date.fromordinal(ordinal).isoformat()
