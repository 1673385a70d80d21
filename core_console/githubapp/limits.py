"""How often: one changing call a second, and so many unproven bearers per peer and in all.

Owns the arithmetic of the limits. Never knows a token.
"""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from core_console.ports import Clock

# GitHub allows about 80 content-creating calls a minute and asks for a second between them.
_PACE_S = 1.0

# The installation has 5,000 REST calls an hour and a verification takes at least one of them.
_ALL_BURST, _ALL_PER_S = 60.0, 1.0

# Half of the above, so that no single address can use up what the others need.
_PEER_BURST, _PEER_PER_S = 30.0, 0.5

# A peer costs about 200 bytes; beyond this many the longest unseen are forgotten.
_PEERS_MAX = 10_000

# Everybody with an IPv6 address has a whole /64 of them.
_IPV6_NET_BITS = 64


class Pace:
    """Lets one changing call a second leave this process, in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = asyncio.Lock()
        self._next_at = 0.0

    async def turn(self, deadline: float) -> bool:
        """Wait for a turn; False when it would come after `deadline` (monotonic seconds)."""
        async with self._lock:
            now = self._clock.monotonic()
            if max(now, self._next_at) > deadline:
                return False
            if self._next_at > now:
                await self._clock.sleep(self._next_at - now)
            # The process may have stood still for much longer than it meant to sleep.
            now = self._clock.monotonic()
            if now > deadline:
                return False
            self._next_at = now + _PACE_S
            return True


@dataclass(frozen=True, slots=True)
class _Bucket:
    """What is left to take, and since when."""

    level: float
    at: float


def _take(
    bucket: _Bucket | None, now: float, *, burst: float, per_s: float
) -> tuple[_Bucket, float]:
    """Take one; return the bucket after it and 0, or as it is and the wait in seconds."""
    level = burst if bucket is None else min(burst, bucket.level + (now - bucket.at) * per_s)
    if level >= 1.0:
        return _Bucket(level - 1.0, now), 0.0
    return _Bucket(level, now), (1.0 - level) / per_s


def peer_key(peer: str) -> str:
    """Return what an address is counted under: itself, or its network for IPv6."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return peer[:64]
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{int(address) >> (128 - _IPV6_NET_BITS):x}/64"


class BearerLimits:
    """Counts the bearers that were refused or had to be verified, per peer and in all."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._peers: OrderedDict[str, _Bucket] = OrderedDict()
        self._all: _Bucket | None = None

    def take_peer(self, peer: str) -> float:
        """Count one call of this peer; return 0, or the seconds after which it may try again."""
        key = peer_key(peer)
        bucket, wait_s = _take(
            self._peers.get(key), self._clock.monotonic(), burst=_PEER_BURST, per_s=_PEER_PER_S
        )
        self._peers[key] = bucket
        self._peers.move_to_end(key)
        if len(self._peers) > _PEERS_MAX:
            self._peers.popitem(last=False)
        return wait_s

    def take_verification(self) -> float:
        """Count one verification at GitHub; return 0, or the seconds to wait."""
        self._all, wait_s = _take(
            self._all, self._clock.monotonic(), burst=_ALL_BURST, per_s=_ALL_PER_S
        )
        return wait_s
