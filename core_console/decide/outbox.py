"""The outbox: the entries that wait in the document until the chain holds them.

Owns their numbers and their bound. A number never repeats, so that the chain can tell an entry
that it has from one that it lacks.
"""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from core_console.decide.commands import (
    CancelRun,
    Command,
    DecideApproval,
    RecordCall,
    RecordScan,
    ReportStep,
    Tick,
)
from core_console.decide.outcome import Code, Refused
from core_console.model.audit import Entry, OutboxEntry
from core_console.model.document import Versioned

D = TypeVar("D", bound=Versioned)

OUTBOX_BYTES_MAX = 65_536
"""The most that may wait for the chain before new work is refused (governance, section 3)."""

_NUMBER_BYTES = 40
"""An entry's number and the braces around both."""

_SMALL = 16
"""So few entries cannot reach the bound: the longest, an event that started a hundred runs, has
under 4,000 bytes."""


def with_entries(document: D, entries: Sequence[Entry]) -> D:
    """Return the document with these entries at the end of its outbox."""
    first = document.outbox_number + 1
    numbered = tuple(OutboxEntry(first + index, each) for index, each in enumerate(entries))
    return replace(
        document,
        outbox=document.outbox + numbered,
        outbox_number=document.outbox_number + len(entries),
    )


def without_recorded(document: D, recorded: int) -> D:
    """Return the document without the entries up to that number: the chain holds them."""
    if not document.outbox or document.outbox[0].number > recorded:
        return document
    return replace(
        document, outbox=tuple(each for each in document.outbox if each.number > recorded)
    )


def outbox_bytes(document: Versioned) -> int:
    """Return the stored size of the outbox, as far as it matters: 0 while it is small."""
    return len(msgspec.json.encode(document.outbox)) if len(document.outbox) > _SMALL else 0


def entries_bytes(entries: Sequence[Entry]) -> int:
    """Return about how much these entries add to the stored outbox."""
    return sum(len(msgspec.json.encode(each)) + _NUMBER_BYTES for each in entries)


def is_new_work(command: Command) -> bool:
    """Say whether the command starts something, rather than ending what is in flight."""
    return not isinstance(
        command, CancelRun | DecideApproval | ReportStep | RecordCall | RecordScan | Tick
    )


def unwritable() -> Refused:
    """Return the refusal of new work while what was decided cannot be recorded."""
    return Refused(Code.UNAVAILABLE, "the audit log cannot be written; try again later")
