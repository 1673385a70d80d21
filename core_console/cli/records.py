"""`core-console agents | events | decisions | audit …`: read what happened and who decided it.

Owns these commands, and the exit code of a verification: 0 only when the chain is intact.
"""

from collections.abc import Iterator
from pathlib import Path

import click
from google.protobuf.timestamp_pb2 import Timestamp
from runink.core.atlas.v1 import audit_pb2, governance_pb2
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import Connection, connected
from core_console.cli.help import Command, Group
from core_console.cli.options import agent_option, choice_option, paged, since_option
from core_console.cli.output import Page, enum_prefix, more, say, short_name, short_names
from core_console.cli.tables import Column, name, prose, table
from core_console.cli.times import moment
from core_console.cli.verification import verify_file, verify_here

OUTCOME = audit_pb2.AuditOutcome.DESCRIPTOR

_EVENTS = (
    Column("ID", rank=1),
    Column("AT"),
    Column("AGENT"),
    name("EVENT"),
    name("SUBJECT", rank=2),
    prose("WHAT CAME OF IT"),
)
_DECISIONS = (
    Column("SEQ"),
    Column("AT"),
    name("ACTOR", rank=2),
    Column("DECISION"),
    Column("OUTCOME", rank=1),
    Column("PLAYBOOK", rank=4),
    Column("RUN", rank=4),
    prose("WHAT HAPPENED"),
)
_RECORDS = (
    Column("SEQ"),
    Column("AT"),
    name("ACTOR"),
    name("ACTION", rank=1),
    Column("TARGET", rank=2),
    Column("OUTCOME"),
    prose("DETAIL"),
)


@click.command(cls=Command)
@connected
def agents(connection: Connection, page: Page) -> None:
    """List the six agents, and what keeps the console from dispatching them.

    Example: core-console agents
    """
    request = pb.ListDispatchableAgentsRequest()
    page.answer(connection.call(connection.playbooks.ListDispatchableAgents, request), _show_agents)


def _show_agents(response: pb.ListDispatchableAgentsResponse) -> None:
    can = "yes" if response.can_dispatch else "no"
    columns = (Column("AGENT"), Column("CAN DISPATCH"))
    table(columns, ((agent, can) for agent in response.agents), empty="no agents")
    for reason in response.reasons:
        say(f"why not: {reason}")


@click.command(cls=Command)
@agent_option
@click.option("--playbook", "playbook_id", default="", metavar="ID", help="Only about this one.")
@paged
@connected
def events(
    connection: Connection,
    page: Page,
    agent: str | None,
    playbook_id: str,
    page_size: int,
    page_token: str,
) -> None:
    """List events, newest first: what each started or skipped and why.

    Example: core-console events --agent datagov
    """
    request = pb.ListEventsRequest(
        agent=agent or "", playbook_id=playbook_id, page_size=page_size, page_token=page_token
    )
    page.answer(connection.call(connection.playbooks.ListEvents, request), _show_events)


def _show_events(response: pb.ListEventsResponse) -> None:
    table(
        _EVENTS,
        (
            (
                event.id,
                event.at,
                event.agent,
                event.event,
                event.subject,
                "; ".join(_outcome(event)) or "no playbook waits for it",
            )
            for event in response.events
        ),
        empty="no events",
    )
    more(response.next_page_token)


def _outcome(event: pb.Event) -> Iterator[str]:
    """Yield what the event started and skipped, and why; a skip that came often is counted."""
    for started in event.started:
        yield f"started {started.run_id} of {_trigger(started.playbook_id, started.trigger_id)}"
    times = f" ({event.count} times)" if event.count > 1 else ""
    for skip in event.skipped:
        yield f"skipped {_trigger(skip.playbook_id, skip.trigger_id)}: {skip.reason}{times}"


def _trigger(playbook_id: str, trigger_id: str) -> str:
    return f"{playbook_id} {trigger_id}".strip()


@click.command(cls=Command)
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

    Example: core-console decisions --actor second@example.com --since 7d
    """
    request = governance_pb2.ListDecisionsRequest(
        subject=subject, actor=actor, since=since, page_size=page_size, page_token=page_token
    )
    page.answer(connection.call(connection.governance.ListDecisions, request), _show_decisions)


def _show_decisions(response: governance_pb2.ListDecisionsResponse) -> None:
    table(
        _DECISIONS,
        (
            (
                found.audit_seq,
                found.at,
                found.actor,
                found.decision,
                short_name(OUTCOME, found.outcome),
                found.playbook_id,
                found.run_id,
                found.sentence,
            )
            for found in response.decisions
        ),
        empty="no decisions",
    )
    more(response.next_page_token)


@click.group(cls=Group)
def audit() -> None:
    """Read and verify the audit chain.

    Example: core-console audit verify --file audit.log
    """


@audit.command("list")
@click.option("--actor", default="", metavar="WHO", help="Only this actor's.")
@click.option("--action", default="", metavar="NAME", help="Such as atlas.playbooks.activate.")
@choice_option("--outcome", short_names(OUTCOME), what="Only this outcome.")
@click.option("--subject", default="", metavar="KIND", help="Only this kind, such as playbook.")
@since_option
@click.option("--before", type=moment, metavar="TIME", help="Before this time.")
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

    Example: core-console audit list --outcome DENIED --since 2026-11-30
    """
    code = enum_prefix(OUTCOME) + (outcome or "UNSPECIFIED")
    request = audit_pb2.ListAuditRecordsRequest(
        outcome=audit_pb2.AuditOutcome.Value(code),
        **filters,  # type: ignore[arg-type]  # each option is named and typed as its field
    )
    page.answer(connection.call(connection.audit.ListAuditRecords, request), _show_records)


def _show_records(response: audit_pb2.ListAuditRecordsResponse) -> None:
    table(
        _RECORDS,
        (
            (
                record.seq,
                record.at,
                record.actor,
                record.action,
                record.target,
                short_name(OUTCOME, record.outcome),
                record.detail,
            )
            for record in response.records
        ),
        empty="no records",
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
    if file is not None:
        verify_file(page, file)
    else:
        request = audit_pb2.VerifyAuditChainRequest()
        verify_here(page, connection.call(connection.audit.VerifyAuditChain, request))
