"""What the CapEx engine asks of the writer of its document.

Owns one protocol: the engine stands further out and is handed in.
"""

from typing import Protocol

from core_console.decide.capex_commands import CapexCommand
from core_console.decide.outcome import CapexOutcome
from core_console.model.capex_document import CapexDocument


class Writer(Protocol):
    """The writer loop of the CapEx document."""

    async def submit(self, command: CapexCommand) -> CapexOutcome:
        """Return the command's outcome once it is durable; may raise Fault."""
        ...

    async def snapshot(self) -> CapexDocument:
        """Return the newest durable document; may raise Fault."""
        ...
