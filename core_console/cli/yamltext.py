"""The text of a file that people write, as YAML nodes that know their lines.

Owns what of YAML is taken: one document, plainly written, without aliases and tags; and what a
person is told of the rest. JSON is YAML here.
"""

import json
from typing import Protocol

import yaml

from core_console.cli.failure import Exit, Failed, printable

_DEPTH_MAX = 12
"""A playbook is six levels deep; composing goes one call deeper for each."""

_QUOTE_IT = '; if it is text, quote it: "…"'

_PROBLEMS = (
    (r"found character '\t'", "here is a tab: YAML indents with blanks alone"),
    ("mapping values are not allowed", 'a text that holds a colon must be quoted: "…: …"'),
    ("expected alphabetic or numeric character", f"this text begins like an alias{_QUOTE_IT}"),
    (
        "that cannot start any token",
        f"this text begins with a character that YAML keeps{_QUOTE_IT}",
    ),
    ("could not find expected ':'", "this line is no `field: value`; a text over lines is quoted"),
    ("expected <block end>", "the indentation, or a quote, does not fit what stands above"),
)
"""What YAML's parser says, and what a person can do about it."""


class Mark(Protocol):
    """A place in the text."""

    @property
    def line(self) -> int:
        """The line, from 0."""
        ...


def fault_at(source: str, mark: Mark | None, fact: str) -> Failed:
    """Return the fault of a file, with its line when one is to blame."""
    line = "" if mark is None else f", line {mark.line + 1}"
    return Failed(Exit.USAGE, printable(f"{source}{line}: {fact}"))


def compose(text: str, source: str) -> yaml.Node:
    """Return the one document's node, after its events were found harmless; else raise Failed."""
    # JSON may hold tabs, which can only be white space there; YAML has none.
    text = text.replace("\t", " ") if _is_json(text) else text
    try:
        _screen(text, source)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise fault_at(source, error.problem_mark, _in_words(error.problem or "")) from None
    except yaml.YAMLError:
        raise fault_at(source, None, "this is neither YAML nor JSON") from None
    if node is None:
        raise fault_at(source, None, "the file is empty")
    return node


def _screen(text: str, source: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        mark = event.start_mark
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise fault_at(source, mark, f"anchors and aliases are not allowed{_QUOTE_IT}")
        if getattr(event, "tag", None) is not None:
            raise fault_at(source, mark, f"tags are not allowed{_QUOTE_IT}")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEPTH_MAX:
            raise fault_at(source, mark, "it is nested too deeply for a playbook")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _in_words(problem: str) -> str:
    """Return what is wrong with the YAML, in our words where we have some."""
    for theirs, ours in _PROBLEMS:
        if theirs in problem:
            return ours
    return problem or "this is neither YAML nor JSON"
