"""The answers that GitHub gives, in its shapes and words.

Owns refusals, redirects and the limit answers. Never decides which of them is due.
"""

from datetime import datetime
from typing import Any

import msgspec
from starlette.responses import Response

from core_console.standin.faults import Plan, Trouble

# GitHub's hourly window, shown on every answer.
_WINDOW_S = 3600


class Refusal(Exception):  # noqa: N818 -- an answer, not an error of ours
    """A call that is refused: the status and GitHub's sentence."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Moved(Exception):  # noqa: N818 -- an answer, not an error of ours
    """The repository has another name now; `location` is where it is."""

    def __init__(self, location: str) -> None:
        super().__init__(location)
        self.location = location


def answer(status: int, content: Any = None) -> Response:  # noqa: ANN401 -- any JSON value
    """Return a JSON answer, or an empty one when there is no content."""
    if content is None:
        return Response(status_code=status)
    return Response(
        msgspec.json.encode(content),
        status_code=status,
        media_type="application/json",
    )


def refused(status: int, message: str) -> Response:
    """Return a refusal as GitHub words it."""
    return answer(
        status,
        {
            "message": message,
            "documentation_url": "https://docs.github.com/rest",
            "status": str(status),
        },
    )


def moved(method: str, location: str) -> Response:
    """Return the redirect to a renamed repository: 301, or 307 for a call with a body."""
    status = 301 if method == "GET" else 307
    response = answer(status, {"message": "Moved Permanently", "url": location})
    response.headers["Location"] = location
    return response


def with_limits(response: Response, now: datetime) -> Response:
    """Return the answer with the headers that every answer of GitHub's carries."""
    response.headers.setdefault("X-RateLimit-Limit", "5000")
    response.headers.setdefault("X-RateLimit-Remaining", "4999")
    response.headers.setdefault("X-RateLimit-Reset", str(int(now.timestamp()) + _WINDOW_S))
    return response


def troubled(plan: Plan, now: datetime) -> Response:
    """Return the answer of a trouble that has one."""
    match plan.trouble:
        case Trouble.LIMIT_PRIMARY:
            response = refused(plan.status or 403, "API rate limit exceeded for installation.")
            response.headers["X-RateLimit-Remaining"] = "0"
            response.headers["X-RateLimit-Reset"] = str(int(now.timestamp()) + plan.wait_s)
            return response
        case Trouble.LIMIT_SECONDARY:
            response = refused(plan.status or 403, "You have exceeded a secondary rate limit.")
            response.headers["Retry-After"] = str(plan.wait_s)
            return response
        case Trouble.LIMIT_UNTOLD:
            return refused(plan.status or 403, "You have exceeded a secondary rate limit.")
        case Trouble.GRAPHQL_ERRORS:
            return answer(
                200,
                {"data": None, "errors": [{"type": "RATE_LIMITED", "message": "limit exceeded"}]},
            )
        case Trouble.GARBLED:
            return Response("<html>unicorn</html>", status_code=200, media_type="text/html")
        case Trouble.REFUSED:
            return refused(plan.status or 401, "Bad credentials")
        case _:
            return refused(plan.status or 502, "Server Error")
