"""The check finds every broken promise, and none in what the console itself writes."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from msgspec.structs import replace

from core_console.batch import CAPEX, METADOC
from core_console.decide import budget, events, lifecycle, marks, runs, spec
from core_console.decide.commands import CancelRun, DecideApproval, Decision, ReportStep, Tick
from core_console.decide.decide import decide
from core_console.decide.outcome import Accepted
from core_console.model.codec import encode
from core_console.model.document import Document, Mark
from core_console.model.event import Event
from core_console.model.playbook import (
    AgentEventTrigger,
    CapexEventTrigger,
    CapexScan,
    Condition,
    ConditionOp,
    DispatchAgent,
    ManualTrigger,
    Notify,
    RequireApproval,
    ScheduleTrigger,
    Trigger,
    TriggerState,
)
from core_console.model.run import RunStatus, StepRunStatus
from core_console.ports import Fault
from core_console.state import check, check_playbooks, check_sources, inspect
from core_console.state.check import Recorded
from core_console.store.memory import MemoryLog
from tests.builders import (
    AUTHOR,
    NOW,
    RUN_URL,
    SECOND,
    a_document,
    a_playbook,
    a_run,
    a_run_at,
    a_spec,
    a_step,
    approve,
    context,
    detect,
    later,
)
from tests.state.conftest import Site, a_final_run, a_raising, an_entry, an_outbox, full

ALL = Recorded(0, 10**9)


def faults(document: Document, recorded: Recorded = ALL) -> list[str]:
    return list(check.of_metadoc(document, len(encode(document)), recorded))


def test_a_document_with_something_of_everything_holds() -> None:
    assert faults(full()) == []


def test_the_limits_are_those_of_the_rules_which_are_written_apart() -> None:
    assert check.BUDGET_BYTES == budget.BUDGET_BYTES
    assert check.PLAYBOOKS_MAX == lifecycle.PLAYBOOKS_MAX
    assert check.FINISHED_MAX == runs.FINISHED_MAX
    assert check.EVENTS_MAX == events.EVENTS_MAX
    assert check.MARKS_MAX == marks.MARKS_MAX
    assert check.ATTRIBUTES_MAX == events.ATTRIBUTES_MAX
    assert range(1, spec.STEPS_MAX + 1) == check_playbooks.STEPS
    assert check_playbooks.TRIGGERS_MAX == spec.TRIGGERS_MAX
    assert check_playbooks.CONDITIONS_MAX == spec.CONDITIONS_MAX
    assert check_playbooks.AGENT_MINUTES == spec.AGENT_MINUTES
    assert check_playbooks.APPROVAL_HOURS == spec.APPROVAL_HOURS
    assert check_playbooks.COOLDOWN_MINUTES == spec.COOLDOWN_MINUTES


PLAYBOOK = a_playbook()
ASKED = a_playbook(approve())


def decided(document: Document, *commands: object, **span: float) -> Document:
    """Return what the real rules make of the document."""
    for command in commands:
        outcome = decide(document, command, context(now=later(**span)))  # type: ignore[arg-type]  # any
        assert isinstance(outcome, Accepted), outcome
        document = replace(outcome.document, revision=outcome.document.revision + 1)
    return document


@pytest.mark.parametrize(
    "document",
    [
        decided(
            a_document(PLAYBOOK, a_run_at(PLAYBOOK, "detect")), CancelRun(AUTHOR, "PBR-1", "no")
        ),
        decided(a_document(PLAYBOOK, a_run(PLAYBOOK)), CancelRun(AUTHOR, "PBR-1", "no")),
        decided(a_document(PLAYBOOK, a_run(PLAYBOOK)), Tick()),
        decided(
            a_document(PLAYBOOK, a_run_at(PLAYBOOK, "detect")),
            ReportStep("datagov", "PBR-1", "detect", "success", "", RUN_URL),
            DecideApproval(SECOND, "PBR-1", "approve", Decision.APPROVE),
        ),
        decided(
            a_document(PLAYBOOK, a_run_at(PLAYBOOK, "detect")),
            ReportStep("datagov", "PBR-1", "detect", "failure", "no", RUN_URL),
        ),
        decided(
            a_document(ASKED, a_run_at(ASKED, "approve")),
            DecideApproval(SECOND, "PBR-1", "approve", Decision.REJECT, "no"),
        ),
        decided(a_document(ASKED, a_run_at(ASKED, "approve")), Tick(), hours=73),
        decided(a_document(PLAYBOOK, a_run_at(PLAYBOOK, "detect")), Tick(), minutes=3),
        decided(
            a_document(
                PLAYBOOK,
                replace(
                    a_run_at(PLAYBOOK, "approve"),
                    steps=tuple(
                        replace(each, status=StepRunStatus.SUCCEEDED, finished_at=NOW)
                        for each in a_run_at(PLAYBOOK, "approve").steps
                    ),
                ),
            ),
            Tick(),
        ),
    ],
    ids=[
        "cancelled",
        "before its claim",
        "claimed",
        "approved",
        "failed",
        "rejected",
        "expired",
        "abandoned",
        "set aside",
    ],
)
def test_what_the_rules_write_holds(document: Document) -> None:
    # The one that is set aside was broken by the test; its own steps may tell what they like.
    found = [each for each in faults(document) if "nobody decided it" not in each]
    assert found == []


def with_playbook(**changes: object) -> Document:
    playbook = a_playbook(**changes)  # type: ignore[arg-type]  # any field
    return a_document(playbook)


def with_spec(**changes: object) -> Document:
    made = a_spec(**changes)
    return a_document(a_playbook(spec=made))


def triggered(trigger: Trigger) -> Document:
    return with_spec(triggers=(trigger,))


def with_run(**changes: object) -> Document:
    return a_document(PLAYBOOK, replace(a_run_at(PLAYBOOK, "detect"), **changes))


def with_step(index: int, **changes: object) -> Document:
    run = a_run_at(PLAYBOOK, "approve")
    steps = list(run.steps)
    steps[index] = replace(steps[index], **changes)
    return a_document(PLAYBOOK, replace(run, steps=tuple(steps)))


COUNTED = replace(PLAYBOOK, runs_finished=1, runs_succeeded=1)
DONE = a_final_run(a_run(ASKED, id="PBR-9"))


def with_done(**changes: object) -> Document:
    asked = replace(ASKED, runs_finished=1, runs_succeeded=1)
    return a_document(asked, replace(DONE, **changes))


def many(number: int, make: Callable[[int], Event]) -> dict[str, Event]:
    return {f"PBE-{each}": make(each) for each in range(number)}


def an_event(number: int, **changes: object) -> Event:
    event = Event(f"PBE-{number}", NOW, "datagov", "looked", "agent:datagov", 1)
    return replace(event, **changes)


CONDITION = Condition("x", ConditionOp.EQ, "1")

BROKEN: list[tuple[str, Document]] = [
    ("the budget is 786,432", replace(full(), taken={"x" * 800_000: 1})),
    ("101 playbooks", a_document(*(a_playbook(id=f"PB-{each}") for each in range(101)))),
    (
        "201 finished runs",
        a_document(
            replace(ASKED, runs_finished=999, runs_succeeded=999),
            *(replace(DONE, id=f"PBR-{each}") for each in range(201)),
        ),
    ),
    ("301 events", replace(a_document(), events=many(301, an_event))),
    (
        "301 marks",
        replace(a_document(), marks=(Mark("PBR-1", "detect", "datagov", 0, NOW),) * 301),
    ),
    ("taken from capex has the number -1", replace(a_document(), taken={"capex": -1})),
    ("trimmed up to 11", replace(a_document(), trimmed=11)),
    ("at revision -1", replace(a_document(), revision=-1)),
    ("playbook PB-1 changed at revision 11", with_playbook(changed=11)),
    ("run PBR-1 changed at revision 11", with_run(revision=11)),
    (
        "event PBE-1 changed at revision 11",
        replace(a_document(), events={"x": an_event(1, revision=11)}),
    ),
    ("counts 0 finished runs", a_document(ASKED, DONE)),
    (
        "stands under playbook PB-2",
        replace(a_document(PLAYBOOK, a_playbook(id="PB-2")), running={"PB-2": a_run(PLAYBOOK)}),
    ),
    ("its playbook PB-1 is gone", a_document(a_run_at(PLAYBOOK, "detect"))),
    (
        "PBR-1 is there 2 times",
        a_document(
            COUNTED,
            a_run_at(PLAYBOOK, "detect"),
            replace(a_final_run(a_run(PLAYBOOK)), id="PBR-1"),
        ),
    ),
    (
        "and other steps",
        with_run(steps=a_run_at(ASKED, "approve").steps, status=RunStatus.WAITING_APPROVAL),
    ),
    ("of no agent", replace(a_document(), events={"PBE-1": an_event(1, agent="nobody")})),
    ("came 0 times", replace(a_document(), events={"PBE-1": an_event(1, count=0)})),
    (
        "17 attributes",
        replace(
            a_document(),
            events={"PBE-1": an_event(1, attributes=dict.fromkeys(map(str, range(17)), ""))},
        ),
    ),
    (
        "a subject of 257 bytes",
        replace(a_document(), events={"PBE-1": an_event(1, subject="x" * 257)}),
    ),
    (
        "is of no dispatch",
        replace(a_document(), marks=(Mark("PBR-1", "detect", "nobody", 0, NOW),)),
    ),
    ("is of no dispatch", replace(a_document(), marks=(Mark("PBR-1", "detect", "judge", 4, NOW),))),
    (
        "older than the one before it",
        replace(
            a_document(),
            marks=(
                Mark("PBR-1", "detect", "judge", 0, NOW),
                Mark("PBR-2", "detect", "judge", 0, NOW - timedelta(days=2)),
            ),
        ),
    ),
    ("a spec digest that is not", with_playbook(spec_digest="0" * 64)),
    ("activated at another", with_playbook(activated_revision=9)),
    ("no swap writes", with_playbook(revision=0, activated_by="", activated_revision=0)),
    ("no swap writes", with_playbook(runs_succeeded=1)),
    ("remembers 1 triggers", with_playbook(trigger_states={"x": TriggerState()})),
    ("ended before it began", with_playbook(updated_at=NOW - timedelta(days=9))),
    ("nobody activated it", with_playbook(activated_by="")),
    ("four eyes", with_playbook(activated_by=AUTHOR)),
    ("four eyes", with_playbook(updated_by=SECOND)),
    ("a name or a description", with_spec(name="")),
    ("a name or a description", with_spec(description="x" * 2_001)),
    ("has 0 steps", a_document(a_playbook(spec=replace(a_spec(), steps=())))),
    (
        "5 triggers",
        with_spec(triggers=tuple(Trigger(f"t{each}", ManualTrigger()) for each in range(5))),
    ),
    ("a step id that is none", a_document(a_playbook(detect("..")))),
    ("a step id that is none, or is there twice", a_document(a_playbook(detect(), detect()))),
    ("a title of 121", a_document(a_playbook(a_step("x", CapexScan(), title="x" * 121)))),
    ("beyond its bounds", a_document(a_playbook(a_step("x", DispatchAgent("nobody", 60))))),
    ("beyond its bounds", a_document(a_playbook(a_step("x", DispatchAgent("judge", 4))))),
    ("beyond its bounds", a_document(a_playbook(a_step("x", RequireApproval(169))))),
    ("a prompt of 1,001", a_document(a_playbook(a_step("x", RequireApproval(1, "", "x" * 1_001))))),
    ("beyond its bounds", a_document(a_playbook(a_step("x", Notify("a/b", 1))))),
    ("beyond its bounds", a_document(a_playbook(a_step("x", Notify("core", 0))))),
    ("trigger 1, is beyond", triggered(Trigger("t", ManualTrigger(), 5))),
    ("trigger 1, is beyond", triggered(Trigger("t", ScheduleTrigger("* 2 * * *"), 60))),
    ("trigger 1, is beyond", triggered(Trigger("t", ScheduleTrigger("5 2 * * *"), 4))),
    ("trigger 1, is beyond", triggered(Trigger("t", AgentEventTrigger("nobody", "x"), 60))),
    ("trigger 1, is beyond", triggered(Trigger("t", AgentEventTrigger("judge", "X"), 60))),
    ("9 conditions", triggered(Trigger("t", CapexEventTrigger((CONDITION,) * 9), 60))),
    (
        "a value of 257",
        triggered(Trigger("t", CapexEventTrigger((replace(CONDITION, value="x" * 257),)), 60)),
    ),
    ("or has a time at which it finished", with_run(finished_at=NOW)),
    (
        "did not succeed one after another",
        with_step(2, status=StepRunStatus.SUCCEEDED, finished_at=NOW),
    ),
    ("its step detect is WAITING_AGENT", with_run(status=RunStatus.WAITING_APPROVAL)),
    (
        "began before its turn",
        with_step(2, status=StepRunStatus.RUNNING, claimed_by="x", claimed_at=NOW),
    ),
    ("is kept as finished", with_done(finished_at=None)),
    ("ended before it began", with_done(finished_at=NOW - timedelta(days=2))),
    ("its steps say otherwise", with_done(status=RunStatus.FAILED)),
    (
        "its steps say otherwise",
        with_done(
            status=RunStatus.SUCCEEDED,
            steps=tuple(replace(each, status=StepRunStatus.FAILED) for each in DONE.steps),
        ),
    ),
    (
        "its steps say otherwise",
        with_done(
            status=RunStatus.FAILED,
            detail="set aside, for x",
            steps=tuple(
                replace(each, status=StepRunStatus.PENDING, finished_at=None) for each in DONE.steps
            ),
        ),
    ),
    ("or a step id that is none", with_run(steps=())),
    ("the chain depth 4", with_run(chain_depth=4)),
    ("a note of 1,001", with_run(note="x" * 1_001)),
    ("the time at which it finished says otherwise", with_step(0, finished_at=None)),
    ("nobody claimed it", with_step(1, claimed_by="")),
    ("another deadline", with_step(1, deadline=NOW)),
    ("another deadline", with_step(2, deadline=NOW)),
    (
        "nobody decided it",
        with_done(steps=tuple(replace(each, decided_by="") for each in DONE.steps)),
    ),
    ("four eyes", with_done(initiator=SECOND)),
    ("a detail of 501", with_step(1, detail="x" * 501)),
    ("a GitHub run URL of 301", with_step(0, github_run_url="x" * 301)),
]


@pytest.mark.parametrize(("told", "document"), BROKEN, ids=[told for told, _ in BROKEN])
def test_a_broken_promise_is_found(told: str, document: Document) -> None:
    assert [each for each in faults(document) if told in each], faults(document)


def test_a_fault_repeats_nothing_that_somebody_wrote() -> None:
    document = with_spec(name="Payroll " * 30)
    (fault,) = faults(document)
    assert "Payroll" not in fault


def test_a_clock_that_was_set_back_by_an_hour_breaks_no_promise() -> None:
    assert faults(with_done(finished_at=NOW - timedelta(hours=1))) == []


def out(outbox: object, number: int, recorded: Recorded) -> list[str]:
    return faults(replace(a_document(), outbox=outbox, outbox_number=number), recorded)


def test_an_outbox_is_numbered_up_to_the_documents_last() -> None:
    assert out(an_outbox(4, 5), 5, Recorded(3, 3)) == []
    assert out(an_outbox(4, 5), 5, Recorded(5, 5)) == [], "recorded ones leave in a later swap"
    assert out((), 5, Recorded(5, 5)) == []
    assert "without a gap" in out(an_outbox(4, 5), 6, Recorded(3, 3))[0]
    assert "without a gap" in out((*an_outbox(3, 3), *an_outbox(5, 5)), 5, Recorded(2, 2))[0]


def test_a_chain_that_lost_its_end_is_found() -> None:
    told = "entries 3 to 3 are neither in the outbox nor in the chain"
    assert told in out(an_outbox(4, 5), 5, Recorded(2, 2))[0]
    assert "entries 1 to 5 are neither" in out((), 5, Recorded())[0]


def test_a_document_that_is_older_than_the_chain_is_found() -> None:
    assert "the chain holds entry 9" in out((), 5, Recorded(9, 9))[0]


def test_the_entry_of_a_restore_may_go_on_with_a_higher_number() -> None:
    entry = replace(an_outbox(9, 9)[0], entry=an_entry("state.restore"))
    assert out((entry,), 9, Recorded(2, 2)) == []


async def test_a_whole_root_holds(site: Site) -> None:
    assert [each async for each in inspect.faults(site.root)] == []


async def test_a_blob_that_a_document_needs_and_that_is_gone_is_found(site: Site) -> None:
    site.blobs[CAPEX.name].held.clear()
    found = [each async for each in inspect.faults(site.root)]
    assert len(found) == 2
    assert all(each.startswith("capex: the ") for each in found)
    assert any("feed spend cannot be read" in each for each in found)


async def test_a_document_that_does_not_decode_is_found(site: Site) -> None:
    await site.hold(METADOC.name, b"{}")
    found = [each async for each in inspect.faults(site.root)]
    assert len(found) == 1
    assert "atlas-playbooks cannot be read" in found[0]


async def test_a_chain_that_was_edited_is_found(site: Site) -> None:
    site.log.lines[2] = site.log.lines[2].replace(b"it was done", b"it was odd!")
    found = [each async for each in inspect.faults(site.root)]
    assert any(each.startswith("audit chain: record 3 does not hold") for each in found)


async def test_a_chain_that_cannot_be_read_is_told(site: Site) -> None:
    class Gone(MemoryLog):
        async def last_seq(self) -> int:
            raise Fault("the disk reports an input/output error")

    site.log = Gone()
    found = [each async for each in inspect.faults(site.root)]
    assert found[0] == "audit chain: the disk reports an input/output error"


async def test_the_feeds_and_the_reports_are_judged_too(site: Site) -> None:
    feeds, reports = await site.feeds(), await site.reports()
    scans = replace(feeds, raising=(a_raising(3), a_raising(2)))
    assert "not numbered in order" in next(check_sources.of_feeds(scans, ALL))
    assert "not numbered in order" in next(
        check_sources.of_feeds(replace(feeds, raising=(a_raising(9),)), ALL)
    )
    doubled = replace(feeds, stages=feeds.stages * 2)
    assert "there twice" in next(check_sources.of_feeds(doubled, ALL))
    (stage,) = feeds.stages
    nameless = replace(feeds, stages=(replace(stage, digest="x"),))
    assert "a digest that is none" in next(check_sources.of_feeds(nameless, ALL))
    misplaced = replace(reports, latest={"recon": reports.latest["judge"]})
    assert "stands under recon" in next(check_sources.of_reports(misplaced, ALL))
    strange = replace(reports, seen={"nobody": {}})
    assert "agents that send none" in next(check_sources.of_reports(strange, ALL))
