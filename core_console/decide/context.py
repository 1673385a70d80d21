"""What a decision is given besides the document and the command.

Owns the values that the engine reads once per attempt. Nothing here can act.
"""

from datetime import datetime, timedelta
from typing import Protocol

from msgspec import Struct

from core_console.decide.identity import Admission

CATCH_UP = timedelta(minutes=60)
"""How late a slot may still fire unless the settings say otherwise (contract, section 5)."""


class NewIds(Protocol):
    """Where new ids come from."""

    def new(self, prefix: str) -> str:
        """Return an id that was never given before."""
        ...


class Context(Struct, frozen=True, gc=False, kw_only=True):
    """The time, the ids and the settings that a decision depends on.

    `replica` is this process's own id, made at each start: a claim in its name may be performed
    by it alone. `sender_room` is how many more calls this replica's sender may take on.
    `bar_all_editors` is CORE_FOUR_EYES_ALL_EDITORS; `catch_up` is how old a slot may be that
    still starts a run (CORE_SCHEDULE_CATCH_UP_MINUTES).
    """

    now: datetime
    ids: NewIds
    replica: str
    admission: Admission
    sender_room: int
    bar_all_editors: bool = False
    catch_up: timedelta = CATCH_UP
