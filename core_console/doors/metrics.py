"""GET /metrics: the figures of this replica, for whoever watches it.

Owns the route alone. It is public as /healthz is: what reads it holds no operator's token, and
the figures are numbers without an id, a name or anything that somebody wrote.
"""

from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

PATH = "/metrics"


def route(text: Callable[[], bytes]) -> Route:
    """Return the route; `text` returns every metric in Prometheus' text form."""

    async def metrics(_request: Request) -> Response:
        return Response(text(), headers={"content-type": CONTENT_TYPE_LATEST})

    return Route(PATH, metrics)
