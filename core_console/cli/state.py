"""`core-console state {show,size,check,backup,restore}`: the state at rest, on this machine.

Owns how these commands are asked for. They work on the files of the root: all but `restore` while
consoles serve it. What they do is loaded when it is asked for, for it needs the engine's rules, and
the other commands start faster without them.
"""

import importlib
from pathlib import Path
from types import ModuleType

import click

from core_console.cli.help import Group
from core_console.cli.output import Form

_root = click.option(
    "--root",
    envvar="CONSOLE_APPFS_DIR",
    required=True,
    show_envvar=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="The folder that holds the state.",
)
_form = click.option(
    "-o",
    "--output",
    type=click.Choice([form.value for form in Form]),
    default=Form.TABLE.value,
    show_default=True,
    help="A table for people, or JSON.",
)


def _work() -> ModuleType:
    return importlib.import_module("core_console.cli.statework")


@click.group(cls=Group)
def state() -> None:
    """Look at the state of a root, check it, back it up and restore it.

    Example: core-console state check
    """


@state.command("show")
@_root
@_form
def show(root: Path, output: str) -> None:
    """Show each document's revision and counts, and who holds which run.

    Example: core-console state show
    """
    _work().show_state(root, Form(output))


@state.command("size")
@_root
@_form
def size(root: Path, output: str) -> None:
    """Show what takes the room of the playbooks' document.

    Example: core-console state size -o json
    """
    _work().show_size(root, Form(output))


@state.command("check")
@_root
def check(root: Path) -> None:
    """Put every document, blob and record to its checks; exit code 0 only when all hold.

    Example: core-console state check
    """
    _work().check(root)


@state.command("backup")
@_root
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def backup(root: Path, file: Path) -> None:
    """Write a backup to FILE, which must not exist; consoles may serve meanwhile.

    It holds the documents and what they need, and where the audit chain stood. It holds neither
    the operator key nor the chain, which is the file var/log/audit: copy both by themselves.

    Example: core-console state backup console.backup
    """
    _work().backup(root, file)


@state.command("restore")
@_root
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))
@click.option(
    "--chain-is-lost",
    is_flag=True,
    help="Go on although the audit chain ends before the backup was made.",
)
def restore(root: Path, file: Path, *, chain_is_lost: bool) -> None:
    """Put the backup in FILE in place, while no console serves the root.

    Runs in flight end FAILED, schedules count from now, nothing is sent. The documents that are
    replaced stay beside the new ones.

    Example: core-console state restore console.backup
    """
    _work().restore(root, file, chain_is_lost=chain_is_lost)
