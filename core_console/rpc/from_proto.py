"""From the contract's messages to commands.

Owns the shape of a request; a playbook's own is `spec_from_proto`'s. What a text or a number may
be is `decide`'s to judge. Unknown fields of a message are ignored, as every gRPC server does, so
that a newer client is understood.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from google.protobuf.timestamp_pb2 import Timestamp
from runink.core.atlas.v1 import playbook_pb2

from core_console.decide import commands, screen
from core_console.decide import spec as specs
from core_console.decide.outcome import Code, Refused, Violation, invalid
from core_console.rpc import enums, server_managed
from core_console.rpc.errors import RefusedError, invalid_field
from core_console.rpc.spec_from_proto import Faults, at_most, member, read_spec

_STATUSES_MAX = 32
"""More than any enum has members: a longer filter only repeats itself."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS = range(-62_135_596_800, 253_402_300_800)
"""The years 1 to 9999, which is what a Timestamp may hold."""
_NANOS = range(1_000_000_000)

_Member = TypeVar("_Member")


def known_id(value: str) -> str:
    """Return the id, "" for a text that is none or looks like a credential.

    No id is empty, so nothing is found, and an odd text is repeated in no answer and no record.
    """
    return value if specs.is_id(value) and not screen.flaws("id", value) else ""


def create(request: playbook_pb2.CreatePlaybookRequest, *, actor: str) -> commands.CreatePlaybook:
    """Return the command; raise RefusedError for a bad shape or a server-managed field."""
    if not request.HasField("playbook"):
        raise invalid_field("playbook", "is required")
    faults = server_managed.set_in_create(request.playbook)
    spec = read_spec(request.playbook, faults)
    _refuse(faults)
    return commands.CreatePlaybook(actor, spec)


def update(
    request: playbook_pb2.UpdatePlaybookRequest,
    stored: playbook_pb2.Playbook | None,
    *,
    actor: str,
) -> commands.UpdatePlaybook:
    """Return the command; raise RefusedError for a bad shape or a differing server-managed field.

    `stored` is the playbook as it is shown now, None when there is none of that id or revision:
    then the command itself says so.
    """
    if not request.HasField("playbook"):
        raise invalid_field("playbook", "is required: the whole spec")
    faults: Faults = []
    if stored is not None:
        faults += server_managed.differing_in_update(request.playbook, stored)
    spec = read_spec(request.playbook, faults)
    _refuse(faults)
    return commands.UpdatePlaybook(actor, known_id(request.id), request.revision, spec)


def run_now(request: playbook_pb2.RunNowRequest, *, actor: str) -> commands.RunNow:
    """Return the command."""
    return commands.RunNow(actor, known_id(request.playbook_id), request.request_id, request.note)


def decide_approval(
    request: playbook_pb2.DecideApprovalRequest, *, actor: str
) -> commands.DecideApproval:
    """Return the command; raise RefusedError unless it approves or rejects."""
    faults: Faults = []
    decision = member("decision", request.decision, enums.DECISION_OF, faults)
    if decision is None:
        raise RefusedError(invalid(*faults))
    return commands.DecideApproval(
        actor, known_id(request.run_id), known_id(request.step_id), decision, request.note
    )


def statuses(numbers: Sequence[int], members: Mapping[int, _Member]) -> frozenset[_Member]:
    """Return the statuses of a filter; raise RefusedError for one that does not exist."""
    faults: Faults = []
    shown = at_most("statuses", numbers, _STATUSES_MAX, faults)
    found = [
        member(f"statuses[{index}]", number, members, faults) for index, number in enumerate(shown)
    ]
    _refuse(faults)
    return frozenset(each for each in found if each is not None)


def instant(field: str, at: Timestamp) -> datetime:
    """Return the instant in UTC; raise RefusedError for one that no calendar has."""
    if at.seconds not in _SECONDS or at.nanos not in _NANOS:
        raise invalid_field(field, "is not an instant between the years 1 and 9999")
    return _EPOCH + timedelta(seconds=at.seconds, microseconds=at.nanos // 1_000)


def _refuse(faults: Sequence[Violation]) -> None:
    if not faults:
        return
    for fault in faults:
        if fault.field == server_managed.STATUS_FIELD:
            # This one sentence is the contract's own, word for word.
            raise RefusedError(Refused(Code.INVALID_ARGUMENT, fault.description, tuple(faults)))
    raise RefusedError(invalid(*faults))
