"""The documents of a root, each with its store, its blobs and what judges it.

Owns the list of them, and the order in which they are read: the metadoc last. A harness event is
cleared in its source only after the metadoc took it, so whoever reads the source first never
misses one.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from core_console.batch import CAPEX, METADOC, Kind
from core_console.governance.chain import Chain
from core_console.model.capex_document import CapexDocument
from core_console.model.codec import DocumentError
from core_console.model.document import Document, Versioned
from core_console.model.reports import ReportsDocument
from core_console.ports import Blobs, Fault, Log
from core_console.ports import Document as Store
from core_console.reports import REPORTS
from core_console.state import check, check_sources
from core_console.state.check import Recorded

NAMES = (CAPEX.name, REPORTS.name, METADOC.name)
"""The documents in the order in which they are read."""

_KINDS: Mapping[str, Kind[Any, Any, Any]] = {each.name: each for each in (CAPEX, REPORTS, METADOC)}


Replace = Callable[[str, bytes, str], Awaitable[None]]
"""Puts these bytes in the place of the document of that name; the third argument ends the name
under which the old one stays beside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """What a root holds, by the documents' names."""

    stores: Mapping[str, Store]
    blobs: Mapping[str, Blobs]
    log: Log
    chain: Chain
    replace: Replace


@dataclass(frozen=True, slots=True)
class Part:
    """One stored document as it was read; its bytes are what is stored."""

    name: str
    document: Versioned
    data: bytes

    @property
    def is_stored(self) -> bool:
        """Whether there is one at all; else the document is an empty one."""
        return bool(self.data)

    def faults(self, recorded: Recorded) -> Iterator[str]:
        """Yield every promise that the document breaks."""
        match self.document:
            case Document():
                return check.of_metadoc(self.document, len(self.data), recorded)
            case CapexDocument():
                return check_sources.of_feeds(self.document, recorded)
            case ReportsDocument():
                return check_sources.of_reports(self.document, recorded)
            case _:
                raise TypeError(self.name)

    def blobs(self) -> Mapping[str, str]:
        """Return what each blob is that the document needs, by its digest."""
        match self.document:
            case CapexDocument():
                return check_sources.blobs_of_feeds(self.document)
            case ReportsDocument():
                return check_sources.blobs_of_reports(self.document)
            case _:
                return {}


def decoded(name: str, data: bytes) -> Part:
    """Return the document that these bytes are; raise Fault when they are none."""
    kind = _KINDS[name]
    if not data:
        return Part(name, kind.empty, b"")
    try:
        return Part(name, kind.codec.decode(data), data)
    except DocumentError as error:
        raise Fault(f"{name} cannot be read: {error}", retryable=False) from error


def encoded(name: str, document: Versioned) -> Part:
    """Return the document with the bytes that it is stored as."""
    return Part(name, document, _KINDS[name].codec.encode(document))


async def read(root: Root, name: str) -> Part:
    """Return the stored document of that name.

    Raises:
        Fault: the store cannot be asked, or what it holds is damaged.
    """
    return decoded(name, (await root.stores[name].load()).data)
