"""Who is calling: the App by its JWT, or an installation by its token.

Owns the checks that GitHub makes of a credential. Never says more about a bad one than GitHub.
"""

from typing import TypeGuard

import jwt
from jwt.types import Options
from starlette.requests import Request

from core_console.standin.api_answers import Moved, Refusal
from core_console.standin.state import Installation, Repository, Token, World

# GitHub: `exp` may lie at most ten minutes ahead.
_AHEAD_S_MAX = 600

_LEVELS = {"read": 1, "write": 2, "admin": 3}

# Time is judged here, by the stand-in's own clock.
_DECODE_OPTIONS: Options = {
    "verify_exp": False,
    "verify_iat": False,
    "verify_nbf": False,
    "verify_aud": False,
    "verify_iss": False,
    "verify_sub": False,
    "verify_jti": False,
}


def _credential(request: Request) -> tuple[str, str]:
    """Return the scheme (lower case) and the text of the Authorization header."""
    scheme, _, text = request.headers.get("authorization", "").partition(" ")
    if not text.strip():
        raise Refusal(401, "Requires authentication")
    return scheme.lower(), text.strip()


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def require_app(world: World, request: Request) -> None:
    """Let the App itself pass, by a JWT that GitHub would take.

    Raises:
        Refusal: 401, or 404 for an App that there is not.
    """
    scheme, text = _credential(request)
    if scheme != "bearer":
        raise Refusal(401, "A JSON web token could not be decoded")
    try:
        claims = jwt.decode(
            text, world.app.public_key, algorithms=["RS256"], options=_DECODE_OPTIONS
        )
    except jwt.PyJWTError:
        raise Refusal(401, "A JSON web token could not be decoded") from None
    now_s = world.clock.now().timestamp()
    issued, expires = claims.get("iat"), claims.get("exp")
    if not _is_integer(issued) or issued > now_s:
        raise Refusal(401, "'Issued at' claim ('iat') must be an Integer that is not in the future")
    if not _is_integer(expires) or expires <= now_s:
        raise Refusal(401, "'Expiration time' claim ('exp') must be a time in the future")
    if expires > now_s + _AHEAD_S_MAX:
        raise Refusal(401, "'Expiration time' claim ('exp') is too far in the future")
    if str(claims.get("iss", "")) not in {str(world.app.id), world.app.client_id}:
        raise Refusal(404, "Integration not found")


def require_token(world: World, request: Request) -> Token:
    """Return the live token that the call is made with.

    Raises:
        Refusal: 401 for an unknown, expired or revoked one, 403 for a suspended installation.
    """
    scheme, text = _credential(request)
    token = world.tokens.get(text)
    if token is None or scheme not in {"bearer", "token"}:
        raise Refusal(401, "Bad credentials")
    if world.clock.now() >= token.expires_at:
        raise Refusal(401, "Bad credentials")
    if token.unready_calls > 0:
        token.unready_calls -= 1
        raise Refusal(401, "Bad credentials")
    require_active(token.installation)
    return token


def require_active(installation: Installation) -> None:
    """Refuse what a suspended installation asks.

    Raises:
        Refusal: 403.
    """
    if installation.suspended_at is not None:
        raise Refusal(403, "This installation has been suspended")


def covers(granted: str | None, wanted: str) -> bool:
    """Say whether a granted level includes the wanted one."""
    return _LEVELS.get(granted or "", 0) >= _LEVELS[wanted]


def require_permission(token: Token, name: str, level: str) -> None:
    """Refuse what the token may not do.

    Raises:
        Refusal: 403, in the words that GitHub uses for every missing permission.
    """
    if not covers(token.permissions.get(name), level):
        raise Refusal(403, "Resource not accessible by integration")


def reachable(world: World, token: Token, request: Request) -> Repository:
    """Return the repository that the path names, if the token reaches it.

    Raises:
        Refusal: 404 for one that does not exist or that the token does not reach: GitHub does not
            tell which.
        Moved: it was renamed.
    """
    owner, name = request.path_params["owner"], request.path_params["repo"]
    found = world.repository_named(f"{owner}/{name}")
    if found is not None and found.id in token.repositories:
        return found
    moved_id = world.renamed.get(f"{owner}/{name}".lower())
    if moved_id in token.repositories:
        refuse_old_name(world, request)
    raise Refusal(404, "Not Found")


def refuse_old_name(world: World, request: Request) -> None:
    """Point to where a renamed repository is now.

    Raises:
        Moved: the path has its old name.
    """
    owner, name = request.path_params["owner"], request.path_params["repo"]
    moved_id = world.renamed.get(f"{owner}/{name}".lower())
    if moved_id is None or world.repository_named(f"{owner}/{name}") is not None:
        return
    rest = request.url.path.split("/", 4)[4:]
    raise Moved(str(request.url.replace(path="/".join(["/repositories", str(moved_id), *rest]))))
