"""What goes wrong, and when: faults that wait for the next call of their kind, and bad times.

Owns what is armed. It strikes nobody by itself: the wires ask.
"""

from dataclasses import dataclass, field
from enum import StrEnum


class Target(StrEnum):
    """What a fault waits for."""

    SWAP = "swap"
    APPEND = "append"
    READ = "read"
    CALL = "call to GitHub"


class Strike(StrEnum):
    """How a call goes wrong."""

    CONFLICT = "is told of a conflict that is none"
    FAILED = "fails, and nothing is stored"
    LOST = "lands, and its reply is lost"
    GHOST = "fails, and lands later"
    PARTIAL = "fails with half of it stored"
    STALL = "stalls"
    JUMP = "sees its machine's clock jump"
    CRASH_BEFORE = "is cut off: its process dies before it"
    CRASH_AFTER = "lands, and its process dies before the reply"


@dataclass(frozen=True, slots=True)
class Armed:
    """A fault for the next call to that target; of that machine, 0 of any."""

    target: Target
    strike: Strike
    machine: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Faults:
    """The faults that wait, and until when a target is out of reach (loop time, in seconds)."""

    armed: list[Armed] = field(default_factory=list)
    away_until: dict[Target, float] = field(default_factory=dict)

    def next(self, target: Target, machine: int) -> Armed | None:
        """Take the first fault that waits for such a call."""
        for place, armed in enumerate(self.armed):
            if armed.target is target and armed.machine in {0, machine}:
                return self.armed.pop(place)
        return None

    def away(self, target: Target, now_s: float) -> bool:
        """Say whether nothing of that kind gets through now."""
        return now_s < self.away_until.get(target, 0.0)

    def end(self) -> None:
        """Let everything work from now on."""
        self.armed.clear()
        self.away_until.clear()
