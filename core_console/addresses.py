"""Addresses and base URLs: how they are written, and whether they leave this machine.

Owns the one reading of `host:port` for the service and the command line. Never resolves a name.
"""

import ipaddress
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

_HOST = re.compile(r"[A-Za-z0-9.:_-]{1,253}")
_PORT = re.compile(r"[0-9]{1,5}")
_PORT_MAX = 65_535
_NETWORK_BITS = 64


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens; port 0 takes any free one."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Tell whether only this machine can connect."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        """Return `host:port`, an IPv6 host in brackets."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Tell whether a host name or address, without brackets, is this machine and no other."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def neighbourhood(host: str) -> str:
    """Return what a peer's address is counted by: of IPv6 the network that one customer gets.

    Whoever has one address of it has 2^64, so that counting addresses would count nothing.
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Network((address, _NETWORK_BITS), strict=False))


def split_address(text: str) -> Address | None:
    """Return the address in `host:port` or `[IPv6]:port`, None when it is not one."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        return None
    if not colon or _HOST.fullmatch(host) is None or _PORT.fullmatch(port) is None:
        return None
    return Address(host, int(port)) if int(port) <= _PORT_MAX else None


def url_fault(text: str) -> str | None:
    """Return why a base URL cannot be used, None when it can."""
    try:
        parts = urlsplit(text)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        return "is not a URL"
    plain = all("!" <= character <= "~" for character in text)
    if not host or not plain or parts.scheme not in {"https", "http"}:
        return "must be an https URL"
    if "@" in parts.netloc or "?" in text or "#" in text:
        return "must hold no user name, query or fragment"
    if parts.scheme == "http" and not is_loopback(host):
        return "must be https: plain http is for loopback only"
    return "must not end with a slash" if text.endswith("/") else None
