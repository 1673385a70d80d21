"""Help is read whole: no sentence is cut, every command has an example, a slip is set right."""

from collections.abc import Callable, Iterator

import click
import pytest
from click.testing import Result

from core_console.cli import cli
from core_console.cli.failure import Exit

Cli = Callable[..., Result]


def groups(group: click.Group, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield words
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from groups(command, (*words, name))


GROUPS = list(groups(cli))


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_a_group_lists_every_command_with_its_whole_sentence_and_an_example(
    run: Cli, words: tuple[str, ...]
) -> None:
    group: click.Command = cli
    for word in words:
        assert isinstance(group, click.Group)
        group = group.commands[word]
    assert isinstance(group, click.Group)
    shown = run(*words, "--help").stdout
    flat = " ".join(shown.split())
    for name, command in group.commands.items():
        sentence = " ".join((command.help or "").split("\n\n")[0].split())
        assert f"{name} {sentence}" in flat
        assert f"{sentence} " in flat
        after = flat.partition(f"{name} {sentence} ")[2]
        assert after.partition(" --")[0].startswith(("core-console ", "export ", "CONSOLE_"))
    assert "..." not in shown.replace("[ARGS]...", "")


def test_an_example_can_be_copied_from_one_line(run: Cli) -> None:
    lines = run("token", "--help").stdout.splitlines()
    example = "export CORE_CONSOLE_TOKEN=$(core-console token --email author@example.com --ttl 12h)"
    assert f"  Example: {example}" in lines
    assert any(
        "Example: core-console run list --status WAITING_AGENT --status WAIT" in line
        for line in run("run", "list", "--help").stdout.splitlines()
    )


def test_the_commands_stand_under_headings(run: Cli) -> None:
    shown = run("--help").stdout
    headings = ("Set up and serve:", "Playbooks and runs:", "CapEx:", "What happened:")
    places = [shown.index(heading) for heading in headings]
    assert places == sorted(places)
    assert sum(len(names) for names in cli.sections.values()) == len(cli.commands)


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (("playbok",), "'playbook'"),
        (("run", "wach", "PBR-1"), "'watch'"),
        (("run", "list", "--staus", "FAILED"), "'--status'"),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, tuple) else "",
)
def test_a_slip_is_told_with_what_was_meant(run: Cli, args: tuple[str, ...], meant: str) -> None:
    result = run(*args)
    assert result.exit_code == Exit.USAGE
    assert f"Did you mean {meant}?" in result.stderr


@pytest.mark.parametrize(
    "args",
    [
        ("events", "--agent", "nobody"),
        ("run", "list", "--status", "DONE"),
        ("playbook", "list", "--status", "GONE"),
        ("audit", "list", "--outcome", "FINE"),
        ("run", "list", "--page-size", "201"),
    ],
    ids=" ".join,
)
def test_a_filter_that_can_match_nothing_is_refused_with_what_there_is(
    run: Cli, args: tuple[str, ...]
) -> None:
    result = run(*args)
    assert result.exit_code == Exit.USAGE
    assert "is not one of " in result.stderr or "is not in the range" in result.stderr
