"""`core-console run …` and `core-console approval …`: start runs, follow them and decide.

Owns these commands and how a run looks on the screen.
"""

from datetime import timedelta

import click
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import Connection, connected
from core_console.cli.failure import Exit
from core_console.cli.options import duration, paged, status_option
from core_console.cli.output import (
    Page,
    enum_prefix,
    facts,
    instant,
    more,
    say,
    short_name,
    table,
)
from core_console.cli.playbook import action
from core_console.cli.watch import Watch, current_step, step_status
from core_console.clock import SystemClock

STATUS = pb.RunStatus.DESCRIPTOR
_STATUSES = [
    value.name.removeprefix(enum_prefix(STATUS)) for value in STATUS.values if value.number
]


@click.group()
def run() -> None:
    """Start, follow and cancel runs."""


@run.command("now")
@click.argument("playbook_id", metavar="ID")
@click.option("--request-id", default="", metavar="R", help="The same one again starts nothing.")
@click.option("--note", default="", metavar="T", help="Why, for the record.")
@connected
def run_now(
    connection: Connection, page: Page, playbook_id: str, request_id: str, note: str
) -> None:
    """Start a run of an ACTIVE playbook by hand.

    Example: core-console run now PB-4k2m… --note "before the month closes"
    """
    request = pb.RunNowRequest(playbook_id=playbook_id, request_id=request_id, note=note)
    response = connection.call(connection.playbooks.RunNow, request)
    page.answer(response, lambda found: _say(found.run))


@run.command("list")
@click.option("--playbook", "playbook_id", default="", metavar="ID", help="Only this one's.")
@status_option(_STATUSES)
@paged
@connected
def list_runs(
    connection: Connection,
    page: Page,
    playbook_id: str,
    statuses: tuple[str, ...],
    page_size: int,
    page_token: str,
) -> None:
    """List runs, newest first.

    Example: core-console run list --status WAITING_AGENT --status WAITING_APPROVAL
    """
    request = pb.ListRunsRequest(
        playbook_id=playbook_id,
        statuses=[pb.RunStatus.Value(enum_prefix(STATUS) + name) for name in statuses],
        page_size=page_size,
        page_token=page_token,
    )
    page.answer(connection.call(connection.playbooks.ListRuns, request), _show_list)


@run.command("get")
@click.argument("run_id", metavar="RUN")
@connected
def get_run(connection: Connection, page: Page, run_id: str) -> None:
    """Show one run with its steps.

    Example: core-console run get PBR-7h3q…
    """
    response = connection.call(connection.playbooks.GetRun, pb.GetRunRequest(id=run_id))
    page.answer(response, lambda found: show_run(found.run))


@run.command("watch")
@click.argument("run_id", metavar="RUN")
@click.option(
    "--for",
    "limit",
    type=duration,
    default="12h",
    show_default=True,
    help="How long to follow it at most.",
)
@click.pass_context
@connected
def watch_run(
    connection: Connection, page: Page, context: click.Context, run_id: str, limit: timedelta
) -> None:
    """Follow a run until it ends: exit code 0 when it SUCCEEDED, else 1.

    Example: core-console run watch PBR-7h3q… --for 2h
    """
    watch = Watch(connection, page.form, SystemClock())
    response = watch.follow(run_id, limit.total_seconds())
    page.answer(response, lambda found: show_run(found.run))
    succeeded = response.run.status == pb.RUN_STATUS_SUCCEEDED
    context.exit(Exit.OK if succeeded else Exit.REFUSED)


@run.command("cancel")
@click.argument("run_id", metavar="RUN")
@click.option("--note", required=True, metavar="T", help="Why, for the record.")
@connected
def cancel_run(connection: Connection, page: Page, run_id: str, note: str) -> None:
    """Cancel a run in flight; a job already started at GitHub goes on.

    Example: core-console run cancel PBR-7h3q… --note "wrong month"
    """
    request = pb.CancelRunRequest(run_id=run_id, note=note)
    response = connection.call(connection.playbooks.CancelRun, request)
    page.answer(response, lambda found: _say(found.run))


@click.group()
def approval() -> None:
    """See what waits for a decision, and decide it."""


@approval.command("list")
@paged
@connected
def list_approvals(connection: Connection, page: Page, page_size: int, page_token: str) -> None:
    """List the runs that wait for a decision.

    Example: core-console approval list
    """
    request = pb.ListRunsRequest(
        statuses=[pb.RUN_STATUS_WAITING_APPROVAL], page_size=page_size, page_token=page_token
    )
    page.answer(connection.call(connection.playbooks.ListRuns, request), _show_approvals)


@approval.command("decide")
@click.argument("run_id", metavar="RUN")
@click.argument("step_id", metavar="STEP")
@click.option("--approve/--reject", "approve", default=None, help="Your decision; required.")
@click.option("--note", default="", metavar="T", help="Why; required to reject.")
@connected
def decide_approval(
    connection: Connection,
    page: Page,
    *,
    run_id: str,
    step_id: str,
    approve: bool | None,
    note: str,
) -> None:
    """Approve or reject a step that waits; never a run that you started (four eyes).

    Example: core-console approval decide PBR-7h3q… approve --approve --note "seen with finance"
    """
    if approve is None:
        raise click.UsageError("say --approve or --reject")
    decision = pb.APPROVAL_DECISION_APPROVE if approve else pb.APPROVAL_DECISION_REJECT
    request = pb.DecideApprovalRequest(run_id=run_id, step_id=step_id, decision=decision, note=note)
    response = connection.call(connection.playbooks.DecideApproval, request)
    page.answer(response, lambda found: _say(found.run))


def _say(found: pb.Run) -> None:
    step = current_step(found)
    where = f" at step {step.step.id}" if step is not None else ""
    detail = f": {found.detail}" if found.detail else ""
    say(f"{found.id} is {short_name(STATUS, found.status)}{where}{detail}")


def _show_list(response: pb.ListRunsResponse) -> None:
    table(
        ("ID", "PLAYBOOK", "STATUS", "TRIGGER", "INITIATOR", "STARTED", "FINISHED", "DETAIL"),
        (
            (
                found.id,
                found.playbook_name,
                short_name(STATUS, found.status),
                short_name(pb.TriggerKind.DESCRIPTOR, found.trigger),
                found.initiator,
                instant(found.started_at),
                instant(found.finished_at),
                found.detail,
            )
            for found in response.runs
        ),
    )
    more(response.next_page_token)


def _show_approvals(response: pb.ListRunsResponse) -> None:
    waiting = [
        (found, step)
        for found in response.runs
        for step in found.steps
        if step.status == pb.STEP_RUN_STATUS_WAITING_APPROVAL
    ]
    table(
        ("RUN", "STEP", "PLAYBOOK", "APPROVER", "STARTED BY", "UNTIL", "PROMPT"),
        (
            (
                found.id,
                step.step.id,
                found.playbook_name,
                step.step.require_approval.approver or "any admin",
                found.initiator,
                instant(step.deadline),
                step.step.require_approval.prompt,
            )
            for found, step in waiting
        ),
    )
    more(response.next_page_token)


def show_run(found: pb.Run) -> None:
    """Print one run whole."""
    facts(
        (
            ("id", found.id),
            ("playbook", f"{found.playbook_name} ({found.playbook_id})"),
            ("revision", str(found.playbook_revision)),
            ("digest", found.spec_digest),
            ("status", short_name(STATUS, found.status)),
            ("trigger", short_name(pb.TriggerKind.DESCRIPTOR, found.trigger)),
            ("initiator", found.initiator),
            ("started", instant(found.started_at)),
            ("finished", instant(found.finished_at)),
            ("caused by", found.caused_by_run_id),
            ("note", found.note),
            ("detail", found.detail),
        )
    )
    say("")
    table(
        ("STEP", "ACTION", "STATUS", "CALL", "UNTIL", "FINISHED", "DECIDED BY", "DETAIL"),
        (
            (
                step.step.id,
                action(step.step),
                step_status(step),
                short_name(pb.Call.DESCRIPTOR, step.call),
                instant(step.deadline),
                instant(step.finished_at),
                step.decided_by,
                " ".join(filter(None, (step.detail, step.decision_note, step.github_run_url))),
            )
            for step in found.steps
        ),
    )
