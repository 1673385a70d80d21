"""Strict JSON: what two readers could read as two things is read as nothing."""

import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from core_console.doors import strict
from core_console.doors.strict import BadBody


class Inner(Struct, forbid_unknown_fields=True):
    name: str


class Sample(Struct, rename="camel"):
    run_id: str
    count: int = 0
    ratio: float = 0.0
    inner: dict[str, str] = {}
    rows: list[Inner] = []


def fault(body: bytes) -> str:
    with pytest.raises(BadBody) as caught:
        strict.read(body, Sample)
    return str(caught.value)


def test_a_good_body_is_read_as_it_is_meant() -> None:
    body = ' {"runId":"a\\u00e9\\ud83d\\ude00","count":-7,"ratio":1.5,"inner":{"k":""}}\n'
    found = strict.read(body.encode(), Sample)

    assert found == Sample(run_id="aé\U0001f600", count=-7, ratio=1.5, inner={"k": ""})


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "not one JSON object"),
        (b" ", "not one JSON object"),
        (b"null", "not one JSON object"),
        (b"[]", "not one JSON object"),
        (b'"text"', "not one JSON object"),
        (b"1", "not one JSON object"),
        (b'{"runId":"a"', "not one JSON object"),
        (b'{"runId":"a"}{}', "line 1, column 14"),
        (b'{"runId":"a"} x', "line 1, column 15"),
        (b'{"runId":"a",}', "not one JSON object"),
        (b"{'runId':'a'}", "not one JSON object"),
        (b'{runId:"a"}', "not one JSON object"),
        (b'{"runId":"a"/**/}', "not one JSON object"),
        (b'{"runId":"a\nb"}', "not one JSON object"),
        (b'{"runId":"\\x41"}', "not one JSON object"),
        (b'{"runId":"a","count":01}', "not one JSON object"),
        (b'{"runId":"a","count":+1}', "not one JSON object"),
        (b'\xef\xbb\xbf{"runId":"a"}', "not one JSON object"),
        (b'{"runId":"\xff"}', "not valid UTF-8"),
        (b'{"runId":"\xc0\xaf"}', "not valid UTF-8"),
        (b'{"runId":"\xed\xa0\x80"}', "not valid UTF-8"),
        ('{"runId":"a"}'.encode("utf-16"), "not valid UTF-8"),
        (b'{"runId":"a","runId":"a"}', "runId: is given twice"),
        (b'{"runId":"a","run\\u0049d":"b"}', "runId: is given twice"),
        (b'{"runId":"a","inner":{"k":"1","k":"2"}}', "k: is given twice"),
        (b'{"runId":"a","rows":[{"name":"1","name":"2"}]}', "name: is given twice"),
        (b'{"runId":null}', "runId: is null"),
        (b'{"runId":"a","inner":{"k":null}}', "k: is null"),
        (b'{"runId":"a","rows":[null]}', "null"),
        (b'{"runId":"a","other":1}', "other: is not a field of this door"),
        (b'{"runId":"a","run_id":"b"}', "run_id: is not a field of this door"),
        (b'{"runId":"a","RunId":"b"}', "RunId: is not a field of this door"),
        (b'{"runId":"a","":1}', "is not a field of this door"),
        (b'{"runId":"a","rows":[{"name":"x","more":1}]}', "another type"),
        (b"{}", "runId: is required"),
        (b'{"runId":1}', "`$.runId`"),
        (b'{"runId":true}', "`$.runId`"),
        (b'{"runId":["a"]}', "`$.runId`"),
        (b'{"runId":{"a":1}}', "`$.runId`"),
        (b'{"runId":"a","count":"1"}', "`$.count`"),
        (b'{"runId":"a","count":1.5}', "`$.count`"),
        (b'{"runId":"a","count":true}', "`$.count`"),
        (b'{"runId":"a","ratio":NaN}', "NaN"),
        (b'{"runId":"a","ratio":-Infinity}', "-Infinity"),
        (b'{"runId":"a","ratio":1e999}', "out of range"),
        (b'{"runId":"a","count":' + b"9" * 5000 + b"}", "out of range"),
        (b'{"runId":"\\ud800"}', "half a surrogate"),
        (b'{"runId":"\\udc00\\ud800"}', "half a surrogate"),
        (b'{"runId":"a","inner":{"\\ud800":"x"}}', "half a surrogate"),
        (b'{"runId":"a","rows":["\\ud800"]}', "half a surrogate"),
    ],
)
def test_a_body_that_is_not_exactly_right_is_refused(body: bytes, sentence: str) -> None:
    assert sentence in fault(body)


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"a":['])
@pytest.mark.parametrize("depth", [strict.DEPTH_MAX, 5_000, 200_000])
def test_deep_nesting_is_refused_and_crashes_nothing(opening: bytes, depth: int) -> None:
    assert "nested deeper" in fault(b'{"runId":' + opening * depth)


def test_brackets_in_texts_are_no_nesting() -> None:
    text = '[{\\"' * 1_000
    body = json.dumps({"runId": text}).encode()

    assert strict.read(body, Sample).run_id == text


@pytest.mark.parametrize(
    "name", ["ghp_" + "a" * 20, "AKIAIOSFODNN7EXAMPLE", "x" * 41, "a b", "<i>", "\u202e"]
)
def test_a_field_name_that_might_be_a_secret_is_not_repeated(name: str) -> None:
    for body in ({name: 1, "runId": "a"}, {"runId": "a", "inner": {name: None}}):
        assert name not in fault(json.dumps(body).encode())


def test_a_nested_name_that_might_be_a_secret_is_not_repeated() -> None:
    body = {"runId": "a", "rows": [{"name": "x", "ghp_secret": 1}]}

    assert "ghp_" not in fault(json.dumps(body).encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.just("runId"), inner),
    max_leaves=20,
)


@settings(max_examples=300, deadline=None)
@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused_in_one_sentence(body: bytes) -> None:
    try:
        found = strict.read(body, Sample)
    except BadBody as error:
        sentence = str(error)
    else:
        sentence = found.run_id.encode().decode() and "taken"

    assert sentence.isprintable()


def test_the_depth_bound_is_far_below_the_interpreters() -> None:
    assert sys.getrecursionlimit() > strict.DEPTH_MAX * 10


@pytest.mark.parametrize("name", ["\uaaf7", "x" * 400, "\u202e"])
def test_a_nested_name_that_is_not_plain_is_not_repeated(name: str) -> None:
    class Inner(Struct, forbid_unknown_fields=True):
        known: str = ""

    class Outer(Struct):
        inner: Inner

    body = json.dumps({"inner": {name: "value"}}).encode()
    with pytest.raises(BadBody) as caught:
        strict.read(body, Outer)
    assert name not in str(caught.value)
    assert str(caught.value).isprintable()
