"""A workflow as the stand-in runs it: loaded, checked and with every expression parsed.

Owns the structs, and the texts with expressions in them. Never reads a file.
"""

import re
from collections.abc import Iterator

from msgspec import Struct

from core_console.standin.expressions import (
    ExpressionFault,
    Node,
    Scope,
    as_text,
    evaluate,
    parse,
)


class WorkflowFault(Exception):  # noqa: N818 -- a fault of the file, not of this program
    """A workflow file that would not run at GitHub, or that uses what the stand-in does not know.

    The message names the file and the key.
    """


class Template(Struct, frozen=True):
    """A text whose `${{ }}` parts were parsed."""

    parts: tuple[str | Node, ...]

    def render(self, scope: Scope) -> str:
        """Return the text with every expression replaced by its value."""
        return "".join(
            part if isinstance(part, str) else as_text(evaluate(part, scope)) for part in self.parts
        )

    def nodes(self) -> Iterator[Node]:
        """Yield the expressions."""
        return (part for part in self.parts if not isinstance(part, str))


class UsesAction(Struct, frozen=True):
    """A step that runs one of the four known actions."""

    action: str
    inputs: dict[str, Template]


class RunsScript(Struct, frozen=True):
    """A step that runs a script with bash."""

    script: Template


class Step(Struct, frozen=True):
    """One step of a job; `timeout_minutes` is None when only the job's bound holds."""

    name: Template
    id: str | None
    condition: Node | None
    env: dict[str, Template]
    timeout_minutes: int | None
    work: UsesAction | RunsScript


class Concurrency(Struct, frozen=True):
    """The group that a job waits in; a running job is never cancelled by a newer one."""

    group: Template


class Job(Struct, frozen=True):
    """One job."""

    id: str
    needs: tuple[str, ...]
    condition: Node | None
    timeout_minutes: int
    concurrency: Concurrency | None
    outputs: dict[str, Template]
    steps: tuple[Step, ...]


class Workflow(Struct, frozen=True):
    """One workflow file; `dispatch_types` is empty when it does not listen to the console."""

    file: str
    name: str
    run_name: Template | None
    dispatch_types: tuple[str, ...]
    by_hand: bool
    jobs: dict[str, Job]


_EXPRESSION = re.compile(r"\$\{\{((?:'(?:[^']|'')*'|[^'])*?)\}\}")


def parse_template(text: str) -> Template:
    """Split a text into its plain parts and its parsed expressions.

    Raises:
        ExpressionFault: an expression is not supported, or a `${{` is never closed.
    """
    parts: list[str | Node] = []
    at = 0
    for found in _EXPRESSION.finditer(text):
        parts += [text[at : found.start()], parse(found[1])]
        at = found.end()
    parts.append(text[at:])
    if any(isinstance(part, str) and "${{" in part for part in parts):
        raise ExpressionFault("a `${{` is not closed by `}}`")
    return Template(tuple(part for part in parts if part != ""))


def parse_condition(text: str) -> Node:
    """Parse an `if`, with or without `${{ }}` around the whole of it.

    Raises:
        ExpressionFault: it is not one supported expression.
    """
    stripped = text.strip()
    if "${{" not in stripped:
        return parse(stripped)
    parts = parse_template(stripped).parts
    if len(parts) != 1 or isinstance(parts[0], str):
        # At GitHub the rest makes it a text that is always true.
        raise ExpressionFault("an `if` is either one whole `${{ }}` or has none")
    return parts[0]
