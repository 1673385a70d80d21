"""`core-console agents | events | decisions | audit …`: read what happened and who decided it.

Owns these commands, and the exit code of a verification: 0 only when the chain is intact.
"""

from pathlib import Path

import click
from google.protobuf.timestamp_pb2 import Timestamp
from runink.core.atlas.v1 import audit_pb2, governance_pb2
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import Connection, connected
from core_console.cli.failure import Exit, Failed
from core_console.cli.options import paged, time
from core_console.cli.output import Page, enum_prefix, instant, more, say, short_name, table
from core_console.governance.verify import verify

OUTCOME = audit_pb2.AuditOutcome.DESCRIPTOR

since_option = click.option(
    "--since", type=time, help="At or after this time, such as 2026-11-30T12:00:00Z."
)


@click.command()
@connected
def agents(connection: Connection, page: Page) -> None:
    """List the six agents, and what keeps the console from dispatching them.

    Example: core-console agents
    """
    request = pb.ListDispatchableAgentsRequest()
    page.answer(connection.call(connection.playbooks.ListDispatchableAgents, request), _show_agents)


def _show_agents(response: pb.ListDispatchableAgentsResponse) -> None:
    can = "yes" if response.can_dispatch else "no"
    table(("AGENT", "CAN DISPATCH"), ((agent, can) for agent in response.agents))
    for reason in response.reasons:
        say(f"why not: {reason}")


@click.command()
@click.option("--agent", default="", metavar="NAME", help="Only this agent's.")
@click.option("--playbook", "playbook_id", default="", metavar="ID", help="Only about this one.")
@paged
@connected
def events(
    connection: Connection,
    page: Page,
    agent: str,
    playbook_id: str,
    page_size: int,
    page_token: str,
) -> None:
    """List events, newest first: what each started or skipped and why.

    Example: core-console events --agent datagov
    """
    request = pb.ListEventsRequest(
        agent=agent, playbook_id=playbook_id, page_size=page_size, page_token=page_token
    )
    page.answer(connection.call(connection.playbooks.ListEvents, request), _show_events)


def _show_events(response: pb.ListEventsResponse) -> None:
    table(
        ("ID", "AT", "AGENT", "EVENT", "SUBJECT", "STARTED", "SKIPPED"),
        (
            (
                event.id,
                instant(event.at),
                event.agent,
                event.event,
                event.subject,
                ", ".join(started.run_id for started in event.started),
                "; ".join(f"{skip.playbook_id}: {skip.reason}" for skip in event.skipped),
            )
            for event in response.events
        ),
    )
    more(response.next_page_token)


@click.command()
@click.option("--subject", default="", metavar="KIND", help="Only this kind, such as playbook.")
@click.option("--actor", default="", metavar="WHO", help="Only this operator's or agent's.")
@since_option
@paged
@connected
def decisions(
    connection: Connection,
    page: Page,
    subject: str,
    actor: str,
    since: Timestamp | None,
    page_size: int,
    page_token: str,
) -> None:
    """List who decided what, newest first.

    Example: core-console decisions --actor second@example.com
    """
    request = governance_pb2.ListDecisionsRequest(
        subject=subject, actor=actor, since=since, page_size=page_size, page_token=page_token
    )
    page.answer(connection.call(connection.governance.ListDecisions, request), _show_decisions)


def _show_decisions(response: governance_pb2.ListDecisionsResponse) -> None:
    table(
        ("SEQ", "AT", "ACTOR", "DECISION", "OUTCOME", "PLAYBOOK", "RUN", "WHAT HAPPENED"),
        (
            (
                str(found.audit_seq),
                instant(found.at),
                found.actor,
                found.decision,
                short_name(OUTCOME, found.outcome),
                found.playbook_id,
                found.run_id,
                found.sentence,
            )
            for found in response.decisions
        ),
    )
    more(response.next_page_token)


@click.group()
def audit() -> None:
    """Read and verify the audit chain."""


@audit.command("list")
@click.option("--actor", default="", metavar="WHO", help="Only this actor's.")
@click.option("--action", default="", metavar="NAME", help="Such as atlas.playbooks.activate.")
@click.option(
    "--outcome",
    type=click.Choice(["SUCCESS", "DENIED", "FAILURE"], case_sensitive=False),
    help="Only this outcome.",
)
@click.option("--subject", default="", metavar="KIND", help="Only this kind, such as playbook.")
@since_option
@click.option("--before", type=time, help="Before this time.")
@paged
@connected
def list_records(
    connection: Connection,
    page: Page,
    /,
    outcome: str | None,
    **filters: str | int | Timestamp | None,
) -> None:
    """List records, newest first (session admins only).

    Example: core-console audit list --outcome DENIED --since 2026-11-30T00:00:00Z
    """
    name = enum_prefix(OUTCOME) + (outcome or "UNSPECIFIED")
    request = audit_pb2.ListAuditRecordsRequest(
        outcome=audit_pb2.AuditOutcome.Value(name),
        **filters,  # type: ignore[arg-type]  # each option is named and typed as its field
    )
    page.answer(connection.call(connection.audit.ListAuditRecords, request), _show_records)


def _show_records(response: audit_pb2.ListAuditRecordsResponse) -> None:
    table(
        ("SEQ", "AT", "ACTOR", "ACTION", "TARGET", "OUTCOME", "DETAIL"),
        (
            (
                str(record.seq),
                instant(record.at),
                record.actor,
                record.action,
                record.target,
                short_name(OUTCOME, record.outcome),
                record.detail,
            )
            for record in response.records
        ),
    )
    more(response.next_page_token)


@audit.command("verify")
@click.option(
    "--file",
    type=click.Path(path_type=Path),
    help="Verify this exported log here, without asking any console.",
)
@connected
def verify_chain(connection: Connection, page: Page, file: Path | None) -> None:
    """Recompute the whole chain; exit code 0 only when it is intact.

    Example: core-console audit verify --file audit.log
    """
    if file is None:
        request = audit_pb2.VerifyAuditChainRequest()
        response = connection.call(connection.audit.VerifyAuditChain, request)
    else:
        response = _verify_file(file)
    page.answer(response, _show_verification)
    if not response.intact:
        raise Failed(Exit.REFUSED, "the chain is NOT intact")


def _verify_file(path: Path) -> audit_pb2.VerifyAuditChainResponse:
    try:
        with path.open("rb") as stream:
            found = verify(stream)
    except OSError as error:
        raise Failed(Exit.USAGE, f"the log cannot be read: {error.strerror}") from None
    return audit_pb2.VerifyAuditChainResponse(
        intact=found.intact,
        records=found.records,
        last_hash=found.last_hash,
        first_bad_seq=found.first_bad_seq,
        fault=found.fault,
    )


def _show_verification(response: audit_pb2.VerifyAuditChainResponse) -> None:
    if response.intact:
        say(f"intact: {response.records} records, last hash {response.last_hash}")
    else:
        say(f"record {response.first_bad_seq} does not hold: {response.fault}")
