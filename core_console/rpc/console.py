"""What the servicers ask of the engine.

Owns one protocol. A servicer never sees the writer, the queue or the store.
"""

from typing import Protocol

from core_console.decide.commands import Command
from core_console.decide.outcome import Outcome
from core_console.model.document import Document


class Console(Protocol):
    """The engine, as far as an RPC needs it."""

    async def submit(self, command: Command) -> Outcome:
        """Return the command's outcome once it is durable; may raise Fault."""
        ...

    async def snapshot(self) -> Document:
        """Return the newest durable document; may raise Fault."""
        ...

    async def recorded(self) -> None:
        """Wait until what is decided now is in the chain, as far as it can be written."""
        ...
