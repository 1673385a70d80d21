"""The calls on a repository: look, dispatch, comment; and GraphQL's one question.

Owns their checks in GitHub's order: credential, repository, permission, body. Nothing is recorded
or handed on before all of them have passed.
"""

from starlette.requests import Request
from starlette.responses import Response

from core_console.standin.api_answers import Refusal, answer
from core_console.standin.api_app import repository_json
from core_console.standin.api_auth import reachable, require_permission, require_token
from core_console.standin.api_bodies import (
    COMMENT_CHARS_MAX,
    EVENT_TYPE_CHARS_MAX,
    object_of,
    only,
    payload_of,
    text_of,
)
from core_console.standin.state import Comment, DispatchEvent, World

_VIEWER = frozenset({"{ viewer { login databaseId } }", "query { viewer { login databaseId } }"})


async def get_repository(world: World, request: Request) -> Response:
    """GET /repos/{owner}/{repo}."""
    token = require_token(world, request)
    return answer(200, repository_json(reachable(world, token, request)))


async def dispatch(world: World, request: Request) -> Response:
    """POST /repos/{owner}/{repo}/dispatches: accepted is 204, and nothing more is known."""
    token = require_token(world, request)
    repository = reachable(world, token, request)
    require_permission(token, "contents", "write")
    body = await object_of(request)
    only(body, "event_type", "client_payload")
    event = DispatchEvent(
        repository=repository.full_name,
        event_type=text_of(body, "event_type", chars_max=EVENT_TYPE_CHARS_MAX),
        client_payload=payload_of(body),
        sender_login=token.bot_login,
        sender_id=token.bot_id,
    )
    await world.accept_dispatch(event)
    return answer(204)


async def comment(world: World, request: Request) -> Response:
    """POST /repos/{owner}/{repo}/issues/{number}/comments."""
    token = require_token(world, request)
    repository = reachable(world, token, request)
    number = request.path_params["number"]
    require_permission(token, "issues", "write")
    if number not in repository.issues:
        raise Refusal(404, "Not Found")
    body = await object_of(request)
    only(body, "body")
    text = text_of(body, "body", chars_max=COMMENT_CHARS_MAX)
    world.comments.append(Comment(repository.full_name, number, text, token.bot_login))
    told = {"id": world.new_id(), "body": text, "user": {"login": token.bot_login, "type": "Bot"}}
    return answer(201, told)


async def graphql(world: World, request: Request) -> Response:
    """POST /graphql for the viewer; GitHub answers 200 to a question that it cannot answer."""
    token = require_token(world, request)
    body = await object_of(request)
    only(body, "query", "variables", "operationName")
    if _spaced(body.get("query")) not in _VIEWER:
        return answer(200, {"errors": [{"message": "the stand-in answers the viewer only"}]})
    viewer = {"login": token.bot_login, "databaseId": token.bot_id}
    return answer(200, {"data": {"viewer": viewer}})


def _spaced(query: object) -> str:
    """Return a query with one space between its words and braces."""
    text = query if isinstance(query, str) else ""
    return " ".join(text.replace("{", " { ").replace("}", " } ").split())
