"""A dispatch is outstanding from its claim until its report, or 6 hours, whatever its run does."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from core_console.decide import depth, marks
from core_console.decide.commands import CancelRun, ReportStep, RunNow, Tick
from core_console.decide.outcome import Code, SendDispatch
from core_console.model.audit import Outcome as Recorded
from core_console.model.document import Document, Mark
from core_console.model.event import FIRST_CAUSE, Chain
from core_console.model.run import Cause, DispatchPayload
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
    context,
    detect,
    later,
    notify,
)
from tests.decide.verdicts import accepted, refused, said

PLAYBOOK = a_playbook(spec=a_spec(detect(minutes=5), notify()))
REPORT = ReportStep("datagov", "PBR-1", "detect", "success", "", RUN_URL)


def mark(
    run_id: str = "PBR-1", *, agent: str = "datagov", depth: int = 0, age_h: float = 0
) -> Mark:
    return Mark(run_id, "detect", agent, depth, NOW - timedelta(hours=age_h))


def marked(*found: Mark) -> Document:
    return a_document(marks=found)


def dispatched() -> Document:
    return accepted(a_document(PLAYBOOK), RunNow(AUTHOR, "PB-1")).document


def inferred(document: Document, **span: float) -> Chain:
    chain = depth.of_event(document, "datagov", "", later(**span))
    assert isinstance(chain, Chain)
    return chain


def test_a_dispatch_is_marked_by_the_swap_that_claims_it() -> None:
    document = dispatched()
    assert document.marks == (Mark("PBR-1", "detect", "datagov", 0, NOW),)
    reported = accepted(document, REPORT).document
    assert reported.marks == (replace(document.marks[0], reported=True),), "notify has no mark"


def test_a_dispatch_that_a_tick_claims_later_is_marked_then() -> None:
    waiting = accepted(a_document(PLAYBOOK), RunNow(AUTHOR, "PB-1"), context(sender_room=0))
    assert waiting.document.marks == ()
    late = context(now=later(minutes=1))
    claimed = accepted(waiting.document, Tick(), late).document
    assert claimed.marks == (Mark("PBR-1", "detect", "datagov", 0, later(minutes=1)),)


def test_the_mark_has_the_depth_of_its_run() -> None:
    run = a_run(PLAYBOOK, chain_depth=2)
    claimed = accepted(a_document(PLAYBOOK, run), Tick()).document
    assert claimed.marks == (Mark("PBR-1", "detect", "datagov", 2, NOW),)


def test_the_newest_three_hundred_marks_are_kept() -> None:
    old = tuple(mark(f"PBR-{number}") for number in range(1_000, 1_300))
    document = accepted(a_document(PLAYBOOK, marks=old), RunNow(AUTHOR, "PB-1")).document
    assert len(document.marks) == 300
    assert document.marks[0] == old[1]
    assert document.marks[-1].run_id == "PBR-1"


def test_only_a_claimed_dispatch_is_marked() -> None:
    effect = SendDispatch(
        "PBR-1", "detect", DispatchPayload("datagov", "PB-1", "PBR-1", "detect", 0)
    )
    assert marks.with_dispatches((), a_run(PLAYBOOK), (effect,)) == ()
    at_notify = a_run_at(PLAYBOOK, "notify")
    assert marks.with_dispatches((), at_notify, (replace(effect, step_id="notify"),)) == ()
    assert marks.with_dispatches((mark(),), at_notify, ()) == (mark(),)


# How long a dispatch is outstanding.


def test_a_dispatch_is_outstanding_from_its_claim_for_six_hours() -> None:
    document = marked(mark(depth=1))
    just_before = timedelta(hours=6) - timedelta(milliseconds=1)
    assert inferred(document) == Chain(2, "PBR-1", Cause.INFERRED)
    assert inferred(document, milliseconds=just_before / timedelta(milliseconds=1)).depth == 2
    assert inferred(document, hours=6) == FIRST_CAUSE
    assert inferred(document, hours=-1).depth == 2, "the clock jumped back"


def test_a_dispatch_is_its_own_agents_alone() -> None:
    assert inferred(marked(mark(agent="judge", depth=2))) == FIRST_CAUSE


def test_an_accepted_report_ends_the_dispatch() -> None:
    document = dispatched()
    assert inferred(document).depth == 1
    assert inferred(accepted(document, REPORT).document) == FIRST_CAUSE


@pytest.mark.parametrize("how", ["timed out", "cancelled", "due, and no tick yet"])
def test_a_dispatch_outlives_its_run_until_a_refused_report_ends_it(how: str) -> None:
    document, late = dispatched(), context(now=later(minutes=5))
    if how == "timed out":
        document = accepted(document, Tick(), late).document
    elif how == "cancelled":
        document = accepted(document, CancelRun(SECOND, "PBR-1", "stop"), late).document
    assert inferred(document, minutes=5).depth == 1
    outcome = accepted(document, REPORT, late)
    assert outcome.refused is not None
    assert outcome.refused.code is Code.FAILED_PRECONDITION
    assert (outcome.answer, outcome.effects) == (None, ())
    assert said(outcome) == [
        ("agent:datagov", "atlas.playbooks.run.report", "PB-1/PBR-1/detect", Recorded.FAILURE)
    ]
    assert outcome.entries[0].detail == (
        f"the report of datagov was refused ({outcome.refused.reason}); "
        "its dispatch is over all the same"
    )
    assert replace(outcome.document, marks=document.marks) == document
    assert inferred(outcome.document, minutes=5) == FIRST_CAUSE
    reason = outcome.refused.reason
    refused(outcome.document, REPORT, Code.FAILED_PRECONDITION, reason, late)


def test_another_agents_report_ends_no_dispatch() -> None:
    report = replace(REPORT, agent="judge")
    reason = "step detect of run PBR-1 awaits datagov, not judge"
    refused(dispatched(), report, Code.FAILED_PRECONDITION, reason)


def test_a_run_in_flight_counts_even_without_its_mark() -> None:
    run = a_run_at(PLAYBOOK, "detect", chain_depth=2)
    crowd = tuple(mark(f"PBR-{number}", agent="judge") for number in range(1_000, 1_300))
    document = a_document(PLAYBOOK, run, marks=crowd)
    assert inferred(document) == Chain(3, "PBR-1", Cause.INFERRED)
    assert inferred(document, hours=6) == FIRST_CAUSE
    broken = replace(run, steps=(replace(run.steps[0], claimed_at=None), *run.steps[1:]))
    assert inferred(a_document(PLAYBOOK, broken)) == FIRST_CAUSE
