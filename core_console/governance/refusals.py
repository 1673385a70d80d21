"""Recording what was refused and changed nothing, without ever standing in the way of the answer.

Owns how long a refusal waits for its record, and that a flood of callers without an identity
cannot fill the chain: each peer has a few records a minute, all of them together some more, and
the rest is summed up in one record a minute. Never raises: a refusal is answered with its own
error whether or not it could be recorded, and what could not is counted.
"""

import asyncio
from collections import Counter

import structlog
from msgspec.structs import replace

from core_console.governance.chain import Chain
from core_console.model.audit import Entry, Outcome
from core_console.model.faults import InvariantError
from core_console.ports import Clock, Fault

_WAIT_S = 2.0
"""A caller can bear this much more; a store that takes longer is not going to answer soon."""

_LATE_MAX = 256
"""Appends that may still be under way after their wait; beyond it the store hangs."""

_WINDOW_S = 60.0

_PEER_RECORDS_MAX = 5
"""A window. A person who forgot a token is seen call by call; a program is summed up."""

_RECORDS_MAX = 20
"""A window, all peers together: a flood from many addresses fills some 15 MB a day."""

_PEERS_MAX = 1_000
"""Counted by themselves; the others are counted together."""

_PEERS_SHOWN = 10

_TEXT_BYTES_MAX = 1_024
"""A refused request may hold megabytes where an id should be; no refusal needs more than this."""

_PEER_CHARACTERS_MAX = 64

_OTHERS = "other peers"

_log = structlog.get_logger(__name__)


class Refusals:
    """The refusals of one process.

    `unrecorded` counts those that are not in the chain, by themselves or in a sum; `met` counts
    all of them by their outcome.
    """

    def __init__(self, chain: Chain, clock: Clock) -> None:
        self.unrecorded = 0
        self.met: Counter[Outcome] = Counter()
        self._chain = chain
        self._clock = clock
        self._late: set[asyncio.Task[None]] = set()
        self._window_ends_at = clock.monotonic() + _WINDOW_S
        self._recorded: Counter[str] = Counter()
        self._summed: Counter[str] = Counter()

    async def record(self, entry: Entry, *, identified: bool, peer: str) -> None:
        """Record a refusal, waiting at most about 2 s for it; `peer` is an address without port.

        Without an identity it may be counted for the minute's sum instead.
        """
        self.met[entry.outcome] += 1
        if not identified and not self._may_record(peer[:_PEER_CHARACTERS_MAX]):
            return
        await self._append(entry, 1)

    async def flush(self, *, closing: bool = False) -> None:
        """Record the sum of the minute that is over, or of what there is when `closing`.

        The ticker calls it at every tick.
        """
        if self._clock.monotonic() < self._window_ends_at and not closing:
            return
        summed = self._summed
        self._begin_window()
        if summed:
            await self._append(self._sum(summed), summed.total())

    def _may_record(self, peer: str) -> bool:
        """Say whether the peer may have one more record; if not, count its refusal."""
        if self._clock.monotonic() >= self._window_ends_at and not self._summed:
            self._begin_window()
        if self._recorded.total() < _RECORDS_MAX and self._recorded[peer] < _PEER_RECORDS_MAX:
            self._recorded[peer] += 1
            return True
        if peer not in self._summed and len(self._summed) >= _PEERS_MAX:
            peer = _OTHERS
        self._summed[peer] += 1
        return False

    def _begin_window(self) -> None:
        self._window_ends_at = self._clock.monotonic() + _WINDOW_S
        self._recorded = Counter()
        self._summed = Counter()

    def _sum(self, summed: Counter[str]) -> Entry:
        shown = ", ".join(f"{peer}: {times}" for peer, times in summed.most_common(_PEERS_SHOWN))
        more = len(summed) - _PEERS_SHOWN
        rest = f" and {more} more" if more > 0 else ""
        return Entry(
            at=self._clock.now(),
            actor="system:engine",
            action="identity.refused",
            target="",
            outcome=Outcome.DENIED,
            detail=f"{summed.total()} more calls without an identity were refused ({shown}{rest})",
            subject="identity",
        )

    async def _append(self, entry: Entry, refusals: int) -> None:
        if len(self._late) >= _LATE_MAX:
            self._count(refusals, "the store does not answer")
            return
        append = asyncio.create_task(self._append_or_count(_bounded(entry), refusals))
        self._late.add(append)
        append.add_done_callback(self._late.discard)
        patience = asyncio.create_task(self._clock.sleep(_WAIT_S))
        try:
            await asyncio.wait((append, patience), return_when=asyncio.FIRST_COMPLETED)
        finally:
            patience.cancel()

    async def _append_or_count(self, entry: Entry, refusals: int) -> None:
        try:
            await self._chain.add((entry,))
        except Fault as fault:
            self._count(refusals, fault.message)
        except InvariantError as error:
            self._count(refusals, str(error))

    def _count(self, refusals: int, reason: str) -> None:
        self.unrecorded += refusals
        _log.warning("refusal_unrecorded", refusals=refusals, reason=reason)


def _bounded(entry: Entry) -> Entry:
    """Return the entry with every over-long text replaced by words that say so."""
    return replace(
        entry,
        actor=_short(entry.actor),
        action=_short(entry.action),
        target=_short(entry.target),
        detail=_short(entry.detail),
        subject=_short(entry.subject),
    )


def _short(text: str) -> str:
    size = len(text.encode(errors="replace"))
    return text if size <= _TEXT_BYTES_MAX else f"(left out: {size} bytes)"
