"""Slots come where the five fields say, and croniter and cronsim agree where both read alike."""

import re
from datetime import UTC, datetime, timedelta, timezone
from itertools import islice

import pytest
from croniter import croniter
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from core_console.decide import cron, slots
from core_console.decide.slots import Due, SlotError
from tests.builders import NOW, later


def at(text: str) -> datetime:
    return datetime.fromisoformat(text + ":00+00:00")


def shown(cron_text: str, start: datetime, count: int) -> list[str]:
    found = slots.upcoming(cron_text, now=start, count=count)
    return [slot.strftime("%Y-%m-%d %H:%M") for slot in found]


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        # Leap days, the century that has none included.
        ("0 6 29 2 *", "2027-01-01T00:00", ["2028-02-29 06:00", "2032-02-29 06:00"]),
        ("0 6 29 2 *", "2096-02-29T06:00", ["2104-02-29 06:00", "2108-02-29 06:00"]),
        # The 31st is skipped in the months without one.
        ("5 0 31 * *", "2027-01-31T00:05", ["2027-03-31 00:05", "2027-05-31 00:05"]),
        ("5 0 30 * *", "2027-01-30T00:05", ["2027-03-30 00:05", "2027-04-30 00:05"]),
        # 0 and 7 are Sunday, by number, in a range and by name.
        ("0 9 * * 7", "2026-11-30T12:00", ["2026-12-06 09:00", "2026-12-13 09:00"]),
        ("0 9 * * 0", "2026-11-30T12:00", ["2026-12-06 09:00", "2026-12-13 09:00"]),
        ("0 9 * * sUn", "2026-11-30T12:00", ["2026-12-06 09:00", "2026-12-13 09:00"]),
        ("0 9 * * 7-7", "2026-11-30T12:00", ["2026-12-06 09:00", "2026-12-13 09:00"]),
        ("0 9 * * 6-7", "2026-11-30T12:00", ["2026-12-05 09:00", "2026-12-06 09:00"]),
        # Names in any case.
        ("0 9 1 JAN,jul *", "2026-11-30T12:00", ["2027-01-01 09:00", "2027-07-01 09:00"]),
        ("0 9 * * Mon-fri", "2026-12-04T09:00", ["2026-12-07 09:00", "2026-12-08 09:00"]),
        # Day-of-month and weekday: either suffices when both are not exactly `*`.
        ("0 0 13 * fri", "2026-12-01T00:00", ["2026-12-04 00:00", "2026-12-11 00:00"]),
        ("0 0 13 * fri", "2026-12-11T00:00", ["2026-12-13 00:00", "2026-12-18 00:00"]),
        ("0 0 */10 * fri", "2026-12-01T00:00", ["2026-12-04 00:00", "2026-12-11 00:00"]),
        ("0 0 30 2 mon", "2027-02-15T00:00", ["2027-02-22 00:00", "2028-02-07 00:00"]),
        ("0 0 1-31 * */2", "2026-12-01T00:00", ["2026-12-02 00:00", "2026-12-03 00:00"]),
        ("0 0 15 * 0-6", "2026-12-01T00:00", ["2026-12-02 00:00", "2026-12-03 00:00"]),
        ("0 0 *,15 * mon", "2026-12-01T00:00", ["2026-12-02 00:00", "2026-12-03 00:00"]),
        # One of them alone restricts.
        ("0 0 15 * *", "2026-12-01T00:00", ["2026-12-15 00:00", "2027-01-15 00:00"]),
        ("0 0 * * wed", "2026-12-01T00:00", ["2026-12-02 00:00", "2026-12-09 00:00"]),
        ("0 0 1-31 * *", "2026-12-01T00:00", ["2026-12-02 00:00", "2026-12-03 00:00"]),
        # Steps, lists and ranges of one value.
        ("7 */8 * * *", "2026-11-30T12:00", ["2026-11-30 16:07", "2026-12-01 00:07"]),
        ("7 9-17/4 * * *", "2026-11-30T12:00", ["2026-11-30 13:07", "2026-11-30 17:07"]),
        ("7 5-5 * * *", "2026-11-30T12:00", ["2026-12-01 05:07", "2026-12-02 05:07"]),
        ("7 5-5/3 * * *", "2026-11-30T12:00", ["2026-12-01 05:07", "2026-12-02 05:07"]),
        ("7 */99 * * *", "2026-11-30T12:00", ["2026-12-01 00:07", "2026-12-02 00:07"]),
        # The end of the year, and the hour itself is not after itself.
        ("59 23 31 12 *", "2026-11-30T12:00", ["2026-12-31 23:59", "2027-12-31 23:59"]),
        ("0 * * * *", "2026-12-31T23:00", ["2027-01-01 00:00", "2027-01-01 01:00"]),
    ],
)
def test_slots_come_where_the_fields_say(text: str, start: str, expected: list[str]) -> None:
    assert cron.fault(text, now=NOW) == ""
    assert shown(text, at(start), 2) == expected


@pytest.mark.parametrize("second", [0, 1, 30, 59])
def test_a_slot_is_a_whole_minute_and_after_the_instant(second: int) -> None:
    start = at("2026-11-30T12:17") + timedelta(seconds=second, milliseconds=second)
    assert shown("17 * * * *", start, 1) == ["2026-11-30 13:17"]
    before = at("2026-11-30T12:16") + timedelta(seconds=second, milliseconds=second)
    assert shown("17 * * * *", before, 1) == ["2026-11-30 12:17"]


def test_slots_are_in_utc_whatever_the_zone_of_the_instant() -> None:
    ahead = datetime(2026, 11, 30, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    assert shown("30 23 * * *", ahead, 1) == ["2026-11-29 23:30"]
    assert slots.after("30 23 * * *", ahead).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    ["", "* * * * *", "@hourly", "0 0 * * * *", "H * * * *", "61 * * * *", "\u0663 * * * *"],
)
def test_a_cron_that_is_none_of_ours_never_reaches_the_library(text: str) -> None:
    with pytest.raises(SlotError, match=re.escape(f"cron: {cron.form_fault(text)}")):
        slots.after(text, NOW)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *"])
def test_a_cron_without_a_slot_is_told_and_not_looked_for_for_ever(text: str) -> None:
    with pytest.raises(SlotError, match="cron: has no slot within 8 years"):
        slots.after(text, NOW)


def test_the_end_of_the_calendar_is_told() -> None:
    with pytest.raises(SlotError, match="no slot"):
        slots.after("0 0 1 1 *", datetime(9999, 12, 31, tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "since", "now", "expected"),
    [
        ("0 * * * *", "2026-11-30T12:00", "2026-11-30T12:59", None),
        (
            "0 * * * *",
            "2026-11-30T12:00",
            "2026-11-30T13:00",
            (1, "2026-11-30T13:00", "2026-11-30T13:00", None),
        ),
        (
            "0 * * * *",
            "2026-11-30T12:30",
            "2026-11-30T14:59",
            (2, "2026-11-30T13:00", "2026-11-30T14:00", "2026-11-30T13:00"),
        ),
        (
            "0 * * * *",
            "2026-11-30T12:00",
            "2026-12-01T12:00",
            (24, "2026-11-30T13:00", "2026-12-01T12:00", "2026-12-01T11:00"),
        ),
        (
            "30 6 * * mon",
            "2026-11-30T06:30",
            "2027-01-01T00:00",
            (4, "2026-12-07T06:30", "2026-12-28T06:30", "2026-12-21T06:30"),
        ),
        (
            "30 6 * * 5,7",
            "2026-12-04T06:30",
            "2026-12-18T06:30",
            (4, "2026-12-06T06:30", "2026-12-18T06:30", "2026-12-13T06:30"),
        ),
        ("0 * * * *", "2026-11-30T12:00", "2026-11-30T11:00", None),  # the clock jumped back
        (
            "15 * * * *",
            "2006-11-30T12:15",
            "2026-11-30T12:15",
            (175_320, "2006-11-30T13:15", "2026-11-30T12:15", "2026-11-30T11:15"),
        ),
    ],
)
def test_the_slots_that_are_due(
    text: str, since: str, now: str, expected: tuple[int, str, str, str | None] | None
) -> None:
    due = None
    if expected is not None:
        count, first, newest, passed = expected
        due = Due(count, at(first), at(newest), at(passed) if passed else None)
    assert slots.due(text, since=at(since), now=at(now)) == due


numbers = st.integers


@st.composite
def items(draw: st.DrawFn, low: int, high: int, names: tuple[str, ...]) -> str:
    """Return one item of a field, in any of the forms that the contract knows."""

    def one(value: int) -> str:
        offset = 1 if names is cron.MONTHS else 0
        if names and value - offset < len(names) and draw(st.booleans()):
            return draw(st.sampled_from([str.upper, str.lower, str.title]))(names[value - offset])
        return str(value)

    first, last = sorted((draw(numbers(low, high)), draw(numbers(low, high))))
    step = draw(numbers(1, 12))
    ranged = f"{one(first)}-{last}"
    return draw(st.sampled_from([one(first), ranged, f"{ranged}/{step}", f"*/{step}"]))


def fields(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    listed = st.lists(items(low, high, names), min_size=1, max_size=3).map(",".join)
    return st.one_of(st.just("*"), listed)


crons = st.tuples(
    numbers(0, 59).map(str),
    fields(0, 23),
    fields(1, 31),
    fields(1, 12, cron.MONTHS),
    fields(0, 7, cron.DAYS),
).map(" ".join)
instants = st.datetimes(datetime(2024, 1, 1), datetime(2033, 1, 1)).map(  # noqa: DTZ001 -- the zone follows
    lambda naive: naive.replace(tzinfo=UTC)
)


def is_read_alike(text: str) -> bool:
    """Say whether cronsim reads the fields as the contract does.

    It does not in two cases, and the contract's reading is the right one for us in both, because
    it says what it means in one sentence. Like Debian's cron, cronsim wants BOTH the day of the
    month and the weekday as soon as one of them STARTS with `*`: `*/2` with `mon` is then an
    odd Monday, where the contract says either, for only exactly `*` is no restriction. And it
    takes a range of one value with a step, `5-5/3`, for `5/3`: from 5 on, not 5 alone.
    """
    _, _, day, _, weekday = text.split()
    both = day != "*" and weekday != "*"
    starred = day.startswith("*") or weekday.startswith("*")
    return not (both and starred) and not any(map(is_one_value_with_a_step, _FIELDS, text.split()))


_FIELDS = ((0, 59, ()), (0, 23, ()), (1, 31, ()), (1, 12, cron.MONTHS), (0, 7, cron.DAYS))


def is_one_value_with_a_step(field: tuple[int, int, tuple[str, ...]], part: str) -> bool:
    bases = (item.partition("/")[0] for item in part.split(",") if "-" in item and "/" in item)
    return any(len(cron.values(base, *field)) == 1 for base in bases)


@settings(max_examples=2_000, deadline=None)
@given(text=crons, start=instants)
def test_croniter_behind_our_fields_and_cronsim_give_the_same_slots(
    text: str, start: datetime
) -> None:
    if cron.fault(text, now=start):
        return
    ours = list(slots.upcoming(text, now=start, count=2))
    assert list(islice(CronSim(slots.plan(text).text(), start), 2)) == ours
    if is_read_alike(text):
        assert list(islice(CronSim(text, start), 2)) == ours


@pytest.mark.parametrize(
    ("text", "ours", "theirs"),
    [
        ("0 0 */10 * fri", ["04", "11"], ["11", "01"]),
        ("0 0 13 * */3", ["02", "05"], ["13", "13"]),
        ("7 5-5/3 * * *", ["02", "03"], ["01", "01"]),
    ],
)
def test_where_cronsim_reads_a_field_in_another_way_the_contract_decides(
    text: str, ours: list[str], theirs: list[str]
) -> None:
    start = at("2026-12-01T05:30")
    assert [slot[8:10] for slot in shown(text, start, 2)] == ours
    assert [f"{slot:%d}" for slot in islice(CronSim(text, start), 2)] == theirs
    assert not is_read_alike(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("7 5-5 * * *", "an equal range is the whole cycle to croniter"),
        ("0 0 * * 7-7", "the same for a weekday"),
        ("0 0 1-31 * */2", "a full range beside a `*` is no restriction to croniter"),
        ("0 0 *,15 * mon", "a list with `*` in it is no restriction to croniter"),
    ],
)
def test_what_croniter_would_read_in_another_way_is_given_to_it_as_numbers(
    text: str, why: str
) -> None:
    start = at("2026-12-01T05:30")
    raw = croniter(text, start, datetime)
    theirs = [raw.get_next() for _ in range(5)]
    assert theirs != list(slots.upcoming(text, now=start, count=5)), why


@settings(max_examples=150, deadline=None)
@given(text=crons, start=instants, hours=st.integers(0, 24 * 20), minutes=st.integers(0, 59))
def test_slots_that_are_counted_are_those_that_are_stepped_through(
    text: str, start: datetime, hours: int, minutes: int
) -> None:
    if cron.fault(text, now=start):
        return
    now = start + timedelta(hours=hours, minutes=minutes)
    stepped = []
    slot = slots.after(text, start)
    while slot <= now:
        stepped.append(slot)
        slot = slots.after(text, slot)
    expected = None
    if stepped:
        passed = stepped[-2] if len(stepped) > 1 else None
        expected = Due(len(stepped), stepped[0], stepped[-1], passed)
    assert slots.due(text, since=start, now=now) == expected


def test_a_schedule_that_slept_for_a_century_is_counted_at_once() -> None:
    due = slots.due("0 * * * *", since=NOW, now=later(days=36_525))
    assert due is not None
    assert due.count == 36_525 * 24


def test_the_slots_of_a_month_are_counted_in_that_month_alone() -> None:
    due = slots.due("5 2 * 3 *", since=at("2026-02-20 00:00"), now=at("2026-04-20 00:00"))
    assert due is not None
    assert (due.count, due.newest) == (31, at("2026-03-31 02:05"))
