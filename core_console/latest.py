"""The newest durable state of one document, as this process knows it.

Owns the copy in memory: when the store is asked for a newer one, and what is remembered of a swap.
What is not durable yet is never shown. Never decides anything.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from core_console.model.codec import Codec, DocumentError
from core_console.model.document import Versioned
from core_console.ports import Document as Store
from core_console.ports import Fault

D = TypeVar("D", bound=Versioned)


@dataclass(frozen=True, slots=True)
class Held(Generic[D]):
    """The document as it was last known to be stored."""

    version: str
    document: D


@dataclass(frozen=True, slots=True)
class Seen(Generic[D]):
    """A document as a read sees it; `fault` says why a newer state may exist, None if not."""

    document: D
    fault: Fault | None = None

    @property
    def provenance(self) -> str:
        """Where the state comes from when it is not the newest for sure, "" when it is."""
        if self.fault is None:
            return ""
        return f"last known state of revision {self.document.revision}, the store cannot be asked"


class Latest(Generic[D]):
    """The copy of one document; `learned` is told each durable state and its size in bytes.

    `known` is the last state that was ever seen, None before the first.
    """

    def __init__(
        self, store: Store, codec: Codec[D], empty: D, *, learned: Callable[[D, int], None]
    ) -> None:
        self.known: D | None = None
        self._store = store
        self._codec = codec
        self._empty = empty
        self._learned = learned
        self._held: Held[D] | None = None
        self._swapping = False
        self._loading = asyncio.Lock()

    @property
    def swapping(self) -> bool:
        """Whether a swap of this process is under way."""
        return self._swapping

    async def durable(self) -> D:
        """Return the newest durable document; raise Fault when the store cannot be asked."""
        if self._swapping and self._held is not None:
            # The store may show our own swap before it is durable; nobody sees it before us.
            return self._held.document
        return (await self.fresh()).document

    async def fresh(self) -> Held[D]:
        """Return what is stored, loaded again only when another replica changed it.

        Raises:
            Fault: the store cannot be asked, or holds what this version cannot read.
        """
        async with self._loading:
            version = await self._store.version()
            held = self._held
            if held is None or held.version != version:
                stored = await self._store.load()
                held = Held(stored.version, self._decoded(stored.data))
                self._hold(held, len(stored.data))
            return held

    async def swap(self, held: Held[D], document: D) -> None:
        """Store the document in the place of the held one; raise as the store does."""
        self._swapping = True
        try:
            data = self._codec.encode(document)
            version = await self._store.swap(held.version, data)
            self._hold(Held(version, document), len(data))
        finally:
            self._swapping = False

    def forget(self) -> None:
        """Ask the store next time, whatever version it says it has."""
        self._held = None

    def _hold(self, held: Held[D], size_bytes: int) -> None:
        self._held, self.known = held, held.document
        self._learned(held.document, size_bytes)

    def _decoded(self, data: bytes) -> D:
        if not data:
            return self._empty
        try:
            return self._codec.decode(data)
        except DocumentError as error:
            raise Fault(
                f"the stored document cannot be read: {error}; keep it and restore a backup",
                retryable=False,
            ) from error
