"""The App's own calls: who it is, where it is installed, and its tokens.

Owns the shapes of installations and mints. Never grants more than the installation has.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from core_console.standin.api_answers import Refusal, answer
from core_console.standin.api_auth import (
    covers,
    refuse_old_name,
    require_active,
    require_app,
    require_token,
)
from core_console.standin.api_bodies import object_of, only
from core_console.standin.state import Account, Installation, Repository, Token, World

# GitHub's bounds.
_PAGE_SIZE_MAX, _PAGE_SIZE = 100, 30
_REPOSITORIES_MAX = 500

_Json = dict[str, Any]


def _account(account: Account) -> _Json:
    return {"login": account.login, "id": account.id, "type": "Organization"}


def _installation(world: World, installation: Installation) -> _Json:
    suspended_at = installation.suspended_at
    return {
        "id": installation.id,
        "account": _account(installation.account),
        "app_id": world.app.id,
        "app_slug": world.app.slug,
        "target_type": "Organization",
        "repository_selection": "selected",
        "permissions": installation.permissions,
        "suspended_at": suspended_at and suspended_at.isoformat(timespec="seconds"),
    }


def repository_json(repository: Repository) -> _Json:
    """Return a repository as GitHub lists it (the part that anybody reads)."""
    return {
        "id": repository.id,
        "name": repository.name,
        "full_name": repository.full_name,
        "private": True,
        "owner": _account(repository.owner),
        "default_branch": "main",
    }


async def get_app(world: World, request: Request) -> Response:
    """GET /app."""
    require_app(world, request)
    app = world.app
    return answer(
        200, {"id": app.id, "client_id": app.client_id, "slug": app.slug, "name": app.slug}
    )


async def list_installations(world: World, request: Request) -> Response:
    """GET /app/installations, by page."""
    require_app(world, request)
    found = [_installation(world, one) for one in world.installations.values()]
    return answer(200, _page(request, found))


async def get_installation(world: World, request: Request) -> Response:
    """GET /app/installations/{id}, /orgs/{org}/installation, /repos/{owner}/{repo}/installation."""
    require_app(world, request)
    named = request.path_params
    if "repo" in named:
        refuse_old_name(world, request)
    return answer(200, _installation(world, _found(world, named)))


def _found(world: World, named: dict[str, Any]) -> Installation:
    found: Installation | None
    if "installation_id" in named:
        found = world.installations.get(named["installation_id"])
    elif "org" in named:
        found = world.installation_on(named["org"])
    else:
        repository = world.repository_named(f"{named['owner']}/{named['repo']}")
        found = world.installation_on(named["owner"])
        if repository is None or found is None or repository.id not in found.repositories:
            found = None
    if found is None:
        raise Refusal(404, "Not Found")
    return found


async def mint(world: World, request: Request) -> Response:
    """POST /app/installations/{id}/access_tokens, narrowed as the body asks."""
    require_app(world, request)
    installation = _found(world, request.path_params)
    require_active(installation)
    body = await object_of(request)
    only(body, "repositories", "repository_ids", "permissions")
    repositories = _narrowed_repositories(world, installation, body)
    permissions = _narrowed_permissions(installation, body)
    text, token = world.mint(installation, repositories=repositories, permissions=permissions)
    return answer(201, _minted(world, text, token, selected=repositories is not None))


def _minted(world: World, text: str, token: Token, *, selected: bool) -> _Json:
    told: _Json = {
        "token": text,
        "expires_at": token.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "permissions": token.permissions,
        "repository_selection": "selected",
    }
    if selected:
        told["repositories"] = [
            repository_json(world.repositories[one]) for one in sorted(token.repositories)
        ]
    return told


def _narrowed_repositories(
    world: World, installation: Installation, body: _Json
) -> frozenset[int] | None:
    """Return the repositories that were asked for, None when all are."""
    names, ids = body.get("repositories"), body.get("repository_ids")
    if names is None and ids is None:
        return None
    asked = [*(names or []), *(ids or [])]
    mine = [world.repositories[one] for one in installation.repositories]
    known: dict[object, int] = {one.name.lower(): one.id for one in mine}
    known |= {one.id: one.id for one in mine}
    found = {known.get(one.lower() if isinstance(one, str) else one) for one in asked}
    if not asked or len(asked) > _REPOSITORIES_MAX or None in found:
        raise Refusal(
            422,
            "There is at least one repository that does not exist or is not accessible to the"
            " parent installation.",
        )
    return frozenset(one for one in found if one is not None)


def _narrowed_permissions(installation: Installation, body: _Json) -> dict[str, str] | None:
    """Return the permissions that were asked for, None when all are."""
    asked = body.get("permissions")
    if asked is None:
        return None
    granted = installation.permissions
    within = isinstance(asked, dict) and all(
        level in {"read", "write", "admin"} and covers(granted.get(name), level)
        for name, level in asked.items()
    )
    if not within:
        raise Refusal(422, "The permissions requested are not granted to this installation.")
    return {"metadata": "read", **asked}


async def revoke(world: World, request: Request) -> Response:
    """DELETE /installation/token."""
    require_token(world, request)
    _, _, text = request.headers["authorization"].partition(" ")
    del world.tokens[text.strip()]
    return answer(204)


async def list_repositories(world: World, request: Request) -> Response:
    """GET /installation/repositories, by page: what the token reaches."""
    token = require_token(world, request)
    found = [repository_json(world.repositories[one]) for one in sorted(token.repositories)]
    return answer(200, {"total_count": len(found), "repositories": _page(request, found)})


def _page(request: Request, found: list[_Json]) -> list[_Json]:
    size = _whole(request.query_params.get("per_page"), _PAGE_SIZE, most=_PAGE_SIZE_MAX)
    page = _whole(request.query_params.get("page"), 1, most=len(found) + 1)
    return found[(page - 1) * size : page * size]


def _whole(text: str | None, default: int, *, most: int) -> int:
    """Return a query's number within 1 and `most`, the default for anything else."""
    if text is None or not text.isascii() or not text.isdigit() or int(text) < 1:
        return default
    return min(int(text), most)
