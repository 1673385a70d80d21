"""Options that several commands take.

Owns the spelling of pages, filters and revisions on the command line. What can be known to be
wrong is refused here, before anything is sent.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from core_console.cli.times import moment
from core_console.model.playbook import AGENTS

C = TypeVar("C", bound=Callable[..., Any])

PAGE_SIZE_MAX = 200


def paged(command: C) -> C:
    """Give a list command its page."""
    size = click.option(
        "--page-size",
        type=click.IntRange(0, PAGE_SIZE_MAX),
        default=0,
        metavar="N",
        help="1 to 200; 0 is 50.",
    )
    token = click.option("--page-token", default="", metavar="T", help="Where the last one ended.")
    return size(token(command))


def choice_option(flag: str, names: list[str], *, what: str) -> Callable[[C], C]:
    """Return an option that takes one of the names, in any case, and "" when it is not given."""
    return click.option(
        flag, type=click.Choice(names, case_sensitive=False), default=None, help=what
    )


def status_option(names: list[str]) -> Callable[[C], C]:
    """Return an option that narrows a list to statuses, given by their short names."""
    return click.option(
        "--status",
        "statuses",
        multiple=True,
        type=click.Choice(names, case_sensitive=False),
        help="Only these; may be given several times.",
    )


def agent_option(command: C) -> C:
    """Narrow a list to one of the six agents."""
    return choice_option("--agent", list(AGENTS), what="Only this agent's.")(command)


def since_option(command: C) -> C:
    """Narrow a list to what happened at or after a time."""
    return click.option(
        "--since",
        type=moment,
        metavar="TIME",
        help="At or after: 2026-11-30T12:00:00Z, 2026-11-30 (UTC), or 1h or 7d ago.",
    )(command)


def revision_option(command: C) -> C:
    """Require the revision that was read."""
    return click.option(
        "--revision",
        type=click.IntRange(min=1),
        required=True,
        metavar="N",
        help="The revision that you read; a newer one refuses the command.",
    )(command)


def file_option(command: C) -> C:
    """Require the playbook's file."""
    return click.option(
        "-f",
        "--file",
        required=True,
        metavar="FILE",
        help="The playbook as YAML or JSON; - reads standard input.",
    )(command)
