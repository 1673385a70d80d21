"""`core-console run …`: start runs, follow them and cancel them.

Owns these commands; how a run looks on the screen is `run_view`'s.
"""

from datetime import timedelta

import click
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import Connection, connected
from core_console.cli.failure import Exit
from core_console.cli.help import Group
from core_console.cli.options import paged, status_option
from core_console.cli.output import Page, enum_prefix, say, short_names
from core_console.cli.run_view import STATUS, hint_at_next, show_list, show_run, standing
from core_console.cli.times import span
from core_console.cli.watch import Watch
from core_console.clock import SystemClock


@click.group(cls=Group)
def run() -> None:
    """Start, follow and cancel runs.

    Example: core-console run list
    """


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
    page.answer(response, lambda found: say(standing(found.run)))
    hint_at_next(page, response.run)


@run.command("list")
@click.option("--playbook", "playbook_id", default="", metavar="ID", help="Only this one's.")
@status_option(short_names(STATUS))
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
    page.answer(connection.call(connection.playbooks.ListRuns, request), show_list)


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
    type=span,
    default="12h",
    show_default=True,
    metavar="TIME",
    help="How long to follow it at most, such as 30m or 12h.",
)
@click.pass_context
@connected
def watch_run(
    connection: Connection, page: Page, context: click.Context, run_id: str, limit: timedelta
) -> None:
    """Follow a run until it ends.

    Exit code 0 when it SUCCEEDED, 1 when it ended otherwise, 3 when it has not ended within --for
    or the console stays away, 130 after Ctrl-C.

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
    page.answer(response, lambda found: say(standing(found.run)))
