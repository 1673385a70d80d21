"""YAML as GitHub reads it, and a reader of mappings that refuses every key it is not asked for.

Owns strictness. PyYAML follows YAML 1.1, where `on` is true and a key may stand twice; GitHub
follows YAML 1.2 and refuses the second.
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml

from core_console.standin.workflow import WorkflowFault

WORKFLOW_MAX_BYTES = 262_144  # forty times the longest shipped file


class _Loader(yaml.SafeLoader):
    """SafeLoader with the booleans of YAML 1.2, no dates, no merge keys and no double keys."""

    def construct_mapping(
        self,
        node: yaml.MappingNode,
        deep: bool = False,  # noqa: FBT001, FBT002 -- PyYAML's own signature
    ) -> dict[Hashable, Any]:
        """Return the mapping; a key that is no text, or stands twice, is a fault."""
        seen = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if key.tag != "tag:yaml.org,2002:str" or name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {name!r} is no text or stands twice", key.start_mark
                )
            seen.add(name)
        return super().construct_mapping(node, deep=deep)


_YAML_11_ONLY = {
    "tag:yaml.org,2002:bool",
    "tag:yaml.org,2002:timestamp",
    "tag:yaml.org,2002:merge",
    "tag:yaml.org,2002:int",
}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _YAML_11_ONLY]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^(?:0|-?[1-9][0-9]*)$"), list("-0123456789")
)


class Section:
    """One mapping of a workflow file, read key by key; what is left over at the end is a fault."""

    def __init__(self, file: str, path: str, value: object) -> None:
        self.file = file
        self.path = path
        if not isinstance(value, dict):
            raise self.fault("", "is not a mapping")
        self._left: dict[str, Any] = dict(value)

    def fault(self, key: str, what: str) -> WorkflowFault:
        """Return the fault that names this file and a key of this mapping."""
        where = ".".join(part for part in (self.path, key) if part) or "the file"
        return WorkflowFault(f"{self.file}: {where}: {what}")

    def has(self, key: str) -> bool:
        """Tell whether a key is there and was not taken yet."""
        return key in self._left

    def names(self) -> list[str]:
        """Return the keys that were not taken yet."""
        return list(self._left)

    def take(self, key: str) -> Any:  # noqa: ANN401 -- a YAML value
        """Return the value of a key that must be there."""
        if key not in self._left:
            raise self.fault(key, "is missing")
        return self._left.pop(key)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a text; a number is taken as GitHub takes it, by its spelling."""
        if default is not None and key not in self._left:
            return default
        value = self.take(key)
        if isinstance(value, bool):
            return "true" if value else "false"
        if not isinstance(value, str | int):
            raise self.fault(key, "is not a text")
        return str(value)

    def whole(self, key: str, *, default: int | None, most: int) -> int | None:
        """Return a whole number from 1 to `most`, or the default when the key is not there."""
        if key not in self._left:
            return default
        value = self.take(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
            raise self.fault(key, f"is not a whole number from 1 to {most}")
        return value

    def section(self, key: str) -> "Section":
        """Return a mapping inside this one."""
        path = f"{self.path}.{key}" if self.path else key
        return Section(self.file, path, self.take(key))

    def end(self) -> None:
        """Refuse every key that was not taken.

        Raises:
            WorkflowFault: the stand-in does not know a key.
        """
        for key in self._left:
            raise self.fault(key, "is not a key that the stand-in knows")


def read_yaml(file: str, data: bytes) -> Section:
    """Read one workflow file.

    Raises:
        WorkflowFault: it is too large, not UTF-8 or not one YAML mapping.
    """
    if len(data) > WORKFLOW_MAX_BYTES:
        raise WorkflowFault(f"{file}: is over {WORKFLOW_MAX_BYTES} bytes")
    try:
        value = yaml.load(data.decode(), Loader=_Loader)  # noqa: S506 -- it is a SafeLoader
    except UnicodeDecodeError as fault:
        raise WorkflowFault(f"{file}: is not UTF-8") from fault
    except yaml.YAMLError as fault:
        raise WorkflowFault(f"{file}: is not YAML as GitHub reads it: {fault}") from fault
    return Section(file, "", value)
