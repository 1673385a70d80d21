"""The slots of a cron: the instants at which a schedule may fire.

Owns the only use of croniter. The fields are read by `decide.cron`, and croniter is given plain
numbers alone, because it reads some fields in another way than the contract: an equal range such
as `5-5` as the whole cycle, and a list with `*` in it, or `1-31` beside `*/2`, as no restriction
of the day. The contract takes each as written, and either of day-of-month and weekday suffices
when both are not exactly `*`.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from croniter import croniter
from msgspec import Struct

from core_console.decide import cron as syntax

_EVERY = "*"
_YEARS_AHEAD = 8
"""Leap days come at most eight years apart (1896 to 1904, 2096 to 2104)."""

_KEPT = 4_096
"""400 triggers that each show their next five slots, and twice that: croniter takes its time."""

_MINUTE, _HOUR = timedelta(minutes=1), timedelta(hours=1)

_LIBRARY_ERRORS = (ValueError, ArithmeticError, LookupError, TypeError, AssertionError)
"""What arithmetic over an odd date raises; croniter's own errors are ValueErrors."""


class SlotError(Exception):
    """The cron has no slots that could be worked out; its text says why, as a sentence's end."""


class Plan(Struct, frozen=True, gc=False):
    """A cron as numbers; None is a kind of day that restricts nothing."""

    minute: int
    hours: tuple[int, ...]
    days: tuple[int, ...] | None
    months: tuple[int, ...]
    weekdays: tuple[int, ...] | None

    def text(self) -> str:
        """Return the cron in plain numbers, as every library reads it alike."""
        return " ".join(
            [
                str(self.minute),
                _listed(self.hours),
                _listed(self.days),
                _listed(self.months),
                _listed(self.weekdays),
            ]
        )

    def has(self, day: date) -> bool:
        """Say whether the day has slots."""
        if day.month not in self.months:
            return False
        if self.days is None and self.weekdays is None:
            return True
        by_date = self.days is not None and day.day in self.days
        return by_date or (self.weekdays is not None and day.isoweekday() % 7 in self.weekdays)


def _listed(numbers: tuple[int, ...] | None) -> str:
    return _EVERY if numbers is None else ",".join(map(str, numbers))


@lru_cache(maxsize=_KEPT)
def plan(cron: str) -> Plan:
    """Return what the cron means; raise SlotError for one that is none of ours."""
    wrong = syntax.form_fault(cron)
    if wrong:
        raise SlotError(f"cron: {wrong}")
    minute, hour, day, month, weekday = cron.split()
    weekdays = {each % 7 for each in syntax.values(weekday, 0, 7, syntax.DAYS)}
    return Plan(
        minute=int(minute),
        hours=tuple(sorted(syntax.values(hour, 0, 23, ()))),
        days=None if day == _EVERY else tuple(sorted(syntax.values(day, 1, 31, ()))),
        months=tuple(sorted(syntax.values(month, 1, 12, syntax.MONTHS))),
        weekdays=None if weekday == _EVERY else tuple(sorted(weekdays)),
    )


class Due(Struct, frozen=True, gc=False):
    """The slots since an instant, up to now: how many, and which were the first and the newest.

    `passed` is the one before the newest, None when there is only one.
    """

    count: int
    first: datetime
    newest: datetime
    passed: datetime | None


def due(cron: str, *, since: datetime, now: datetime) -> Due | None:
    """Return the slots after `since` and not after `now`, None when there are none.

    Raises:
        SlotError: they cannot be worked out.
    """
    first = after(cron, since)
    if first > now:
        return None
    if after(cron, first) > now:
        return Due(1, first, first, None)
    newest = _at_or_before(cron, now)
    count = _count(plan(cron), since, newest)
    return Due(count, first, newest, _at_or_before(cron, newest - _MINUTE))


def after(cron: str, at: datetime) -> datetime:
    """Return the first slot after `at`, in UTC; raise SlotError when there is none in 8 years."""
    # Within an hour after the slots' minute nothing changes, so that one answer serves them all.
    here = at.astimezone(UTC)
    minute = plan(cron).minute
    hour = here if here.minute >= minute else here - _HOUR
    return _next(cron, hour.replace(minute=minute, second=0, microsecond=0))


@lru_cache(maxsize=_KEPT)
def _next(cron: str, at: datetime) -> datetime:
    return _asked(cron, at, back=False)


def upcoming(cron: str, *, now: datetime, count: int) -> Iterator[datetime]:
    """Yield the next `count` slots after `now`; raise SlotError when they cannot be worked out."""
    for _ in range(count):
        now = after(cron, now)
        yield now


def _at_or_before(cron: str, at: datetime) -> datetime:
    return _asked(cron, at.replace(second=0, microsecond=0) + _MINUTE, back=True)


def _asked(cron: str, at: datetime, *, back: bool) -> datetime:
    """Ask croniter for the nearest slot strictly before or after; in UTC there is no summer."""
    numbers = plan(cron).text()
    try:
        start = at.astimezone(UTC).replace(tzinfo=None)
        found = croniter(numbers, start, datetime, max_years_between_matches=_YEARS_AHEAD)
        slot: datetime = found.get_prev() if back else found.get_next()
    except _LIBRARY_ERRORS as error:
        raise SlotError(f"cron: has no slot within {_YEARS_AHEAD} years") from error
    return slot.replace(tzinfo=UTC)


def _count(found: Plan, since: datetime, until: datetime) -> int:
    """Return how many slots lie after `since` and not after `until`, without a step for each.

    A console that was away for years must not count a hundred thousand slots one by one.
    """
    first, last = since.astimezone(UTC), until.astimezone(UTC)
    days = (last.date() - first.date()).days
    full = sum(found.has(first.date() + timedelta(days=each)) for each in range(days + 1))
    return full * len(found.hours) - _until(found, first) - _rest(found, last)


def _until(found: Plan, at: datetime) -> int:
    """Return how many slots of that day come up to and including `at`."""
    if not found.has(at.date()):
        return 0
    return sum((hour, found.minute) <= (at.hour, at.minute) for hour in found.hours)


def _rest(found: Plan, at: datetime) -> int:
    """Return how many slots of that day come after `at`."""
    return len(found.hours) - _until(found, at) if found.has(at.date()) else 0
