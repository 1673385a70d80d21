"""No agent hides a loop: depth comes from what was dispatched, not from what is sent."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from core_console.decide import depth
from core_console.decide.depth import Chain
from core_console.decide.outcome import Code, Refused
from core_console.model.document import Document, Mark
from core_console.model.run import Cause, RunStatus
from tests.builders import (
    NOW,
    a_document,
    a_playbook,
    a_run,
    later,
)

PLAYBOOK = a_playbook()
FIRST_CAUSE = Chain(0, "", None)


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
