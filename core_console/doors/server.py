"""The HTTP server under the doors: uvicorn with everything that it leaves open closed.

Owns the limits of a connection: its number, the size and the time of a request's head, the time
that it may stand idle. Never routes and never reads a body.
"""

import asyncio
import json
import socket
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from core_console.addresses import neighbourhood
from core_console.doors.errors import RETRY_AFTER_S, SECURITY_HEADERS
from core_console.doors.listening import Listening

# A bearer is at most 4,096 bytes and a report's URL is not in the head; 16 KiB leaves room for
# what proxies add.
HEAD_BYTES = 16 * 1024

# Twice the 256 commands of one swap: one batch waits while another is written. As many again get
# an honest answer, and whoever comes beyond those is hung up on (`Listening`).
CONNECTIONS_MAX = 512
ACCEPTED_PER_ANSWERED = 2

# One peer leaves three quarters to others. Not less, because a proxy in front is one peer too.
PEERS_LEAST = 4

# A head is one packet or two; who takes 10 s to send it holds a place for nothing.
HEAD_S = 10.0

# Longer than the pause between two reports of one job, shorter than a proxy's own patience.
IDLE_S = 5

# A swap takes milliseconds and asking GitHub up to 10 s (3 retries of a fresh token).
SHUTDOWN_S = 15


def config(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    connections_max: int = CONNECTIONS_MAX,
) -> uvicorn.Config:
    """Return the server's configuration; logging is left to whoever runs the process."""
    return DoorConfig(
        app,
        host=host,
        port=port,
        http=DoorProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=connections_max,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=SHUTDOWN_S,
        h11_max_incomplete_event_size=HEAD_BYTES,
        ssl_certfile=tls_cert,
        ssl_keyfile=tls_key,
    )


def listening(bound: socket.socket, *, connections_max: int = CONNECTIONS_MAX) -> Listening:
    """Return the bound socket with bounds on its connections, of which as many are answered."""
    accepted_max = ACCEPTED_PER_ANSWERED * connections_max
    return Listening(
        bound, connections_max=accepted_max, peer_max=max(1, accepted_max // PEERS_LEAST)
    )


class DoorServer(uvicorn.Server):
    """uvicorn on the doors' own listening socket, stopped with the console and by no signal."""

    def __init__(self, config: uvicorn.Config, listening: Listening) -> None:
        super().__init__(config)
        self._listening = listening

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections from now on."""
        await super().startup(sockets=sockets or [])
        self._listening.start(self._protocol, self.config.ssl)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more of them, and let those that are there have their answers."""
        self._listening.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals alone: one of them stops the whole console in order."""
        yield

    def _protocol(self) -> asyncio.Protocol:
        return DoorProtocol(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )


class DoorConfig(uvicorn.Config):
    """uvicorn's configuration with a floor under TLS: OpenSSL's own differs by system."""

    def load(self) -> None:
        """Load the certificate and refuse TLS before 1.2."""
        super().load()
        if self.ssl is not None:
            self.ssl.minimum_version = ssl.TLSVersion.TLSv1_2


async def crowded(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request on a connection beyond the limit: honest, and the agent sends again."""
    headers = dict(SECURITY_HEADERS) | {"Retry-After": str(RETRY_AFTER_S), "Connection": "close"}
    sentence = "too many connections are open; send again"
    await JSONResponse({"error": sentence}, 503, headers)(scope, receive, send)


class Connection(h11.Connection):
    """h11's rules and one more: no message has two lengths (RFC 9112, section 6.1).

    Whoever stands between might believe the other length, and take a part of one caller's body
    for a request of the next.
    """

    def next_event(self) -> "type[h11.NEED_DATA | h11.PAUSED] | h11.Event":
        """Return the next event; raise RemoteProtocolError for what is no HTTP."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            names = {name.lower() for name, _ in event.headers}
            if {b"content-length", b"transfer-encoding"} <= names:
                raise h11.RemoteProtocolError("a request has two lengths")
        return event


class DoorProtocol(H11Protocol):
    """uvicorn's protocol with a time limit on a request's head, and JSON for what is no HTTP."""

    head_s = HEAD_S

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 -- uvicorn's own
        super().__init__(*args, **kwargs)
        self._connections_max = self.limit_concurrency or CONNECTIONS_MAX
        self.limit_concurrency = None  # uvicorn's own answer is plain text and names no time
        self._head_timer: asyncio.TimerHandle | None = None
        self.peer = ""
        self.conn = Connection(h11.SERVER, HEAD_BYTES)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Start the time of the first head; beyond a limit say no more than that."""
        super().connection_made(transport)
        self.peer = neighbourhood(self.client[0] if self.client else "")
        if self._is_crowded():
            self.app = crowded
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and time the head that they begin or end."""
        # h11 holds its bound only against a head that is not complete yet, and one read of a
        # socket brings up to 256 KiB: in slices no head grows beyond twice the bound.
        for start in range(0, len(data), HEAD_BYTES):
            if not self.transport.is_closing():
                super().data_received(data[start : start + HEAD_BYTES])
        self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and its timer."""
        self._forget_head()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP in the shape of every error; `msg` is uvicorn's own text."""
        if self.conn.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.close()  # an answer is under way already; no second one fits
            return
        body = json.dumps({"error": msg.removesuffix(".").lower()}).encode()
        headers = [*SECURITY_HEADERS.items(), ("content-type", "application/json")]
        headers += [("content-length", str(len(body))), ("connection", "close")]
        start = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
        for event in (start, h11.Data(data=body), h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _is_crowded(self) -> bool:
        if len(self.connections) > self._connections_max:
            return True
        others: Iterable[Any] = self.connections  # uvicorn allows protocols of other kinds
        of_peer = sum(1 for each in others if each.peer == self.peer)
        return of_peer > max(1, self._connections_max // PEERS_LEAST)

    def _watch_head(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._forget_head()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.head_s, self._head_is_late)

    def _forget_head(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        self.timeout_keep_alive_handler()
