"""Whether a cron text is one of ours: five UTC fields whose minute is ONE number.

Owns the syntax (contract, section 5) and the proof that a slot exists. The fields are checked here
before any library sees them, because libraries accept more: six fields, nicknames, `L`, `#`.
"""

import re
from calendar import monthrange
from datetime import UTC, date, datetime

from core_console.decide import screen

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")

# The longest cron that still says something: every value of every field as a list is about 400.
_CHARACTERS_MAX = 500

_FIELDS = (
    ("hour", 0, 23, ()),
    ("day-of-month", 1, 31, ()),
    ("month", 1, 12, MONTHS),
    ("weekday", 0, 7, DAYS),
)

# Leap days come at most eight years apart (1896 to 1904, 2096 to 2104).
_YEARS_AHEAD = 8

_MINUTE_LAST = 59

_ONE_NUMBER = "the minute field must be ONE number 0-59 — a schedule fires at most once an hour"


def fault(cron: str, *, now: datetime) -> str:
    """Return what is wrong with `cron` in one sentence, "" when nothing is."""
    return form_fault(cron) or _slot_fault(cron.split(), now)


def form_fault(cron: str) -> str:
    """Return what is wrong with the five fields in one sentence, "" when they are well formed."""
    parts = cron.split()
    return _text_fault(cron) or _minute_fault(parts) or _fields_fault(parts)


def _text_fault(cron: str) -> str:
    if len(cron) > _CHARACTERS_MAX:
        return f"has {len(cron)} characters; at most {_CHARACTERS_MAX}"
    if not cron.isascii():
        return "holds characters that are not ASCII; write digits 0-9 and English names"
    if wrong := screen.flaws("cron", cron):
        return wrong[0].description
    if cron.strip().startswith("@"):
        return "is a nickname; write the five fields: minute hour day-of-month month weekday"
    count = len(cron.split())
    if count != 1 + len(_FIELDS):
        return f"has {count} fields; it takes exactly five: minute hour day-of-month month weekday"
    return ""


def _minute_fault(parts: list[str]) -> str:
    one = re.fullmatch(r"[0-9]{1,2}", parts[0]) and int(parts[0]) <= _MINUTE_LAST
    return "" if one else _ONE_NUMBER


def _fields_fault(parts: list[str]) -> str:
    for part, (name, low, high, names) in zip(parts[1:], _FIELDS, strict=True):
        for item in part.split(","):
            if _item_values(item, low, high, names) is None:
                return (
                    f"the {name} field has {_shown(item)}, which is not a number {low}-{high}, "
                    "a name where names exist, `*`, an ascending range, or a /step of the last two"
                )
    return ""


def _slot_fault(parts: list[str], now: datetime) -> str:
    return "" if _has_slot(parts, now) else f"has no slot in the next {_YEARS_AHEAD} years"


def _shown(item: str) -> str:
    """Return the item when it is short and plain enough to repeat."""
    return f"`{item}`" if re.fullmatch(r"[A-Za-z0-9*/#?@-]{1,20}", item) else "an item"


def _item_values(item: str, low: int, high: int, names: tuple[str, ...]) -> range | None:
    """Return the values of one list item, None when it is not well formed."""
    base, slash, step_text = item.partition("/")
    if slash and not re.fullmatch(r"[1-9][0-9]?", step_text):
        return None
    step = int(step_text) if slash else 1
    if base == "*":
        return range(low, high + 1, step)
    first_text, dash, last_text = base.partition("-")
    first = _number(first_text, low, high, names)
    last = _number(last_text, low, high, names) if dash else first
    if first is None or last is None or first > last or (slash and not dash):
        return None
    return range(first, last + 1, step)


def _number(text: str, low: int, high: int, names: tuple[str, ...]) -> int | None:
    lowered = text.lower()
    if lowered in names:
        return names.index(lowered) + (1 if names is MONTHS else 0)
    if not re.fullmatch(r"[0-9]{1,2}", text):
        return None
    value = int(text)
    return value if low <= value <= high else None


def values(part: str, low: int, high: int, names: tuple[str, ...]) -> frozenset[int]:
    """Return the numbers that a well-formed field stands for."""
    found: set[int] = set()
    for item in part.split(","):
        found.update(_item_values(item, low, high, names) or ())
    return frozenset(found)


def _has_slot(parts: list[str], now: datetime) -> bool:
    """Say whether some day within the horizon has a slot; hours and minutes always exist."""
    days = values(parts[2], 1, 31, ())
    months = values(parts[3], 1, 12, MONTHS)
    if parts[4] != "*":
        # Every weekday comes in every month, alone or together with a day of the month.
        return True
    today = now.astimezone(UTC).date()
    return any(
        day <= monthrange(year, month)[1] and today <= date(year, month, day)
        for year in range(today.year, today.year + _YEARS_AHEAD + 1)
        for month in months
        for day in days
    )
