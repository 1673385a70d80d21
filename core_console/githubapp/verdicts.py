"""What was found out about bearers, for a short while.

Owns the cache. It holds fingerprints only, never a token, and never an UNKNOWN.
"""

from collections import OrderedDict

from core_console.githubapp.probes import EXPIRED
from core_console.ports import Clock, ReporterVerdict, Standing

# Every cached second may accept a revoked token: a job's retries need no more than a minute.
_VALID_S = 60.0
_REFUSED_S = 30.0

# GitHub answers 401 to good tokens just after their mint.
_EXPIRED_S = 5.0

# About 300 bytes each; beyond this the longest unused are forgotten.
_ENTRIES_MAX = 10_000


def keep_s(verdict: ReporterVerdict) -> float:
    """Return how long a verdict may be relied on, in seconds; 0 when not at all."""
    if verdict == EXPIRED:
        return _EXPIRED_S
    match verdict.standing:
        case Standing.VALID:
            return _VALID_S
        case Standing.FOREIGN | Standing.INVALID:
            return _REFUSED_S
        case Standing.UNKNOWN | Standing.LIMITED | Standing.UNCONFIGURED:
            return 0.0


class Verdicts:
    """A bounded cache of verdicts by fingerprint."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: OrderedDict[bytes, tuple[ReporterVerdict, float]] = OrderedDict()

    def get(self, key: bytes) -> ReporterVerdict | None:
        """Return what is still known of this bearer, None when nothing."""
        kept = self._kept.get(key)
        if kept is None:
            return None
        if self._clock.monotonic() >= kept[1]:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return kept[0]

    def put(self, key: bytes, verdict: ReporterVerdict) -> None:
        """Remember a verdict for as long as it may be relied on."""
        life_s = keep_s(verdict)
        if life_s <= 0:
            return
        self._kept[key] = (verdict, self._clock.monotonic() + life_s)
        self._kept.move_to_end(key)
        if len(self._kept) > _ENTRIES_MAX:
            self._kept.popitem(last=False)
