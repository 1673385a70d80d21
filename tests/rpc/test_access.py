"""Who may call what, on the wire: every method, every kind of caller, and what is recorded."""

from pathlib import Path

import grpc
import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from runink.core.atlas.v1 import audit_pb2, governance_pb2
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.governance.policy import MethodClass, rule_of
from tests.builders import AUTHOR, SECOND, STRANGER
from tests.rpc.messages import approval_only, creation
from tests.rpc.site import AUDITOR, LISTS, Caller, Site, refused, site

SERVED = (pb.DESCRIPTOR, governance_pb2.DESCRIPTOR, audit_pb2.DESCRIPTOR)
TURNED_AWAY = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
OPEN = "this console has no sign-in configured"


def methods() -> list[str]:
    return [
        f"/{service.full_name}/{method.name}"
        for file in SERVED
        for service in file.services_by_name.values()
        for method in service.methods
    ]


def request_of(method: str) -> Message:
    _, service, name = method.split("/")
    for file in SERVED:
        found = file.services_by_name.get(service.rpartition(".")[2])
        if found is not None:
            return GetMessageClass(found.methods_by_name[name].input_type)()
    raise KeyError(method)


async def code_of(caller: Caller, method: str) -> grpc.StatusCode:
    """Call a method with an empty request, whatever it answers, and return how it ended."""
    data = request_of(method).SerializeToString()
    call = caller.raw_stream if method.endswith("/WatchActivity") else caller.raw
    try:
        await call(method, data)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


MAY = {
    MethodClass.READ: {AUTHOR, SECOND, STRANGER, AUDITOR},
    MethodClass.AUDITOR: {AUDITOR},
    MethodClass.DECIDER: {AUTHOR, SECOND, STRANGER, AUDITOR},
    MethodClass.ADMIN: {AUTHOR, SECOND},
}


@pytest.mark.parametrize("method", methods())
async def test_every_method_lets_in_its_class_and_nobody_else(console: Site, method: str) -> None:
    may = MAY[rule_of(method).method_class]
    for email in (AUTHOR, SECOND, STRANGER, AUDITOR):
        code = await code_of(console.named(email), method)
        if email not in may:
            assert code is grpc.StatusCode.PERMISSION_DENIED
        elif code in TURNED_AWAY:
            raise AssertionError(f"{email} may call {method}")
        assert code not in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL}
    assert await code_of(console.caller(), method) is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", methods())
async def test_an_open_console_answers_reads_and_refuses_everything_else(
    open_console: Site, method: str
) -> None:
    code = await code_of(open_console.caller(), method)
    is_read = rule_of(method).method_class is MethodClass.READ
    assert (code is grpc.StatusCode.UNAUTHENTICATED) == (not is_read)
    assert code in {
        grpc.StatusCode.OK,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.UNAUTHENTICATED,
    }


@pytest.mark.parametrize("method", methods())
async def test_every_refused_write_is_recorded_and_no_read_is(console: Site, method: str) -> None:
    rule = rule_of(method)
    for caller in (console.caller(), console.named(STRANGER)):
        await code_of(caller, method)
    records = await console.records()
    assert {record.action for record in records} == ({rule.action} if rule.action else set())
    assert [record.actor for record in records] == (["anonymous", STRANGER] if rule.action else [])


async def test_an_open_console_says_why_it_refuses(open_console: Site) -> None:
    answer = await refused(open_console.anonymous.CreatePlaybook(creation()))
    assert answer.code is grpc.StatusCode.UNAUTHENTICATED
    assert answer.sentence.startswith(OPEN)
    bogus = open_console.caller("Bearer anything").playbooks
    assert not (await bogus.ListRuns(pb.ListRunsRequest())).runs
    assert (await refused(bogus.CreatePlaybook(creation()))).sentence.startswith(OPEN)


async def test_a_refused_write_is_recorded_with_who_what_and_why(console: Site) -> None:
    request = pb.DecideApprovalRequest(run_id="PBR-7", step_id="approve", note="secret words")
    await refused(console.anonymous.DecideApproval(request))
    await refused(console.stranger.DeletePlaybook(pb.DeletePlaybookRequest(id="PB-7")))
    await refused(console.author.CreatePlaybook(creation(pb.Playbook(name="secret words"))))
    nobody, stranger, author = await console.records()
    assert (nobody.actor, nobody.action, nobody.target, nobody.outcome, nobody.subject) == (
        "anonymous",
        "atlas.playbooks.approval.decide",
        "",
        "denied",
        "playbook",
    )
    assert (stranger.actor, stranger.action, stranger.target, stranger.outcome) == (
        STRANGER,
        "atlas.playbooks.delete",
        "PB-7",
        "denied",
    )
    assert (author.actor, author.target, author.outcome) == (AUTHOR, "", "failure")
    assert (nobody.document, nobody.number) == ("", 0)
    assert "secret words" not in b"".join(console.log.lines).decode()


async def test_four_eyes_is_recorded_as_denied(console: Site) -> None:
    await console.author.CreatePlaybook(creation())
    activation = pb.ActivatePlaybookRequest(id="PB-1", revision=1)
    answer = await refused(console.author.ActivatePlaybook(activation))
    last = (await console.records())[-1]
    assert (last.action, last.outcome, last.detail, last.target) == (
        "atlas.playbooks.activate",
        "denied",
        answer.sentence,
        "PB-1",
    )


async def test_ids_that_are_none_stay_out_of_the_record(console: Site) -> None:
    for name in ("no id", "x" * 5000, "ghp_" + "a" * 36):
        await refused(console.stranger.DeletePlaybook(pb.DeletePlaybookRequest(id=name)))
    assert [record.target for record in await console.records()] == ["", "", ""]


async def test_a_flood_without_an_identity_cannot_fill_the_chain(console: Site) -> None:
    for _ in range(20):
        await refused(console.anonymous.CreatePlaybook(creation()))
    assert len(await console.records()) == 5


@pytest.mark.parametrize(
    "authorization",
    [
        ("Basic abc",),
        ("Bearer ",),
        ("Bearer a.b.c",),
        ("Bearer eyJhbGciOiJub25lIn0.e30.",),
        ("Bearer x", "Bearer y"),
        ("",),
    ],
)
async def test_what_is_no_token_of_this_console_names_nobody(
    console: Site, authorization: tuple[str, ...]
) -> None:
    caller = console.caller(*authorization).playbooks
    for call in (caller.ListRuns(pb.ListRunsRequest()), caller.CreatePlaybook(creation())):
        answer = await refused(call)
        assert answer.code is grpc.StatusCode.UNAUTHENTICATED
        sent = [value.partition(" ")[2] for value in authorization]
        assert not any(token and token in answer.sentence.split() for token in sent)


async def test_a_good_token_beside_another_one_names_nobody(console: Site) -> None:
    token = f"Bearer {console.token(AUTHOR)}"
    answer = await refused(console.caller(token, token).playbooks.ListRuns(pb.ListRunsRequest()))
    assert answer.code is grpc.StatusCode.UNAUTHENTICATED


async def test_a_token_ends_when_its_time_is_over(console: Site) -> None:
    await console.author.ListRuns(pb.ListRunsRequest())
    console.clock.jump(3600)
    answer = await refused(console.author.ListRuns(pb.ListRunsRequest()))
    assert answer.code is grpc.StatusCode.UNAUTHENTICATED
    assert "expired" in answer.sentence


async def test_somebody_who_is_not_admitted_may_not_even_read(console: Site) -> None:
    caller = console.named("guest@example.com").playbooks
    answer = await refused(caller.ListRuns(pb.ListRunsRequest()))
    assert answer.code is grpc.StatusCode.PERMISSION_DENIED


async def test_variants_of_one_address_are_one_person_for_four_eyes(tmp_path: Path) -> None:
    async with site(tmp_path, lists={}) as console:
        await console.author.CreatePlaybook(approval_only())
        for variant in ("Author@Example.COM", " author@example.com ", "\uff41uthor@example.com"):
            caller = console.caller(f"Bearer {console.token(variant)}").playbooks
            activation = pb.ActivatePlaybookRequest(id="PB-1", revision=1)
            answer = await refused(caller.ActivatePlaybook(activation))
            assert answer.sentence.startswith("four eyes: ")


async def test_without_a_list_every_operator_is_an_admin_and_nobody_an_auditor(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, lists={}) as console:
        written = (await console.stranger.CreatePlaybook(creation())).playbook
        assert (written.created_by, list(written.four_eyes.eligible)) == (STRANGER, [])
        answer = await refused(
            console.auditor.ListAuditRecords(audit_pb2.ListAuditRecordsRequest())
        )
        assert answer.code is grpc.StatusCode.PERMISSION_DENIED


async def test_every_editor_is_barred_when_the_setting_says_so(tmp_path: Path) -> None:
    lists = LISTS | {"CORE_FOUR_EYES_ALL_EDITORS": "1"}
    lists["CORE_ATLAS_ADMINS"] += f",{STRANGER}"
    async with site(tmp_path, lists=lists) as console:
        read = (await console.author.CreatePlaybook(approval_only())).playbook
        for name, editor in (("a", console.second), ("b", console.author)):
            read.name = name
            update = pb.UpdatePlaybookRequest(id="PB-1", revision=read.revision, playbook=read)
            read = (await editor.UpdatePlaybook(update)).playbook
        assert list(read.four_eyes.eligible) == [STRANGER]
        activation = pb.ActivatePlaybookRequest(id="PB-1", revision=read.revision)
        assert (await refused(console.second.ActivatePlaybook(activation))).code is (
            grpc.StatusCode.PERMISSION_DENIED
        )
        assert (await console.stranger.ActivatePlaybook(activation)).playbook.activated_by == (
            STRANGER
        )
