"""What two questions, asked with a bearer, prove about it: whose it is, and for which account.

Owns the judging of their answers as pure functions. Whatever is not a definite answer is UNKNOWN:
an outage must never look like a bad token, nor a bad token like a good one.
"""

import math
from collections.abc import Sequence
from datetime import datetime
from http import HTTPStatus

from msgspec import Struct

from core_console.githubapp.answers import (
    Answer,
    NotUnderstood,
    is_suspended,
    limit_wait_s,
    message,
    read,
)
from core_console.githubapp.installation import Account
from core_console.ports import ReporterVerdict, Standing

VIEWER_BODY = b'{"query":"query { viewer { login databaseId } }"}'

# GitHub lists at most 100 a page; a narrow token lists one repository.
PAGE_SIZE = 100
PAGES_MAX = 10

# The bot behind every workflow's GITHUB_TOKEN (a number, for logins can be imitated).
_ACTIONS_BOT_ID = 41_898_282

# A reporter gives up after a minute or two: come back soon.
_RETRY_AFTER_S = 10

VALID = ReporterVerdict(Standing.VALID)
EXPIRED = ReporterVerdict(
    Standing.INVALID, "GitHub says the bearer is not valid (expired or revoked): mint it again"
)


class _Viewer(Struct, frozen=True):
    databaseId: int  # noqa: N815 -- GitHub's name


class _Data(Struct, frozen=True):
    viewer: _Viewer | None = None


class _ViewerAnswer(Struct, frozen=True):
    data: _Data | None = None
    errors: Sequence[object] | None = None


class _Repository(Struct, frozen=True):
    name: str
    owner: Account


class _Page(Struct, frozen=True):
    total_count: int
    repositories: tuple[_Repository, ...]


def unknown(retry_after_s: float | None = None) -> ReporterVerdict:
    """Return the verdict when GitHub could not be asked; try again after that many seconds."""
    wait_s = _RETRY_AFTER_S if retry_after_s is None else math.ceil(retry_after_s)
    return ReporterVerdict(
        Standing.UNKNOWN, "GitHub could not be asked whether the bearer is valid", wait_s
    )


def foreign(reason: str) -> ReporterVerdict:
    """Return the verdict on a live token that is not the App's authority for the organisation."""
    return ReporterVerdict(Standing.FOREIGN, reason)


def not_ok(answer: Answer, now: datetime) -> ReporterVerdict:
    """Return what an answer other than 200 says about the bearer.

    A 403 is a definite no only when it says so: GitHub also answers 403 to good tokens for a while
    after it saw many bad ones.
    """
    if answer.status == HTTPStatus.UNAUTHORIZED:
        return EXPIRED
    limited_s = limit_wait_s(answer, now)
    if limited_s is not None:
        return unknown(limited_s)
    if is_suspended(answer):
        return foreign("the App's installation is suspended")
    kind = message(answer).startswith("Resource not accessible by integration")
    if answer.status == HTTPStatus.FORBIDDEN and kind:
        return foreign("the bearer is not an installation token of the App")
    return unknown()


def viewer_id(answer: Answer, now: datetime) -> int | ReporterVerdict:
    """Return the numeric id of the bot or user that the bearer acts as, or why it is not known."""
    if answer.status != HTTPStatus.OK:
        return not_ok(answer, now)
    try:
        found = read(answer, _ViewerAnswer)
    except NotUnderstood:
        return unknown()
    if found.errors or found.data is None or found.data.viewer is None:
        return unknown()
    return found.data.viewer.databaseId


def judge_viewer(found: int, bot_id: int) -> ReporterVerdict | None:
    """Return the refusal of a bearer that acts as somebody else, None when it is our App."""
    if found == bot_id:
        return None
    if found == _ACTIONS_BOT_ID:
        return foreign("the bearer is a workflow's GITHUB_TOKEN, not a token of the console's App")
    return foreign("the bearer is not a token of the console's App")


def judge_page(
    answer: Answer, *, org_id: int, agents_repo: str, page: int, now: datetime
) -> ReporterVerdict | None:
    """Return what a page of the bearer's repositories proves, None when there is a next to read."""
    if answer.status != HTTPStatus.OK:
        return not_ok(answer, now)
    try:
        found = read(answer, _Page)
    except NotUnderstood:
        return unknown()
    if found.total_count < 1:
        return foreign("the bearer reaches no repository")
    if any(one.owner.id != org_id for one in found.repositories):
        return foreign("the bearer is for another organisation")
    if any(one.name.lower() == agents_repo.lower() for one in found.repositories):
        return VALID
    if found.repositories and found.total_count > page * PAGE_SIZE:
        return None
    return out_of_reach(agents_repo)


def out_of_reach(agents_repo: str) -> ReporterVerdict:
    """Return the verdict on a bearer among whose repositories the agents repository is not."""
    return foreign(
        f"the bearer does not reach the agents repository {agents_repo}: mint it for that one"
    )
