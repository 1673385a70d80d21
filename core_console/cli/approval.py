"""`core-console approval …`: see what waits for a decision, and decide it.

Owns these commands.
"""

import click
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import Connection, connected
from core_console.cli.help import Group
from core_console.cli.options import paged
from core_console.cli.output import Page, say
from core_console.cli.run_view import decided, hint_at_next, show_approvals


@click.group(cls=Group)
def approval() -> None:
    """See what waits for a decision, and decide it.

    Example: core-console approval list
    """


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
    page.answer(connection.call(connection.playbooks.ListRuns, request), show_approvals)


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
    """Approve or reject a step that waits; never of a run that you started (four eyes).

    Example: core-console approval decide PBR-7h3q… approve --approve --note "seen with finance"
    """
    if approve is None:
        raise click.UsageError("say --approve or --reject")
    decision = pb.APPROVAL_DECISION_APPROVE if approve else pb.APPROVAL_DECISION_REJECT
    request = pb.DecideApprovalRequest(run_id=run_id, step_id=step_id, decision=decision, note=note)
    response = connection.call(connection.playbooks.DecideApproval, request)
    page.answer(response, lambda found: say(decided(found.run, step_id)))
    hint_at_next(page, response.run)
