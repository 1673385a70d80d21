"""The files by which a step speaks to its job: GITHUB_ENV, GITHUB_OUTPUT and GITHUB_PATH.

Owns their format: `name=value` lines, and values of several lines between a marker of the step's
choice. A line that is neither fails the step, as at GitHub.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

FILE_MAX_BYTES = 1_048_576  # what GitHub allows for a job's outputs


class CommandFileFault(Exception):  # noqa: N818 -- a fault of the step, not of this program
    """A file that GitHub's runner would not understand."""


class CommandFiles(Struct, frozen=True):
    """The files of one step."""

    env: Path
    output: Path
    path: Path
    summary: Path
    state: Path

    def variables(self) -> dict[str, str]:
        """Return the variables that tell a step where its files are."""
        return {
            "GITHUB_ENV": str(self.env),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_PATH": str(self.path),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_STATE": str(self.state),
        }


def make_command_files(folder: Path, number: int) -> CommandFiles:
    """Create the empty files of one step."""
    files = CommandFiles(
        *(folder / f"{name}_{number}" for name in ("env", "output", "path", "summary", "state"))
    )
    for path in (files.env, files.output, files.path, files.summary, files.state):
        path.touch()
    return files


def read_lines(path: Path) -> list[str]:
    """Return the lines of a file.

    Raises:
        CommandFileFault: it is gone, over the bound or not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(FILE_MAX_BYTES + 1)
        if len(data) > FILE_MAX_BYTES:
            raise CommandFileFault(f"a command file is over {FILE_MAX_BYTES} bytes")
        text = data.decode()
    except (OSError, UnicodeDecodeError) as fault:
        raise CommandFileFault("a command file is gone, or is not UTF-8") from fault
    return re.split(r"\r?\n", text)


def read_values(path: Path) -> dict[str, str]:
    """Return the names and values of a file; the last value of a name counts.

    Raises:
        CommandFileFault: a line is neither `name=value` nor the start of a marked value.
    """
    values: dict[str, str] = {}
    lines = iter(read_lines(path))
    for line in lines:
        if not line:
            continue
        equals, marked = line.find("="), line.find("<<")
        if marked >= 0 and (equals < 0 or marked < equals):
            name, value = line[:marked], _marked(line[marked + 2 :], lines)
        elif equals >= 0:
            name, value = line[:equals], line[equals + 1 :]
        else:
            raise CommandFileFault("a line of a command file is not `name=value`")
        if not name:
            raise CommandFileFault("a line of a command file has no name")
        values[name] = value
    return values


def _marked(marker: str, lines: Iterator[str]) -> str:
    kept: list[str] = []
    for line in lines:
        if line == marker and marker:
            return "\n".join(kept)
        kept.append(line)
    raise CommandFileFault("a marked value of a command file does not end")
