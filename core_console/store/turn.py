"""Whose turn it is to swap: a replica that has just lost a race goes next.

The loser has to read the document again and would lose again and again to whoever has it in
memory. So it keeps the turn for a while, long enough for a few swaps, for each change of turns
costs such a reading. A courtesy and no lock: what may be stored is decided by the document's own
lock and version, and whoever cannot have the turn goes on without it.
"""

import os
from contextlib import suppress
from pathlib import Path

from core_console.store.durable import is_taken

KEPT_S = 0.1
"""Reading anew and a few swaps; two replicas that take turns keep nobody waiting for a quarter of a
second."""

IDLE_S = 0.02
"""Who has nothing to swap for so long gives the turn back before: the writer's next batch, waiting
for company and all, comes within it."""

_PATIENCE_S = 0.2
"""Twice that: a process that hangs with the turn holds nobody up for longer."""

_POLL_S = 0.000_5


class Turn:
    """The turn of one document, as one process takes it; its file lies beside the document."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".turn")
        self._descriptor: int | None = None

    def take(self) -> None:
        """Wait for the turn, unless it was kept, but not for long."""
        if self._descriptor is not None:
            return
        with suppress(OSError):
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
            descriptor = os.open(self._path, flags, 0o600)
            if is_taken(descriptor, [(int(_PATIENCE_S / _POLL_S), _POLL_S)]):
                self._descriptor = descriptor
            else:
                os.close(descriptor)

    def give(self) -> None:
        """Let others have the turn; only the event loop's thread does so, as often as it likes."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)
