"""Every RPC of PlaybookService does what the contract says, for whoever may."""

import grpc
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.decide.outcome import SendDispatch
from core_console.model.playbook import AGENTS
from tests.builders import AUTHOR, SECOND
from tests.rpc.messages import a_playbook, approval_only, creation
from tests.rpc.site import Site, refused

SPEC_FIELDS = ("name", "description", "steps", "triggers")


async def a_waiting_run(console: Site) -> pb.Run:
    playbook = await console.an_active_playbook(approval_only())
    return (await console.author.RunNow(pb.RunNowRequest(playbook_id=playbook.id))).run


def decision(
    run: pb.Run, answer: pb.ApprovalDecision.ValueType, note: str = ""
) -> pb.DecideApprovalRequest:
    return pb.DecideApprovalRequest(run_id=run.id, step_id="approve", decision=answer, note=note)


async def test_a_written_playbook_reads_back_as_a_draft_with_its_defaults(console: Site) -> None:
    written = (await console.author.CreatePlaybook(creation())).playbook
    assert written == (await console.second.GetPlaybook(pb.GetPlaybookRequest(id="PB-1"))).playbook
    assert (written.id, written.status, written.revision) == ("PB-1", pb.PLAYBOOK_STATUS_DRAFT, 1)
    assert (written.created_by, written.updated_by, list(written.editors)) == (
        AUTHOR,
        AUTHOR,
        [AUTHOR],
    )
    assert written.created_at.ToDatetime(console.clock.now().tzinfo) == console.clock.now()
    assert written.steps[0].dispatch_agent.timeout_minutes == 60
    assert written.steps[2].require_approval.timeout_hours == 72
    assert [trigger.cooldown_minutes for trigger in written.triggers] == [0, 30, 60, 60]
    assert not written.triggers[0].HasField("cooldown_minutes")
    assert len(written.spec_digest) == 64


async def test_everything_that_was_written_reads_back(console: Site) -> None:
    sent = a_playbook()
    written = (await console.author.CreatePlaybook(creation(sent))).playbook
    sent.steps[0].dispatch_agent.timeout_minutes = 60
    sent.steps[2].require_approval.timeout_hours = 72
    sent.triggers[2].cooldown_minutes = 60
    sent.triggers[3].cooldown_minutes = 60
    for name in SPEC_FIELDS:
        assert getattr(written, name) == getattr(sent, name)


async def test_a_figure_that_cannot_be_computed_is_absent_with_its_reason(console: Site) -> None:
    playbook = await console.an_active_playbook(approval_only())
    assert not playbook.success_rate.HasField("value")
    assert playbook.success_rate.absent_reason == "no run has finished"
    for answer in (pb.APPROVAL_DECISION_APPROVE, pb.APPROVAL_DECISION_REJECT):
        run = (await console.author.RunNow(pb.RunNowRequest(playbook_id=playbook.id))).run
        await console.second.DecideApproval(decision(run, answer, "because"))
    after = (await console.author.GetPlaybook(pb.GetPlaybookRequest(id=playbook.id))).playbook
    assert (after.runs_finished, after.runs_succeeded) == (2, 1)
    assert (after.success_rate.value, after.success_rate.absent_reason) == (0.5, "")
    assert not after.expected_lift.HasField("value")
    assert after.expected_lift.absent_reason


async def test_a_playbook_shows_who_may_activate_it_before_anybody_tries(console: Site) -> None:
    written = (await console.author.CreatePlaybook(creation())).playbook
    assert list(written.four_eyes.eligible) == [SECOND]
    (barred,) = written.four_eyes.barred
    assert (barred.operator, barred.reason) == (AUTHOR, "wrote this playbook")
    assert written.four_eyes.needed


async def test_the_author_may_not_activate_and_the_second_operator_may(console: Site) -> None:
    written = (await console.author.CreatePlaybook(creation())).playbook
    activation = pb.ActivatePlaybookRequest(id=written.id, revision=1)
    answer = await refused(console.author.ActivatePlaybook(activation))
    assert answer.code is grpc.StatusCode.PERMISSION_DENIED
    assert answer.sentence.startswith("four eyes: ")
    active = (await console.second.ActivatePlaybook(activation)).playbook
    assert active.status == pb.PLAYBOOK_STATUS_ACTIVE
    assert (active.activated_by, active.activated_revision) == (SECOND, 1)
    assert active.HasField("activated_at")


async def test_activation_of_another_revision_is_aborted(console: Site) -> None:
    await console.author.CreatePlaybook(creation())
    activation = pb.ActivatePlaybookRequest(id="PB-1", revision=2)
    assert (await refused(console.second.ActivatePlaybook(activation))).code is (
        grpc.StatusCode.ABORTED
    )


async def test_get_edit_update_works_with_everything_that_was_read(console: Site) -> None:
    playbook = await console.an_active_playbook(approval_only())
    await console.author.RunNow(pb.RunNowRequest(playbook_id=playbook.id))
    playbook.name = "Ask twice"
    update = pb.UpdatePlaybookRequest(id=playbook.id, revision=playbook.revision, playbook=playbook)
    edited = (await console.author.UpdatePlaybook(update)).playbook
    assert (edited.name, edited.status) == ("Ask twice", pb.PLAYBOOK_STATUS_DRAFT)
    assert edited.revision == playbook.revision + 1
    assert (edited.updated_by, edited.created_by) == (AUTHOR, AUTHOR)


async def test_an_update_survives_a_run_that_ended_since_the_read(console: Site) -> None:
    run = await a_waiting_run(console)
    read = (await console.author.GetPlaybook(pb.GetPlaybookRequest(id=run.playbook_id))).playbook
    await console.author.CancelRun(pb.CancelRunRequest(run_id=run.id, note="enough"))
    read.name = "Ask twice"
    update = pb.UpdatePlaybookRequest(id=read.id, revision=read.revision, playbook=read)
    assert (await console.author.UpdatePlaybook(update)).playbook.name == "Ask twice"


async def test_an_update_that_changes_nothing_keeps_the_playbook_active(console: Site) -> None:
    playbook = await console.an_active_playbook(approval_only())
    update = pb.UpdatePlaybookRequest(id=playbook.id, revision=2, playbook=playbook)
    assert (await console.author.UpdatePlaybook(update)).playbook == playbook
    last = (await console.records())[-1]
    assert (last.action, last.outcome, last.target) == (
        "atlas.playbooks.update",
        "success",
        playbook.id,
    )


async def test_pause_resume_and_delete(console: Site) -> None:
    playbook = await console.an_active_playbook(approval_only())
    paused = (await console.author.PausePlaybook(pb.PausePlaybookRequest(id=playbook.id))).playbook
    assert paused.status == pb.PLAYBOOK_STATUS_PAUSED
    again = (await console.author.ResumePlaybook(pb.ResumePlaybookRequest(id=playbook.id))).playbook
    assert again.status == pb.PLAYBOOK_STATUS_ACTIVE
    await console.author.DeletePlaybook(pb.DeletePlaybookRequest(id=playbook.id))
    gone = await refused(console.author.GetPlaybook(pb.GetPlaybookRequest(id=playbook.id)))
    assert gone.code is grpc.StatusCode.NOT_FOUND
    assert playbook.id in gone.sentence


async def test_a_run_starts_dispatches_and_reads_back(console: Site) -> None:
    playbook = await console.an_active_playbook(creation())
    started = pb.RunNowRequest(playbook_id=playbook.id, request_id="once", note="now")
    run = (await console.author.RunNow(started)).run
    assert run == (await console.author.GetRun(pb.GetRunRequest(id=run.id))).run
    assert (run.status, run.trigger, run.initiator) == (
        pb.RUN_STATUS_WAITING_AGENT,
        pb.TRIGGER_KIND_MANUAL,
        AUTHOR,
    )
    assert (run.request_id, run.note, run.cause) == ("once", "now", pb.CAUSE_UNSPECIFIED)
    assert run.steps[0].call == pb.CALL_PENDING
    assert run.steps[1].status == pb.STEP_RUN_STATUS_PENDING
    assert [step_run.step for step_run in run.steps] == list(playbook.steps)
    assert not run.HasField("finished_at")
    assert not run.steps[0].HasField("scan")
    assert isinstance(console.bench.taken[0], SendDispatch)


async def test_the_same_request_id_answers_the_same_run_and_is_recorded(console: Site) -> None:
    playbook = await console.an_active_playbook(approval_only())
    request = pb.RunNowRequest(playbook_id=playbook.id, request_id="once")
    first = (await console.author.RunNow(request)).run
    assert (await console.author.RunNow(request)).run == first
    runs = [each for each in await console.records() if each.action == "atlas.playbooks.run"]
    assert [each.outcome for each in runs] == ["success", "success"]
    assert runs[1].detail == "the same again; nothing changed"


async def test_the_initiator_may_not_approve_and_the_second_operator_may(console: Site) -> None:
    run = await a_waiting_run(console)
    approve = decision(run, pb.APPROVAL_DECISION_APPROVE, "looks right")
    own = await refused(console.author.DecideApproval(approve))
    assert own.code is grpc.StatusCode.PERMISSION_DENIED
    assert own.sentence.startswith("four eyes: ")
    ended = (await console.second.DecideApproval(approve)).run
    assert ended.status == pb.RUN_STATUS_SUCCEEDED
    assert (ended.steps[0].decided_by, ended.steps[0].decision_note) == (SECOND, "looks right")
    late = await refused(
        console.second.DecideApproval(decision(run, pb.APPROVAL_DECISION_REJECT, "no"))
    )
    assert late.code is grpc.StatusCode.FAILED_PRECONDITION


async def test_a_cancelled_run_says_that_the_job_goes_on(console: Site) -> None:
    run = await a_waiting_run(console)
    bare = await refused(console.author.CancelRun(pb.CancelRunRequest(run_id=run.id)))
    assert (bare.code, list(bare.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, ["note"])
    ended = (await console.author.CancelRun(pb.CancelRunRequest(run_id=run.id, note="no"))).run
    assert ended.status == pb.RUN_STATUS_CANCELLED
    assert "goes on" in ended.detail


@pytest.mark.parametrize("lacks", [(), ("no GitHub App is configured",)])
async def test_the_six_agents_are_always_listed(console: Site, lacks: tuple[str, ...]) -> None:
    console.github.lacks = lacks
    answer = await console.stranger.ListDispatchableAgents(pb.ListDispatchableAgentsRequest())
    assert tuple(answer.agents) == AGENTS
    assert (answer.can_dispatch, tuple(answer.reasons)) == (not lacks, lacks)


@pytest.mark.parametrize("name", ["PB-404", "", "..", "no id at all", "x" * 5000, "\N{SNOWMAN}"])
async def test_an_unknown_id_is_not_found_and_an_odd_one_is_not_repeated(
    console: Site, name: str
) -> None:
    for call in (
        console.author.GetPlaybook(pb.GetPlaybookRequest(id=name)),
        console.author.DeletePlaybook(pb.DeletePlaybookRequest(id=name)),
        console.author.ActivatePlaybook(pb.ActivatePlaybookRequest(id=name, revision=1)),
        console.author.PausePlaybook(pb.PausePlaybookRequest(id=name)),
        console.author.ResumePlaybook(pb.ResumePlaybookRequest(id=name)),
        console.author.UpdatePlaybook(
            pb.UpdatePlaybookRequest(id=name, revision=1, playbook=a_playbook())
        ),
        console.author.RunNow(pb.RunNowRequest(playbook_id=name)),
        console.author.CancelRun(pb.CancelRunRequest(run_id=name, note="x")),
        console.author.GetRun(pb.GetRunRequest(id=name)),
        console.author.DecideApproval(
            pb.DecideApprovalRequest(
                run_id=name, step_id=name, decision=pb.APPROVAL_DECISION_APPROVE
            )
        ),
    ):
        answer = await refused(call)
        assert answer.code is grpc.StatusCode.NOT_FOUND
        assert (name in answer.sentence) == (name in {"PB-404", ""})


async def test_an_id_that_looks_like_a_credential_is_not_repeated_anywhere(console: Site) -> None:
    secret = "ghp_" + "a" * 36
    await refused(console.author.DeletePlaybook(pb.DeletePlaybookRequest(id=secret)))
    run = await a_waiting_run(console)
    answer = await refused(
        console.second.DecideApproval(
            pb.DecideApprovalRequest(
                run_id=run.id, step_id=secret, decision=pb.APPROVAL_DECISION_APPROVE
            )
        )
    )
    assert (answer.code, secret in answer.sentence) == (grpc.StatusCode.NOT_FOUND, False)
    await console.engine.recorded()
    assert secret not in b"".join(console.log.lines).decode()
