"""One comment on an issue of the organisation.

Owns the body and its sentences. Never posts to a place that is not a plain repository name.
"""

from http import HTTPStatus

import msgspec

from core_console.githubapp.judge import Errand
from core_console.githubapp.settings import is_repository_name

# GitHub's bound on a comment.
COMMENT_CHARS_MAX = 65_536


def comment_fault(repo: str, issue: int, body: str) -> str | None:
    """Say why this cannot be posted, None when it can."""
    if not is_repository_name(repo):
        return "the repository is not a plain name"
    if issue < 1:
        return "the issue is not a positive number"
    if not body.strip() or len(body) > COMMENT_CHARS_MAX:
        return f"the comment is not 1 to {COMMENT_CHARS_MAX:,} characters"
    return None


def comment_body(body: str) -> bytes:
    """Return the request's body."""
    return msgspec.json.encode({"body": body})


def comment_errand(repository: str, issue: int) -> Errand:
    """Return how the answers to a comment on that issue are told."""
    return Errand(
        noun="comment",
        target=repository,
        accepted=HTTPStatus.CREATED,
        permission="issues: write",
        not_found=(
            f"GitHub shows the App no issue {issue} in {repository}: check both, and that the App"
            " is installed on it"
        ),
        unknown="the comment may have been posted: not sent again",
    )
