"""Whatever the console writes in any history keeps every promise that the check knows.

A check that cries wolf is as bad as one that is blind: it would refuse a sound backup. So it is put
to every document that simulated histories swap, with their clocks that jump and their faults.
"""

import re

import pytest

from core_console.model.document import Document
from core_console.state import check
from core_console.state.check import Recorded
from tests.sim.judge import Judge
from tests.sim.plan import plan_of
from tests.sim.simulation import play

SEEDS = range(40)


@pytest.mark.parametrize("start", range(0, len(SEEDS), 10))
def test_every_document_of_a_history_holds(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = Judge.swapped
    found: list[tuple[int, str]] = []
    checked = 0
    # A history may begin with playbooks that are longer than anybody may write, to be near the end
    # of its budget; nothing else of it may break a promise.
    padded = re.compile(
        r"playbook PB-\S+ has a name or a description of another length than it may"
    )

    def swapped(self: Judge, document: Document, size: int, *, replica: str, at_s: float) -> None:
        nonlocal checked
        checked += 1
        anything = Recorded(0, document.outbox_number)
        faults = check.of_metadoc(document, size, anything)
        found.extend((seed, fault) for fault in faults if padded.fullmatch(fault) is None)
        judged(self, document, size, replica=replica, at_s=at_s)

    monkeypatch.setattr(Judge, "swapped", swapped)
    for seed in SEEDS[start : start + 10]:
        assert play(plan_of(seed)).broken is None
    assert found == []
    assert checked > 100
