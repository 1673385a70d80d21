"""A condition compares text by code point and numbers exactly, and never fails on either."""

from collections.abc import Mapping
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.decide import conditions
from core_console.decide.conditions import Facts, holds
from core_console.model.playbook import Condition, ConditionOp

EQ, NEQ, GT, GTE, CONTAINS = ConditionOp


def that(attribute: str, op: ConditionOp, value: str) -> Condition:
    return Condition(attribute, op, value)


TEXTS = [
    # the attribute, the value, EQ, CONTAINS
    ("fail", "fail", True, True),
    ("fail", "Fail", False, False),
    ("fail", "", False, True),
    ("", "", True, True),
    ("", "fail", False, False),
    ("a fail here", "fail", False, True),
    ("fail ", "fail", False, True),
    ("1", "1.0", False, False),
    ("10", "1", False, True),
    ("\u00e9", "\u00e9", True, True),
    ("e\u0301", "\u00e9", False, False),  # one letter to people, two code points
    ("\u212b", "\u00c5", False, False),  # equal only after normalisation
    ("stra\u00dfe", "STRASSE", False, False),
    ("\U0001f600", "\U0001f600", True, True),
]


@pytest.mark.parametrize(("text", "value", "equal", "contains"), TEXTS)
def test_text_is_compared_by_code_point(
    text: str, value: str, *, equal: bool, contains: bool
) -> None:
    assert holds(that("a", EQ, value), text) is equal
    assert holds(that("a", NEQ, value), text) is not equal
    assert holds(that("a", CONTAINS, value), text) is contains


NUMBERS = [
    # the attribute, the value, GT, GTE
    ("2", "1", True, True),
    ("1", "1", False, True),
    ("1", "2", False, False),
    ("10", "9", True, True),  # as text, 9 would be greater
    ("-1", "-2", True, True),
    ("-2", "-1", False, False),
    ("-0", "0", False, True),
    ("0", "-0", False, True),
    ("1.0", "1", False, True),
    ("007", "7.000", False, True),
    ("0.30000000000000004", "0.3", True, True),  # a float could not tell 0.1 + 0.2 from it
    ("0.3", "0.30000000000000004", False, False),
    ("1.00000000000000000000000000000000000001", "1", True, True),
    ("9007199254740993", "9007199254740992", True, True),
    ("9" * 300, "9" * 299 + "8", True, True),
    ("-" + "9" * 300, "-" + "9" * 299 + "8", False, False),
]


@pytest.mark.parametrize(("text", "value", "greater", "at_least"), NUMBERS)
def test_numbers_are_compared_exactly(
    text: str, value: str, *, greater: bool, at_least: bool
) -> None:
    assert holds(that("a", GT, value), text) is greater
    assert holds(that("a", GTE, value), text) is at_least


NO_NUMBERS = [
    "",
    " ",
    "-",
    ".",
    "1.",
    ".5",
    "+1",
    "--1",
    "1e3",
    "1E3",
    "1_000",
    "1,000",
    "1.2.3",
    "0x10",
    "NaN",
    "nan",
    "Infinity",
    "-inf",
    "sNaN",
    " 1",
    "1 ",
    "1\n",
    "\u0661",
    "\uff11",
    "1\u00b2",
    "one",
]


@pytest.mark.parametrize("text", NO_NUMBERS)
@pytest.mark.parametrize("op", [GT, GTE])
def test_what_is_no_decimal_on_either_side_is_false(text: str, op: ConditionOp) -> None:
    assert not holds(that("a", op, "0"), text)
    assert not holds(that("a", op, text), "1")
    assert not holds(that("a", op, text), text)


def test_a_huge_number_is_compared_digit_by_digit_and_not_computed() -> None:
    digits = "9" * 1_000_000
    assert holds(that("a", GT, digits), "1" + digits)
    assert not holds(that("a", GT, digits), digits)
    assert holds(that("a", GTE, "0." + digits), "0." + digits)


@pytest.mark.parametrize("op", list(ConditionOp))
@pytest.mark.parametrize("value", ["", "x", "0"])
def test_an_absent_attribute_matches_nothing(op: ConditionOp, value: str) -> None:
    assert not Facts({}).meet([that("absent", op, value)])
    assert not Facts({"present": value}).meet([that("absent", op, value)])
    assert not Facts({}, [{"present": value}]).meet([that("absent", op, value)])


def test_an_empty_attribute_is_present() -> None:
    assert Facts({"a": ""}).meet([that("a", EQ, "")])
    assert Facts({"a": ""}).meet([that("a", NEQ, "x")])
    assert Facts({"a": ""}).meet([that("a", CONTAINS, "")])


def test_without_conditions_every_event_matches() -> None:
    assert Facts({}).meet([])
    assert Facts({"a": "1"}).meet([])
    assert Facts({}, [{"a": "1"}, {"a": "2"}]).meet([])


def test_every_condition_must_hold() -> None:
    facts = Facts({"fail_count": "3", "tenant": "north"})
    many, north = that("fail_count", GT, "2"), that("tenant", EQ, "north")
    assert facts.meet([many, north])
    assert not facts.meet([many, that("tenant", EQ, "south")])
    assert not facts.meet([that("fail_count", GT, "3"), north])


ROWS = [
    {"control": "owner", "verdict": "fail", "domain": "sales"},
    {"control": "tls", "verdict": "warn", "domain": "finance"},
    {"control": "tls", "verdict": "fail", "domain": "people"},
    {"control": "secret", "verdict": "warn"},
]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([that("control", EQ, "tls")], True),
        ([that("control", EQ, "tls"), that("verdict", EQ, "fail")], True),
        ([that("control", EQ, "owner"), that("verdict", EQ, "warn")], False),
        ([that("domain", EQ, "finance"), that("verdict", EQ, "fail")], False),
        ([that("control", NEQ, "tls"), that("domain", NEQ, "sales")], False),
        ([that("control", EQ, "secret"), that("domain", NEQ, "sales")], False),
        ([that("control", CONTAINS, "e"), that("verdict", EQ, "warn")], True),
        ([that("fail_count", GTE, "2")], True),
        ([that("fail_count", GTE, "2"), that("control", EQ, "tls")], True),
        ([that("fail_count", GT, "2"), that("control", EQ, "tls")], False),
    ],
)
def test_one_row_with_the_events_own_attributes_meets_all(
    wanted: list[Condition], *, expected: bool
) -> None:
    assert Facts({"fail_count": "2"}, ROWS).meet(wanted) is expected


def test_a_row_never_overrides_what_the_event_says_itself() -> None:
    facts = Facts({"verdict": "pass"}, [{"verdict": "fail"}, {"verdict": "warn"}])
    assert facts.meet([that("verdict", EQ, "pass")])
    assert not facts.meet([that("verdict", EQ, "fail")])


def test_an_event_without_rows_matches_by_its_own_attributes() -> None:
    assert Facts({"fail_count": "0"}, []).meet([that("fail_count", EQ, "0")])


few = st.sampled_from(["", "1", "2", "10", "x", "xy"])
names = st.sampled_from(["a", "b", "c"])
attributes = st.dictionaries(names, few, max_size=3)
some = st.lists(st.builds(Condition, names, st.sampled_from(list(ConditionOp)), few), max_size=3)


@given(own=attributes, rows=st.lists(attributes, max_size=5), wanted=some)
def test_rows_match_as_if_each_were_tried_by_itself(
    own: Mapping[str, str], rows: list[Mapping[str, str]], wanted: list[Condition]
) -> None:
    tried = [{**row, **own} for row in rows or [{}]]
    expected = any(
        all(each.attribute in row and holds(each, row[each.attribute]) for each in wanted)
        for row in tried
    )
    assert Facts(own, rows).meet(wanted) is expected


def test_thousands_of_rows_are_not_walked_for_every_trigger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def counted(condition: Condition, text: str) -> bool:
        tried.append(text)
        return holds(condition, text)

    monkeypatch.setattr(conditions, "holds", counted)
    rows = [
        {"verdict": verdict, "connection": f"c-{number}"}
        for number, verdict in product(range(1_000), ["fail", "warn"])
    ]
    facts = Facts({}, rows)
    missing = [that("verdict", EQ, "fail"), that("connection", CONTAINS, "none")]
    assert not any(facts.meet(missing) for _ in range(400))
    assert len(tried) == len({*tried}) == 2 + 1_000
