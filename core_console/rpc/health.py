"""The standard health service: every service is served until the console stops.

Owns its answers. Whoever watches holds nothing that another call needs: a peer that does not read
what it is told keeps nobody from being told.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable

from google.protobuf.message import Message
from grpc_health.v1 import health_pb2, health_pb2_grpc

from core_console.decide.outcome import Code, Refused
from core_console.rpc.errors import RefusedError


class Health(health_pb2_grpc.HealthServicer):
    """Answers for these services, and for the server as a whole as the service ""."""

    def __init__(self, services: Iterable[str]) -> None:
        self._services = frozenset({"", *services})
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Say NOT_SERVING from now on, and end every stream that watches."""
        self._stopping.set()

    async def Check(  # noqa: N802 -- the contract's name
        self, request: health_pb2.HealthCheckRequest, _context: object
    ) -> health_pb2.HealthCheckResponse:
        """Return whether the service is served; raise RefusedError for one that is not known."""
        if request.service not in self._services:
            raise RefusedError(Refused(Code.NOT_FOUND, "there is no such service"))
        return self._answer(request.service)

    async def List(  # noqa: N802 -- the contract's name
        self, _request: object, _context: object
    ) -> Message:
        """Return how every service is."""
        statuses = {name: self._answer(name) for name in sorted(self._services)}
        listed: Message = health_pb2.HealthListResponse(statuses=statuses)  # type: ignore[attr-defined]  # newer than its types
        return listed

    async def Watch(  # noqa: N802 -- the contract's name
        self, request: health_pb2.HealthCheckRequest, _context: object
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """Tell how the service is, and once more when the console stops."""
        yield self._answer(request.service)
        await self._stopping.wait()
        yield self._answer(request.service)

    def _answer(self, service: str) -> health_pb2.HealthCheckResponse:
        said = health_pb2.HealthCheckResponse
        if service not in self._services:
            return said(status=said.SERVICE_UNKNOWN)
        return said(status=said.NOT_SERVING if self._stopping.is_set() else said.SERVING)
