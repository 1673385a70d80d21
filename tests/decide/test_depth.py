"""No agent hides a loop: depth comes from what was dispatched, not from what is sent."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from core_console.decide import depth
from core_console.decide.outcome import Code, Refused
from core_console.model.document import Document, Mark
from core_console.model.event import FIRST_CAUSE, Chain
from core_console.model.run import Cause, RunStatus
from tests.builders import (
    NOW,
    a_document,
    a_playbook,
    a_run,
    later,
)

PLAYBOOK = a_playbook()


def mark(
    run_id: str = "PBR-1", *, agent: str = "datagov", depth: int = 0, age_h: float = 0
) -> Mark:
    return Mark(run_id, "detect", agent, depth, NOW - timedelta(hours=age_h))


def marked(*found: Mark) -> Document:
    return a_document(marks=found)


def inferred(document: Document, **span: float) -> Chain:
    chain = depth.of_event(document, "datagov", "", later(**span))
    assert isinstance(chain, Chain)
    return chain


def test_an_event_that_nothing_led_to_starts_a_chain() -> None:
    assert inferred(a_document()) == FIRST_CAUSE


def test_of_many_dispatches_the_deepest_counts_and_then_the_newest() -> None:
    document = marked(mark("PBR-1", depth=2), mark("PBR-2", depth=2), mark("PBR-3", depth=1))
    assert inferred(document) == Chain(3, "PBR-2", Cause.INFERRED)


@pytest.mark.parametrize(
    ("named_depth", "outstanding_depth", "expected"),
    [
        (0, None, Chain(1, "PBR-7", Cause.NAMED)),
        (3, None, Chain(4, "PBR-7", Cause.NAMED)),
        (2, 1, Chain(3, "PBR-7", Cause.NAMED)),
        (1, 1, Chain(2, "PBR-7", Cause.NAMED)),
        (0, 2, Chain(3, "PBR-1", Cause.INFERRED)),  # an older run resets nothing
    ],
)
@pytest.mark.parametrize("kept", ["in flight", "finished", "as a mark"])
def test_the_named_run_and_what_is_outstanding_are_weighed(
    named_depth: int, outstanding_depth: int | None, expected: Chain, kept: str
) -> None:
    found = () if outstanding_depth is None else (mark(depth=outstanding_depth),)
    document = marked(*found)
    if kept == "as a mark":
        old = replace(mark("PBR-7", depth=named_depth, age_h=99), reported=True)
        document = marked(*found, old)
    else:
        status = RunStatus.RUNNING if kept == "in flight" else RunStatus.CANCELLED
        run = a_run(PLAYBOOK, id="PBR-7", chain_depth=named_depth, status=status)
        document = a_document(PLAYBOOK, run, marks=found)
    assert depth.of_event(document, "datagov", "PBR-7", NOW) == expected


@pytest.mark.parametrize(
    ("run_id", "shown"), [("PBR-8", "run PBR-8"), ("ghs_x", "a run of that id")]
)
def test_a_named_run_that_was_never_heard_of_is_not_found(run_id: str, shown: str) -> None:
    reason = f"causedByRunId: {shown} does not exist, or is no longer kept"
    document = marked(mark("PBR-7"))
    assert depth.of_event(document, "datagov", run_id, NOW) == Refused(Code.NOT_FOUND, reason)


def known(at: int) -> Chain:
    return Chain(at, "PBR-4", Cause.INFERRED) if at else FIRST_CAUSE


@pytest.mark.parametrize("then", range(5))
@pytest.mark.parametrize("outstanding_depth", [None, 0, 1, 2, 3])
def test_of_an_event_that_waited_the_deeper_of_then_and_now_counts(
    then: int, outstanding_depth: int | None
) -> None:
    found = () if outstanding_depth is None else (mark(depth=outstanding_depth),)
    now = 0 if outstanding_depth is None else outstanding_depth + 1
    expected = Chain(now, "PBR-1", Cause.INFERRED) if now > then else known(then)
    assert depth.of_event(marked(*found), "datagov", "", NOW, known=known(then)) == expected


def test_a_dispatch_that_ended_while_an_event_waited_still_counts() -> None:
    came = inferred(marked(mark(depth=3)))
    for later_on in (
        marked(),
        marked(replace(mark(depth=3), reported=True)),
        marked(mark(age_h=6)),
    ):
        assert inferred(later_on) == FIRST_CAUSE
        judged = depth.of_event(later_on, "datagov", "", NOW, known=came)
        assert judged == Chain(4, "PBR-1", Cause.INFERRED)


def test_a_named_run_that_is_gone_when_the_event_is_judged_was_known_when_it_came() -> None:
    came = Chain(3, "PBR-7", Cause.NAMED)
    assert depth.of_event(marked(), "datagov", "PBR-7", NOW, known=came) == came
    deeper = marked(mark(depth=3))
    judged = depth.of_event(deeper, "datagov", "PBR-7", NOW, known=came)
    assert judged == Chain(4, "PBR-1", Cause.INFERRED)


def test_what_was_known_at_first_beats_what_is_equally_deep_now_unless_that_is_named() -> None:
    came = Chain(2, "PBR-4", Cause.INFERRED)
    document = marked(mark("PBR-1", depth=1), replace(mark("PBR-7", depth=1), reported=True))
    assert depth.of_event(document, "datagov", "", NOW, known=came) == came
    named = depth.of_event(document, "datagov", "PBR-7", NOW, known=came)
    assert named == Chain(2, "PBR-7", Cause.NAMED)
