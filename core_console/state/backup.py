"""A backup: the documents, the blobs that they need, and where the chain stood.

Owns what is in it and how it is read back. It is consistent while consoles serve: each document
is one read, and they are read in an order that misses nothing. Never holds the operator key, and
not the chain itself, which only grows and is copied as it is.
"""

from hashlib import sha256
from typing import Protocol

import msgspec
from msgspec import Struct

from core_console.governance.chain import decode
from core_console.model.moment import Moment
from core_console.ports import Clock, Fault
from core_console.state import parts
from core_console.state.check import Recorded
from core_console.state.parts import Part, Root

FORMAT = 1
"""The format that this code writes and reads; a newer one is refused, never guessed at."""

_MANIFEST = "manifest.json"
_MANIFEST_BYTES_MAX = 1024 * 1024
"""A name and a digest for a few dozen pieces come to some 10 KiB."""

_BLOB_BYTES_MAX = 16 * 1024 * 1024
"""What a blob store takes at most."""


class Sink(Protocol):
    """Takes the pieces of a backup."""

    def add(self, name: str, data: bytes) -> None:
        """Keep one piece; may raise Fault."""
        ...


class Source(Protocol):
    """Gives the pieces of a backup."""

    def get(self, name: str, *, bytes_max: int) -> bytes:
        """Return one piece; raise Fault when it is missing or larger."""
        ...


class Kept(Struct, frozen=True, gc=False):
    """One document in the backup; `blobs` are the digests of those that it needs."""

    name: str
    revision: int
    size_bytes: int
    digest: str
    blobs: tuple[str, ...]


class ChainAt(Struct, frozen=True, gc=False):
    """Where the chain stood: its last record, and each document's last number in it."""

    seq: int
    hash: str
    numbers: dict[str, int]


class Manifest(Struct, frozen=True, gc=False, tag="core-console-backup", tag_field="kind"):
    """What a backup holds."""

    format: int
    made_at: Moment
    documents: tuple[Kept, ...]
    chain: ChainAt


async def take(root: Root, sink: Sink, clock: Clock) -> Manifest:
    """Write a backup of the root as it is now and return what is in it.

    Raises:
        Fault: something cannot be read or written, or a document breaks its own promises.
    """
    made_at = clock.now()
    found = [await parts.read(root, name) for name in parts.NAMES]
    chain = await _chain_at(root)
    if not any(part.is_stored for part in found):
        raise Fault("this root holds no document: there is nothing to back up", retryable=False)
    for part in found:
        refuse_broken(part, "check the state before you count on a backup of it")
    documents = tuple([await _put(root, part, sink) for part in found if part.is_stored])
    manifest = Manifest(FORMAT, made_at, documents, chain)
    sink.add(_MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))
    return manifest


def refuse_broken(part: Part, advice: str) -> None:
    """Raise Fault naming the first promise that the document breaks by itself.

    How far the chain got is not judged: a backup is just what helps when the chain is lost.
    """
    fault = next(part.faults(Recorded(0, part.document.outbox_number)), None)
    if fault is not None:
        raise Fault(f"{part.name} breaks its own promises: {fault}; {advice}", retryable=False)


async def _chain_at(root: Root) -> ChainAt:
    seq = await root.log.last_seq()
    numbers = {name: await root.chain.last_number(name) for name in parts.NAMES}
    if seq == 0:
        return ChainAt(0, "", numbers)
    return ChainAt(seq, decode((await root.log.read(seq, 1))[0]).hash, numbers)


async def _put(root: Root, part: Part, sink: Sink) -> Kept:
    digests = tuple(sorted(part.blobs()))
    for digest in digests:
        sink.add(_blob(part.name, digest), await root.blobs[part.name].get(digest))
    sink.add(_document(part.name), part.data)
    return Kept(
        part.name,
        part.document.revision,
        len(part.data),
        sha256(part.data).hexdigest(),
        digests,
    )


def manifest_of(source: Source) -> Manifest:
    """Return what a backup says that it holds; raise Fault when it is none of ours."""
    data = source.get(_MANIFEST, bytes_max=_MANIFEST_BYTES_MAX)
    try:
        found = msgspec.json.decode(data, type=Manifest)
    except msgspec.MsgspecError:
        raise Fault("the backup's manifest cannot be read", retryable=False) from None
    names = [kept.name for kept in found.documents]
    if found.format != FORMAT or len(set(names)) < len(names) or not set(names) <= {*parts.NAMES}:
        raise Fault("the backup is of another version of the console", retryable=False)
    return found


def document_of(source: Source, manifest: Manifest, name: str) -> Part:
    """Return a document of the backup, an empty one when it holds none of that name.

    Raises:
        Fault: it is not what the manifest says.
    """
    kept = next((each for each in manifest.documents if each.name == name), None)
    if kept is None:
        return parts.decoded(name, b"")
    data = source.get(_document(name), bytes_max=kept.size_bytes)
    if sha256(data).hexdigest() != kept.digest:
        raise Fault(f"{name} in the backup is not what its manifest says", retryable=False)
    return parts.decoded(name, data)


def blob_of(source: Source, name: str, digest: str) -> bytes:
    """Return a blob that a document of the backup needs; raise Fault when it is another one."""
    data = source.get(_blob(name, digest), bytes_max=_BLOB_BYTES_MAX)
    if sha256(data).hexdigest() != digest:
        raise Fault(f"a blob of {name} in the backup is not whole", retryable=False)
    return data


def _document(name: str) -> str:
    return f"documents/{name}"


def _blob(name: str, digest: str) -> str:
    return f"blobs/{name}/{digest}"
