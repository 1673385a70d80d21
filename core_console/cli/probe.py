"""What answers at an address when a call got no answer there.

Owns the guess that turns "unavailable" into a sentence. It only looks: it sends no token, and
what it reads it never shows.
"""

import socket
import ssl
from enum import Enum, auto

from core_console.addresses import Address

_PATIENCE_S = 2.0
"""The call has waited already; this only finds a better sentence."""

_GREETING = b"GET /healthz HTTP/1.1\r\nHost: console\r\nConnection: close\r\n\r\n"
_REPLY_BYTES = 64


class Found(Enum):
    """What answers."""

    NO_HOST = auto()
    NOTHING = auto()
    SILENCE = auto()
    HTTP = auto()
    TLS = auto()
    OTHER = auto()


def look(address: Address) -> Found:
    """Return what answers at the address, within a few seconds."""
    try:
        reply = _reply(address)
    except socket.gaierror:
        return Found.NO_HOST
    except TimeoutError:
        return Found.SILENCE
    except ConnectionResetError:
        reply = b""
    except OSError:
        return Found.NOTHING
    if _speaks_tls(address):
        return Found.TLS
    return Found.HTTP if reply.startswith(b"HTTP/1") else Found.OTHER


def _reply(address: Address) -> bytes:
    with socket.create_connection((address.host, address.port), _PATIENCE_S) as connection:
        connection.sendall(_GREETING)
        try:
            return connection.recv(_REPLY_BYTES)
        except TimeoutError:
            # Somebody accepted and says nothing, which is not what HTTP does.
            return b""


def _speaks_tls(address: Address) -> bool:
    context = ssl.create_default_context()
    # Whether it is to be trusted is gRPC's to judge; this only asks which language it speaks.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((address.host, address.port), _PATIENCE_S) as connection,
            context.wrap_socket(connection),
        ):
            return True
    except OSError:
        return False
