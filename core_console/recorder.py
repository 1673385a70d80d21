"""From the outbox to the chain: what a swap decided is appended exactly once, in order.

Owns when that happens: after every swap, and again until it worked. Never decides, and never
holds a swap up: what waits is durable in the document already.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol

import structlog

from core_console.model.audit import OutboxEntry
from core_console.ports import Clock, Fault

_log = structlog.get_logger(__name__)

_RETRY_S = 1.0
"""A disk that is full or a database that is away is asked again at this pace."""


class Chain(Protocol):
    """The part of the audit chain that takes an outbox."""

    async def drain(self, document: str, outbox: Sequence[OutboxEntry]) -> int:
        """Append what the chain does not hold yet; return the document's last number in it."""
        ...


class Recorder:
    """Appends one document's outbox to the chain.

    `recorded` is the number of the last entry that is known to be in the chain: entries up to it
    may leave the document. `failing` says that the last attempt failed.
    """

    def __init__(self, chain: Chain, document: str, clock: Clock) -> None:
        self.recorded = 0
        self.failing = False
        self._chain = chain
        self._document = document
        self._clock = clock
        self._waiting: Sequence[OutboxEntry] = ()
        self._offered = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()

    def offer(self, outbox: Sequence[OutboxEntry]) -> None:
        """Note the outbox of the newest durable document; `run` appends it."""
        self._waiting = outbox
        self._offered.set()

    async def drain(self, outbox: Sequence[OutboxEntry]) -> None:
        """Append what of this outbox is not in the chain; raise Fault when it cannot be written."""
        if not outbox or outbox[-1].number <= self.recorded:
            return
        async with self._one_at_a_time:
            if outbox[-1].number <= self.recorded:
                return
            try:
                self.recorded = await self._chain.drain(self._document, outbox)
                self.failing = False
            except Fault:
                self.failing = True
                raise

    async def run(self) -> None:
        """Append whatever is offered, for as long as the process lives."""
        while True:
            await self._offered.wait()
            self._offered.clear()
            try:
                await self.drain(self._waiting)
            except Fault as fault:
                _log.warning("audit_log_unwritten", reason=fault.message)
                self._offered.set()
                await self._clock.sleep(_RETRY_S)
