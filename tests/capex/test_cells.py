"""A cell in a message is one short, printable thing, and a day is a day of the calendar."""

import pytest

from core_console.capex.dates import day, shown_day
from core_console.capex.numbers import plain
from core_console.capex.texts import clipped, quoted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Tools", '"Tools"'),
        ("", "blank"),
        ("a\nb", '"a\\u000ab"'),
        ("\u202eabc", '"\\u202eabc"'),
        ("é工", '"é工"'),
        ("x" * 60, f'"{"x" * 60}"'),
        ("x" * 61, f'"{"x" * 59}…"'),
    ],
)
def test_a_cell_is_shown_short_and_printable(text: str, shown: str) -> None:
    assert quoted(text) == shown


def test_a_cell_of_megabytes_is_cut_before_it_is_looked_at() -> None:
    assert clipped("\0" * 8_000_000, 4) == "\\u0000\\u0000\\u0000…"


@pytest.mark.parametrize("text", ["2027-01-20", "0001-01-01", "9999-12-31", "2028-02-29"])
def test_a_day_is_shown_as_it_is_read(text: str) -> None:
    assert shown_day(day(text)) == text


def test_what_is_no_day_of_the_calendar_is_said_in_words() -> None:
    assert shown_day(0) == shown_day(-7_000_000) == "a day before 0001-01-01"
    assert shown_day(None) == "no date"
    assert plain(None) == "blank"
