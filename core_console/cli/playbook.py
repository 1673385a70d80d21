"""`core-console playbook …`: write playbooks and move them through their life.

Owns these commands and how a playbook looks on the screen.
"""

from collections.abc import Iterable, Iterator

import click
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.common_pb2 import Figure

from core_console.cli.client import Connection, connected
from core_console.cli.options import paged, revision_option, status_option
from core_console.cli.output import Page, enum_prefix, facts, instant, more, say, short_name, table
from core_console.cli.specfile import read_playbook

STATUS = pb.PlaybookStatus.DESCRIPTOR
_STATUSES = ["DRAFT", "ACTIVE", "PAUSED"]

file_option = click.option(
    "-f",
    "--file",
    required=True,
    metavar="FILE",
    help="The playbook as YAML or JSON; - reads standard input.",
)


@click.group()
def playbook() -> None:
    """Write, activate, pause and delete playbooks."""


@playbook.command("list")
@status_option(_STATUSES)
@paged
@connected
def list_playbooks(
    connection: Connection,
    page: Page,
    statuses: tuple[str, ...],
    page_size: int,
    page_token: str,
) -> None:
    """List the playbooks by name.

    Example: core-console playbook list --status ACTIVE
    """
    request = pb.ListPlaybooksRequest(
        statuses=[pb.PlaybookStatus.Value(enum_prefix(STATUS) + name) for name in statuses],
        page_size=page_size,
        page_token=page_token,
    )
    page.answer(connection.call(connection.playbooks.ListPlaybooks, request), _show_list)


@playbook.command("get")
@click.argument("playbook_id", metavar="ID")
@connected
def get_playbook(connection: Connection, page: Page, playbook_id: str) -> None:
    """Show one playbook, with who may activate it and who is barred.

    Example: core-console playbook get PB-4k2m… -o json
    """
    response = connection.call(
        connection.playbooks.GetPlaybook, pb.GetPlaybookRequest(id=playbook_id)
    )
    page.answer(response, lambda found: show_playbook(found.playbook))


@playbook.command("create")
@file_option
@connected
def create_playbook(connection: Connection, page: Page, file: str) -> None:
    """Write a new playbook, always as DRAFT.

    Example: core-console playbook create -f quality.yaml
    """
    request = pb.CreatePlaybookRequest(playbook=read_playbook(file))
    response = connection.call(connection.playbooks.CreatePlaybook, request)
    page.answer(response, lambda found: _say(found.playbook))


@playbook.command("update")
@click.argument("playbook_id", metavar="ID")
@revision_option
@file_option
@connected
def update_playbook(
    connection: Connection, page: Page, playbook_id: str, revision: int, file: str
) -> None:
    """Replace the whole spec; an ACTIVE or PAUSED playbook returns to DRAFT.

    Example: core-console playbook update PB-4k2m… --revision 3 -f quality.yaml
    """
    request = pb.UpdatePlaybookRequest(
        id=playbook_id, revision=revision, playbook=read_playbook(file)
    )
    response = connection.call(connection.playbooks.UpdatePlaybook, request)
    page.answer(response, lambda found: _say(found.playbook))


@playbook.command("delete")
@click.argument("playbook_id", metavar="ID")
@connected
def delete_playbook(connection: Connection, page: Page, playbook_id: str) -> None:
    """Delete a playbook that has no run in flight.

    Example: core-console playbook delete PB-4k2m…
    """
    response = connection.call(
        connection.playbooks.DeletePlaybook, pb.DeletePlaybookRequest(id=playbook_id)
    )
    page.answer(response, lambda _: say(f"{playbook_id} is deleted"))


@playbook.command("activate")
@click.argument("playbook_id", metavar="ID")
@revision_option
@connected
def activate_playbook(connection: Connection, page: Page, playbook_id: str, revision: int) -> None:
    """Make exactly the revision that you reviewed ACTIVE (four eyes).

    Example: core-console playbook activate PB-4k2m… --revision 3
    """
    request = pb.ActivatePlaybookRequest(id=playbook_id, revision=revision)
    response = connection.call(connection.playbooks.ActivatePlaybook, request)
    page.answer(response, lambda found: _say(found.playbook))


@playbook.command("pause")
@click.argument("playbook_id", metavar="ID")
@connected
def pause_playbook(connection: Connection, page: Page, playbook_id: str) -> None:
    """Stop an ACTIVE playbook from starting runs.

    Example: core-console playbook pause PB-4k2m…
    """
    response = connection.call(
        connection.playbooks.PausePlaybook, pb.PausePlaybookRequest(id=playbook_id)
    )
    page.answer(response, lambda found: _say(found.playbook))


@playbook.command("resume")
@click.argument("playbook_id", metavar="ID")
@connected
def resume_playbook(connection: Connection, page: Page, playbook_id: str) -> None:
    """Make a PAUSED playbook ACTIVE again.

    Example: core-console playbook resume PB-4k2m…
    """
    response = connection.call(
        connection.playbooks.ResumePlaybook, pb.ResumePlaybookRequest(id=playbook_id)
    )
    page.answer(response, lambda found: _say(found.playbook))


def _say(found: pb.Playbook) -> None:
    status = short_name(STATUS, found.status)
    say(f"{found.id} {found.name!r} is {status} at revision {found.revision}")


def _show_list(response: pb.ListPlaybooksResponse) -> None:
    table(
        ("ID", "NAME", "STATUS", "REV", "STEPS", "TRIGGERS", "RUNS", "SUCCESS", "UPDATED", "BY"),
        (
            (
                found.id,
                found.name,
                short_name(STATUS, found.status),
                str(found.revision),
                str(len(found.steps)),
                str(len(found.triggers)),
                str(found.runs_finished),
                figure(found.success_rate),
                instant(found.updated_at),
                found.updated_by,
            )
            for found in response.playbooks
        ),
    )
    more(response.next_page_token)


def figure(found: Figure) -> str:
    """Return a rate as a percentage, or why there is none."""
    return f"{found.value:.0%}" if found.HasField("value") else found.absent_reason


def show_playbook(found: pb.Playbook) -> None:
    """Print one playbook whole."""
    facts(_facts(found))
    say("")
    table(
        ("STEP", "KIND", "ACTION", "TITLE"),
        (
            (step.id, short_name(pb.StepKind.DESCRIPTOR, step.kind), action(step), step.title)
            for step in found.steps
        ),
    )
    if found.triggers:
        say("")
        table(
            ("TRIGGER", "FIRES", "COOLDOWN"),
            (
                (
                    trigger.id,
                    _source(trigger),
                    f"{trigger.cooldown_minutes} min" if trigger.cooldown_minutes else "",
                )
                for trigger in found.triggers
            ),
        )


def _facts(found: pb.Playbook) -> Iterator[tuple[str, str]]:
    yield "id", found.id
    yield "name", found.name
    yield "description", found.description
    yield "status", short_name(STATUS, found.status)
    yield "revision", str(found.revision)
    yield "digest", found.spec_digest
    yield "created", f"{instant(found.created_at)} by {found.created_by}"
    yield "updated", f"{instant(found.updated_at)} by {found.updated_by}"
    if found.activated_by:
        when = f"{instant(found.activated_at)}, revision {found.activated_revision}"
        yield "activated", f"{when}, by {found.activated_by}"
    yield "runs", f"{found.runs_succeeded} of {found.runs_finished} succeeded"
    yield "success rate", figure(found.success_rate)
    yield "next slots", ", ".join(instant(slot) for slot in found.next_slots)
    yield "to activate", found.four_eyes.needed
    yield "may activate", ", ".join(found.four_eyes.eligible)
    for barred in found.four_eyes.barred:
        yield "barred", f"{barred.operator}: {barred.reason}"


def action(step: pb.Step) -> str:
    """Return what a step does, in a few words."""
    match step.WhichOneof("action"):
        case "dispatch_agent":
            inner = step.dispatch_agent
            return f"dispatch {inner.agent}, {inner.timeout_minutes} min"
        case "capex_scan":
            return "scan and compare" if step.capex_scan.compare_to_first_scan else "scan"
        case "require_approval":
            approval = step.require_approval
            return f"approval by {approval.approver or 'any admin'}, {approval.timeout_hours} h"
        case "notify":
            return f"comment on {step.notify.repo}#{step.notify.issue}"
        case None:
            return ""


def _source(trigger: pb.Trigger) -> str:
    match trigger.WhichOneof("kind"):
        case "manual":
            return "by hand"
        case "schedule":
            return f"at {trigger.schedule.cron} UTC"
        case "agent_event":
            event = trigger.agent_event
            return f"on {event.agent} {event.event}{_conditions(event.conditions)}"
        case "capex_event":
            return f"on a CapEx ingest{_conditions(trigger.capex_event.conditions)}"
        case None:
            return ""


def _conditions(conditions: Iterable[pb.Condition]) -> str:
    texts = [
        f"{found.attribute} {short_name(pb.ConditionOp.DESCRIPTOR, found.op)} {found.value}"
        for found in conditions
    ]
    return f" where {' and '.join(texts)}" if texts else ""
