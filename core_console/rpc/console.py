"""What the servicers ask of the engine.

Owns one protocol. A servicer never sees the writer, the queue or the store.
"""

from typing import Protocol

from core_console.decide.commands import Command
from core_console.decide.outcome import Outcome
from core_console.latest import Seen
from core_console.model.document import Document
from core_console.ports import Clock


class Console(Protocol):
    """The engine, as far as an RPC needs it; `clock` is the one that decisions are made by."""

    @property
    def clock(self) -> Clock:
        """Time."""
        ...

    async def submit(self, command: Command) -> Outcome:
        """Return the command's outcome once it is durable; may raise Fault."""
        ...

    async def snapshot(self) -> Document:
        """Return the newest durable document; may raise Fault."""
        ...

    async def look(self) -> Seen[Document]:
        """Return the newest state that can be had, for reads alone; may raise Fault."""
        ...

    async def changed(self, revision: int, *, within_s: float) -> Document:
        """Return the durable document once it is at another revision, or as it is by then."""
        ...

    async def recorded(self) -> None:
        """Wait until what is decided now is in the chain, as far as it can be written."""
        ...
