"""The fields of a playbook that only the server writes.

Owns what becomes of them when a client sends them: refused in Create; in Update refused only when
they differ from what is stored, so that get, edit, update works.
"""

from runink.core.atlas.v1 import playbook_pb2

from core_console.decide.outcome import Violation

STATUS_FIELD = "playbook.status"

_STATUS_SENTENCE = (
    "status is server-managed: a playbook is written as DRAFT and becomes ACTIVE only by "
    "ActivatePlaybook (four eyes)"
)

_SPEC = frozenset({"name", "description", "steps", "triggers"})

# These move without an edit: by time, by a run, or by a change of the console's lists. A client
# that sends back what it read a minute ago has done nothing wrong.
_MOVING = frozenset({"success_rate", "expected_lift", "next_slots", "four_eyes"})
_GROWING = frozenset({"runs_finished", "runs_succeeded"})


def set_in_create(message: playbook_pb2.Playbook) -> list[Violation]:
    """Return a violation for each server-managed field that is set."""
    return [
        _violation(field.name, "is server-managed; leave it out")
        for field, _ in message.ListFields()
        if field.name not in _SPEC
    ]


def differing_in_update(
    message: playbook_pb2.Playbook, stored: playbook_pb2.Playbook
) -> list[Violation]:
    """Return a violation for each server-managed field that is set to other than is stored.

    `stored` is the playbook as it is shown now.
    """
    found = []
    for field, value in message.ListFields():
        if field.name in _SPEC or field.name in _MOVING:
            continue
        known = getattr(stored, field.name)
        if value > known if field.name in _GROWING else value != known:
            description = (
                "is server-managed and differs from what is stored; leave it as it was read"
            )
            found.append(_violation(field.name, description))
    return found


def _violation(name: str, description: str) -> Violation:
    field = f"playbook.{name}"
    return Violation(field, _STATUS_SENTENCE if field == STATUS_FIELD else description)
