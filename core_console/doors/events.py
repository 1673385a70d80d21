"""POST /api/playbook-events: an agent raises an event of its own.

Owns the body of this door and how the outcome reads (contract, section 7). What the event starts,
and whether its texts may be stored, is the decision's business alone.
"""

from typing import Any

from msgspec import Struct
from starlette.responses import JSONResponse, Response

from core_console.decide.commands import RaiseEvent
from core_console.decide.events import ACTION
from core_console.decide.outcome import Accepted, Refused
from core_console.doors import errors, strict
from core_console.doors.gate import Attempt, Door, Gate
from core_console.doors.step_report import BODY_BYTES, Console
from core_console.doors.strict import BadBody
from core_console.model import audit
from core_console.model.event import Event
from core_console.model.faults import InvariantError
from core_console.model.playbook import AGENTS

PATH = "/api/playbook-events"
SUBJECT = "playbook"


class Body(Struct, frozen=True, gc=False, rename="camel"):
    """The seven fields, as they arrive; an id that is left out is None, for "" is no id."""

    agent: str
    event: str
    subject: str = ""
    detail: str = ""
    attributes: dict[str, str] = {}
    caused_by_run_id: str | None = None
    event_id: str | None = None


class Events:
    """Takes events that passed the gate."""

    def __init__(self, *, console: Console, gate: Gate) -> None:
        self._console = console
        self._gate = gate

    def door(self) -> Door:
        """Return the door that hands its bodies to `take`."""
        return Door(
            gate=self._gate, action=ACTION, subject=SUBJECT, bytes_max=BODY_BYTES, take=self.take
        )

    async def take(self, body: bytes, attempt: Attempt) -> Response:
        """Answer one event; raise BadBody, Fault or the rejection that the decision asks for."""
        found = strict.read(body, Body)
        if found.agent in AGENTS:
            attempt.actor = f"agent:{found.agent}"
        _check(found)
        outcome = await self._console.submit(_command(found))
        match outcome:
            case Refused():
                raise errors.refused(outcome)
            case Accepted(answer=Event() as event, duplicate=True):
                # Nothing changed, so no swap carries this record.
                attempt.target = event.id
                await self._gate.record(
                    attempt, audit.Outcome.SUCCESS, "the same event again; nothing changed"
                )
                return JSONResponse(_told(event) | {"duplicate": True})
            case Accepted(answer=Event() as event):
                return JSONResponse(_told(event))
            case _:
                raise InvariantError("an event was raised, and the answer is none")


def _check(found: Body) -> None:
    """Refuse an id that is given and empty; the decision judges all else."""
    for name, value in (("causedByRunId", found.caused_by_run_id), ("eventId", found.event_id)):
        if value == "":
            raise BadBody(f"{name}: is empty; leave it out or give it a value")


def _command(found: Body) -> RaiseEvent:
    return RaiseEvent(
        agent=found.agent,
        event=found.event,
        subject=found.subject,
        detail=found.detail,
        attributes=found.attributes,
        caused_by_run_id=found.caused_by_run_id or "",
        external_id=found.event_id or "",
    )


def _told(event: Event) -> dict[str, Any]:
    return {
        "eventId": event.id,
        "started": [each.run_id for each in event.started],
        "skipped": [
            {
                "playbookId": each.playbook_id,
                "triggerId": each.trigger_id,
                "reason": each.reason,
            }
            for each in event.skipped
        ],
    }
