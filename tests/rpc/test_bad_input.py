"""Every bad input of the contract gets its status, a sentence and the path of the field."""

from collections.abc import Callable

import grpc
import pytest
from runink.core.atlas.v1 import common_pb2
from runink.core.atlas.v1 import playbook_pb2 as pb

from tests.rpc.messages import a_playbook, approval_only, creation
from tests.rpc.site import Site, refused

Change = Callable[[pb.Playbook], object]

STATUS_SENTENCE = (
    "status is server-managed: a playbook is written as DRAFT and becomes ACTIVE only by "
    "ActivatePlaybook (four eyes)"
)


def steps(count: int) -> Change:
    def change(playbook: pb.Playbook) -> None:
        step = playbook.steps[0]
        del playbook.steps[:]
        playbook.steps.extend(
            pb.Step(id=f"s{number}", kind=step.kind, dispatch_agent=step.dispatch_agent)
            for number in range(count)
        )

    return change


def triggers(count: int) -> Change:
    def change(playbook: pb.Playbook) -> None:
        del playbook.triggers[:]
        playbook.triggers.extend(
            pb.Trigger(id=f"t{number}", manual=pb.ManualTrigger()) for number in range(count)
        )

    return change


def agent_event(playbook: pb.Playbook) -> pb.AgentEventTrigger:
    return playbook.triggers[2].agent_event


def put(path: str, value: object) -> Change:
    """Return a change that sets `steps.0.dispatch_agent.agent` and the like."""

    def change(playbook: pb.Playbook) -> None:
        found: object = playbook
        *way, last = path.split(".")
        for name in way:
            found = found[int(name)] if name.isdigit() else getattr(found, name)  # type: ignore[index]  # a repeated field
        setattr(found, last, value)

    return change


def proto_path(path: str) -> str:
    """Return `playbook.steps[0].kind` for `steps.0.kind`."""
    shown = "playbook"
    for name in path.split("."):
        shown += f"[{name}]" if name.isdigit() else f".{name}"
    return shown


AT_A_PATH = [
    ("name", ""),
    ("name", "x" * 121),
    ("name", "two\nlines"),
    ("name", "nul\0"),
    ("name", "right\u202eleft"),
    ("name", "ghp_" + "a" * 36),
    ("description", "x" * 2001),
    ("description", "AKIA" + "A" * 16),
    ("steps.0.id", ""),
    ("steps.0.id", ".."),
    ("steps.0.id", "x" * 65),
    ("steps.0.id", "a b"),
    ("steps.0.title", "x" * 121),
    ("steps.0.title", "bell\a"),
    ("steps.0.kind", 0),
    ("steps.0.kind", 99),
    ("steps.0.dispatch_agent.agent", "smith"),
    ("steps.0.dispatch_agent.agent", ""),
    ("steps.0.dispatch_agent.timeout_minutes", 0),
    ("steps.0.dispatch_agent.timeout_minutes", 4),
    ("steps.0.dispatch_agent.timeout_minutes", 241),
    ("steps.0.dispatch_agent.timeout_minutes", -60),
    ("steps.1.capex_scan.compare_to_first_scan", True),
    ("steps.2.require_approval.timeout_hours", 0),
    ("steps.2.require_approval.timeout_hours", 169),
    ("steps.2.require_approval.prompt", "x" * 1001),
    ("steps.2.require_approval.prompt", "\N{SNOWMAN}" * 334),
    ("steps.2.require_approval.approver", "nobody"),
    ("steps.2.require_approval.approver", "x" * 243 + "@example.com"),
    ("steps.3.notify.repo", "example/core"),
    ("steps.3.notify.repo", "https://github.com/example/core"),
    ("steps.3.notify.repo", ""),
    ("steps.3.notify.repo", ".."),
    ("steps.3.notify.issue", 0),
    ("steps.3.notify.issue", -1),
    ("steps.3.notify.issue", 2**31),
    ("triggers.0.id", "by hand"),
    ("triggers.0.cooldown_minutes", 5),
    ("triggers.0.cooldown_minutes", 0),
    ("triggers.1.cooldown_minutes", 0),
    ("triggers.1.cooldown_minutes", 4),
    ("triggers.1.cooldown_minutes", 43_201),
    ("triggers.1.schedule.cron", "* * * * *"),
    ("triggers.1.schedule.cron", "@hourly"),
    ("triggers.1.schedule.cron", ""),
    ("triggers.1.schedule.cron", "0 0 30 2 *"),
    ("triggers.2.agent_event.agent", "smith"),
    ("triggers.2.agent_event.event", "UPPER"),
    ("triggers.2.agent_event.event", ""),
    ("triggers.2.agent_event.conditions.0.op", 0),
    ("triggers.2.agent_event.conditions.0.op", 6),
    ("triggers.2.agent_event.conditions.0.attribute", ""),
    ("triggers.2.agent_event.conditions.0.attribute", "x" * 257),
    ("triggers.2.agent_event.conditions.0.value", "x" * 257),
]


@pytest.mark.parametrize(
    ("path", "value"), AT_A_PATH, ids=[f"{path}={str(value)[:20]!r}" for path, value in AT_A_PATH]
)
async def test_a_bad_field_is_named_by_its_path_and_nothing_is_stored(
    console: Site, path: str, value: object
) -> None:
    playbook = a_playbook()
    put(path, value)(playbook)
    answer = await refused(console.author.CreatePlaybook(creation(playbook)))
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert list(answer.fields) == [proto_path(path)]
    assert answer.sentence.startswith(f"{proto_path(path)}: ")
    if isinstance(value, str) and len(value) > 8:
        assert value not in answer.sentence
    assert not (await console.author.ListPlaybooks(pb.ListPlaybooksRequest())).playbooks


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (steps(0), "playbook.steps"),
        (steps(11), "playbook.steps"),
        (steps(100_000), "playbook.steps"),
        (triggers(5), "playbook.triggers"),
        (lambda it: it.steps[0].ClearField("action"), "playbook.steps[0].action"),
        (lambda it: it.steps[0].ClearField("dispatch_agent"), "playbook.steps[0].action"),
        (lambda it: it.triggers[1].ClearField("kind"), "playbook.triggers[1].kind"),
        (put("steps.1.id", "detect"), "playbook.steps[1].id"),
        (put("triggers.1.id", "by-hand"), "playbook.triggers[1].id"),
        (
            lambda it: agent_event(it).conditions.extend(
                pb.Condition(attribute="a", op=pb.CONDITION_OP_EQ) for _ in range(8)
            ),
            "playbook.triggers[2].agent_event.conditions",
        ),
        (
            lambda it: it.steps[4].capex_scan.rule_ids.append("all"),
            "playbook.steps[4].capex_scan.rule_ids[1]",
        ),
        (
            lambda it: it.steps[4].capex_scan.rule_ids.extend(["CP-002"] * 30),
            "playbook.steps[4].capex_scan.rule_ids",
        ),
    ],
)
async def test_a_bad_shape_is_named_by_its_path(console: Site, change: Change, field: str) -> None:
    playbook = a_playbook()
    change(playbook)
    answer = await refused(console.author.CreatePlaybook(creation(playbook)))
    assert (answer.code, list(answer.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def test_an_empty_oneof_says_what_it_takes(console: Site) -> None:
    playbook = a_playbook()
    playbook.steps[0].ClearField("dispatch_agent")
    answer = await refused(console.author.CreatePlaybook(creation(playbook)))
    assert "exactly one of dispatch_agent, capex_scan, require_approval, notify" in answer.sentence


async def test_every_bad_field_is_told_at_once(console: Site) -> None:
    playbook = a_playbook()
    for path in ("steps.0.kind", "steps.1.kind"):
        put(path, 0)(playbook)
    playbook.steps[2].ClearField("action")
    answer = await refused(console.author.CreatePlaybook(creation(playbook)))
    assert list(answer.fields) == [
        "playbook.steps[0].kind",
        "playbook.steps[1].kind",
        "playbook.steps[2].action",
    ]
    assert answer.sentence.endswith("(and 2 more)")


async def test_more_faults_than_a_header_takes_are_cut_to_what_it_takes(console: Site) -> None:
    playbook = a_playbook()
    steps(10)(playbook)
    for step in playbook.steps:
        step.id, step.title = "no id", "x" * 200
        step.ClearField("action")
    for trigger in playbook.triggers[2:]:
        trigger.agent_event.conditions.extend(pb.Condition(op=9) for _ in range(8))  # type: ignore[arg-type]  # no such number
    answer = await refused(console.author.CreatePlaybook(creation(playbook)))
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert len(answer.fields) > 1
    assert answer.details.ByteSize() < 6 * 1024


async def test_a_missing_playbook_is_named(console: Site) -> None:
    created = await refused(console.author.CreatePlaybook(pb.CreatePlaybookRequest()))
    updated = await refused(
        console.author.UpdatePlaybook(pb.UpdatePlaybookRequest(id="PB-1", revision=1))
    )
    for answer in (created, updated):
        assert (answer.code, list(answer.fields)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            ["playbook"],
        )


SERVER_MANAGED: list[tuple[str, pb.Playbook]] = [
    ("id", pb.Playbook(id="PB-7")),
    ("created_by", pb.Playbook(created_by="second@example.com")),
    ("created_at", pb.Playbook(created_at={"seconds": 1})),  # type: ignore[arg-type]  # protobuf takes a dict
    ("updated_by", pb.Playbook(updated_by="second@example.com")),
    ("updated_at", pb.Playbook(updated_at={"seconds": 1})),  # type: ignore[arg-type]  # protobuf takes a dict
    ("activated_by", pb.Playbook(activated_by="second@example.com")),
    ("activated_at", pb.Playbook(activated_at={"seconds": 1})),  # type: ignore[arg-type]  # protobuf takes a dict
    ("activated_revision", pb.Playbook(activated_revision=7)),
    ("revision", pb.Playbook(revision=7)),
    ("spec_digest", pb.Playbook(spec_digest="0" * 64)),
    ("editors", pb.Playbook(editors=["second@example.com"])),
    ("runs_finished", pb.Playbook(runs_finished=7)),
    ("runs_succeeded", pb.Playbook(runs_succeeded=7)),
]
DERIVED: list[tuple[str, pb.Playbook]] = [
    ("success_rate", pb.Playbook(success_rate=common_pb2.Figure(value=1))),
    ("expected_lift", pb.Playbook(expected_lift=common_pb2.Figure(value=1))),
    ("next_slots", pb.Playbook(next_slots=[{"seconds": 1}])),  # type: ignore[list-item]  # protobuf takes a dict
    ("four_eyes", pb.Playbook(four_eyes=pb.FourEyes(needed="nobody"))),
]


@pytest.mark.parametrize(("field", "extra"), SERVER_MANAGED + DERIVED)
async def test_a_server_managed_field_is_refused_in_create(
    console: Site, field: str, extra: pb.Playbook
) -> None:
    playbook = a_playbook()
    playbook.MergeFrom(extra)
    answer = await refused(console.author.CreatePlaybook(creation(playbook)))
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert list(answer.fields) == [f"playbook.{field}"]
    assert "server-managed" in answer.sentence


@pytest.mark.parametrize("status", [pb.PLAYBOOK_STATUS_DRAFT, pb.PLAYBOOK_STATUS_ACTIVE, 99])
async def test_a_set_status_is_refused_with_the_contracts_own_sentence(
    console: Site, status: pb.PlaybookStatus.ValueType
) -> None:
    playbook = a_playbook()
    playbook.id = "PB-7"
    playbook.status = status
    answer = await refused(console.author.CreatePlaybook(creation(playbook)))
    assert (answer.code, answer.sentence) == (grpc.StatusCode.INVALID_ARGUMENT, STATUS_SENTENCE)
    assert set(answer.fields) == {"playbook.id", "playbook.status"}


@pytest.mark.parametrize(("field", "extra"), SERVER_MANAGED)
async def test_a_server_managed_field_that_differs_is_refused_in_update(
    console: Site, field: str, extra: pb.Playbook
) -> None:
    read = (await console.author.CreatePlaybook(creation())).playbook
    read.MergeFrom(extra)
    update = pb.UpdatePlaybookRequest(id="PB-1", revision=1, playbook=read)
    answer = await refused(console.author.UpdatePlaybook(update))
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert list(answer.fields) == [f"playbook.{field}"]


@pytest.mark.parametrize(("field", "extra"), DERIVED)
async def test_a_figure_that_moves_by_itself_is_ignored_in_update(
    console: Site, field: str, extra: pb.Playbook
) -> None:
    read = (await console.author.CreatePlaybook(creation())).playbook
    read.ClearField(field)  # type: ignore[arg-type]  # one of the four
    read.MergeFrom(extra)
    read.name = "Another"
    update = pb.UpdatePlaybookRequest(id="PB-1", revision=1, playbook=read)
    assert (await console.author.UpdatePlaybook(update)).playbook.name == "Another"


async def test_a_status_that_differs_is_refused_in_update(console: Site) -> None:
    read = (await console.author.CreatePlaybook(creation())).playbook
    read.status = pb.PLAYBOOK_STATUS_ACTIVE
    update = pb.UpdatePlaybookRequest(id="PB-1", revision=1, playbook=read)
    answer = await refused(console.author.UpdatePlaybook(update))
    assert (answer.code, answer.sentence) == (grpc.StatusCode.INVALID_ARGUMENT, STATUS_SENTENCE)


async def test_a_bare_spec_is_a_whole_update(console: Site) -> None:
    await console.author.CreatePlaybook(creation())
    update = pb.UpdatePlaybookRequest(
        id="PB-1", revision=1, playbook=approval_only("Another").playbook
    )
    assert (await console.author.UpdatePlaybook(update)).playbook.revision == 2


async def test_a_stale_update_is_aborted_whatever_it_sends_back(console: Site) -> None:
    read = (await console.author.CreatePlaybook(creation())).playbook
    update = pb.UpdatePlaybookRequest(
        id="PB-1", revision=1, playbook=approval_only("Another").playbook
    )
    await console.second.UpdatePlaybook(update)
    read.name = "Mine"
    stale = pb.UpdatePlaybookRequest(id="PB-1", revision=1, playbook=read)
    answer = await refused(console.author.UpdatePlaybook(stale))
    assert answer.code is grpc.StatusCode.ABORTED
    assert "PB-1" in answer.sentence


@pytest.mark.parametrize("revision", [0, -1])
async def test_a_revision_is_required(console: Site, revision: int) -> None:
    await console.author.CreatePlaybook(creation())
    for call in (
        console.second.ActivatePlaybook(pb.ActivatePlaybookRequest(id="PB-1", revision=revision)),
        console.author.UpdatePlaybook(
            pb.UpdatePlaybookRequest(id="PB-1", revision=revision, playbook=a_playbook())
        ),
    ):
        answer = await refused(call)
        assert (answer.code, list(answer.fields)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            ["revision"],
        )


@pytest.mark.parametrize("number", [0, 3, -1])
async def test_a_decision_that_does_not_exist_is_refused(console: Site, number: int) -> None:
    request = pb.DecideApprovalRequest(run_id="PBR-1", step_id="approve", decision=number)  # type: ignore[arg-type]  # no such number
    answer = await refused(console.second.DecideApproval(request))
    assert (answer.code, list(answer.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, ["decision"])
    assert "APPROVE, REJECT" in answer.sentence


@pytest.mark.parametrize(
    ("statuses", "field"), [([1, 0], "statuses[1]"), ([99], "statuses[0]"), ([1] * 33, "statuses")]
)
async def test_a_status_filter_that_does_not_exist_is_refused(
    console: Site, statuses: list[int], field: str
) -> None:
    playbooks = pb.ListPlaybooksRequest(statuses=statuses)  # type: ignore[arg-type]  # no such number
    runs = pb.ListRunsRequest(statuses=statuses)  # type: ignore[arg-type]  # no such number
    for call in (console.author.ListPlaybooks(playbooks), console.author.ListRuns(runs)):
        answer = await refused(call)
        assert (answer.code, list(answer.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


@pytest.mark.parametrize(
    ("request_id", "note", "field"),
    [
        ("x" * 65, "", "request_id"),
        ("a\nb", "", "request_id"),
        ("", "x" * 1001, "note"),
        ("", "bell\a", "note"),
        ("", "-----BEGIN", "note"),
    ],
)
async def test_what_a_person_writes_of_a_run_is_screened(
    console: Site, request_id: str, note: str, field: str
) -> None:
    request = pb.RunNowRequest(playbook_id="PB-1", request_id=request_id, note=note)
    answer = await refused(console.author.RunNow(request))
    assert (answer.code, list(answer.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def test_unknown_fields_are_ignored_as_every_grpc_server_does(console: Site) -> None:
    unknown_field = b"\xca\x3e\x03new"  # number 1001, length-delimited
    sent = pb.CreatePlaybookRequest.FromString(creation().SerializeToString() + unknown_field)
    assert (await console.author.CreatePlaybook(sent)).playbook.id == "PB-1"
