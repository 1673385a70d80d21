"""GovernanceService: the decision log.

Owns how decisions are shown; which records are decisions is `governance.decisions`' to say.
"""

# ruff: noqa: N802 -- the contract names the methods

from collections.abc import Awaitable, Callable

from runink.core.atlas.v1 import governance_pb2 as pb
from runink.core.atlas.v1.governance_pb2_grpc import GovernanceServiceServicer

from core_console.decide.outcome import Refused
from core_console.governance.decisions import Decision, Decisions
from core_console.rpc import enums, from_proto, to_proto
from core_console.rpc.errors import RefusedError
from core_console.rpc.gate import Context


class Governance(GovernanceServiceServicer):
    """The servicer. Every error is raised and answered by the gate."""

    def __init__(self, *, recorded: Callable[[], Awaitable[None]], decisions: Decisions) -> None:
        self._recorded = recorded
        self._decisions = decisions

    async def ListDecisions(
        self, request: pb.ListDecisionsRequest, _context: Context
    ) -> pb.ListDecisionsResponse:
        """List decisions, dispatches and reports, newest first."""
        since = from_proto.instant("since", request.since) if request.HasField("since") else None
        # Whoever has just decided something finds it here.
        await self._recorded()
        page = await self._decisions.page(
            subject=request.subject,
            actor=request.actor,
            since=since,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        if isinstance(page, Refused):
            raise RefusedError(page)
        return pb.ListDecisionsResponse(
            decisions=map(_decision, page.decisions), next_page_token=page.next_page_token
        )


def _decision(decision: Decision) -> pb.Decision:
    return pb.Decision(
        audit_seq=decision.audit_seq,
        at=to_proto.written_instant(decision.at),
        subject=decision.subject,
        actor=decision.actor,
        decision=decision.decision,
        outcome=enums.AUDIT_OUTCOME[decision.outcome],
        playbook_id=decision.playbook_id,
        run_id=decision.run_id,
        step_id=decision.step_id,
        event_id=decision.event_id,
        sentence=decision.sentence,
    )
