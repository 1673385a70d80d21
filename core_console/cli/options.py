"""Options that several commands take, and how their texts become values.

Owns the spelling of durations, times and pages on the command line.
"""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar

import click
from google.protobuf.timestamp_pb2 import Timestamp

C = TypeVar("C", bound=Callable[..., Any])

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_DURATION = re.compile(r"([1-9][0-9]{0,6})([smhd])")


def duration(text: str) -> timedelta:
    """Return a whole number with its unit, such as 90s, 30m, 12h or 7d; fail as a usage fault."""
    found = _DURATION.fullmatch(text)
    if found is None:
        raise click.BadParameter("write a whole number and its unit, such as 30m, 12h or 7d")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def time(text: str) -> Timestamp:
    """Return a time given as RFC 3339; fail as a usage fault."""
    instant = Timestamp()
    try:
        instant.FromJsonString(text)
    except ValueError:
        raise click.BadParameter("write a time such as 2026-11-30T12:00:00Z") from None
    return instant


def paged(command: C) -> C:
    """Give a list command its page."""
    size = click.option("--page-size", default=0, metavar="N", help="1 to 200; 0 is 50.")
    token = click.option("--page-token", default="", metavar="T", help="Where the last one ended.")
    return size(token(command))


def status_option(names: list[str]) -> Callable[[C], C]:
    """Return an option that narrows a list to statuses, given by their short names."""
    return click.option(
        "--status",
        "statuses",
        multiple=True,
        type=click.Choice(names, case_sensitive=False),
        help="Only these; may be given several times.",
    )


def revision_option(command: C) -> C:
    """Require the revision that was read."""
    return click.option(
        "--revision",
        type=click.IntRange(min=1),
        required=True,
        metavar="N",
        help="The revision that you read; a newer one refuses the command.",
    )(command)
