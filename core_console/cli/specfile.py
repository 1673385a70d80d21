"""A playbook file: YAML or JSON to the contract's message, each fault with its line.

Owns the reading of files that people write, and where in it each field stands. Strict: no unknown,
doubled or empty field. What the values mean is the server's to judge.
"""

import difflib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import yaml
from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from runink.core.atlas.v1.playbook_pb2 import Playbook

from core_console.cli.failure import Exit, Failed, printable
from core_console.cli.output import enum_prefix
from core_console.cli.yamltext import Mark, compose, fault_at

FILE_BYTES_MAX = 131_072
"""Three times the largest playbook that the field limits allow."""

_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,18})")
_NULL = "tag:yaml.org,2002:null"
_TIMESTAMP = Timestamp.DESCRIPTOR.full_name
_INTEGERS = frozenset({FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a field stands: its line from 1, and its name as the file spells it."""

    line: int
    name: str


@dataclass(frozen=True, slots=True)
class SpecFile:
    """A playbook, and the place of each of its fields by proto path."""

    playbook: Playbook
    source: str
    places: Mapping[str, Place]

    def locate(self, path: str) -> str:
        """Return where a proto path stands; a field that is left out, where it belongs."""
        for known in _ancestors(path):
            place = self.places.get(known)
            if place is not None:
                rest = path[len(known) :].removeprefix(".")
                name = ".".join(filter(None, (place.name, rest)))
                return f"{self.source}, line {place.line}: {name}"
        return f"{self.source}: {path.removeprefix('playbook.')}"


def _ancestors(path: str) -> Iterator[str]:
    """Yield the path, then what holds it, outwards."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]


def read_spec(name: str) -> SpecFile:
    """Return the playbook in the file `name`, `-` for standard input; raise Failed otherwise."""
    source = "standard input" if name == "-" else name
    try:
        if name == "-":
            data = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(FILE_BYTES_MAX + 1)
        if len(data) > FILE_BYTES_MAX:
            raise Failed(Exit.USAGE, f"{source} is larger than {FILE_BYTES_MAX} bytes")
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise Failed(Exit.USAGE, f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Failed(Exit.USAGE, f"{source} is not UTF-8 text") from None
    return parse_spec(text, source=source)


def parse_spec(text: str, *, source: str) -> SpecFile:
    """Return the playbook in `text`; raise Failed naming `source`, the field and its line.

    The text is the Playbook itself, or `{"playbook": …}` as `-o json` prints it.
    """
    reader = _Reader(source)
    root = compose(text, source)
    if isinstance(root, yaml.MappingNode) and len(root.value) == 1:
        key, value = root.value[0]
        root = value if key.value == "playbook" else root
    playbook = Playbook()
    reader.fill(playbook, root, "playbook")
    return SpecFile(playbook, source, reader.places)


class _Reader:
    """Fills messages from nodes, which know their lines."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.places: dict[str, Place] = {}

    def _fault(self, mark: Mark | None, fact: str) -> Failed:
        return fault_at(self._source, mark, fact)

    def fill(self, message: Message, node: yaml.Node, path: str) -> None:
        """Set the message's fields from a mapping."""
        if not isinstance(node, yaml.MappingNode):
            raise self._fault(node.start_mark, f"{path} must be a mapping of fields")
        fields = {
            name: cast("FieldDescriptor", field)
            for field in message.DESCRIPTOR.fields
            for name in (field.name, field.json_name)
        }
        lines: dict[str, int] = {}
        for key, value in node.value:
            field = fields.get(key.value) if isinstance(key, yaml.ScalarNode) else None
            if field is None:
                raise self._unknown(key, list(fields), path)
            self._refuse_twice(lines, field, key, path)
            place = f"{path}.{field.name}"
            self._remember(place, key, str(key.value))
            self._set(message, field, value, place)

    def _remember(self, path: str, node: yaml.Node, name: str) -> None:
        self.places[path] = Place(node.start_mark.line + 1, printable(name))

    def _unknown(self, key: yaml.Node, names: list[str], path: str) -> Failed:
        if not isinstance(key, yaml.ScalarNode):
            return self._fault(key.start_mark, f"a field of {path} must be named by a word")
        name = key.value[:100]
        close = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        return self._fault(key.start_mark, f"unknown field {name!r} in {path}{hint}")

    def _refuse_twice(
        self, lines: dict[str, int], field: FieldDescriptor, key: yaml.Node, path: str
    ) -> None:
        """Refuse a field, or the choice of a oneof, that is given twice: which counts?"""
        oneof = field.containing_oneof
        # An `optional` field is a oneof of its own, made by the compiler.
        is_choice = oneof is not None and not oneof.name.startswith("_")
        name = oneof.name if is_choice and oneof is not None else field.name
        if name in lines:
            what = f"a second {name}" if is_choice else f"the field {name!r} again"
            raise self._fault(key.start_mark, f"{what} in {path}, after line {lines[name]}")
        lines[name] = key.start_mark.line + 1

    def _set(self, message: Message, field: FieldDescriptor, node: yaml.Node, path: str) -> None:
        if not field.is_repeated:
            self._set_one(message, field, node, path)
            return
        if not isinstance(node, yaml.SequenceNode):
            raise self._fault(node.start_mark, f"{path} must be a list")
        values = getattr(message, field.name)
        for index, item in enumerate(node.value):
            place = f"{path}[{index}]"
            self._remember(place, item, f"{self.places[path].name}[{index}]")
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                self._fill_value(values.add(), item, place)
            else:
                values.append(self._scalar(field, item, place))

    def _set_one(
        self, message: Message, field: FieldDescriptor, node: yaml.Node, path: str
    ) -> None:
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            inner = getattr(message, field.name)
            inner.SetInParent()
            self._fill_value(inner, node, path)
            return
        try:
            setattr(message, field.name, self._scalar(field, node, path))
        except ValueError:
            raise self._fault(node.start_mark, f"{path} is out of range") from None

    def _fill_value(self, message: Message, node: yaml.Node, path: str) -> None:
        if not isinstance(message, Timestamp):
            self.fill(message, node, path)
            return
        try:
            message.FromJsonString(self._text(node, path))
        except ValueError:
            fact = f"{path} must be a time such as 2026-11-30T12:00:00Z"
            raise self._fault(node.start_mark, fact) from None

    def _text(self, node: yaml.Node, path: str) -> str:
        """Return a scalar's text as it is written: `no` is `no` and `010` is `010`."""
        if not isinstance(node, yaml.ScalarNode):
            raise self._fault(node.start_mark, f"{path} must be one value")
        if node.tag == _NULL:
            fact = f"{path} is empty: leave it out or give it a value"
            raise self._fault(node.start_mark, fact)
        try:
            # JSON writes a character beyond the first plane as two halves.
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise self._fault(node.start_mark, f"{path} holds half a character") from None

    def _scalar(self, field: FieldDescriptor, node: yaml.Node, path: str) -> Any:  # noqa: ANN401 -- as many types as fields have
        text = self._text(node, path)
        if field.type == FieldDescriptor.TYPE_STRING:
            return text
        if field.enum_type is not None:
            return self._enum(field.enum_type, node, text, path)
        if field.type == FieldDescriptor.TYPE_BOOL and text in {"true", "false"}:
            return text == "true"
        if field.type in _INTEGERS and _INTEGER.fullmatch(text):
            return int(text)
        if field.type == FieldDescriptor.TYPE_DOUBLE:
            try:
                return float(text)
            except ValueError:
                raise self._fault(node.start_mark, f"{path} must be a number") from None
        wanted = "a whole number" if field.type in _INTEGERS else "true or false"
        raise self._fault(node.start_mark, f"{path} must be {wanted}")

    def _enum(self, enum: EnumDescriptor, node: yaml.Node, text: str, path: str) -> int:
        prefix = enum_prefix(enum)
        value = enum.values_by_name.get(text) or enum.values_by_name.get(prefix + text)
        if value is None:
            names = ", ".join(
                known.name.removeprefix(prefix) for known in enum.values if known.number
            )
            raise self._fault(node.start_mark, f"{path} must be one of {names}")
        return value.number
