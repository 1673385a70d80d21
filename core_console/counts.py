"""What one process did, counted: plain numbers that cost an addition each.

Owns the counters that the engine, the performer and the ticker keep while they work. Nothing is
ever decided by them, and nothing that somebody wrote, nor any id, is in them.
"""

from bisect import bisect_left
from collections import Counter
from typing import Any

from core_console.decide.outcome import Carried, Code, Refused
from core_console.model.document import Document, Versioned

BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Commands of one swap: doublings up to the most that a batch may hold."""


class DocumentCounts:
    """Of one document: its newest known state, and what became of the commands and swaps.

    `batches` counts the swaps by the bound of `BATCH_BOUNDS` that their commands reach; `answers`
    counts the commands that were answered. `faults` are the batches that the store failed.
    """

    def __init__(self) -> None:
        self.document: Versioned | None = None
        self.size_bytes = 0
        self.swaps = 0
        self.conflicts = 0
        self.faults = 0
        self.answers = 0
        self.batched = 0
        self.batches = [0] * len(BATCH_BOUNDS)
        self.refused: Counter[Code] = Counter()
        self.trimmed: Counter[str] = Counter()

    def known(self, document: Versioned, size_bytes: int) -> None:
        """Note the newest durable state."""
        self.document, self.size_bytes = document, size_bytes

    def swapped(self, before: Versioned, after: Versioned, commands: int) -> None:
        """Count a swap that landed."""
        self.swaps += 1
        self.batched += commands
        self.batches[min(bisect_left(BATCH_BOUNDS, commands), len(BATCH_BOUNDS) - 1)] += 1
        if isinstance(before, Document) and isinstance(after, Document):
            self._trimmed(before, after)

    def _trimmed(self, before: Document, after: Document) -> None:
        if before.trimmed == after.trimmed:
            return
        self.trimmed["events"] += len(before.events.keys() - after.events.keys())
        self.trimmed["runs"] += len(before.finished.keys() - after.finished.keys())

    def answered(self, outcome: Carried[Any, Any] | Refused | Exception) -> None:
        """Count what a caller was answered."""
        self.answers += 1
        match outcome:
            case Refused(code=code) | Carried(refused=Refused(code=code)):
                self.refused[code] += 1
            case _:
                pass


class EffectCounts:
    """Of the performer: how each effect ended, by its kind and result."""

    def __init__(self) -> None:
        self.ended: Counter[tuple[str, str]] = Counter()


class TickCounts:
    """Of the ticker: how many ticks there were, how long they took and how late they came."""

    def __init__(self) -> None:
        self.ticks = 0
        self.failures = 0
        self.took_s = 0.0
        self.last_s = 0.0
        self.late_s = 0.0

    def began(self, late_s: float) -> None:
        """Note by how much a tick came after its time."""
        self.late_s = max(0.0, late_s)

    def ended(self, took_s: float) -> None:
        """Count a tick."""
        self.ticks += 1
        self.last_s = took_s
        self.took_s += took_s
