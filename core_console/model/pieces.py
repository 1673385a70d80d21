"""A document's bytes put together from the bytes of its items, each encoded once.

Owns the memory of what was encoded. Items are frozen, so the same object has the same bytes; a
swap changes a few items of hundreds, and only those are encoded again. The result is exactly what
encoding the whole document gives, and the sizes of its parts come for nothing.
"""

from collections.abc import Iterator, Mapping
from functools import cache

import msgspec
from msgspec import NODEFAULT, Struct, structs

from core_console.model.document import Versioned

_encoder = msgspec.json.Encoder()

_NEVER = object()
"""What equals no value: a field without a default is always written."""

_MEASURED_MAX = 2_048
"""Items that were measured since: more than a full batch changes, and about 2 MB at the most."""


class Pieces:
    """The encoded items of the last document, and of those that were measured since."""

    def __init__(self) -> None:
        self._measured: dict[int, tuple[Struct, bytes]] = {}
        self._items: dict[str, _Items] = {}
        self._fields: dict[str, tuple[object, bytes]] = {}

    def of(self, item: Struct) -> bytes:
        """Return the item's bytes."""
        # The item is held too: as long as it is, no other object can have its identity.
        known = self._measured.get(id(item))
        if known is not None:
            return known[1]
        if len(self._measured) >= _MEASURED_MAX:
            self._measured.clear()
        data = _encoder.encode(item)
        self._measured[id(item)] = (item, data)
        return data

    def size(self, document: Versioned) -> int:
        """Return the document's stored size in bytes."""
        sizes = [
            len(head) + len(self._field(name, value)) for name, head, value in _written(document)
        ]
        return sum(sizes) + max(len(sizes) - 1, 0) + len("{}")

    def document(self, document: Versioned) -> bytes:
        """Return the document's bytes."""
        parts: list[bytes] = []
        opening = b"{"
        for name, head, value in _written(document):
            parts += (opening, head, self._field(name, value))
            opening = b","
        parts.append(b"}")
        return b"".join(parts)

    def _field(self, name: str, value: object) -> bytes:
        """Return the field's bytes; those of a value that did not change are known."""
        known = self._fields.get(name)
        if known is not None and known[0] is value:
            return known[1]
        if isinstance(value, dict) and isinstance(next(iter(value.values()), None), Struct):
            data = self._items.setdefault(name, _Items(self)).joined(value)
        else:
            data = _encoder.encode(value)
        self._fields[name] = (value, data)
        return data


class _Items:
    """The encoded items of one field, each with its key before it."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._last: Mapping[str, Struct] = {}
        self._bytes: dict[str, bytes] = {}

    def joined(self, value: Mapping[str, Struct]) -> bytes:
        """Return the field's bytes, and forget the items that are gone."""
        last, known = self._last.get, self._bytes
        self._bytes = {
            key: known[key] if last(key) is item else self._encoded(key, item)
            for key, item in value.items()
        }
        self._last = value
        return b"{%b}" % b",".join(self._bytes.values())

    def _encoded(self, key: str, item: Struct) -> bytes:
        return b"%b:%b" % (_encoder.encode(key), self._pieces.of(item))


def _written(document: Versioned) -> Iterator[tuple[str, bytes, object]]:
    """Yield the fields that are written, each with its encoded name."""
    for name, head, default in _plan(type(document)):
        value = getattr(document, name)
        if value != default:
            yield name, head, value


@cache
def _plan(kind: type[Versioned]) -> tuple[tuple[str, bytes, object], ...]:
    """Return each field's name, its encoded name, and the default that is left out, if any."""
    plan = []
    for field in structs.fields(kind):
        default: object = _NEVER
        if field.default is not NODEFAULT:
            default = field.default
        elif field.default_factory is not NODEFAULT:
            default = field.default_factory()
        plan.append((field.name, b'"%s":' % field.encode_name.encode(), default))
    return tuple(plan)
