"""What one seed plays: how many replicas, what is stored at first, and every deed with its time.

Owns the plan. A plan is data: the same plan is the same history to its last step, and a plan from
which items were dropped is a plan too, which is how a failing one is made small.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random


class Begin(StrEnum):
    """What is stored before anybody does anything."""

    LITTLE = "little"
    HISTORY = "a history at its brim"
    OLD_RUNS = "a full budget, most of it old runs"
    PLAYBOOKS = "a full budget, most of it playbooks"


_BEGIN_WEIGHTS = {
    Begin.LITTLE: 90,
    Begin.HISTORY: 6,
    Begin.OLD_RUNS: 2,
    Begin.PLAYBOOKS: 2,
}


class Deed(StrEnum):
    """What somebody does, or what goes wrong."""

    CREATE = "create"
    UPDATE = "update"
    ACTIVATE = "activate"
    REVIEW = "review"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"
    RUN = "run"
    CANCEL = "cancel"
    DECIDE = "decide"
    EVENT = "event"
    INGEST = "ingest"
    STRAY = "stray report"
    LOOK = "look"
    CRASH = "crash"
    STOP = "stop"
    JUMP = "clock jump"
    SWAP = "swap fault"
    APPEND = "append fault"
    READ = "read fault"
    CALL = "call fault"
    DISK_FULL = "disk full"
    LOG_AWAY = "log away"
    STORE_AWAY = "store away"


FAULTS = frozenset(
    {Deed.CRASH, Deed.STOP, Deed.JUMP, Deed.SWAP, Deed.APPEND, Deed.READ, Deed.CALL}
    | {Deed.DISK_FULL, Deed.LOG_AWAY, Deed.STORE_AWAY}
)

_OPERATOR_WEIGHTS = {
    Deed.CREATE: 3,
    Deed.UPDATE: 5,
    Deed.ACTIVATE: 5,
    Deed.REVIEW: 9,
    Deed.PAUSE: 5,
    Deed.RESUME: 3,
    Deed.DELETE: 1,
    Deed.RUN: 14,
    Deed.CANCEL: 3,
    Deed.DECIDE: 14,
    Deed.EVENT: 10,
    Deed.INGEST: 3,
    Deed.STRAY: 3,
    Deed.LOOK: 6,
}
_FAULT_WEIGHTS = {
    Deed.CRASH: 4,
    Deed.STOP: 1,
    Deed.JUMP: 4,
    Deed.SWAP: 10,
    Deed.APPEND: 6,
    Deed.READ: 2,
    Deed.CALL: 3,
    Deed.DISK_FULL: 1,
    Deed.LOG_AWAY: 1,
    Deed.STORE_AWAY: 1,
}


@dataclass(frozen=True, slots=True)
class Item:
    """One deed: when (seconds from the start), and the seed of all that it leaves to chance."""

    at_s: float
    deed: Deed
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that one simulation plays."""

    seed: int
    replicas: int
    hours: float
    tick_s: float
    playbooks: int
    begin: Begin
    all_editors: bool
    listed_admins: bool
    steadfast: bool
    items: tuple[Item, ...]

    def only(self, items: tuple[Item, ...]) -> "Plan":
        """Return the plan with these items alone."""
        return replace(self, items=items)


def plan_of(seed: int) -> Plan:
    """Return the plan of a seed."""
    dice = Random(seed)
    hours, tick_s = dice.choice([(0.5, 30.0), (2.0, 150.0), (4.0, 300.0), (12.0, 900.0)])
    deeds = dice.choice([10, 20, 30])
    faults = dice.choice([0, 3, 8, 16])
    items = [
        *_drawn(dice, _OPERATOR_WEIGHTS, deeds, hours),
        *_drawn(dice, _FAULT_WEIGHTS, faults, hours),
    ]
    return Plan(
        seed=seed,
        replicas=dice.choice([1, 2, 2, 3]),
        hours=hours,
        tick_s=tick_s,
        playbooks=dice.choice([1, 3, 5]),
        begin=dice.choices(list(_BEGIN_WEIGHTS), weights=list(_BEGIN_WEIGHTS.values()))[0],
        all_editors=dice.random() < 0.2,
        listed_admins=dice.random() < 0.4,
        steadfast=dice.random() < 0.3,
        items=tuple(sorted(items, key=lambda item: item.at_s)),
    )


def _drawn(dice: Random, weights: dict[Deed, int], count: int, hours: float) -> list[Item]:
    chosen = dice.choices(list(weights), weights=list(weights.values()), k=count)
    # Half of the deeds come in a hurry after one another: that is where races are.
    times, at_s = [], 0.0
    for _ in chosen:
        hurried = dice.random() < 0.5
        at_s = at_s + dice.expovariate(20.0) if hurried else dice.uniform(0.0, hours * 3_600.0)
        times.append(at_s)
    return [
        Item(at_s, deed, dice.getrandbits(32)) for at_s, deed in zip(times, chosen, strict=True)
    ]
