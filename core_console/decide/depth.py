"""How deep in a chain an event is, and which run caused it.

Owns the chain depth (contract, section 5). It is never read from what an agent sends: an agent
cannot hide a loop by leaving `causedByRunId` out or by naming an older run.
"""

from datetime import datetime

from msgspec import Struct

from core_console.decide import runs
from core_console.decide.marks import outstanding
from core_console.decide.outcome import Code, Refused
from core_console.decide.spec import named
from core_console.model.document import Document
from core_console.model.run import Cause

DEPTH_MAX = 3
"""The deepest run of a chain (contract, section 5)."""


class Chain(Struct, frozen=True, gc=False):
    """The depth of what an event starts, and the run that gives it that depth.

    A first cause, which no run is known to have led to, starts a chain: depth 0, like a run by
    hand.
    """

    depth: int = 0
    run_id: str = ""
    cause: Cause | None = None

    def objection(self) -> str:
        """Return why nothing of this depth is run, "" when it may be."""
        if self.depth <= DEPTH_MAX:
            return ""
        return (
            f"chain depth {self.depth} exceeds {DEPTH_MAX} (caused by run {self.run_id}) "
            "— refused, not run"
        )


def of_event(document: Document, agent: str, named_run_id: str, now: datetime) -> Chain | Refused:
    """Return the chain of an event of that agent: one deeper than the deepest of its causes."""
    chains = [
        Chain(mark.depth + 1, mark.run_id, Cause.INFERRED)
        for mark in outstanding(document, agent, now)
    ]
    if named_run_id:
        depth = _depth_of(document, named_run_id)
        if depth is None:
            reason = f"{named('run', named_run_id)} does not exist, or is no longer kept"
            return Refused(Code.NOT_FOUND, f"causedByRunId: {reason}")
        # Last, so that of two that are equally deep the named one counts.
        chains.append(Chain(depth + 1, named_run_id, Cause.NAMED))
    return max(reversed(chains), key=lambda chain: chain.depth, default=Chain())


def _depth_of(document: Document, run_id: str) -> int | None:
    run = runs.find(document, run_id)
    if run is not None:
        return run.chain_depth
    return next((mark.depth for mark in document.marks if mark.run_id == run_id), None)
