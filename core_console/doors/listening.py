"""The doors' listening socket: whoever comes beyond its bounds is hung up on at once.

Owns how many connections exist, in all and from one peer, from the moment that the system has
them: before TLS, before a byte was read. It never waits and never answers.
"""

import socket
from collections import Counter
from typing import Any

from core_console.addresses import neighbourhood

_TURNED_AWAY_AT_ONCE = 64
"""The event loop has others to serve between two handfuls of a crowd."""


class Listening(socket.socket):
    """Accepts at most `connections_max` connections that are open at once, and `peer_max` of one.

    A peer is an address of IPv4 or a network of IPv6.
    """

    connections_max: int
    peer_max: int
    open: Counter[str]

    @classmethod
    def over(cls, bound: socket.socket, *, connections_max: int, peer_max: int) -> "Listening":
        """Return the socket in the place of `bound`, which is of no use afterwards."""
        made = cls(bound.family, bound.type, bound.proto, fileno=bound.detach())
        made.connections_max, made.peer_max = connections_max, peer_max
        made.open = Counter()
        return made

    def accept(self) -> tuple[socket.socket, Any]:
        """Return the next connection that is within the bounds; raise BlockingIOError for none."""
        for _ in range(_TURNED_AWAY_AT_ONCE):
            accepted, address = super().accept()
            peer = neighbourhood(address[0])
            if self.open.total() < self.connections_max and self.open[peer] < self.peer_max:
                return _Counted(accepted, peer, self.open), address
            accepted.close()
        raise BlockingIOError


class _Counted(socket.socket):
    """A connection that counts until it is closed."""

    def __init__(self, accepted: socket.socket, peer: str, counts: Counter[str]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._peer: str | None = peer
        self._counts = counts
        counts[peer] += 1

    def close(self) -> None:
        """Close it, and count it no more."""
        super().close()
        if self._peer is not None:
            self._counts[self._peer] -= 1
            if not self._counts[self._peer]:
                del self._counts[self._peer]
            self._peer = None
