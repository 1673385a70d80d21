"""Stored bytes to structs and back: JSON, with the format version checked first.

Owns the document's encoding and the canonical JSON that digests are taken over. Never guesses: a
document that does not decode is a `DocumentError`, and its bytes are left alone.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any, Generic, TypeVar

import msgspec

from core_console.model.capex_document import CAPEX_FORMAT, CapexDocument
from core_console.model.document import FORMAT, Document, Versioned
from core_console.model.pieces import Pieces
from core_console.model.playbook import Spec

_canonical = msgspec.json.Encoder(order="sorted")

D = TypeVar("D", bound=Versioned)


class DocumentError(Exception):
    """The stored bytes are not a document that this code can read."""


class _Format(msgspec.Struct):
    format: int


class Codec(Generic[D]):
    """The stored bytes of one kind of document, in the one format that this code writes."""

    def __init__(
        self, kind: type[D], *, version: int, fault: Callable[[D], str] = lambda _: ""
    ) -> None:
        """Take a kind of document; `fault` says what is wrong with one that decodes, "" if not."""
        self._fault = fault
        self._decoder = msgspec.json.Decoder(kind)
        self._format = version
        self.pieces = Pieces()

    def encode(self, document: D) -> bytes:
        """Return the document's stored bytes."""
        return self.pieces.document(document)

    def decode(self, data: bytes) -> D:
        """Return the document in `data`; raise DocumentError when it is not one of ours."""
        try:
            found = msgspec.json.decode(data, type=_Format).format
            if found != self._format:
                raise DocumentError(f"its format is {found}, and this version reads {self._format}")
            document = self._decoder.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            raise DocumentError(f"it does not decode: {error}") from error
        if wrong := self._fault(document):
            raise DocumentError(wrong)
        return document


def _key_fault(document: Document) -> str:
    """Say whether an item stands under a key that is not its own."""
    misplaced = (
        any(key != each.id for key, each in document.playbooks.items())
        or any(key != run.playbook_id for key, run in document.running.items())
        or any(key != run.id for key, run in document.finished.items())
        or any(key != each.id for key, each in document.events.items())
    )
    return "an item stands under the key of another" if misplaced else ""


METADOC = Codec(Document, version=FORMAT, fault=_key_fault)
CAPEX = Codec(CapexDocument, version=CAPEX_FORMAT)
encode, decode = METADOC.encode, METADOC.decode


def canonical_json(value: Any) -> bytes:  # noqa: ANN401 -- anything that encodes has a canonical form
    """Return the one JSON text of `value`: sorted keys, no white space, UTF-8."""
    return _canonical.encode(value)


def spec_digest(spec: Spec) -> str:
    """Return the SHA-256 of the spec's canonical JSON as lower-case hex.

    A field that stands at its default is left out, so a field added later changes no digest.
    """
    return sha256(canonical_json(spec)).hexdigest()
