"""GET /healthz: whether this replica serves, for whoever keeps it running.

Owns the answer alone. It is public, so it says no more than yes or no.
"""

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from core_console.doors import errors


def route(serving: Callable[[], bool]) -> Route:
    """Return the route; `serving` says cheaply whether the console takes work now."""

    async def healthz(_request: Request) -> Response:
        if not serving():
            raise errors.rejection(503, "the console is not serving now")
        return JSONResponse({"status": "serving"})

    return Route("/healthz", healthz)
