"""Help that is read: every command of a group with its whole sentence and an example.

Owns the look of the lists of commands, what a mistyped command may have meant, and that Ctrl-C
ends a command without a word.
"""

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import click

_INTERRUPTED = 130
"""What a shell says of a command that ended by Ctrl-C: 128 and the signal's number."""

_EXAMPLE = "Example: "


class Command(click.Command):
    """A command whose example stays on one line, so that it can be copied."""

    def format_help_text(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click passes it
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the sentences wrapped and the example as it is."""
        _write_text(self, formatter)


class Group(click.Group):
    """A group whose page shows an example of each of its commands."""

    command_class = Command
    sections: Mapping[str, Sequence[str]] = {}

    def format_help_text(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click passes it
        formatter: click.HelpFormatter,
    ) -> None:
        """Write the sentences wrapped and the example as it is."""
        _write_text(self, formatter)

    def format_commands(
        self,
        ctx: click.Context,  # noqa: ARG002 -- click passes it
        formatter: click.HelpFormatter,
    ) -> None:
        """Write each command's sentence and example, under the headings of the group."""
        width = max(len(name) for name in self.commands) + 2
        for title, names in (self.sections or {"Commands": list(self.commands)}).items():
            with formatter.section(title):
                for name in names:
                    _describe(self.commands[name], name, width, formatter)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that was named; one that does not exist fails with the nearest."""
        name = args[0]
        close = difflib.get_close_matches(name, self.commands, n=1)
        if close and self.get_command(ctx, name) is None and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}. Did you mean {close[0]!r}?")
        return super().resolve_command(ctx, args)


class Root(Group):
    """The whole command."""

    def invoke(self, ctx: click.Context) -> Any:  # noqa: ANN401 -- whatever a command returns
        """Run the command; Ctrl-C ends it quietly."""
        try:
            return super().invoke(ctx)
        except (KeyboardInterrupt, click.Abort):
            click.echo(err=True)
            ctx.exit(_INTERRUPTED)


def _write_text(command: click.Command, formatter: click.HelpFormatter) -> None:
    text = inspect.cleandoc(command.help or "")
    # The mark tells click to leave the paragraph's lines alone.
    marked = text.replace(f"\n\n{_EXAMPLE}", f"\n\n\b\n{_EXAMPLE}")
    formatter.write_paragraph()
    with formatter.indentation():
        formatter.write_text(marked)


def _describe(
    command: click.Command, name: str, width: int, formatter: click.HelpFormatter
) -> None:
    sentence, example = _parts(command)
    formatter.write_dl([(name.ljust(width - 2), sentence)])
    if example:
        formatter.write(f"{' ' * (formatter.current_indent + width)}{example}\n")


def _parts(command: click.Command) -> tuple[str, str]:
    """Return a command's first paragraph and its example."""
    paragraphs = (command.help or "").split("\n\n")
    examples = [
        text.strip().removeprefix(_EXAMPLE)
        for text in paragraphs
        if text.strip().startswith(_EXAMPLE)
    ]
    return " ".join(paragraphs[0].split()), " ".join("".join(examples[:1]).split())
