"""The stand-in's API as one ASGI application.

Owns the routes and what GitHub asks of every call: a User-Agent, a known API version. Never
answers for a path that GitHub has and this stand-in has not: that is 404, so that a new call is
noticed.
"""

from asyncio import Transport
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core_console.standin import api_app, api_repo
from core_console.standin.api_answers import (
    Moved,
    Refusal,
    moved,
    refused,
    troubled,
    with_limits,
)
from core_console.standin.api_control import Control, control_routes
from core_console.standin.faults import AFTER, RESETS, SILENT, Endpoint, Plan, Plans
from core_console.standin.state import Call, World

_VERSIONS = frozenset({"2022-11-28", "2026-03-10"})

_Handler = Callable[[World, Request], Awaitable[Response]]

# Connections that can be cut, by the caller's address.
Connections = dict[tuple[str, int], Transport]


def build_api(world: World, plans: Plans, connections: Connections, control: Control) -> Starlette:
    """Return the application over `world`, whose calls meet the troubles of `plans`."""

    def route(path: str, method: str, endpoint: Endpoint, handler: _Handler) -> Route:
        call = _Strict(world, plans, connections, endpoint=endpoint, handler=handler)
        return Route(path, call.answer, methods=[method])

    repo, installation = "/repos/{owner}/{repo}", "/app/installations/{installation_id:int}"
    return Starlette(
        routes=[
            *control_routes(world, plans, control),
            route("/app", "GET", Endpoint.APP, api_app.get_app),
            route("/app/installations", "GET", Endpoint.INSTALLATIONS, api_app.list_installations),
            route(installation, "GET", Endpoint.INSTALLATION, api_app.get_installation),
            route(
                "/orgs/{org}/installation", "GET", Endpoint.INSTALLATION, api_app.get_installation
            ),
            route(f"{repo}/installation", "GET", Endpoint.INSTALLATION, api_app.get_installation),
            route(f"{installation}/access_tokens", "POST", Endpoint.MINT, api_app.mint),
            route("/installation/token", "DELETE", Endpoint.REVOKE, api_app.revoke),
            route(
                "/installation/repositories",
                "GET",
                Endpoint.REPOSITORIES,
                api_app.list_repositories,
            ),
            route(repo, "GET", Endpoint.REPOSITORY, api_repo.get_repository),
            route(f"{repo}/dispatches", "POST", Endpoint.DISPATCH, api_repo.dispatch),
            route(
                f"{repo}/issues/{{number:int}}/comments",
                "POST",
                Endpoint.COMMENT,
                api_repo.comment,
            ),
            route("/graphql", "POST", Endpoint.GRAPHQL, api_repo.graphql),
        ],
        exception_handlers={404: _no_such_call, 405: _no_such_call},
    )


async def _no_such_call(_: Request, __: Exception) -> Response:
    return refused(404, "Not Found")


def _demand_manners(request: Request) -> None:
    """Refuse what GitHub refuses before it looks at a call."""
    if not request.headers.get("user-agent", "").strip():
        raise Refusal(
            403,
            "Request forbidden by administrative rules. Please make sure your request has a"
            " User-Agent header.",
        )
    version = request.headers.get("x-github-api-version", "2022-11-28")
    if version not in _VERSIONS:
        raise Refusal(400, f"{version[:20]} is not a supported version of the API.")


class _Strict:
    """One route: its handler within GitHub's manners and the troubles that were asked for."""

    def __init__(
        self,
        world: World,
        plans: Plans,
        connections: Connections,
        *,
        endpoint: Endpoint,
        handler: _Handler,
    ) -> None:
        self._world = world
        self._plans = plans
        self._connections = connections
        self._endpoint = endpoint
        self._handler = handler

    async def answer(self, request: Request) -> Response:
        """Answer one call."""
        plan = self._plans.take(self._endpoint)
        if plan is None:
            response = await self._handled(request)
        elif plan.trouble in AFTER:
            response = await self._handled(request)
            if response.status_code < HTTPStatus.MULTIPLE_CHOICES:
                response = await self._meet(plan, request)
        else:
            await request.body()
            response = await self._meet(plan, request)
        if plan is None or plan.trouble not in SILENT:
            self._record(request, response.status_code)
        return with_limits(response, self._world.clock.now())

    def _record(self, request: Request, status: int) -> None:
        self._world.calls.append(Call(request.method, request.url.path, status))

    async def _handled(self, request: Request) -> Response:
        try:
            _demand_manners(request)
            return await self._handler(self._world, request)
        except Refusal as refusal:
            return refused(refusal.status, refusal.message)
        except Moved as there:
            return moved(request.method, there.location)

    async def _meet(self, plan: Plan, request: Request) -> Response:
        """Return the trouble's answer; of a silent one nobody will see it."""
        if plan.trouble in SILENT:
            self._record(request, 0)
            if plan.trouble in RESETS and request.client is not None:
                self._connections[(request.client.host, request.client.port)].abort()
            while (await request.receive())["type"] != "http.disconnect":
                pass
        return troubled(plan, self._world.clock.now())
