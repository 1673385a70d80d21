import asyncio

import pytest

from core_console.decide.commands import (
    CancelRun,
    DecideApproval,
    Decision,
    ReportStep,
    RunNow,
    Tick,
)
from core_console.decide.outcome import Accepted
from core_console.effects import CLAIM_S, WAITING_MAX
from core_console.model.codec import encode
from core_console.model.run import Call, Run, RunStatus, StepRunStatus
from core_console.ports import CallOutcome, Fault
from core_console.store.memory import MemoryDocument
from tests.builders import (
    AUTHOR,
    RUN_URL,
    SECOND,
    a_document,
    a_playbook,
    approve,
    detect,
    notify,
    scan,
)
from tests.engine.conftest import Replica, World, run_of


async def started(world: World, *steps: object) -> tuple[Replica, Run]:
    """Begin with one playbook of these steps, and start a run of it."""
    world.document = MemoryDocument()
    await world.holding(a_document(a_playbook(*steps)))  # type: ignore[arg-type] # steps
    replica = await world.replica()
    return replica, run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1")))


async def now_is(world: World, replica: Replica, run: Run) -> Run:
    """Return the run after everything that can go on has."""
    await world.clock.advance()
    document = await replica.engine.snapshot()
    kept = document.running.get("PB-1")
    return kept if kept is not None else document.finished[run.id]


async def test_a_claimed_dispatch_is_sent_once_and_its_acceptance_recorded(world: World) -> None:
    replica, run = await started(world, detect())
    run = await now_is(world, replica, run)
    assert [(each.run_id, each.agent) for each in world.github.dispatched] == [(run.id, "datagov")]
    assert run.steps[0].call is Call.ACCEPTED
    assert run.status is RunStatus.WAITING_AGENT
    for _ in range(3):
        await replica.engine.submit(Tick())
    await world.clock.advance(600)
    assert len(world.github.dispatched) == 1


async def test_a_report_that_comes_before_the_dispatch_call_returned_is_accepted(
    world: World,
) -> None:
    report: list[object] = []

    async def the_agent_is_quick() -> None:
        payload = world.github.dispatched[-1]
        report.append(
            await world.replicas[0].engine.submit(
                ReportStep("datagov", payload.run_id, payload.step_id, "success", "", RUN_URL)
            )
        )

    world.github.before_answer = the_agent_is_quick
    replica, run = await started(world, detect())
    run = await now_is(world, replica, run)
    assert isinstance(report[0], Accepted)
    assert run.status is RunStatus.SUCCEEDED
    assert run.steps[0].call is Call.ACCEPTED
    await replica.engine.recorded()
    assert world.actions() == ["run", "run.report", "run.end", "run.dispatch"]


async def test_a_report_that_comes_before_the_dispatch_left_keeps_it_from_leaving(
    world: World,
) -> None:
    async def a_report_out_of_nowhere() -> None:
        [run] = (await world.replicas[0].engine.snapshot()).running.values()
        await world.replicas[0].engine.submit(
            ReportStep("datagov", run.id, "detect", "success", "", RUN_URL)
        )

    world.github.before_sending = a_report_out_of_nowhere
    replica, run = await started(world, detect(), approve())
    run = await now_is(world, replica, run)
    assert world.github.dispatched == []
    assert run.status is RunStatus.WAITING_APPROVAL
    assert run.steps[0].call is Call.REFUSED
    await replica.engine.recorded()
    dispatched = [each for each in world.records() if each.action.endswith("run.dispatch")]
    assert [each.outcome for each in dispatched] == ["failure"], "and no record says it left"


async def test_a_run_that_is_cancelled_while_its_call_waits_for_its_turn_sends_nothing(
    world: World,
) -> None:
    async def somebody_cancels() -> None:
        [run] = (await world.replicas[0].engine.snapshot()).running.values()
        await world.replicas[0].engine.submit(CancelRun(AUTHOR, run.id, "stop"))

    world.github.before_sending = somebody_cancels
    replica, run = await started(world, detect())
    run = await now_is(world, replica, run)
    assert world.github.dispatched == []
    assert run.status is RunStatus.CANCELLED
    assert run.steps[0].call is Call.REFUSED


async def test_an_ambiguous_dispatch_is_never_sent_again(world: World) -> None:
    world.github.answer = CallOutcome(
        Call.UNKNOWN, "GitHub answered 502: it may have been accepted"
    )
    replica, run = await started(world, detect(minutes=5))
    run = await now_is(world, replica, run)
    assert (run.status, run.steps[0].call) == (RunStatus.WAITING_AGENT, Call.UNKNOWN)
    assert "may have been accepted" in run.steps[0].detail
    for _ in range(6):
        await world.clock.advance(60)
        await replica.engine.submit(Tick())
    assert (await now_is(world, replica, run)).status is RunStatus.TIMED_OUT
    assert len(world.github.dispatched) == 1


async def test_a_refused_dispatch_fails_the_step_with_what_to_fix(world: World) -> None:
    world.github.answer = CallOutcome(Call.REFUSED, "grant the App contents: write")
    replica, run = await started(world, detect(), approve())
    run = await now_is(world, replica, run)
    assert run.status is RunStatus.FAILED
    assert run.detail == "step detect: grant the App contents: write"
    assert run.steps[1].status is StepRunStatus.SKIPPED


async def test_a_run_that_was_cancelled_before_the_call_left_sends_nothing(world: World) -> None:
    replica, run = await started(world, approve(), detect())
    world.clock.jump(0)
    outcome, _ = await asyncio.gather(
        replica.engine.submit(DecideApproval(SECOND, run.id, "approve", Decision.APPROVE)),
        replica.engine.submit(CancelRun(AUTHOR, run.id, "no")),
    )
    assert isinstance(outcome, Accepted)
    await asyncio.sleep(0.1)  # the two were answered together, so their writer waits for more
    run = await now_is(world, replica, run)
    assert world.github.dispatched == []
    assert run.status is RunStatus.CANCELLED
    assert run.steps[1].call is Call.REFUSED


async def test_a_claim_that_is_older_than_a_minute_is_not_sent(world: World) -> None:
    replica, run = await started(world, approve(), detect())
    await replica.engine.submit(DecideApproval(SECOND, run.id, "approve", Decision.APPROVE))
    world.clock.jump(CLAIM_S)  # the process stood still between its swap and its call
    run = await now_is(world, replica, run)
    assert world.github.dispatched == []
    assert run.status is RunStatus.FAILED
    assert run.steps[1].detail == "not sent: its claim is older than 60 s"


async def test_a_clock_that_is_set_back_prolongs_no_claim(world: World) -> None:
    replica, run = await started(world, approve(), detect())
    await replica.engine.submit(DecideApproval(SECOND, run.id, "approve", Decision.APPROVE))
    world.clock.jump(-3_600)  # a call that waits out a rate limit would wait for an hour
    run = await now_is(world, replica, run)
    assert len(world.github.dispatched) == 1
    assert run.steps[1].call is Call.ACCEPTED


async def test_a_claim_whose_process_died_is_abandoned_and_never_sent(world: World) -> None:
    replica, run = await started(world, approve(), detect())
    replica.performer._waiting = type(replica.performer._waiting)(maxlen=0)  # dies before sending
    await replica.engine.submit(DecideApproval(SECOND, run.id, "approve", Decision.APPROVE))
    await replica.die()
    other = await world.replica()
    await world.clock.advance(119)
    await other.engine.submit(Tick())
    assert (await now_is(world, other, run)).status is RunStatus.WAITING_AGENT
    await world.clock.advance(1)
    await other.engine.submit(Tick())
    run = await now_is(world, other, run)
    assert run.status is RunStatus.FAILED
    assert run.steps[1].detail.startswith("abandoned:")
    assert world.github.dispatched == []


async def test_calls_leave_one_a_second(world: World) -> None:
    world.document = MemoryDocument()
    playbooks = [a_playbook(detect(), id=f"PB-{n}") for n in range(5)]
    await world.holding(a_document(*playbooks))
    replica = await world.replica()
    await asyncio.gather(*(replica.engine.submit(RunNow(AUTHOR, f"PB-{n}")) for n in range(5)))
    sent = []
    for _ in range(5):
        await world.clock.advance()
        sent.append(len(world.github.dispatched))
        await world.clock.advance(1)
    assert sent == [1, 2, 3, 4, 5]


async def test_a_full_sender_leaves_steps_pending_and_a_tick_claims_them(world: World) -> None:
    world.document = MemoryDocument()
    playbooks = [a_playbook(detect(), id=f"PB-{n}") for n in range(40)]
    await world.holding(a_document(*playbooks))
    replica = await world.replica()
    outcomes = await asyncio.gather(
        *(replica.engine.submit(RunNow(AUTHOR, f"PB-{n}")) for n in range(40))
    )
    statuses = [run_of(each).steps[0].status for each in outcomes]
    assert statuses.count(StepRunStatus.WAITING_AGENT) == WAITING_MAX
    assert statuses.count(StepRunStatus.PENDING) == 40 - WAITING_MAX
    await world.clock.advance(30)
    await replica.engine.submit(Tick())
    await world.clock.advance(30)
    assert len({each.run_id for each in world.github.dispatched}) == 40
    assert len(world.github.dispatched) == 40


async def test_the_comment_says_ids_statuses_and_counts_and_no_words_of_people(
    world: World,
) -> None:
    replica, run = await started(world, approve(), notify())
    await replica.engine.submit(
        DecideApproval(SECOND, run.id, "approve", Decision.APPROVE, "looks fine")
    )
    run = await now_is(world, replica, run)
    assert run.status is RunStatus.SUCCEEDED
    [(repo, issue, body)] = world.github.comments
    assert (repo, issue) == ("core", 7)
    assert run.id in body
    assert "| `approve` | SUCCEEDED |" in body
    assert "1 of 2 steps" in body
    for secret in ("looks fine", "Watch the data", AUTHOR, SECOND):
        assert secret not in body


async def test_a_comment_that_may_have_been_posted_fails_the_step_and_says_so(
    world: World,
) -> None:
    world.github.answer = CallOutcome(Call.UNKNOWN, "GitHub answered 502")
    replica, run = await started(world, notify())
    run = await now_is(world, replica, run)
    assert run.status is RunStatus.FAILED
    assert run.steps[0].detail == "the comment may have been posted: not sent again"
    assert len(world.github.comments) == 1


async def test_a_scan_without_a_feed_fails_honestly(world: World) -> None:
    replica, run = await started(world, scan())
    run = await now_is(world, replica, run)
    assert run.status is RunStatus.FAILED
    assert run.steps[0].detail == "no CapEx feed is loaded"
    assert run.steps[0].scan is None


async def test_an_outcome_is_written_when_the_store_comes_back(world: World) -> None:
    replica, run = await started(world, detect())
    world.document.troubles.before.extend(Fault("away") for _ in range(3))
    for _ in range(5):
        await world.clock.advance(1)
    assert (await now_is(world, replica, run)).steps[0].call is Call.ACCEPTED
    assert len(world.github.dispatched) == 1


async def test_a_console_that_stops_records_what_it_never_sent(world: World) -> None:
    world.document = MemoryDocument()
    playbooks = [a_playbook(detect(), id=f"PB-{n}") for n in range(3)]
    await world.holding(a_document(*playbooks))
    replica = await world.replica()
    await asyncio.gather(*(replica.engine.submit(RunNow(AUTHOR, f"PB-{n}")) for n in range(3)))
    await world.clock.advance()
    await replica.performer.close(replica.engine)
    document = await replica.engine.snapshot()
    assert len(world.github.dispatched) == 1
    details = sorted(run.detail for run in document.finished.values())
    assert details == ["step detect: not sent: the console was stopping"] * 2


async def test_an_effect_that_meets_a_bug_is_abandoned_not_repeated(world: World) -> None:
    async def broken() -> None:
        raise ZeroDivisionError

    world.github.before_answer = broken
    replica, run = await started(world, detect())
    await world.clock.advance(120)
    await replica.engine.submit(Tick())
    run = await now_is(world, replica, run)
    assert run.status is RunStatus.FAILED
    assert len(world.github.dispatched) == 1


@pytest.mark.parametrize("replicas", [2, 3])
async def test_replicas_share_the_work_and_double_nothing(world: World, replicas: int) -> None:
    world.document = MemoryDocument()
    playbooks = [a_playbook(detect(minutes=5), id=f"PB-{n}") for n in range(6)]
    await world.document.swap("", encode(a_document(*playbooks)))
    consoles = [await world.replica() for _ in range(replicas)]
    asked = [
        asyncio.create_task(each.engine.submit(RunNow(AUTHOR, f"PB-{n}")))
        for n in range(6)
        for each in consoles
    ]
    for _ in range(20):
        await world.clock.advance(1)
    outcomes = await asyncio.gather(*asked)
    assert sum(isinstance(each, Accepted) for each in outcomes) == 6
    for _ in range(6):
        await world.clock.advance(60)
        await asyncio.gather(*(each.engine.submit(Tick()) for each in consoles))
    await world.clock.advance(5)
    document = await consoles[0].engine.snapshot()
    assert [run.status for run in document.finished.values()] == [RunStatus.TIMED_OUT] * 6
    assert len({each.run_id for each in world.github.dispatched}) == 6
    assert len(world.github.dispatched) == 6
    for each in consoles:
        await each.engine.recorded()
    assert world.actions().count("run.end") == 6
    assert world.actions().count("run.timeout") == 6
