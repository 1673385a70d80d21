"""authorizeReporter: is this bearer the App's authority for this organisation?

Owns the order: shape, cache, limits, then one verification per token at a time. A bearer that
cannot be judged is UNKNOWN, never INVALID and never VALID.
"""

import asyncio
import math
from collections.abc import Sequence

import structlog

from core_console.githubapp.bearer import fingerprint, read_bearer
from core_console.githubapp.limits import BearerLimits
from core_console.githubapp.verdicts import Verdicts
from core_console.githubapp.verify import Verifier
from core_console.ports import Clock, ReporterVerdict, Standing

_log = structlog.get_logger()


def _limited(reason: str, wait_s: float) -> ReporterVerdict:
    return ReporterVerdict(Standing.LIMITED, reason, math.ceil(wait_s))


class Reporters:
    """Judges the bearers that agents present at the doors."""

    def __init__(self, verifier: Verifier, clock: Clock) -> None:
        self._verifier = verifier
        self._limits = BearerLimits(clock)
        self._verdicts = Verdicts(clock)
        self._running: dict[bytes, asyncio.Task[ReporterVerdict]] = {}

    async def authorize(self, authorization: Sequence[str], peer: str) -> ReporterVerdict:
        """Return the verdict on a request's Authorization headers, asked by address `peer`."""
        token = read_bearer(authorization)
        if isinstance(token, ReporterVerdict):
            return self._count(peer) or token
        key = fingerprint(token)
        known = self._verdicts.get(key)
        if known is not None and known.standing is Standing.VALID:
            return known
        return self._count(peer) or known or await self._verified(key, token)

    async def aclose(self) -> None:
        """End the verifications in flight."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _count(self, peer: str) -> ReporterVerdict | None:
        wait_s = self._limits.take_peer(peer)
        return _limited("too many bearers from this address", wait_s) if wait_s > 0 else None

    async def _verified(self, key: bytes, token: str) -> ReporterVerdict:
        """Join the verification of this token, or start it."""
        task = self._running.get(key)
        if task is None:
            wait_s = self._limits.take_verification()
            if wait_s > 0:
                return _limited("too many bearers are being verified", wait_s)
            task = asyncio.create_task(self._verify(key, token))
            self._running[key] = task
        # A caller that goes away must not end the verification that others wait for.
        return await asyncio.shield(task)

    async def _verify(self, key: bytes, token: str) -> ReporterVerdict:
        try:
            verdict = await self._verifier.verify(token)
            self._verdicts.put(key, verdict)
            if verdict.standing is Standing.UNKNOWN:
                _log.warning("reporter_unknown", retry_after_s=verdict.retry_after_s)
            return verdict
        finally:
            del self._running[key]
