"""A document's bytes put together from the bytes of its items, each encoded once.

Owns the memory of what was encoded. Items are frozen, so the same object has the same bytes; a
swap changes a few items of hundreds, and only those are encoded again. The result is exactly what
encoding the whole document gives, and the sizes of its items come for nothing.
"""

from collections.abc import Iterator
from functools import cache

import msgspec
from msgspec import NODEFAULT, Struct, structs

from core_console.model.document import Versioned

_encoder = msgspec.json.Encoder()

_NEVER = object()
"""What equals no value: a field without a default is always written."""


class Pieces:
    """The encoded items of the last document, and of those that were measured since."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Struct, bytes]] = {}
        self._fields: dict[str, tuple[object, int]] = {}

    def of(self, item: Struct) -> bytes:
        """Return the item's bytes."""
        known = self._known.get(id(item))
        if known is not None and known[0] is item:
            return known[1]
        data = _encoder.encode(item)
        # The item is held too: as long as it is, no other object can have its identity.
        self._known[id(item)] = (item, data)
        return data

    def size(self, document: Versioned) -> int:
        """Return the document's stored size in bytes; a field that did not change is known."""
        sizes = [
            len(head) + self._field_size(name, value) for name, head, value in _written(document)
        ]
        return sum(sizes) + max(len(sizes) - 1, 0) + len("{}")

    def document(self, document: Versioned) -> bytes:
        """Return the document's bytes, and forget the items that it no longer has."""
        kept: dict[int, tuple[Struct, bytes]] = {}
        # One list and one join: joining field by field would copy the document five times.
        parts: list[bytes] = []
        opening = b"{"
        for name, head, value in _written(document):
            parts += (opening, head)
            opening = b","
            begin = len(parts)
            self._write(value, parts, kept)
            self._fields[name] = (value, sum(map(len, parts[begin:])))
        parts.append(b"}")
        self._known = kept
        return b"".join(parts)

    def _field_size(self, name: str, value: object) -> int:
        known = self._fields.get(name)
        if known is not None and known[0] is value:
            return known[1]
        parts: list[bytes] = []
        self._write(value, parts, {})
        size = sum(map(len, parts))
        self._fields[name] = (value, size)
        return size

    def _write(
        self, value: object, parts: list[bytes], kept: dict[int, tuple[Struct, bytes]]
    ) -> None:
        if not isinstance(value, dict) or not isinstance(next(iter(value.values()), None), Struct):
            parts.append(_encoder.encode(value))
            return
        opening = b"{"
        for key, item in value.items():
            data = self.of(item)
            kept[id(item)] = (item, data)
            parts += (opening, _encoder.encode(key), b":", data)
            opening = b","
        parts.append(b"}")


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
