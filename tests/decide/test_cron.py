"""A cron is five plain UTC fields that fire at most once an hour, and have a slot at all."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.decide import cron
from tests.builders import NOW

ONE_NUMBER = "the minute field must be ONE number 0-59 — a schedule fires at most once an hour"
NICKNAME = "is a nickname; write the five fields: minute hour day-of-month month weekday"
CONTROL = "holds a control character; remove it"
NO_SLOT = "has no slot in the next 8 years"


def count_fault(count: int) -> str:
    return f"has {count} fields; it takes exactly five: minute hour day-of-month month weekday"


def item_fault(field: str, shown: str) -> str:
    low, high = {"hour": (0, 23), "day-of-month": (1, 31), "month": (1, 12), "weekday": (0, 7)}[
        field
    ]
    return (
        f"the {field} field has {shown}, which is not a number {low}-{high}, "
        "a name where names exist, `*`, an ascending range, or a /step of the last two"
    )


@pytest.mark.parametrize(
    "text",
    [
        "0 * * * *",
        "59 23 31 12 7",
        "00 00 01 01 0",
        "5 */2 * * *",
        "5 8-18/2 * * *",
        "5 1,2,9-11,*/6 * * *",
        "5 * * jan,FEB-Apr,12 *",
        "5 * * * mon-fri",
        "5 * * * SUN,Wed,7",
        "5 * * * 5-7",
        "5 6 29 2 *",
        "5 6 30 2 1",
        "  5  6   1 1   1 ",
        "5 * 31-31 * *",
        "5 */99 * * *",
    ],
)
def test_a_plain_cron_is_taken(text: str) -> None:
    assert cron.fault(text, now=NOW) == ""


@pytest.mark.parametrize(
    "minute", ["*", "*/5", "60", "99", "-1", "0,30", "0-1", "5/5", "a", "1.5", "100", "+5"]
)
def test_the_minute_is_one_number(minute: str) -> None:
    assert cron.fault(f"{minute} * * * *", now=NOW) == ONE_NUMBER


@pytest.mark.parametrize("text", ["@daily", "@hourly", " @reboot", "@every 5m"])
def test_a_nickname_is_refused(text: str) -> None:
    assert cron.fault(text, now=NOW) == NICKNAME


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 6, 7])
def test_there_are_exactly_five_fields(count: int) -> None:
    assert cron.fault(" ".join(["0", *"****", "*", "*"][:count]), now=NOW) == count_fault(count)


@pytest.mark.parametrize("letter", list("HRLW#?"))
@pytest.mark.parametrize("position", range(1, 5))
def test_the_letters_of_other_crons_are_refused_by_field(letter: str, position: int) -> None:
    parts = ["0", "*", "*", "*", "*"]
    parts[position] = letter
    field = ("hour", "day-of-month", "month", "weekday")[position - 1]
    assert cron.fault(" ".join(parts), now=NOW) == item_fault(field, f"`{letter}`")


@pytest.mark.parametrize(
    ("text", "field", "item"),
    [
        ("0 24 * * *", "hour", "24"),
        ("0 18-8 * * *", "hour", "18-8"),
        ("0 * 0 * *", "day-of-month", "0"),
        ("0 * 32 * *", "day-of-month", "32"),
        ("0 * 15W * *", "day-of-month", "15W"),
        ("0 * L-3 * *", "day-of-month", "L-3"),
        ("0 * jan * *", "day-of-month", "jan"),
        ("0 * * 0 *", "month", "0"),
        ("0 * * 13 *", "month", "13"),
        ("0 * * mon *", "month", "mon"),
        ("0 * * dec-jan *", "month", "dec-jan"),
        ("0 * * january *", "month", "january"),
        ("0 * * * 8", "weekday", "8"),
        ("0 * * * sat-sun", "weekday", "sat-sun"),
        ("0 * * * fri#2", "weekday", "fri#2"),
        ("0 * * * 5L", "weekday", "5L"),
        ("0 */0 * * *", "hour", "*/0"),
        ("0 */100 * * *", "hour", "*/100"),
        ("0 */x * * *", "hour", "*/x"),
        ("0 3/2 * * *", "hour", "3/2"),
        ("0 1-2-3 * * *", "hour", "1-2-3"),
        ("0 1- * * *", "hour", "1-"),
        ("0 -1 * * *", "hour", "-1"),
        ("0 **  * * *", "hour", "**"),
        ("0 *-3  * * *", "hour", "*-3"),
        ("0 001 * * *", "hour", "001"),
    ],
)
def test_a_bad_item_is_named_with_its_field(text: str, field: str, item: str) -> None:
    assert cron.fault(text, now=NOW) == item_fault(field, f"`{item}`")


@pytest.mark.parametrize("item", ["1,,2", "1,", "$(id)", "a" * 21])
def test_an_odd_item_is_not_repeated(item: str) -> None:
    assert cron.fault(f"0 {item} * * *", now=NOW) == item_fault("hour", "an item")


def test_what_looks_like_a_credential_is_not_repeated() -> None:
    fault = cron.fault("0 AKIAIOSFODNN7EXAMPLE * * *", now=NOW)
    assert fault == "holds what looks like a credential; remove it"


@pytest.mark.parametrize("blank", ["\t", "\n", "\r", "\x0b", "\x1c", "\x00"])
def test_fields_are_parted_by_spaces_alone(blank: str) -> None:
    assert cron.fault(f"0{blank}* * * *", now=NOW) == CONTROL


@pytest.mark.parametrize(
    "text", ["\u0665 * * * *", "5 * * * m\u043en", "5\u00a0* * * *", "5 \uff11 * * *"]
)
def test_only_ascii_is_taken(text: str) -> None:
    expected = "holds characters that are not ASCII; write digits 0-9 and English names"
    assert cron.fault(text, now=NOW) == expected


def test_a_cron_has_at_most_500_characters() -> None:
    fields = " * * * *"
    assert cron.fault("5" + " " * (500 - 1 - len(fields)) + fields, now=NOW) == ""
    assert cron.fault("5" + " " * (501 - 1 - len(fields)) + fields, now=NOW) == (
        "has 501 characters; at most 500"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 0 30 2 *", NO_SLOT),
        ("0 0 31 2,4,6,9,11 *", NO_SLOT),
        ("0 0 30,31 feb *", NO_SLOT),
        ("0 0 29-31 2 *", ""),
        ("0 0 30 2 */2", ""),  # a weekday that is not exactly `*` suffices alone
        ("0 0 30 2 0-7", ""),
        ("0 0 31 1-12 *", ""),
    ],
)
def test_a_cron_without_a_slot_is_refused(text: str, expected: str) -> None:
    assert cron.fault(text, now=NOW) == expected


@pytest.mark.parametrize(
    "now",
    [
        datetime(2096, 2, 29, 23, 59, tzinfo=UTC),
        datetime(2096, 3, 1, tzinfo=UTC),  # the longest wait there is: 2100 has no leap day
        datetime(2104, 2, 29, tzinfo=UTC),
    ],
)
def test_a_leap_day_is_always_near_enough(now: datetime) -> None:
    assert cron.fault("0 0 29 2 *", now=now) == ""


def test_the_horizon_starts_on_the_day_in_utc() -> None:
    ahead = datetime(2097, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    assert cron.fault("0 0 31 12 *", now=ahead) == ""


@pytest.mark.parametrize(
    ("part", "bounds", "names", "expected"),
    [
        ("*", (1, 12), cron.MONTHS, set(range(1, 13))),
        ("jan,DEC", (1, 12), cron.MONTHS, {1, 12}),
        ("mar-may", (1, 12), cron.MONTHS, {3, 4, 5}),
        ("sun,Sat", (0, 7), cron.DAYS, {0, 6}),
        ("5-7", (0, 7), cron.DAYS, {5, 6, 7}),
        ("*/10", (1, 31), (), {1, 11, 21, 31}),
        ("2-9/3,30", (1, 31), (), {2, 5, 8, 30}),
    ],
)
def test_a_field_stands_for_its_numbers(
    part: str, bounds: tuple[int, int], names: tuple[str, ...], expected: set[int]
) -> None:
    assert cron.values(part, *bounds, names) == expected


@given(st.text(alphabet="0123456789*,-/ @HLWR#?adejnu\n\t", max_size=40))
def test_any_text_gets_a_sentence_or_is_taken(text: str) -> None:
    fault = cron.fault(text, now=NOW)
    assert "\n" not in fault
    if not fault:
        assert len(text.split()) == 5
