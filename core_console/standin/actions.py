"""The four actions that the shipped workflows use: their pinned commits and their inputs.

Owns what a workflow may ask of them. An action by tag or branch, another commit, or an input that
is not listed is a fault of the file: at GitHub it would be other code.
"""

import re
from enum import StrEnum

from msgspec import Struct


class ActionName(StrEnum):
    """The actions that the stand-in knows."""

    CHECKOUT = "actions/checkout"
    APP_TOKEN = "actions/create-github-app-token"  # noqa: S105 -- an action's name
    UPLOAD = "actions/upload-artifact"
    DOWNLOAD = "actions/download-artifact"


class Known(Struct, frozen=True):
    """One action: the commit and version that the stand-in imitates, and its inputs."""

    commit: str
    version: str
    required: frozenset[str]
    optional: dict[str, tuple[str, ...]]
    """Each optional input with the values it may have; none listed means any."""


KNOWN = {
    ActionName.CHECKOUT: Known(
        "8e8c483db84b4bee98b60c0593521ed34d9990e8",
        "v6.0.1",
        frozenset(),
        {"persist-credentials": ("false",), "fetch-depth": ("0", "1")},
    ),
    ActionName.APP_TOKEN: Known(
        "1b10c78c7865c340bc4f6099eb2f838309f1e8c3",
        "v3.1.1",
        frozenset({"client-id", "private-key"}),
        {"permission-metadata": ("read",)},
    ),
    ActionName.UPLOAD: Known(
        "b7c566a772e6b6bfb58ed0dc250532a479d7789f",
        "v6.0.0",
        frozenset({"name", "path"}),
        {"if-no-files-found": ("warn", "ignore", "error"), "retention-days": ()},
    ),
    ActionName.DOWNLOAD: Known(
        "37930b1c2abaa49bbe596cd826c3c89aef350131",
        "v7.0.0",
        frozenset({"name", "path"}),
        {},
    ),
}

_PINNED = re.compile(r"([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)@([0-9a-f]{40})")


def known_action(uses: str) -> ActionName | str:
    """Return the action that a `uses` names, or one sentence that says why it is none."""
    pinned = _PINNED.fullmatch(uses)
    if pinned is None:
        return f"{uses} is not an action pinned by its full commit"
    if pinned[1] not in list(ActionName):
        return f"{pinned[1]} is not an action that the stand-in knows"
    name = ActionName(pinned[1])
    if KNOWN[name].commit != pinned[2]:
        return (
            f"{name} is known at {KNOWN[name].commit} ({KNOWN[name].version}), not at {pinned[2]}"
        )
    return name


def input_fault(name: ActionName, inputs: dict[str, str]) -> str | None:
    """Return one sentence about the first input that is unknown, missing or has a wrong value."""
    known = KNOWN[name]
    for missing in sorted(known.required - inputs.keys()):
        return f"{missing} is missing for {name}"
    for key, value in inputs.items():
        if key not in known.required and key not in known.optional:
            return f"{key} is not an input of {name} that the stand-in knows"
        values = known.optional.get(key, ())
        if values and value not in values:
            return f"{key} of {name} can only be {' or '.join(values)} in the stand-in"
    return None
