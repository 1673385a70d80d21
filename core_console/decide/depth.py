"""How deep in a chain an event is, and which run caused it.

Owns the chain depth (contract, section 5). It is never read from what an agent sends: an agent
cannot hide a loop by leaving `causedByRunId` out or by naming an older run, nor a delay of the
console's own: what was known of a waiting event when it was accepted never counts for less later.
"""

from datetime import datetime

from core_console.decide import runs
from core_console.decide.marks import outstanding
from core_console.decide.outcome import Code, Refused
from core_console.decide.spec import named
from core_console.model.document import Document
from core_console.model.event import FIRST_CAUSE, Chain
from core_console.model.run import Cause

DEPTH_MAX = 3
"""The deepest run of a chain (contract, section 5)."""


def objection(chain: Chain) -> str:
    """Return why nothing of this depth is run, "" when it may be."""
    if chain.depth <= DEPTH_MAX:
        return ""
    return (
        f"chain depth {chain.depth} exceeds {DEPTH_MAX} (caused by run {chain.run_id}) "
        "— refused, not run"
    )


def of_event(
    document: Document,
    agent: str,
    named_run_id: str,
    now: datetime,
    *,
    known: Chain = FIRST_CAUSE,
) -> Chain | Refused:
    """Return the chain of an event of that agent: one deeper than the deepest of its causes.

    `known` is what this came to when the event was accepted, if it had to wait since: the deeper
    of then and now counts.
    """
    found = [
        Chain(mark.depth + 1, mark.run_id, Cause.INFERRED)
        for mark in outstanding(document, agent, now)
    ]
    depth = _depth_of(document, named_run_id) if named_run_id else None
    # A named run that is no longer kept was weighed when the event was accepted, if it was.
    if named_run_id and depth is None and known.cause is None:
        reason = f"{named('run', named_run_id)} does not exist, or is no longer kept"
        return Refused(Code.NOT_FOUND, f"causedByRunId: {reason}")
    by_name = () if depth is None else (Chain(depth + 1, named_run_id, Cause.NAMED),)
    # Of those that are equally deep the last counts: the named one, else what was known before.
    chains: tuple[Chain, ...] = (*found, known, *by_name)
    return max(reversed(chains), key=lambda chain: chain.depth)


def _depth_of(document: Document, run_id: str) -> int | None:
    run = runs.find(document, run_id)
    if run is not None:
        return run.chain_depth
    return next((mark.depth for mark in document.marks if mark.run_id == run_id), None)
