"""The doors' listening socket: whoever comes beyond its bounds is hung up on at once.

Owns how many connections exist, in all and from one peer, from the moment that the system has
them: before TLS, before a byte was read. It never waits and never answers. It accepts by itself,
because an event loop accepts whatever comes, and each kind of loop in its own way.
"""

import asyncio
import errno
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from core_console.addresses import neighbourhood

BACKLOG = 256
"""What the system keeps waiting."""

HANDSHAKE_S = 10.0
"""Agreeing upon TLS is two messages of each side; who takes longer holds a place for nothing."""

_ACCEPTED_AT_ONCE = 64
"""The event loop has others to serve between two handfuls of a crowd."""

_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_EXHAUSTED_S = 1.0
"""Whoever waits for a file to be free asks again at this pace, and not without end."""

Make = Callable[[], asyncio.Protocol]


class Listening:
    """Keeps at most `connections_max` connections open at once, and `peer_max` of one peer.

    A peer is an address of IPv4 or a network of IPv6. `open` has how many each has now.
    """

    def __init__(self, bound: socket.socket, *, connections_max: int, peer_max: int) -> None:
        self.port: int = bound.getsockname()[1]
        self.open: Counter[str] = Counter()
        self._bound = bound
        self._connections_max, self._peer_max = connections_max, peer_max
        self._connecting: dict[asyncio.Task[object], socket.socket] = {}
        self._pause: asyncio.TimerHandle | None = None

    def start(self, make: Make, tls: ssl.SSLContext | None) -> None:
        """Give each connection a protocol from `make`, once TLS is agreed upon if there is any."""
        self._loop, self._make, self._tls = asyncio.get_running_loop(), make, tls
        self._bound.settimeout(0)
        self._bound.listen(BACKLOG)
        self._listen()

    def close(self) -> None:
        """Take nobody any more, and let those who are not connected yet hear that it is the end.

        They are not cancelled: uvloop would leave a protocol that was made without its end.
        """
        if self._pause is not None:
            self._pause.cancel()
        with suppress(ValueError):  # it was closed already
            self._loop.remove_reader(self._bound)
        self._bound.close()
        for accepted in self._connecting.values():
            with suppress(OSError):
                accepted.shutdown(socket.SHUT_RD)

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._bound, self._accept)

    def _accept(self) -> None:
        """Take those who wait, a handful at a time."""
        try:
            for _ in range(_ACCEPTED_AT_ONCE):
                accepted, address = self._bound.accept()
                self._take(accepted, neighbourhood(address[0]))
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in _EXHAUSTED:
                raise
            self._loop.call_exception_handler({"message": "accept", "exception": error})
            self._loop.remove_reader(self._bound)
            self._pause = self._loop.call_later(_EXHAUSTED_S, self._listen)

    def _take(self, accepted: socket.socket, peer: str) -> None:
        if self.open.total() >= self._connections_max or self.open[peer] >= self._peer_max:
            accepted.close()
            return
        counted = _Counted(accepted, peer, self.open)
        counted.settimeout(0)
        connecting: asyncio.Task[object] = self._loop.create_task(self._connect(counted))
        self._connecting[connecting] = counted
        connecting.add_done_callback(self._connected)

    async def _connect(self, accepted: socket.socket) -> None:
        patience_s = None if self._tls is None else HANDSHAKE_S
        await self._loop.connect_accepted_socket(
            self._make, accepted, ssl=self._tls, ssl_handshake_timeout=patience_s
        )

    def _connected(self, connecting: asyncio.Task[object]) -> None:
        accepted = self._connecting.pop(connecting)
        error = None if connecting.cancelled() else connecting.exception()
        if error is not None or connecting.cancelled():
            accepted.close()
        # Who speaks no TLS, or goes away meanwhile, is nobody's trouble but their own.
        if error is not None and not isinstance(error, OSError):
            self._loop.call_exception_handler({"message": "connect", "exception": error})


class _Counted(socket.socket):
    """A connection that counts until it is closed, or given up to whoever closes it."""

    def __init__(self, accepted: socket.socket, peer: str, counts: Counter[str]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._peer: str | None = peer
        self._counts = counts
        counts[peer] += 1

    def close(self) -> None:
        """Close it, and count it no more."""
        super().close()
        self._forget()

    def detach(self) -> int:
        """Give its descriptor up, as uvloop has it do at the end, and count it no more."""
        self._forget()
        return super().detach()

    def _forget(self) -> None:
        if self._peer is not None:
            self._counts[self._peer] -= 1
            if not self._counts[self._peer]:
                del self._counts[self._peer]
            self._peer = None
