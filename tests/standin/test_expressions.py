import math
from typing import Any

import pytest

from core_console.standin.expressions import (
    ExpressionFault,
    Scope,
    Status,
    as_text,
    evaluate,
    evaluate_condition,
    parse,
)
from core_console.standin.workflow import parse_condition, parse_template

CONTEXTS = {
    "github": {
        "event_name": "repository_dispatch",
        "event": {"client_payload": {"agent": "datagov", "Depth": 2, "list": [], "none": None}},
    },
    "needs": {"agent": {"result": "success", "outputs": {"findings": ""}}},
}


def scope(contexts: dict[str, Any] = CONTEXTS, status: Status = Status.SUCCESS) -> Scope:
    return Scope(contexts, {one: one in {Status.ALWAYS, status} for one in Status})


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("'a'", "a"),
        ("'it''s'", "it's"),
        ("''", ""),
        ("1.5", 1.5),
        ("-2", -2),
        ("null", None),
        ("true", True),
        ("github.event_name", "repository_dispatch"),
        ("GitHub.EVENT.client_payload.AGENT", "datagov"),
        ("github.event.client_payload.depth", 2),
        ("github.event.client_payload.missing", None),
        ("github.event.client_payload.missing.deeper", None),
        ("github.event.client_payload.agent.deeper", None),
        ("missing.context", None),
        ("success", None),
        # && and || return an operand.
        ("'a' && 'b'", "b"),
        ("'' && 'b'", ""),
        ("null || 'b'", "b"),
        ("'a' || 'b'", "a"),
        ("0 || ''", ""),
        # Precedence: ! before ==, == before &&, && before ||.
        ("true || false && false", True),
        ("(true || false) && false", False),
        ("!true == false", True),
        ("!(true == false)", True),
        ("'a' == 'b' || 'c' == 'c'", True),
        ("!!'x'", True),
        ("1 == 1 != false", True),
    ],
)
def test_an_expression_has_githubs_value(source: str, value: object) -> None:
    found = evaluate(parse(source), scope())
    assert (found, type(found) is bool) == (value, type(value) is bool)


@pytest.mark.parametrize(
    ("source", "is_equal"),
    [
        ("'Datagov' == 'dataGOV'", True),
        ("'a' == 'a '", False),
        ("1 == '1'", True),
        ("1 == '1.0'", True),
        ("1 == ' 1 '", True),
        ("0 == ''", True),
        ("null == 0", True),
        ("null == ''", True),
        ("null == false", True),
        ("true == 1", True),
        ("true == '1'", True),
        ("true == 'true'", False),
        ("'x' == 0", False),
        ("null == 'null'", False),
        ("github.event == github.event", True),
        ("github.event == github", False),
        ("github.event == 'Object'", False),
        ("github.event == 0", False),
        ("github.event.client_payload.list == ''", False),
        ("github.event.client_payload.none == github.event.client_payload.missing", True),
    ],
)
def test_equality_is_loose_as_at_github(source: str, is_equal: bool) -> None:  # noqa: FBT001 -- a table's column
    assert evaluate(parse(source), scope()) is is_equal
    assert evaluate(parse(source.replace("==", "!=")), scope()) is not is_equal


@pytest.mark.parametrize(
    "source",
    [
        *("", " ", "'open", "(1", "1)", "()", "a b", "== 1", "1 ==", "!", "&&", "'a' 'b'"),
        *("1 < 2", "a >= b", "a[0]", "a.*", "a['b']", "a..b", ".a", "a.", '"text"', "0x1f", "1e3"),
        *("contains('a', 'b')", "format('{0}', 1)", "toJSON(github)", "hashFiles('x')"),
        *("fromJSON('1')", "startsWith('a','b')", "always('x')", "succes()", "a & b"),
        *("a = b", "a | b", "a; b", "$a", "a`b", "a\\b", "{}", "[1]", "1.2.3", "(" * 30 + "1"),
        *("!" * 500 + "1", "'" + "a" * 1_001 + "'"),
    ],
)
def test_what_is_not_supported_is_refused_when_parsed(source: str) -> None:
    with pytest.raises(ExpressionFault):
        parse(source)


@pytest.mark.parametrize(
    ("status", "source", "runs"),
    [
        (Status.SUCCESS, "true", True),
        (Status.SUCCESS, "false", False),
        (Status.FAILURE, "true", False),
        (Status.CANCELLED, "true", False),
        (Status.FAILURE, "'a' == 'a'", False),
        (Status.FAILURE, "always()", True),
        (Status.CANCELLED, "always()", True),
        (Status.FAILURE, "always() && false", False),
        (Status.FAILURE, "failure()", True),
        (Status.SUCCESS, "failure()", False),
        (Status.CANCELLED, "failure()", False),
        (Status.CANCELLED, "cancelled()", True),
        (Status.FAILURE, "!cancelled()", True),
        (Status.CANCELLED, "!cancelled()", False),
        (Status.FAILURE, "success() || failure()", True),
        (Status.FAILURE, "SUCCESS()", False),
        (Status.FAILURE, "true || success()", True),
        (Status.FAILURE, "'always()' == 'x'", False),
        (Status.SUCCESS, "'0'", True),
        (Status.SUCCESS, "0", False),
        (Status.SUCCESS, "github.event", True),
        (Status.SUCCESS, "github.event.client_payload.list", True),
    ],
)
def test_a_condition_needs_success_unless_it_asks_for_a_status(
    status: Status,
    source: str,
    runs: bool,  # noqa: FBT001 -- a table's column
) -> None:
    assert evaluate_condition(parse(source), scope(status=status)) is runs


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (False, "false"),
        (3, "3"),
        (3.0, "3"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        ("a", "a"),
        ({"a": 1}, "Object"),
        ([1], "Array"),
    ],
)
def test_a_value_in_a_text_is_spelt_as_at_github(value: object, text: str) -> None:
    assert as_text(value) == text


def test_nan_is_not_true_and_equals_nothing() -> None:
    held = scope({"github": {"nan": math.nan}})
    assert evaluate(parse("github.nan == github.nan"), held) is False
    assert evaluate_condition(parse("github.nan"), held) is False


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${{ github.event_name }}", "repository_dispatch"),
        ("a ${{ 'b' }} c ${{ null }}d", "a b c d"),
        ("${{ '}}' }}", "}}"),
        ("$x {{ y }} ${z}", "$x {{ y }} ${z}"),
        ("${{'a'}}${{'b'}}", "ab"),
    ],
)
def test_a_text_is_rendered_part_by_part(text: str, rendered: str) -> None:
    assert parse_template(text).render(scope()) == rendered


@pytest.mark.parametrize("text", ["${{ 'a'", "${{", "${{ }}", "a ${{ 'x }} b"])
def test_a_text_whose_expression_is_broken_is_refused(text: str) -> None:
    with pytest.raises(ExpressionFault):
        parse_template(text)


def test_a_condition_that_is_only_partly_an_expression_is_refused() -> None:
    """At GitHub `${{ false }} || x` is a text, and a text is always true."""
    assert evaluate(parse_condition(" ${{ false }} "), scope()) is False
    assert evaluate(parse_condition("false"), scope()) is False
    for text in ("${{ false }} && true", "x ${{ false }}", "${{ true }}${{ false }}"):
        with pytest.raises(ExpressionFault):
            parse_condition(text)
