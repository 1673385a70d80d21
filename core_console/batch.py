"""A batch: commands decided in order, each against the state that the one before it left.

Owns what becomes of many commands in one swap. A refused command, or one that meets a bug of
ours, changes nothing and does not spoil its batch.
"""

from collections.abc import Callable, Sequence

import structlog
from msgspec import Struct

from core_console.decide.commands import Command
from core_console.decide.context import Context
from core_console.decide.decide import decide
from core_console.decide.outbox import (
    OUTBOX_BYTES_MAX,
    entries_bytes,
    is_new_work,
    outbox_bytes,
    unwritable,
    with_entries,
)
from core_console.decide.outcome import Accepted, Effect, Outcome
from core_console.model.document import Document
from core_console.model.faults import InvariantError

_log = structlog.get_logger(__name__)


class Decided(Struct, frozen=True, gc=False):
    """What a batch came to: one outcome for each command that was taken, in order.

    `document` is the very one that was given when no command changed anything.
    """

    document: Document
    outcomes: list[Outcome | Exception]
    effects: list[Effect]


def decide_batch(
    base: Document, commands: Sequence[Command], context_after: Callable[[int], Context]
) -> Decided:
    """Decide as many commands as the outbox has room for.

    New work that finds the outbox full at the start of its batch is refused; when the batch
    itself filled it, the rest is left for the next batch. `context_after` is given the number of
    effects that the batch has claimed so far.
    """
    document, waiting_bytes = base, outbox_bytes(base)
    was_full = waiting_bytes >= OUTBOX_BYTES_MAX
    outcomes: list[Outcome | Exception] = []
    effects: list[Effect] = []
    for command in commands:
        outcome: Outcome | Exception = unwritable()
        if waiting_bytes < OUTBOX_BYTES_MAX or not is_new_work(command):
            outcome = decide_one(document, command, context_after(len(effects)))
        elif not was_full:
            break
        if isinstance(outcome, Accepted) and outcome.document is not document:
            document = with_entries(outcome.document, outcome.entries)
            waiting_bytes += entries_bytes(outcome.entries)
            effects.extend(outcome.effects)
        outcomes.append(outcome)
    return Decided(document, outcomes, effects)


def decide_one(document: Document, command: Command, context: Context) -> Outcome | Exception:
    """Decide one command; a bug of ours that it meets is its outcome, and its alone."""
    try:
        return decide(document, command, context)
    except Exception as error:
        _log.exception("decision_failed", command=type(command).__name__)
        # A future cannot carry a StopIteration, and whoever waits must be answered.
        return InvariantError("a decision failed") if isinstance(error, StopIteration) else error
