"""What a decision is given besides the document and the command.

Owns the values that the engine reads once per attempt. Nothing here can act.
"""

from datetime import datetime
from typing import Protocol

from msgspec import Struct

from core_console.decide.identity import Admission


class NewIds(Protocol):
    """Where new ids come from."""

    def new(self, prefix: str) -> str:
        """Return an id that was never given before."""
        ...


class Context(Struct, frozen=True, gc=False, kw_only=True):
    """The time, the ids and the settings that a decision depends on.

    `replica` is this process's own id, made at each start: a claim in its name may be performed
    by it alone. `sender_room` is how many more calls this replica's sender may take on.
    `bar_all_editors` is CORE_FOUR_EYES_ALL_EDITORS.
    """

    now: datetime
    ids: NewIds
    replica: str
    admission: Admission
    sender_room: int
    bar_all_editors: bool = False
