"""Times as people read and write them.

Owns the two forms of a time on the screen: the whole one in UTC, and the short one that says how
long ago it was; and the forms in which a person may write one.
"""

import re
from datetime import UTC, datetime, timedelta

import click
from google.protobuf.timestamp_pb2 import Timestamp

from core_console.clock import SystemClock

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_SPAN = re.compile(r"([1-9][0-9]{0,6})([smhd])")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")

_MINUTE_S, _HOUR_S, _DAY_S = 60, 3_600, 86_400
_DAYS_NEAR = 7
"""Beyond a week people think in dates."""

_NO_TIME = "no time of this calendar"


def span(text: str) -> timedelta:
    """Return a whole number with its unit, such as 90s, 30m, 12h or 7d; fail as a usage fault."""
    found = _SPAN.fullmatch(text)
    if found is None:
        raise click.BadParameter("write a whole number and its unit, such as 30m, 12h or 7d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def moment(text: str) -> Timestamp:
    """Return a time given as RFC 3339, as a date (its first moment in UTC) or as a span ago.

    Anything else fails as a usage fault.
    """
    instant_ = Timestamp()
    try:
        if _SPAN.fullmatch(text):
            instant_.FromDatetime(SystemClock().now() - span(text))
        else:
            instant_.FromJsonString(f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text)
    except (ValueError, OverflowError):
        said = "write a time such as 2026-11-30T12:00:00Z, a date such as 2026-11-30, or 1h or 7d"
        raise click.BadParameter(said) from None
    return instant_


def is_set(timestamp: Timestamp) -> bool:
    """Say whether there is a time at all."""
    return bool(timestamp.seconds or timestamp.nanos)


def instant(timestamp: Timestamp) -> str:
    """Return a time in UTC to the second, "" when it is not set."""
    if not is_set(timestamp):
        return ""
    try:
        return timestamp.ToDatetime().strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError):
        return _NO_TIME


def near(timestamp: Timestamp, now: datetime) -> str:
    """Return a time as people say it: `3 min ago`, `in 2 h`, or its date when it is far."""
    if not is_set(timestamp):
        return ""
    try:
        then = timestamp.ToDatetime(UTC)
    except (ValueError, OverflowError):
        return _NO_TIME
    apart_s = int((now - then).total_seconds())
    if abs(apart_s) >= _DAYS_NEAR * _DAY_S:
        return then.strftime("%Y-%m-%d")
    length = _length(abs(apart_s))
    return f"{length} ago" if apart_s >= 0 else f"in {length}"


def _length(seconds: int) -> str:
    if seconds < _MINUTE_S:
        return f"{seconds} s"
    if seconds < _HOUR_S:
        return f"{seconds // _MINUTE_S} min"
    if seconds < _DAY_S:
        return f"{seconds // _HOUR_S} h"
    return f"{seconds // _DAY_S} d"
