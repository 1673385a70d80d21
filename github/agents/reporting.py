"""What the agents beside this file share: reading what they are given, saying what they found.

Owns the bounds of files in both directions and which texts may leave the runner. Never judges:
that is the work of each agent's own `run`. Needs the standard library alone.
"""  # noqa: INP001 -- the agents are commands in folders, and no package

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

REPORT = Path("report.json")
REPORT_MAX_BYTES = 1_048_576  # what the report doors take
EVENT_MAX_BYTES = 16_384  # what the events door takes
ITEMS_MAX = 2_000  # the most findings, verdicts or judgements of one report
FILE_MAX_BYTES = 1_048_576  # a larger file is not one that people keep by hand
NAME_MAX_CHARS = 64  # 256 bytes at most, which is what the doors take of a name

# What the console refuses to store. The bound of the JWT's first part keeps the search short.
CREDENTIAL = re.compile(
    r"gh[pousr]_|github_pat_|AKIA|xox[abp]-|-----BEGIN"
    r"|eyJ[A-Za-z0-9_-]{5,1000}\.[A-Za-z0-9_-]{5,1000}\."
)
COMMAND = "##["  # GitHub takes what follows for a command, wherever it stands in a line
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Unable(Exception):  # noqa: N818 -- an outcome that is reported, not a fault of the program
    """Nothing could be assessed; the text is one sentence that says why."""


def run(agent: str, work: Callable[[], tuple[str, bool]]) -> int:
    """Run an agent from a clean start, tell its one line, and return its exit code.

    `work` returns the line, and whether all that was to be assessed could be.
    """
    try:
        REPORT.unlink(missing_ok=True)  # one that lies in the repository is not what was found now
        detail, complete = work()
    except Unable as fault:
        detail, complete = str(fault), False
    except OSError as fault:
        detail, complete = f"the runner's files failed: {fault.strerror}", False
    sys.stdout.write(f"{agent}: {detail}\n")
    if output := os.environ.get("GITHUB_OUTPUT"):
        with Path(output).open("a", encoding="utf-8") as file:
            file.write(f"detail={detail}\n")
    return 0 if complete else 1


def load(path: Path, what: str) -> dict[str, Any]:
    """Return the one JSON object in a file.

    Raises:
        Unable: there is none, or it is too large, or a key is in it twice.
    """
    text = read(path)
    if text is None:
        raise Unable(f"the {what} is not there, or is no file of at most 1 MiB in UTF-8")
    found = parse(text)
    if found is None:
        raise Unable(f"the {what} is not one JSON object in which every key stands once")
    return found


def parse(text: str) -> dict[str, Any] | None:
    """Return the one JSON object in a text, else None; of two equal keys neither is believed."""
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def entries(document: dict[str, Any], key: str, what: str, most: int = ITEMS_MAX) -> list[Any]:
    """Return the list under a key.

    Raises:
        Unable: it is no list, is empty, or has more than `most` entries.
    """
    found = document.get(key)
    if not isinstance(found, list) or not found:
        raise Unable(f"the {what} lists no {key}: nothing could be assessed")
    if len(found) > most:
        raise Unable(f"the {what} lists {len(found)} {key}; one report takes at most {most}")
    return found


def read(path: Path) -> str | None:
    """Return the text of a plain file of at most 1 MiB in UTF-8, else None."""
    try:
        if not path.is_file():
            return None
        with path.open("rb") as file:
            data = file.read(FILE_MAX_BYTES + 1)
        return data.decode() if len(data) <= FILE_MAX_BYTES else None
    except (OSError, ValueError):
        return None


def inside(name: object) -> Path | None:
    """Return the path of a plain file of this repository that a text names, else None."""
    root = Path.cwd().resolve()
    if not isinstance(name, str) or not name:
        return None
    try:
        path = (root / name).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError, RuntimeError):  # too long, a NUL, a circle of links
        return None


def shown(value: object, instead: str) -> str:
    """Return a name if it may leave the runner: one short line, and nothing like a credential."""
    if not isinstance(value, str) or not value.strip() or len(value) > NAME_MAX_CHARS:
        return instead
    harmless = value.isprintable() and not CREDENTIAL.search(value) and COMMAND not in value
    return value if harmless else instead


def write_report(body: dict[str, Any], most_bytes: int = REPORT_MAX_BYTES) -> None:
    """Write report.json; a run of a playbook is named as its cause.

    Raises:
        Unable: it is larger than its door takes.
    """
    cause = os.environ.get("PLAYBOOK_RUN_ID", "")
    caused = {"causedByRunId": cause} if _ID.fullmatch(cause) else {}
    data = json.dumps(body | caused, ensure_ascii=False, indent=1).encode()
    if len(data) > most_bytes:
        raise Unable(f"the report has {len(data)} bytes; its door takes at most {most_bytes}")
    with REPORT.open("xb") as file:
        file.write(data)


def write_event(agent: str, event: str, detail: str, **attributes: object) -> None:
    """Write report.json for the events door, with an id so that a repeated delivery is one event.

    Raises:
        Unable: it is larger than the door takes.
    """
    ids = (os.environ.get("GITHUB_RUN_ID", ""), os.environ.get("GITHUB_RUN_ATTEMPT", "1"))
    body: dict[str, Any] = {
        "agent": agent,
        "event": event,
        "detail": detail,
        "attributes": {name: str(value) for name, value in attributes.items()},
    }
    if all(each.isascii() and each.isdigit() for each in ids):
        body["eventId"] = "-".join((agent, *ids))
    write_report(body, EVENT_MAX_BYTES)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
