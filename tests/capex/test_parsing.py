"""A file is taken whole or refused with every fault, its line and its column."""

import csv
import io
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.capex.feeds import CONTRACTS, CSV_BYTES_MAX, ROWS_MAX
from core_console.capex.parsing import ISSUES_MAX, Parsed, parse
from core_console.model.capex import Column, Feed, ParseCode, ParseIssue
from tests.capex.rows import CLEAN, PLAN, REQUEST, SPEND, a_row, as_csv

HEAD = b"PoNo,PODate,Amount,ApprovalId,ItemId,Type\n"
ROW = b"PO-1,2027-01-19,5,AP-1,IT-1,Tools\n"

LARGE, UTF8, MISSING, BLANK, NUMBER, EMPTY, MALFORMED = ParseCode


def taken(data: bytes, feed: Feed = SPEND) -> Parsed:
    """Return what was parsed; it must be without a fault."""
    parsed = parse(feed, data)
    assert isinstance(parsed, Parsed), parsed
    return parsed


def faults(data: bytes, feed: Feed = SPEND) -> tuple[ParseIssue, ...]:
    """Return the faults; there must be some."""
    parsed = parse(feed, data)
    assert isinstance(parsed, tuple)
    assert parsed
    return parsed


def places(data: bytes, feed: Feed = SPEND) -> list[tuple[ParseCode, int, int]]:
    """Return the code, the line and the column of each fault."""
    return [(each.code, each.line, each.column) for each in faults(data, feed)]


def types(parsed: Parsed) -> list[str]:
    return parsed.table.texts[Column.TYPE]


@pytest.mark.parametrize(
    ("data", "cells"),
    [
        (HEAD + ROW, ["Tools"]),
        (HEAD + ROW.rstrip(b"\n"), ["Tools"]),
        (b"\xef\xbb\xbf" + HEAD + ROW, ["Tools"]),
        ((HEAD + ROW).replace(b"\n", b"\r\n"), ["Tools"]),
        (HEAD.replace(b"\n", b"\r\n") + ROW, ["Tools"]),
        (HEAD + ROW + b"\n\r\n  \n", ["Tools"]),
        (HEAD + b"\n" + ROW, ["Tools"]),
        (HEAD + ROW.replace(b"Tools", b'"Tools"'), ["Tools"]),
        (HEAD + ROW.replace(b"Tools\n", b'"Tools"\r\n'), ["Tools"]),
        (HEAD + ROW.replace(b"Tools", b'"a, b"'), ["a, b"]),
        (HEAD + ROW.replace(b"Tools", b'"a ""b"" c"'), ['a "b" c']),
        (HEAD + ROW.replace(b"Tools", b'""""'), ['"']),
        (HEAD + ROW.replace(b"Tools", b'""'), [""]),
        (HEAD + ROW.replace(b"Tools", b'"a\nb\r\nc\rd"'), ["a\nb\r\nc\rd"]),
        (HEAD + ROW.replace(b"Tools", b'"a\nb"') + ROW, ["a\nb", "Tools"]),
        (HEAD + b'"PO-1",2027-01-19,5,"AP-1",IT-1,\n', [""]),
        (HEAD + ROW.replace(b"Tools", b"=1+1"), ["=1+1"]),
        (HEAD + ROW.replace(b"Tools", b"a\xe2\x80\xa8b\x0bc"), ["a\u2028b\x0bc"]),
        (HEAD.replace(b"PoNo", b'" PoNo "') + ROW, ["Tools"]),
    ],
)
def test_rfc_4180_is_read_in_full(data: bytes, cells: list[str]) -> None:
    assert types(taken(data)) == cells


@pytest.mark.parametrize(
    ("data", "line", "column", "words"),
    [
        (HEAD + ROW.replace(b"Tools", b'To"ols'), 2, 6, "inside of a cell"),
        (HEAD + ROW.replace(b"Tools", b' "Tools"'), 2, 6, "inside of a cell"),
        (HEAD + ROW + ROW.replace(b"AP-1", b'"AP-1') + ROW, 3, 4, "never ends"),
        (HEAD + ROW.replace(b"AP-1", b'"AP\n\n"x'), 4, 4, "follows a closing quote"),
        (HEAD + b'"a\nb","c', 3, 2, "never ends"),
        (HEAD + b'"', 2, 1, "never ends"),
        (HEAD + ROW.replace(b"AP-1", b"A\rP"), 2, 0, "carriage return"),
        (HEAD + ROW.replace(b"AP-1", b'"A",P\r'), 2, 0, "carriage return"),
        ((HEAD + ROW).replace(b"\n", b"\r"), 1, 0, "carriage return"),
        (HEAD + ROW + b"PO-2,2027-01-19\n" + ROW, 3, 3, "2 cells and the header 6"),
        (HEAD + ROW.replace(b"Tools", b"a,b"), 2, 7, "7 cells and the header 6"),
        (HEAD + ROW + ROW.replace(b"Tools", b"\0"), 3, 0, "NUL"),
        (b'Po"No,PODate', 1, 1, "inside of a cell"),
    ],
)
def test_what_does_not_fit_is_malformed_with_its_line(
    data: bytes, line: int, column: int, words: str
) -> None:
    issue, *more = faults(data)
    assert not more
    assert (issue.code, issue.line, issue.column) == (MALFORMED, line, column)
    assert words in issue.message


def test_line_numbers_are_physical_lines() -> None:
    several = ROW.replace(b"Tools", b'"a\nb\nc"')
    data = HEAD + several + b"\n" + ROW.replace(b",5,", b",five,")
    assert places(data) == [(NUMBER, 6, 3)]
    assert taken(HEAD + several + b"\n" + ROW).table.lines == [2, 6]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (HEAD + ROW + ROW.replace(b"Tools", b"d\xe9j\xe0"), 3),
        ((HEAD + ROW).decode().encode("utf-16"), 1),
        ((HEAD + ROW).decode().encode("utf-16-le"), 1),
        ((HEAD + ROW).decode().encode("utf-16-be"), 1),
        (b"\xef\xbb\xbf" + HEAD + b"\xff", 2),
        (HEAD + ROW.replace(b"Tools", b"\xed\xa0\x80"), 2),
        (HEAD + ROW.replace(b"Tools", b"\xc0\xaf"), 2),
    ],
)
def test_other_encodings_are_refused_at_the_line_of_the_first_bad_byte(
    data: bytes, line: int
) -> None:
    assert places(data) == [(UTF8, line, 0)]


@pytest.mark.parametrize("data", [b"", b"\n\n", b"\xef\xbb\xbf", b" \r\n", HEAD, HEAD + b"\n\n"])
def test_a_file_without_a_row_is_empty(data: bytes) -> None:
    assert [each.code for each in faults(data)] == [EMPTY]


def test_a_file_of_exactly_8_mib_is_taken_and_a_byte_more_is_not() -> None:
    row = ROW.replace(b"Tools", b"x" * 4_096)
    rows = HEAD + row * ((CSV_BYTES_MAX - len(HEAD)) // len(row))
    full = rows.ljust(CSV_BYTES_MAX, b"\n")
    assert len(taken(full).table) == rows.count(b"\n") - 1
    assert places(full + b"\n") == [(LARGE, 0, 0)]


def test_50_000_rows_are_taken_and_one_more_is_not() -> None:
    assert len(taken(HEAD + ROW * ROWS_MAX).table) == ROWS_MAX
    assert places(HEAD + ROW * (ROWS_MAX + 1)) == [(LARGE, ROWS_MAX + 2, 0)]


def test_rows_that_do_not_fit_count_as_rows() -> None:
    pairs = (ROW + b"PO-2\n") * (ROWS_MAX // 2)
    assert {each.code for each in faults(HEAD + pairs)} == {MALFORMED}
    assert places(HEAD + pairs + b"\n" + ROW) == [(LARGE, ROWS_MAX + 3, 0)]


def test_empty_lines_are_no_rows_however_many() -> None:
    many = b" \n\r\n\t\n" * 100_000
    assert taken(HEAD + ROW + many + ROW + many).table.lines == [2, 300_003]


@pytest.mark.parametrize("feed", Feed)
def test_each_missing_column_is_named(feed: Feed) -> None:
    columns = CONTRACTS[feed].columns
    for gone in columns:
        head = ",".join(column for column in columns if column != gone)
        issue, *more = faults(f"\n{head}\n".encode(), feed)
        assert not more
        assert (issue.code, issue.line) == (MISSING, 2)
        assert gone in issue.message
    assert len(faults(b"nothing,of,it\n", feed)) == len(columns)


def test_header_names_are_trimmed_and_spelt_exactly() -> None:
    assert types(taken(HEAD.replace(b",Type", b",\tType ") + ROW)) == ["Tools"]
    assert places(HEAD.replace(b"PoNo", b"pono") + ROW) == [(MISSING, 1, 0)]


def test_columns_may_stand_in_another_order_among_others() -> None:
    parsed = taken(b"Type,X,ItemId,ApprovalId,Amount,PODate,Y,PoNo\nTools,,I,A,5,2027-01-01,y,P\n")
    assert parsed.table.row(0) == ("P", "2027-01-01", "5", "A", "I", "Tools")
    assert parsed.notes == ('columns that the feed does not have are ignored: "X", "Y"',)


def test_the_first_of_two_columns_of_a_name_wins_and_that_is_said() -> None:
    parsed = taken(b"Type," + HEAD + b"Testing," + ROW)
    assert types(parsed) == ["Testing"]
    assert parsed.notes == ("column Type comes more than once: the first one counts",)


def test_a_thousand_extra_columns_make_one_short_note() -> None:
    extra = b",".join(b"X%d" % each for each in range(1_000))
    (note,) = taken(HEAD.strip() + b"," + extra + b"\n" + ROW.strip() + b"," * 1_000).notes
    assert note.endswith('"X19" and 980 more')


@pytest.mark.parametrize("feed", Feed)
def test_a_blank_where_none_may_be_is_a_fault_and_elsewhere_not(feed: Feed) -> None:
    for place, column in enumerate(CONTRACTS[feed].columns, start=1):
        data = as_csv(feed, [CLEAN[feed], a_row(feed, **{column: " \u00a0"})])
        if column in CONTRACTS[feed].not_blank:
            assert places(data, feed) == [(BLANK, 3, place)]
        else:
            assert len(taken(data, feed).table) == 2


GOOD = {
    "1,234.50": "1234.50", "$1,234.50": "1234.50", " 12 ": "12", "-5": "-5", "0": "0",
    "-$5": "-5", "€7": "7", "£0.01": "0.01", "007": "7", "1234567": "1234567", "-0": "0",
    "9" * 30: "9" * 30, "1,234,567.000001": "1234567.000001", "1" * 64: "1" * 64,
}  # fmt: skip
BAD = (
    "(5)", "1e3", "NaN", "Infinity", "\uff11\uff12", "1 234", "12,34", "1,2345", "1234,567",
    ",5", ".5", "5.", "1.2.3", "$-5", "--5", "+5", "$", "-", "5 $", "5%", "0x10", "1_000", "\u0665",
    "=1+1", "abc", "1" * 65,
)  # fmt: skip


@pytest.mark.parametrize(("text", "value"), GOOD.items())
@pytest.mark.parametrize("column", ["Amount", "PricePerUnit", "Units"])
def test_these_are_numbers_and_kept_exactly(text: str, value: str, column: str) -> None:
    table = taken(as_csv(PLAN, [a_row(PLAN, **{column: text})]), PLAN).table
    assert table.numbers[Column(column)] == [Decimal(value)]


@pytest.mark.parametrize("text", BAD)
@pytest.mark.parametrize("column", ["Amount", "PricePerUnit", "Units"])
def test_these_are_no_numbers(text: str, column: str) -> None:
    place = list(CLEAN[PLAN]).index(column) + 1
    assert places(as_csv(PLAN, [a_row(PLAN, **{column: text})]), PLAN) == [(NUMBER, 2, place)]


@pytest.mark.parametrize(
    ("text", "weeks"), [("0", 0), ("12", 12), ("1,000", 1_000), ("007", 7), ("", None)]
)
def test_a_lead_time_is_a_whole_number(text: str, weeks: int | None) -> None:
    parsed = taken(as_csv(PLAN, [a_row(PLAN, Lead_time_in_weeks=text)]), PLAN)
    assert parsed.table.wholes[Column.LEAD_TIME] == [weeks]


@pytest.mark.parametrize("text", ["-1", "1.5", "4.0", "$4", "four", "1e1", "\uff14", "9" * 65])
def test_any_other_lead_time_is_no_number(text: str) -> None:
    data = as_csv(PLAN, [a_row(PLAN, Lead_time_in_weeks=text)])
    assert places(data, PLAN) == [(NUMBER, 2, 5)]


def test_a_date_that_does_not_parse_is_no_fault_of_the_file() -> None:
    rows = [a_row(REQUEST, RequestDate=text) for text in ("2027-01-13", "2027-02-30", "soon", "")]
    table = taken(as_csv(REQUEST, rows), REQUEST).table
    assert [day is None for day in table.days[Column.REQUEST_DATE]] == [False, True, True, True]


def test_all_faults_are_told_in_the_order_of_the_file() -> None:
    data = HEAD + b",,,,,\n" + b"PO\n" + b"PO-1,x,5,A,I,T\n" + b",x,five,A,I,T\n" + b'x,"'
    assert places(data) == [
        (BLANK, 2, 1),
        (BLANK, 2, 3),
        (MALFORMED, 3, 2),
        (BLANK, 5, 1),
        (NUMBER, 5, 3),
        (MALFORMED, 6, 2),
    ]


def test_more_than_100_faults_are_counted() -> None:
    listed = faults(HEAD + ROW.replace(b",5,", b",,") * 250)
    assert len(listed) == ISSUES_MAX
    assert listed[-1].line == ISSUES_MAX + 1
    assert listed[-1].message == "Amount is blank; fill it in (150 more issues are not listed)"
    exactly = faults(HEAD + ROW.replace(b",5,", b",,") * ISSUES_MAX)
    assert "more issues" not in exactly[-1].message


def test_a_message_shows_a_cell_cut_and_without_its_controls() -> None:
    cell = "\x1b[31m\u202e" + "9" * 500
    data = as_csv(SPEND, [a_row(SPEND, Amount=cell)])
    (issue,) = faults(data)
    assert issue.message.isprintable()
    assert "\\u001b[31m\\u202e999" in issue.message
    assert len(issue.message) < 200


cells = st.text(st.sampled_from('a1,"\n\r é'), max_size=6)


@given(st.lists(st.lists(cells, min_size=6, max_size=6), min_size=1, max_size=5))
def test_what_a_csv_writer_writes_is_read_back(rows: list[list[str]]) -> None:
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL)
    writer.writerow(CONTRACTS[SPEND].columns)
    writer.writerows([[f"P{row[0]}", row[1], "5", *row[3:]] for row in rows])
    table = taken(out.getvalue().encode()).table
    read = [table.row(number) for number in range(len(table))]
    wanted = [(f"P{row[0]}".strip(), row[1].strip(), "5", *map(str.strip, row[3:])) for row in rows]
    assert read == wanted


@given(st.binary(max_size=60) | st.text(st.sampled_from('a,"\n\r5'), max_size=60).map(str.encode))
def test_no_bytes_raise(data: bytes) -> None:
    for feed in Feed:
        outcome = parse(feed, data)
        assert isinstance(outcome, Parsed) or outcome
    below = parse(SPEND, HEAD + data)
    assert isinstance(below, Parsed) or all(each.line >= 1 for each in below)
