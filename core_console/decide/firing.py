"""A trigger fires: its playbook's run starts, and the trigger remembers it in the same swap.

Owns what a trigger remembers. A trigger's state lives as long as its id, whatever becomes of the
rest of the playbook.
"""

from datetime import datetime

from msgspec.structs import replace

from core_console.decide import runs
from core_console.decide.context import Context
from core_console.decide.outcome import Accepted
from core_console.model.document import Document
from core_console.model.playbook import Playbook, ScheduleTrigger, Trigger, TriggerState


def state_of(playbook: Playbook, trigger: Trigger) -> TriggerState:
    """Return what the trigger remembers."""
    return playbook.trigger_states.get(trigger.id, TriggerState())


def remember(
    document: Document, playbook: Playbook, trigger: Trigger, state: TriggerState
) -> Document:
    """Return the document in which the trigger remembers that."""
    remembering = replace(
        playbook,
        trigger_states=playbook.trigger_states | {trigger.id: state},
        changed=document.revision + 1,
    )
    return replace(document, playbooks=document.playbooks | {playbook.id: remembering})


def fire(
    document: Document, playbook: Playbook, trigger: Trigger, why: runs.Start, context: Context
) -> Accepted:
    """Start a run; the cooldown counts from its slot, or from now when it has none."""
    state = replace(state_of(playbook, trigger), fired_at=why.slot or context.now)
    document = remember(document, playbook, trigger, state)
    return runs.put(document, runs.start(document, playbook, why, context))


def from_now(playbook: Playbook, now: datetime) -> dict[str, TriggerState]:
    """Return what the triggers remember when the playbook becomes ACTIVE: slots count from now.

    `slot_done` never moves back, not even when the clock did.
    """
    states = dict(playbook.trigger_states)
    for trigger in playbook.spec.triggers:
        if isinstance(trigger.source, ScheduleTrigger):
            before = state_of(playbook, trigger)
            done = max(before.slot_done or now, now)
            states[trigger.id] = replace(before, slot_done=done)
    return states


def kept(playbook: Playbook, triggers: tuple[Trigger, ...]) -> dict[str, TriggerState]:
    """Return what is still remembered when these are the playbook's triggers from now on."""
    ids = {trigger.id for trigger in triggers}
    return {key: state for key, state in playbook.trigger_states.items() if key in ids}
