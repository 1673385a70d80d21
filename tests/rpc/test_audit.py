"""The audit chain and the decision log over gRPC."""

import asyncio

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from runink.core.atlas.v1 import audit_pb2 as pb
from runink.core.atlas.v1 import governance_pb2, playbook_pb2

from tests.builders import AUTHOR, SECOND
from tests.rpc.messages import approval_only
from tests.rpc.site import Site, refused


async def some_history(console: Site) -> playbook_pb2.Run:
    """Write, try to activate one's own, activate, run, decide: six records."""
    written = (await console.author.CreatePlaybook(approval_only())).playbook
    activation = playbook_pb2.ActivatePlaybookRequest(id=written.id, revision=1)
    await refused(console.author.ActivatePlaybook(activation))
    await console.second.ActivatePlaybook(activation)
    request = playbook_pb2.RunNowRequest(playbook_id=written.id)
    run = (await console.author.RunNow(request)).run
    decision = playbook_pb2.DecideApprovalRequest(
        run_id=run.id, step_id="approve", decision=playbook_pb2.APPROVAL_DECISION_APPROVE
    )
    return (await console.second.DecideApproval(decision)).run


async def records(console: Site, **filters: object) -> list[pb.AuditRecord]:
    request = pb.ListAuditRecordsRequest(**filters)  # type: ignore[arg-type]  # any filter
    return list((await console.auditor.ListAuditRecords(request)).records)


async def test_whoever_decided_something_finds_it_in_the_chain_at_once(console: Site) -> None:
    await some_history(console)
    found = await records(console)
    assert [record.seq for record in found] == [6, 5, 4, 3, 2, 1]
    newest, denied = found[0], found[4]
    assert (newest.actor, newest.action) == ("system:engine", "atlas.playbooks.run.end")
    assert (denied.outcome, denied.document, denied.number) == (pb.AUDIT_OUTCOME_DENIED, "", 0)
    assert found[5].prev_hash == "0" * 64
    assert found[4].prev_hash == found[5].hash
    now = console.clock.now()
    assert found[5].at.ToDatetime(now.tzinfo) == now


async def test_records_are_filtered(console: Site) -> None:
    await some_history(console)
    action = "atlas.playbooks.activate"
    assert [each.actor for each in await records(console, action=action)] == [SECOND, AUTHOR]
    denied = await records(console, outcome=pb.AUDIT_OUTCOME_DENIED)
    assert [each.actor for each in denied] == [AUTHOR]
    assert len(await records(console, actor=SECOND, subject="playbook")) == 2
    noon = Timestamp(seconds=int(console.clock.now().timestamp()))
    assert len(await records(console, since=noon)) == 6
    assert not await records(console, before=noon)


async def test_records_come_in_pages(console: Site) -> None:
    await some_history(console)
    found, token = [], ""
    for _ in range(3):
        request = pb.ListAuditRecordsRequest(page_size=2, page_token=token)
        answer = await console.auditor.ListAuditRecords(request)
        found += [record.seq for record in answer.records]
        token = answer.next_page_token
    assert (found, token) == ([6, 5, 4, 3, 2, 1], "")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.ListAuditRecordsRequest(page_size=-1), "page_size"),
        (pb.ListAuditRecordsRequest(page_token="x"), "page_token"),
        (pb.ListAuditRecordsRequest(outcome=9), "outcome"),  # type: ignore[arg-type]  # no such number
        (pb.ListAuditRecordsRequest(since=Timestamp(seconds=2**40)), "since"),
        (pb.ListAuditRecordsRequest(before=Timestamp(nanos=-1)), "before"),
    ],
)
async def test_a_bad_filter_is_named(
    console: Site, request_: pb.ListAuditRecordsRequest, field: str
) -> None:
    answer = await refused(console.auditor.ListAuditRecords(request_))
    assert (answer.code, list(answer.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def test_one_record_is_read_by_its_number(console: Site) -> None:
    await some_history(console)
    newest = (await records(console))[0]
    request = pb.GetAuditRecordRequest(seq=6)
    assert (await console.auditor.GetAuditRecord(request)).record == newest
    for seq, code in ((7, grpc.StatusCode.NOT_FOUND), (0, grpc.StatusCode.INVALID_ARGUMENT)):
        missing = await refused(console.auditor.GetAuditRecord(pb.GetAuditRecordRequest(seq=seq)))
        assert missing.code is code


async def test_an_untouched_chain_is_intact(console: Site) -> None:
    await some_history(console)
    request = pb.VerifyAuditChainRequest()
    answers = await asyncio.gather(*(console.auditor.VerifyAuditChain(request) for _ in range(5)))
    newest = (await records(console))[0]
    for answer in answers:
        assert answer == pb.VerifyAuditChainResponse(intact=True, records=6, last_hash=newest.hash)


async def test_verifying_an_empty_chain_finds_nothing_wrong(console: Site) -> None:
    answer = await console.auditor.VerifyAuditChain(pb.VerifyAuditChainRequest())
    assert (answer.intact, answer.records) == (True, 0)


async def test_an_edited_record_is_named_and_still_shown_as_far_as_it_can_be(
    console: Site,
) -> None:
    await some_history(console)
    await console.engine.recorded()
    log = console.log
    log.lines[1] = log.lines[1].replace(b'"denied"', b'"soso"').replace(b"2026-", b"never")
    answer = await console.auditor.VerifyAuditChain(pb.VerifyAuditChainRequest())
    assert (answer.intact, answer.records, answer.first_bad_seq) == (False, 1, 2)
    assert answer.fault
    shown = (await console.auditor.GetAuditRecord(pb.GetAuditRecordRequest(seq=2))).record
    assert (shown.outcome, shown.HasField("at")) == (pb.AUDIT_OUTCOME_UNSPECIFIED, False)


async def test_decisions_come_newest_first_for_every_operator(console: Site) -> None:
    run = await some_history(console)
    governance = console.named("stranger@example.com").governance
    answer = await governance.ListDecisions(governance_pb2.ListDecisionsRequest())
    assert [each.decision for each in answer.decisions] == [
        "run ended",
        "approved",
        "run started",
        "activated",
        "activated",
        "created",
    ]
    approved = answer.decisions[1]
    assert (approved.actor, approved.run_id, approved.step_id, approved.outcome) == (
        SECOND,
        run.id,
        "approve",
        pb.AUDIT_OUTCOME_SUCCESS,
    )
    assert (approved.audit_seq, approved.playbook_id) == (5, run.playbook_id)
    assert approved.sentence.startswith("approved by")
    assert approved.HasField("at")


async def test_decisions_are_filtered_and_paged(console: Site) -> None:
    await some_history(console)
    governance = console.named(AUTHOR).governance
    noon = Timestamp(seconds=int(console.clock.now().timestamp()))
    first = await governance.ListDecisions(
        governance_pb2.ListDecisionsRequest(
            subject="playbook", actor=AUTHOR, since=noon, page_size=2
        )
    )
    assert [each.decision for each in first.decisions] == ["run started", "activated"]
    rest = await governance.ListDecisions(
        governance_pb2.ListDecisionsRequest(
            subject="playbook", actor=AUTHOR, since=noon, page_token=first.next_page_token
        )
    )
    assert [each.decision for each in rest.decisions] == ["created"]
    answer = await refused(
        governance.ListDecisions(governance_pb2.ListDecisionsRequest(page_size=201))
    )
    assert (answer.code, list(answer.fields)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        ["page_size"],
    )
