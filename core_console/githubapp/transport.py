"""One request to GitHub, one answer, within bounded time and size.

Owns the HTTP client. It must never retry, never follow a redirect, and never say "not sent" of a
request that may have left: that difference is what keeps a dispatch from being sent twice.
"""

import asyncio
import ssl
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import httpx

from core_console.githubapp.answers import Answer

# A page of 100 repositories is about 600 KB at GitHub.
_BODY_BYTES_MAX = 4 * 1024 * 1024

_HEADERS = MappingProxyType(
    {
        "Accept": "application/vnd.github+json",
        # A compressed body could unfold beyond any bound before it can be measured.
        "Accept-Encoding": "identity",
        "User-Agent": "core-console",
        "X-GitHub-Api-Version": "2022-11-28",
    }
)


class NotSent(Exception):  # noqa: N818 -- what became of the request
    """The request never left: no connection to GitHub could be made."""


class NoAnswer(Exception):  # noqa: N818 -- what became of the request
    """The request may have arrived, and no answer came back."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long one request may take; GitHub itself gives up after 10 s."""

    connect_s: float = 5.0
    read_s: float = 10.0
    total_s: float = 20.0


@cache
def _tls() -> ssl.SSLContext:
    """Return the certificates that are trusted; reading them takes a tenth of a second."""
    return httpx.create_ssl_context(trust_env=False)


class Transport:
    """The HTTP client behind every call to GitHub."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._total_s = timeouts.total_s
        self._client = httpx.AsyncClient(
            headers=dict(_HEADERS),
            timeout=httpx.Timeout(timeouts.read_s, connect=timeouts.connect_s),
            # A kept connection that GitHub closes just then makes an answer ambiguous for nothing.
            limits=httpx.Limits(max_connections=20, max_keepalive_connections=0),
            follow_redirects=False,
            trust_env=False,
            verify=_tls(),
        )

    async def aclose(self) -> None:
        """Close the client."""
        await self._client.aclose()

    async def send(
        self, method: str, url: str, *, bearer: str, body: bytes | None = None
    ) -> Answer:
        """Send one request and return the answer, whatever its status.

        Raises:
            NotSent: no connection was made.
            NoAnswer: it may have arrived, but there is no answer.
        """
        headers = {"Authorization": f"Bearer {bearer}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with (
                asyncio.timeout(self._total_s),
                self._client.stream(method, url, headers=headers, content=body) as response,
            ):
                return Answer(response.status_code, _lower(response), await _bounded(response))
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
            raise NotSent from None
        except (httpx.HTTPError, httpx.StreamError, TimeoutError):
            raise NoAnswer from None


def _lower(response: httpx.Response) -> dict[str, str]:
    return {name.lower(): value for name, value in response.headers.items()}


async def _bounded(response: httpx.Response) -> bytes:
    """Return the body; one that is too large is dropped, for the status may be all we need."""
    body = bytearray()
    async for chunk in response.aiter_raw():
        body += chunk
        if len(body) > _BODY_BYTES_MAX:
            return b""
    return bytes(body)
