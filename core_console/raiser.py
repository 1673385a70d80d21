"""Harness events: from the document whose swap brought them about into the metadoc.

Owns that each is raised exactly once and in order, by whichever replica gets there. An event is
read from a document that is durable, taken by the metadoc under its number, and only then
cleared: a crash between any two of these repeats a step that then changes nothing.
"""

import asyncio
from typing import Protocol

import structlog

from core_console.decide.capex_commands import ClearRaised
from core_console.decide.commands import Command, RaiseEvent
from core_console.decide.outcome import Code, Outcome, Refused
from core_console.model.event import Raising
from core_console.ports import Fault

_log = structlog.get_logger(__name__)

_LATER = frozenset({Code.UNAVAILABLE, Code.RESOURCE_EXHAUSTED, Code.ABORTED})
"""Refusals that say nothing of the event itself."""


class Holding(Protocol):
    """A document in which events wait, in the order of their numbers."""

    @property
    def raising(self) -> tuple[Raising, ...]:
        """The events that wait."""
        ...


class Source(Protocol):
    """The engine of such a document."""

    async def submit(self, command: ClearRaised) -> object:
        """Return the command's outcome once it is durable; may raise Fault."""
        ...

    async def snapshot(self) -> Holding:
        """Return the newest durable document; may raise Fault."""
        ...


class Console(Protocol):
    """The engine of the metadoc, as far as raising needs it."""

    async def submit(self, command: Command) -> Outcome:
        """Return the command's outcome once it is durable; may raise Fault."""
        ...


class Raiser:
    """Moves the events of the document of that name."""

    def __init__(self, name: str, *, source: Source, console: Console) -> None:
        self._name = name
        self._source = source
        self._console = console
        self._one_at_a_time = asyncio.Lock()

    async def move(self) -> None:
        """Raise every event that waits, and clear what was raised.

        Raises:
            Fault: a store is away, or the metadoc takes nothing now; the rest waits in order.
        """
        async with self._one_at_a_time:
            for raising in (await self._source.snapshot()).raising:
                await self._raise(raising)
                await self._source.submit(ClearRaised(raising.number))

    async def _raise(self, raising: Raising) -> None:
        outcome = await self._console.submit(_command(self._name, raising))
        if not isinstance(outcome, Refused):
            return
        if outcome.code in _LATER:
            # A later one must not overtake it: the metadoc would then never take this one.
            raise Fault(f"event {raising.id} was not taken: {outcome.reason}")
        # One event that can never be taken must not hold up all the others for ever.
        _log.error("event_set_aside", event_id=raising.id, reason=outcome.reason)


def _command(source: str, raising: Raising) -> RaiseEvent:
    return RaiseEvent(
        agent=raising.agent,
        event=raising.event,
        subject=raising.subject,
        detail=raising.detail,
        attributes=raising.attributes,
        caused_by_run_id=raising.caused_by_run_id,
        id=raising.id,
        rows=raising.rows,
        committed_by=raising.committed_by,
        source=source,
        number=raising.number,
        known=raising.chain,
    )
