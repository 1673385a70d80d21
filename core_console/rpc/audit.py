"""AuditService: the audit chain, for the session admins.

Owns how records are shown, and that one verification at a time reads the whole chain.
"""

# ruff: noqa: N802 -- the contract names the methods

import asyncio
from collections.abc import Awaitable, Callable

from runink.core.atlas.v1 import audit_pb2 as pb
from runink.core.atlas.v1.audit_pb2_grpc import AuditServiceServicer

from core_console.decide.outcome import Refused
from core_console.governance.trail import Filters, Trail
from core_console.governance.verify import Verification
from core_console.model.audit import AuditRecord, Outcome
from core_console.rpc import enums, from_proto, to_proto
from core_console.rpc.errors import RefusedError, invalid_field
from core_console.rpc.gate import Context


class Audit(AuditServiceServicer):
    """The servicer. Every error is raised and answered by the gate."""

    def __init__(self, *, recorded: Callable[[], Awaitable[None]], trail: Trail) -> None:
        self._recorded = recorded
        self._trail = trail
        self._verifying: asyncio.Task[Verification] | None = None

    async def ListAuditRecords(
        self, request: pb.ListAuditRecordsRequest, _context: Context
    ) -> pb.ListAuditRecordsResponse:
        """List records, newest first."""
        filters = _filters(request)
        await self._recorded()
        page = await self._trail.page(
            filters, page_size=request.page_size, page_token=request.page_token
        )
        if isinstance(page, Refused):
            raise RefusedError(page)
        return pb.ListAuditRecordsResponse(
            records=map(_record, page.records), next_page_token=page.next_page_token
        )

    async def GetAuditRecord(
        self, request: pb.GetAuditRecordRequest, _context: Context
    ) -> pb.GetAuditRecordResponse:
        """Read one record by its number."""
        await self._recorded()
        found = await self._trail.get(request.seq)
        if isinstance(found, Refused):
            raise RefusedError(found)
        return pb.GetAuditRecordResponse(record=_record(found))

    async def VerifyAuditChain(
        self, _request: pb.VerifyAuditChainRequest, _context: Context
    ) -> pb.VerifyAuditChainResponse:
        """Recompute the whole chain; callers that come meanwhile get the same answer."""
        if self._verifying is None or self._verifying.done():
            self._verifying = asyncio.create_task(self._verify())
        found = await asyncio.shield(self._verifying)
        return pb.VerifyAuditChainResponse(
            intact=found.intact,
            records=found.records,
            last_hash=found.last_hash,
            first_bad_seq=found.first_bad_seq,
            fault=found.fault,
        )

    async def _verify(self) -> Verification:
        await self._recorded()
        return await self._trail.verify()


def _filters(request: pb.ListAuditRecordsRequest) -> Filters:
    return Filters(
        actor=request.actor,
        action=request.action,
        outcome=_outcome(request.outcome),
        subject=request.subject,
        since=from_proto.instant("since", request.since) if request.HasField("since") else None,
        before=from_proto.instant("before", request.before) if request.HasField("before") else None,
    )


def _outcome(number: int) -> Outcome | None:
    if number == pb.AUDIT_OUTCOME_UNSPECIFIED:
        return None
    outcome = enums.AUDIT_OUTCOME_OF.get(number)
    if outcome is None:
        raise invalid_field("outcome", f"is {number}, which is unknown; leave it out for all")
    return outcome


def _record(record: AuditRecord) -> pb.AuditRecord:
    return pb.AuditRecord(
        seq=record.seq,
        at=to_proto.written_instant(record.at),
        actor=record.actor,
        action=record.action,
        target=record.target,
        outcome=to_proto.audit_outcome(record.outcome),
        detail=record.detail,
        subject=record.subject,
        document=record.document,
        number=record.number,
        prev_hash=record.prev_hash,
        hash=record.hash,
    )
