"""The messages of runs that were shown lately, so that an unchanged run is converted once.

Owns that cache and its bound. A page of runs is then a copy of messages and reads no step.
"""

from runink.core.atlas.v1 import playbook_pb2

from core_console.model.run import Run
from core_console.rpc import to_proto

RUNS_SHOWN_MAX = 512
"""Shown runs that are kept: more than the 300 that a document holds at most (100 in flight and
200 finished), so that a page costs a copy and no conversion."""


class RunViews:
    """Shows runs, each converted once.

    A stored run is never changed in place, so the very same object is the very same message.
    """

    def __init__(self) -> None:
        self._shown: dict[str, tuple[Run, playbook_pb2.Run]] = {}

    def of(self, stored: Run) -> playbook_pb2.Run:
        """Return the message of a run; the caller must not change it."""
        kept = self._shown.get(stored.id)
        if kept is not None and kept[0] is stored:
            return kept[1]
        shown = to_proto.run(stored)
        if len(self._shown) >= RUNS_SHOWN_MAX:
            # Runs leave the document oldest first, and so do their messages here.
            del self._shown[next(iter(self._shown))]
        self._shown.pop(stored.id, None)
        self._shown[stored.id] = (stored, shown)
        return shown
