"""The expressions of workflow files: parsed when the file is loaded, evaluated by GitHub's rules.

Owns the grammar that the shipped files use: `!`, `==`, `!=`, `&&`, `||`, parentheses, literals,
property look-ups in known contexts and the four status functions. Anything else is an
`ExpressionFault` when parsed, never a wrong answer later.
"""

import math
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, assert_never

from msgspec import Struct

EXPRESSION_MAX_CHARS = 1_000  # the longest shipped one has about 120
NESTING_MAX = 20  # brackets and negations; the parser's depth grows with them


class ExpressionFault(Exception):  # noqa: N818 -- a fault of the file, not of this program
    """An expression that the stand-in does not support; the message says which part."""


class Status(StrEnum):
    """The functions that ask how things went so far."""

    ALWAYS = "always"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"


class Literal(Struct, frozen=True):
    """null, a boolean, a number or a text."""

    value: bool | float | str | None


class Lookup(Struct, frozen=True):
    """A value in a context: `github.event.client_payload.agent`."""

    path: tuple[str, ...]


class Call(Struct, frozen=True):
    """A status function."""

    function: Status


class Not(Struct, frozen=True):
    """`!operand`."""

    operand: "Node"


class Binary(Struct, frozen=True):
    """`left operator right`."""

    operator: str
    left: "Node"
    right: "Node"


Node = Literal | Lookup | Call | Not | Binary


class Scope(Struct, frozen=True):
    """What an expression is evaluated against: the contexts, and each status function's answer."""

    contexts: Mapping[str, Any]
    status: Mapping[Status, bool] = {}


_TOKEN = re.compile(
    r"\s*(?:(?P<text>'(?:[^']|'')*')"
    r"|(?P<number>-?[0-9]+(?:\.[0-9]+)?)(?![A-Za-z0-9_.])"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*(?:\.[A-Za-z_][A-Za-z0-9_-]*)*)"
    r"|(?P<sign>==|!=|&&|\|\||[!()]))"
)
_CONSTANTS: dict[str, bool | None] = {"null": None, "true": True, "false": False}
_LEVELS = (("||",), ("&&",), ("==", "!="))
"""The operators from loose to tight; one level's operators group from the left."""


def parse(source: str) -> Node:
    """Parse one expression without its `${{ }}`.

    Raises:
        ExpressionFault: it uses something that the stand-in does not support.
    """
    if len(source) > EXPRESSION_MAX_CHARS:
        raise ExpressionFault(f"an expression is longer than {EXPRESSION_MAX_CHARS} characters")
    tokens = list(_tokens(source))
    if sum(token in {"(", "!"} for _, token in tokens) > NESTING_MAX:
        raise ExpressionFault(f"an expression has more than {NESTING_MAX} brackets and negations")
    node, rest = _binary(tokens, 0)
    if rest:
        raise ExpressionFault(f"`{rest[0][1]}` is not expected in `{source.strip()}`")
    return node


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and everything inside it."""
    yield node
    match node:
        case Not(operand):
            yield from walk(operand)
        case Binary(_, left, right):
            yield from walk(left)
            yield from walk(right)
        case Literal() | Lookup() | Call():
            pass
        case _:
            assert_never(node)


def evaluate(node: Node, scope: Scope) -> Any:  # noqa: ANN401 -- a context holds any JSON value
    """Return the value of an expression; `&&` and `||` return an operand, as at GitHub."""
    match node:
        case Literal(value):
            return value
        case Lookup(path):
            return _look_up(scope.contexts, path)
        case Call(function):
            return scope.status[function]
        case Not(operand):
            return not is_true(evaluate(operand, scope))
        case Binary(operator, left, right):
            return _apply(operator, evaluate(left, scope), right, scope)
        case _:
            assert_never(node)


def evaluate_condition(node: Node, scope: Scope) -> bool:
    """Tell whether an `if` holds: without a status function it also needs success()."""
    asks_status = any(isinstance(part, Call) for part in walk(node))
    if not asks_status and not scope.status[Status.SUCCESS]:
        return False
    return is_true(evaluate(node, scope))


def is_true(value: object) -> bool:
    """Tell whether a value counts as true: all but null, false, 0, NaN and the empty text."""
    if not _plain(value):
        return True
    return bool(value) and value == value  # noqa: PLR0124 -- only NaN differs from itself


def as_text(value: object) -> str:
    """Return a value as it is put into a text."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() | float():
            return f"{value:.15g}"
        case Mapping():
            return "Object"
        case _:
            return "Array"


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    at, end = 0, len(source.rstrip())
    while at < end:
        found = _TOKEN.match(source, at, end)
        if found is None:
            raise ExpressionFault(f"`{source[at:end].strip()}` is not supported in an expression")
        kind = found.lastgroup or ""
        yield kind, found[kind]
        at = found.end()


def _binary(tokens: list[tuple[str, str]], level: int) -> tuple[Node, list[tuple[str, str]]]:
    if level == len(_LEVELS):
        return _unary(tokens)
    node, rest = _binary(tokens, level + 1)
    while rest and rest[0][1] in _LEVELS[level] and rest[0][0] == "sign":
        right, after = _binary(rest[1:], level + 1)
        node, rest = Binary(rest[0][1], node, right), after
    return node, rest


def _unary(tokens: list[tuple[str, str]]) -> tuple[Node, list[tuple[str, str]]]:
    match tokens:
        case [("sign", "!"), *rest]:
            operand, after = _unary(rest)
            return Not(operand), after
        case [("sign", "("), *rest]:
            node, after = _binary(rest, 0)
            if after[:1] != [("sign", ")")]:
                raise ExpressionFault("a `)` is missing in an expression")
            return node, after[1:]
        case [("text", text), *rest]:
            return Literal(text[1:-1].replace("''", "'")), rest
        case [("number", number), *rest]:
            return Literal(float(number)), rest
        case [("name", name), ("sign", "("), *rest]:
            return _call(name, rest)
        case [("name", name), *rest]:
            return _named(name), rest
        case [(_, token), *_]:
            raise ExpressionFault(f"`{token}` is not expected in an expression")
        case _:
            raise ExpressionFault("an expression ends too early")


def _call(name: str, rest: list[tuple[str, str]]) -> tuple[Node, list[tuple[str, str]]]:
    if name.lower() not in list(Status):
        raise ExpressionFault(f"the function {name}() is not supported")
    if rest[:1] != [("sign", ")")]:
        raise ExpressionFault(f"the function {name}() takes no argument")
    return Call(Status(name.lower())), rest[1:]


def _named(name: str) -> Node:
    if name in _CONSTANTS:
        return Literal(_CONSTANTS[name])
    return Lookup(tuple(name.split(".")))


def _look_up(value: object, path: tuple[str, ...]) -> object:
    """Follow names without regard to case; whatever is missing is null."""
    for name in path:
        if not isinstance(value, Mapping):
            return None
        wanted = name.lower()
        value = next((held for key, held in value.items() if key.lower() == wanted), None)
    return value


def _apply(operator: str, left: object, right: Node, scope: Scope) -> object:
    match operator:
        case "&&":
            return evaluate(right, scope) if is_true(left) else left
        case "||":
            return left if is_true(left) else evaluate(right, scope)
        case "==":
            return _equal(left, evaluate(right, scope))
        case _:
            return not _equal(left, evaluate(right, scope))


def _equal(left: object, right: object) -> bool:
    """Compare loosely: texts without regard to case, different kinds as numbers."""
    if isinstance(left, str) and isinstance(right, str):
        return left.upper() == right.upper()
    if not _plain(left) and not _plain(right):
        return left is right
    return _number(left) == _number(right)  # NaN equals nothing, itself included


def _plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _number(value: object) -> float:
    match value:
        case None:
            return 0.0
        case bool() | int() | float():
            return float(value)
        case str():
            return _number_of_text(value.strip())
        case _:
            return math.nan


def _number_of_text(text: str) -> float:
    if text == "":
        return 0.0
    return (
        float(text)
        if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text)
        else math.nan
    )
