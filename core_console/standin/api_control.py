"""The stand-in's own endpoints, under /_standin: what happened, and what shall go wrong.

Owns reading the world and changing it for a test or the demo. It answers callers on this machine
only, and nobody else learns that it is there.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core_console.standin.api_answers import Refusal, answer, refused
from core_console.standin.api_bodies import body_of
from core_console.standin.api_tokens import TokenFormat
from core_console.standin.faults import Plan, Plans
from core_console.standin.state import (
    ACTIONS_BOT_ID,
    ACTIONS_BOT_LOGIN,
    Installation,
    Repository,
    World,
)

# Another App's bot, for tokens that must not pass.
_OTHER_BOT_LOGIN, _OTHER_BOT_ID = "another-app[bot]", 77_000_001


@dataclass(frozen=True, slots=True)
class Control:
    """What the control endpoint shows beside the world: the workflow runs, as JSON values."""

    runs: Callable[[], Sequence[Any]] = tuple


class _NewToken(Struct, frozen=True, forbid_unknown_fields=True):
    """`kind` is app, other_app or github_token; no repositories means all of the account's."""

    kind: str
    org: str
    repositories: tuple[str, ...] | None = None


class _NewRepository(Struct, frozen=True, forbid_unknown_fields=True):
    org: str
    name: str
    issues: frozenset[int] = frozenset()


class _NewInstallation(Struct, frozen=True, forbid_unknown_fields=True):
    org: str


class _Rename(Struct, frozen=True, forbid_unknown_fields=True):
    org: str
    name: str
    new_name: str


class _Change(Struct, frozen=True, forbid_unknown_fields=True):
    """What to change; what is absent stays. `org` names the installation to change."""

    org: str = ""
    suspended: bool | None = None
    permissions: dict[str, str] | None = None
    installed: bool | None = None
    token_format: TokenFormat | None = None
    unready_calls: int | None = None


_Act = Callable[[Request], Awaitable[Any]]


def control_routes(world: World, plans: Plans, control: Control) -> list[Route]:
    """Return the routes under /_standin."""
    acts = _Acts(world, plans)

    def route(path: str, method: str, act: _Act) -> Route:
        async def endpoint(request: Request) -> Response:
            return await _guarded(act, request)

        return Route(f"/_standin/{path}", endpoint, methods=[method])

    def shown(path: str, read: Callable[[], object]) -> Route:
        async def show(_: Request) -> object:
            return {path: read()}

        return route(path, "GET", show)

    return [
        shown("dispatches", lambda: list(world.dispatches)),
        shown("comments", lambda: list(world.comments)),
        shown("calls", lambda: list(world.calls)),
        shown("runs", lambda: list(control.runs())),
        route("faults", "POST", acts.add_fault),
        route("faults", "DELETE", acts.clear_faults),
        route("tokens", "POST", acts.mint),
        route("repositories", "POST", acts.add_repository),
        route("installations", "POST", acts.add_installation),
        route("renames", "POST", acts.rename),
        route("world", "POST", acts.change),
    ]


async def _guarded(act: _Act, request: Request) -> Response:
    """Perform `act` for a caller on this machine and answer with what it returns."""
    if request.client is None or not ip_address(request.client.host).is_loopback:
        return refused(404, "Not Found")
    try:
        found = await act(request)
    except Refusal as refusal:
        return refused(refusal.status, refusal.message)
    except (msgspec.MsgspecError, OverflowError) as error:
        return refused(400, str(error))
    return answer(204 if found is None else 200, found)


class _Acts:
    """What a test or the demo can do to the world."""

    def __init__(self, world: World, plans: Plans) -> None:
        self._world = world
        self._plans = plans

    async def add_fault(self, request: Request) -> None:
        """Plan a trouble."""
        self._plans.add(msgspec.json.decode(await body_of(request), type=Plan))

    async def clear_faults(self, _: Request) -> None:
        """Forget the troubles that have not happened."""
        self._plans.clear()

    async def mint(self, request: Request) -> dict[str, str]:
        """Mint a token of the App, of another App, or a workflow's GITHUB_TOKEN."""
        asked = msgspec.json.decode(await body_of(request), type=_NewToken)
        installation = self._installation(asked.org)
        names = asked.repositories
        reached = (
            frozenset(installation.repositories)
            if names is None
            else frozenset(self._repository(asked.org, name).id for name in names)
        )
        match asked.kind:
            case "app":
                return {"token": self._world.mint(installation, repositories=reached)[0]}
            case "other_app":
                login, bot_id = _OTHER_BOT_LOGIN, _OTHER_BOT_ID
            case "github_token":
                login, bot_id = ACTIONS_BOT_LOGIN, ACTIONS_BOT_ID
            case _:
                raise Refusal(400, "kind is not app, other_app or github_token")
        text = self._world.mint_foreign(
            installation, bot_login=login, bot_id=bot_id, repositories=reached
        )
        return {"token": text}

    async def add_repository(self, request: Request) -> dict[str, int]:
        """Make a repository that the App is installed on."""
        asked = msgspec.json.decode(await body_of(request), type=_NewRepository)
        installation = self._installation(asked.org)
        made = self._world.add_repository(installation, asked.name, issues=set(asked.issues))
        return {"id": made.id}

    async def add_installation(self, request: Request) -> dict[str, int]:
        """Install the App on one more organisation."""
        asked = msgspec.json.decode(await body_of(request), type=_NewInstallation)
        return {"id": self._world.add_installation(asked.org).id}

    async def rename(self, request: Request) -> None:
        """Rename a repository."""
        asked = msgspec.json.decode(await body_of(request), type=_Rename)
        self._world.rename_repository(self._repository(asked.org, asked.name), asked.new_name)

    async def change(self, request: Request) -> None:
        """Suspend, uninstall, take a permission away, or change how tokens are made."""
        asked = msgspec.json.decode(await body_of(request), type=_Change)
        world = self._world
        if asked.token_format is not None:
            world.token_format = asked.token_format
        if asked.unready_calls is not None:
            world.unready_calls = asked.unready_calls
        if asked.org:
            self._change_installation(self._installation(asked.org), asked)

    def _change_installation(self, installation: Installation, asked: _Change) -> None:
        if asked.suspended is not None:
            now = self._world.clock.now()
            installation.suspended_at = now if asked.suspended else None
        if asked.permissions is not None:
            installation.permissions = dict(asked.permissions)
        if asked.installed is False:
            self._world.uninstall(installation)

    def _installation(self, org: str) -> Installation:
        found = self._world.installation_on(org)
        if found is None:
            raise Refusal(404, "the App is not installed on that organisation")
        return found

    def _repository(self, org: str, name: str) -> Repository:
        found = self._world.repository_named(f"{org}/{name}")
        if found is None:
            raise Refusal(404, "there is no such repository")
        return found
