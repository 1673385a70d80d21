"""A capex_scan step looks at the feeds as they are, and compares only what compares."""

import asyncio
from collections.abc import Callable
from datetime import date

import pytest

from core_console.decide.commands import DecideApproval, Decision, RunNow, Tick
from core_console.model.capex import DEFAULT_GO_LIVE, Basis, Config, Feed, Thresholds
from core_console.model.capex_document import ScanTrigger
from core_console.model.codec import CAPEX
from core_console.model.run import Run, RunStatus, ScanResult, StepRunStatus
from core_console.ports import Fault, ScanAsked
from core_console.store.memory import MemoryDocument
from tests.builders import AUTHOR, SECOND, a_document, a_playbook, approve, notify, scan
from tests.capex.house import CLEAN, PLAN, SPEND, committed, faulty_plan
from tests.engine.conftest import Replica, World, run_of

VERIFY = scan("verify", compare_to_first_scan=True, rule_ids=("CP-001",))


async def started(world: World, *steps: object) -> tuple[Replica, Run]:
    """Begin with one playbook of these steps, load a plan with a finding, and start a run."""
    world.document = MemoryDocument()
    await world.holding(a_document(a_playbook(*steps)))  # type: ignore[arg-type]  # steps
    replica = await world.replica()
    await committed(replica.feeds.capex, {**CLEAN, PLAN: faulty_plan()})
    return replica, run_of(await replica.engine.submit(RunNow(AUTHOR, "PB-1")))


async def until(world: World, replica: Replica, run: Run, holds: Callable[[Run], bool]) -> Run:
    """Return the run once that holds of it; scans work in threads of their own."""
    async with asyncio.timeout(20):
        while True:
            await world.clock.advance()
            document = await replica.engine.snapshot()
            found = document.running.get("PB-1", document.finished.get(run.id))
            assert found is not None
            if holds(found):
                return found
            await asyncio.sleep(0.005)


def at_approval(run: Run) -> bool:
    return run.status is RunStatus.WAITING_APPROVAL


def ended(run: Run) -> bool:
    return run.finished_at is not None


async def decided(world: World, replica: Replica, run: Run) -> Run:
    """Approve, and return the run at its end."""
    await until(world, replica, run, at_approval)
    await replica.engine.submit(DecideApproval(SECOND, run.id, "approve", Decision.APPROVE))
    await world.clock.advance(1)
    return await until(world, replica, run, ended)


async def test_a_scan_keeps_its_counts_and_a_scan_run_in_the_runs_name(world: World) -> None:
    replica, run = await started(world, scan())
    run = await until(world, replica, run, ended)
    found = run.steps[0].scan
    assert (run.status, found is not None) == (RunStatus.SUCCEEDED, True)
    assert found is not None
    assert found.findings["CP-001"] == 1
    assert found.basis == Basis(DEFAULT_GO_LIVE, Thresholds(), tuple(Feed))
    newest = CAPEX.decode((await world.feeds.load()).data).scans[-1]
    assert (newest.id, newest.trigger, newest.actor) == (
        found.scan_run_id,
        ScanTrigger.MANUAL,
        run.id,
    )
    await replica.engine.recorded()
    (told,) = (each for each in world.records() if each.action.endswith(".scan"))
    assert found.scan_run_id in told.detail


async def test_the_whole_chain_ends_well_when_the_plan_was_corrected_in_between(
    world: World,
) -> None:
    replica, run = await started(world, scan(), approve(), notify(), VERIFY)
    await until(world, replica, run, at_approval)
    await committed(replica.feeds.capex, {PLAN: CLEAN[PLAN]})
    run = await decided(world, replica, run)
    assert run.status is RunStatus.SUCCEEDED
    assert [each.status for each in run.steps] == [StepRunStatus.SUCCEEDED] * 4
    assert run.steps[3].detail == "the findings of CP-001 did not rise: 1 before, 0 now"
    first, last = run.steps[0].scan, run.steps[3].scan
    assert first is not None
    assert last is not None
    assert (last.baseline, last.findings["CP-001"]) == (first.findings, 0)
    [(_, _, comment)] = world.github.comments
    assert "| `scan` | SUCCEEDED |" in comment


async def test_the_chain_fails_when_the_findings_rose(world: World) -> None:
    replica, run = await started(world, scan(), approve(), VERIFY)
    await until(world, replica, run, at_approval)
    await committed(replica.feeds.capex, {PLAN: faulty_plan(3)})
    run = await decided(world, replica, run)
    assert run.status is RunStatus.FAILED
    assert run.detail == "step verify: the findings of CP-001 rose from 1 to 3"
    assert run.steps[2].scan is not None, "what was found is kept all the same"
    assert run.steps[2].scan.baseline["CP-001"] == 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("go-live", "not comparable: Go-Live was 2027-03-31 and is 2028-01-01"),
        ("clear", "not comparable: spend became empty"),
        ("clear-all", "no CapEx feed is loaded"),
    ],
)
async def test_what_does_not_compare_fails_and_says_what_changed(
    world: World, change: str, told: str
) -> None:
    replica, run = await started(world, scan(), approve(), VERIFY)
    await until(world, replica, run, at_approval)
    capex = replica.feeds.capex
    match change:
        case "go-live":
            await capex.configure(actor=AUTHOR, config=Config(date(2028, 1, 1)))
        case "clear":
            await capex.clear(actor=AUTHOR, feed=SPEND, note="")
        case _:
            for feed in Feed:
                await capex.clear(actor=AUTHOR, feed=feed, note="")
    run = await decided(world, replica, run)
    assert (run.status, run.steps[2].detail) == (RunStatus.FAILED, told)


@pytest.mark.parametrize("first", [None, ScanResult("SCAN-0", {"CP-001": 1})])
async def test_a_run_without_a_first_scan_to_compare_with_fails(
    world: World, first: ScanResult | None
) -> None:
    replica, _ = await started(world, scan())
    found = await replica.feeds.scanner.scan(ScanAsked("PBR-1", compares=True, first=first))
    assert found.failure.startswith("not comparable: the run has no first scan")
    assert found.scan_run_id


async def test_a_scan_that_could_not_look_fails_and_is_not_taken_for_a_clean_one(
    world: World,
) -> None:
    replica, run = await started(world, approve(), scan())
    world.feeds.troubles.before.append(Fault("the disk is full"))
    run = await decided(world, replica, run)
    assert run.status is RunStatus.FAILED
    assert run.steps[1].detail == "could not look: the disk is full"
    assert run.steps[1].scan is None


async def test_a_console_that_dies_while_it_scans_abandons_the_step_and_never_scans_again(
    world: World,
) -> None:
    replica, run = await started(world, approve(), scan())
    await until(world, replica, run, at_approval)
    replica.performer._waiting = type(replica.performer._waiting)(maxlen=0)  # dies before
    await replica.engine.submit(DecideApproval(SECOND, run.id, "approve", Decision.APPROVE))
    await replica.die()
    other = await world.replica()
    await world.clock.advance(600)
    await other.engine.submit(Tick())
    run = await until(world, other, run, ended)
    assert run.steps[1].detail.startswith("abandoned:")
    scans = CAPEX.decode((await world.feeds.load()).data).scans
    assert [each.trigger for each in scans] == [ScanTrigger.UPLOAD]
