"""The loop guard: whether a matching trigger may start its playbook now.

Owns the four reasons not to, in their order and word for word (contract, section 5). What keeps
agents and playbooks from starting each other for ever is here and in `decide.depth`.
"""

from datetime import datetime, timedelta

from msgspec import Struct

from core_console.decide import depth
from core_console.decide.record import utc_seconds
from core_console.model.document import Document
from core_console.model.event import Chain
from core_console.model.faults import InvariantError
from core_console.model.playbook import Playbook, PlaybookStatus, Trigger, TriggerState


class Skip(Struct, frozen=True, gc=False):
    """Why a matching trigger starts nothing.

    `held_by` is what will go on holding it: the run in flight, when the run was started whose
    cooldown it is, or what is broken; "" when nothing in particular does.
    """

    reason: str
    held_by: str = ""


def poisoned(error: InvariantError) -> Skip:
    """Return the skip of a trigger whose playbook breaks our own rules: it holds up no other."""
    return Skip(f"set aside, for it breaks the console's own rules: {error}", "rules")


def judge(
    document: Document, playbook: Playbook, trigger: Trigger, *, at: datetime, chain: Chain
) -> Skip | None:
    """Return why the trigger starts nothing, None when it may; `at` is now, or the slot."""
    if playbook.status is not PlaybookStatus.ACTIVE:
        return Skip(f"playbook is {playbook.status}")
    run = document.running.get(playbook.id)
    if run is not None:
        return Skip(f"a run is in flight ({run.id}, {run.status})", run.id)
    fired_at = playbook.trigger_states.get(trigger.id, TriggerState()).fired_at
    if fired_at is not None and at - fired_at < timedelta(minutes=trigger.cooldown_minutes):
        when = utc_seconds(fired_at)
        return Skip(f"cooldown: trigger {trigger.id} started a run at {when}", when)
    objection = depth.objection(chain)
    return Skip(objection) if objection else None
