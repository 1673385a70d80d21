"""A batch: commands decided in order, each against the state that the one before it left.

Owns what becomes of many commands in one swap. A refused command, or one that meets a bug of
ours, changes nothing and does not spoil its batch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import structlog

from core_console.decide import budget, capex
from core_console.decide.budget import Room
from core_console.decide.capex_commands import CapexCommand
from core_console.decide.commands import Command, Tick
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
from core_console.decide.outcome import Accepted, CapexAccepted, Carried, Effect, Refused
from core_console.model.capex_document import EMPTY_CAPEX, CapexDocument
from core_console.model.codec import CAPEX as CAPEX_CODEC
from core_console.model.codec import METADOC as METADOC_CODEC
from core_console.model.codec import Codec
from core_console.model.document import EMPTY, Document, Versioned
from core_console.model.faults import InvariantError

_log = structlog.get_logger(__name__)


D = TypeVar("D", bound=Versioned)
C = TypeVar("C")
R = TypeVar("R", bound=Carried[Any, Any])

Decide = Callable[[D, C, Context], R | Refused]


@dataclass(frozen=True, slots=True)
class Decided(Generic[D, R]):
    """What a batch came to: one outcome for each command that was taken, in order.

    `document` is the very one that was given when no command changed anything.
    """

    document: D
    outcomes: list[R | Refused | Exception]
    effects: list[Effect]


D_contra = TypeVar("D_contra", contravariant=True)
C_contra = TypeVar("C_contra", contravariant=True)


class Ledger(Protocol[D_contra, C_contra, R]):
    """Who keeps account of a document's budget."""

    def room(self, document: D_contra) -> Room:
        """Return the room of a document."""
        ...

    def admit(
        self, before: D_contra, room: Room, command: C_contra, outcome: R
    ) -> tuple[R | Refused, Room]:
        """Return the outcome, with history trimmed for it or refused, and the room after it."""
        ...


def no_part(_command: object) -> None:
    """Return that a command has no part that needs no room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[D, C, R]):
    """A kind of document: its name in records, its beginning, its bytes and its decisions.

    `is_new_work` says of a command whether it starts something, rather than ending what is in
    flight: new work is refused while the outbox is full. `ledger` keeps account of a budget, and
    `without_new` returns the part of a command that needs no room, if it has one.
    """

    name: str
    empty: D
    codec: Codec[D]
    decide: Decide[D, C, R]
    is_new_work: Callable[[C], bool]
    ledger: Ledger[D, C, R] | None = None
    without_new: Callable[[C], C | None] = no_part

    def decide_batch(
        self, base: D, commands: Sequence[C], context_after: Callable[[int], Context]
    ) -> Decided[D, R]:
        """Decide as many commands as the outbox has room for.

        New work that finds the outbox full at the start of its batch is refused; when the batch
        itself filled it, the rest is left for the next batch. `context_after` is given the number
        of effects that the batch has claimed so far.
        """
        document, waiting_bytes = base, outbox_bytes(base)
        account = _Account(self, base)
        was_full = waiting_bytes >= OUTBOX_BYTES_MAX
        outcomes: list[R | Refused | Exception] = []
        effects: list[Effect] = []
        for command in commands:
            outcome: R | Refused | Exception = unwritable()
            if waiting_bytes < OUTBOX_BYTES_MAX or not self.is_new_work(command):
                outcome = account.decide(document, command, context_after(len(effects)))
            elif not was_full:
                break
            if isinstance(outcome, Carried) and outcome.document is not document:
                document = with_entries(outcome.document, outcome.entries)
                waiting_bytes += entries_bytes(outcome.entries)
                effects.extend(outcome.effects)
            outcomes.append(outcome)
        return Decided(document, outcomes, effects)

    def decide_one(self, document: D, command: C, context: Context) -> R | Refused | Exception:
        """Decide one command; a bug of ours that it meets is its outcome, and its alone."""
        try:
            return self.decide(document, command, context)
        except Exception as error:
            _log.exception("decision_failed", command=type(command).__name__)
            # A future cannot carry a StopIteration, and whoever waits must be answered.
            return (
                InvariantError("a decision failed") if isinstance(error, StopIteration) else error
            )


class _Account(Generic[D, C, R]):
    """The budget's account of one batch; without a ledger everything fits."""

    def __init__(self, kind: Kind[D, C, R], base: D) -> None:
        self._kind = kind
        self._base = base
        self._room: Room | None = None

    def decide(self, document: D, command: C, context: Context) -> R | Refused | Exception:
        """Decide one command as far as there is room for what it came to."""
        outcome = self._admitted(document, command, context)
        part = self._kind.without_new(command) if isinstance(outcome, Refused) else None
        return outcome if part is None else self._admitted(document, part, context)

    def _admitted(self, document: D, command: C, context: Context) -> R | Refused | Exception:
        outcome = self._kind.decide_one(document, command, context)
        ledger = self._kind.ledger
        if ledger is None or not isinstance(outcome, Carried) or outcome.document is document:
            return outcome
        # Only what changes something is measured: most ticks change nothing.
        room = self._room or ledger.room(self._base)
        admitted, self._room = ledger.admit(document, room, command, outcome)
        return admitted


def _only_due(command: Command) -> Command | None:
    """Return a tick that starts nothing: deadlines are kept even when there is no room."""
    return Tick(starts=False) if isinstance(command, Tick) and command.starts else None


METADOC: Kind[Document, Command, Accepted] = Kind(
    name="atlas-playbooks",
    empty=EMPTY,
    codec=METADOC_CODEC,
    decide=decide,
    is_new_work=is_new_work,
    ledger=budget.Ledger(METADOC_CODEC.pieces),
    without_new=_only_due,
)
"""The metadoc."""

CAPEX: Kind[CapexDocument, CapexCommand, CapexAccepted] = Kind(
    name="capex",
    empty=EMPTY_CAPEX,
    codec=CAPEX_CODEC,
    decide=capex.decide,
    is_new_work=capex.is_new_work,
)
"""The feeds, their settings and their scan history."""
