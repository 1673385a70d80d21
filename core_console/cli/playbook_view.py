"""How playbooks look on the screen.

Owns that a reviewer sees everything that an activation covers: every text, name, condition and
approver of the revision.
"""

from collections.abc import Iterator

from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.output import more, say, short_name
from core_console.cli.tables import Column, facts, name, prose, table
from core_console.cli.times import instant
from core_console.cli.words import action, figure, rate, source

STATUS = pb.PlaybookStatus.DESCRIPTOR

_LIST = (
    Column("ID"),
    name("NAME"),
    Column("STATUS"),
    Column("REV"),
    Column("STEPS", rank=3),
    Column("TRIGGERS", rank=3),
    Column("RUNS"),
    Column("SUCCESS", rank=1),
    Column("UPDATED", rank=1),
    name("BY", rank=2),
)
_STEPS = (Column("STEP"), Column("KIND"), prose("ACTION"), prose("TITLE"))
_TRIGGERS = (Column("TRIGGER"), prose("FIRES"), Column("COOLDOWN"))


def standing(found: pb.Playbook) -> str:
    """Return where a playbook stands, on one line."""
    return f"{found.id} {found.name!r} is {short_name(STATUS, found.status)}"


def show_list(response: pb.ListPlaybooksResponse) -> None:
    """Print a page of playbooks."""
    table(
        _LIST,
        (
            (
                found.id,
                found.name,
                short_name(STATUS, found.status),
                found.revision,
                len(found.steps),
                len(found.triggers),
                found.runs_finished,
                rate(found.success_rate),
                found.updated_at,
                found.updated_by,
            )
            for found in response.playbooks
        ),
        empty="no playbooks",
    )
    more(response.next_page_token)


def show_playbook(found: pb.Playbook) -> None:
    """Print one playbook whole."""
    facts(_facts(found))
    say("")
    table(
        _STEPS,
        (
            (step.id, short_name(pb.StepKind.DESCRIPTOR, step.kind), action(step), step.title)
            for step in found.steps
        ),
        empty="no steps",
    )
    for step in found.steps:
        if step.require_approval.prompt:
            say(f"prompt of {step.id}: {step.require_approval.prompt}")
    say("")
    table(
        _TRIGGERS,
        (
            (
                trigger.id,
                source(trigger),
                f"{trigger.cooldown_minutes} min" if trigger.cooldown_minutes else "",
            )
            for trigger in found.triggers
        ),
        empty="no triggers: it is started by core-console run now",
    )


def _facts(found: pb.Playbook) -> Iterator[tuple[str, str]]:
    yield "id", found.id
    yield "name", found.name
    yield "description", found.description
    yield "status", short_name(STATUS, found.status)
    yield "revision", str(found.revision)
    yield "digest", found.spec_digest
    yield "created", _when(instant(found.created_at), found.created_by)
    yield "updated", _when(instant(found.updated_at), found.updated_by)
    if found.activated_by:
        when = f"{instant(found.activated_at)}, revision {found.activated_revision}"
        yield "activated", f"{when}, by {found.activated_by}"
    yield "runs", f"{found.runs_succeeded} of {found.runs_finished} succeeded"
    yield "success rate", figure(found.success_rate)
    for number, slot in enumerate(found.next_slots):
        yield "" if number else "next slots", instant(slot)
    yield from _four_eyes(found)


def _when(instant_: str, who: str) -> str:
    return f"{instant_} by {who}" if who else instant_


def _four_eyes(found: pb.Playbook) -> Iterator[tuple[str, str]]:
    eyes = found.four_eyes
    if found.status == pb.PLAYBOOK_STATUS_DRAFT:
        yield "to activate", eyes.needed
    if eyes.eligible:
        yield "may activate", ", ".join(eyes.eligible)
    elif eyes.barred and "none is listed" not in eyes.needed:
        others = ", ".join(barred.operator for barred in eyes.barred)
        yield "may activate", f"any Atlas admin but {others}"
    for barred in eyes.barred:
        yield "barred", f"{barred.operator}: {barred.reason}"
