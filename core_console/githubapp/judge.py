"""What an answer to a changing call means, and what to do next: the table of 05, section 2.

Owns the rule for dispatches and comments as pure functions. An answer that may hide an accepted
call is UNKNOWN, and nothing that is UNKNOWN is ever sent again.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from http import HTTPStatus
from types import MappingProxyType

from msgspec import Struct

from core_console.githubapp.answers import (
    SUSPENDED,
    Answer,
    is_redirect,
    is_suspended,
    limit_wait_s,
    message,
)

# Sends of one call, the first included, when GitHub's limit asks to come back.
TRIES_MAX = 3


class Move(StrEnum):
    """What to do after an answer."""

    ACCEPTED = "ACCEPTED"
    REFUSED = "REFUSED"
    UNKNOWN = "UNKNOWN"
    MINT_AGAIN = "MINT_AGAIN"
    WAIT = "WAIT"


class Judgement(Struct, frozen=True):
    """A move, its sentence for people, and for WAIT how long."""

    move: Move
    detail: str = ""
    wait_s: float = 0.0


class Errand(Struct, frozen=True):
    """One changing call: what it is called, where it goes and how its answers are told.

    `accepted` is the status that means it was taken; `unknown` what is said when nobody knows;
    `not_found` what a 404 means.
    """

    noun: str
    target: str
    accepted: int
    permission: str
    not_found: str
    unknown: str


class History(Struct, frozen=True):
    """What this call has been through: limited answers, a second mint, and the seconds left."""

    limited: int = 0
    minted_again: bool = False
    left_s: float = 0.0


def judge(answer: Answer, errand: Errand, now: datetime) -> Judgement:
    """Return what one answer means by itself."""
    if answer.status == errand.accepted:
        return Judgement(Move.ACCEPTED)
    if answer.status == HTTPStatus.UNAUTHORIZED:
        return Judgement(Move.MINT_AGAIN)
    wait_s = limit_wait_s(answer, now)
    if wait_s is not None:
        return Judgement(Move.WAIT, wait_s=wait_s)
    if HTTPStatus.BAD_REQUEST <= answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
        return Judgement(Move.REFUSED, _permanent(answer, errand))
    if is_redirect(answer):
        return Judgement(Move.REFUSED, _moved(answer, errand))
    return Judgement(Move.UNKNOWN, errand.unknown)


def settle(judgement: Judgement, history: History) -> Judgement:
    """Return the move that is left after `history`: no second mint again, no wait for too long."""
    match judgement.move:
        case Move.MINT_AGAIN if history.minted_again:
            return Judgement(
                Move.REFUSED,
                "GitHub refused a new token as well (401): check the App's private key and this"
                " machine's clock",
            )
        case Move.WAIT if history.limited + 1 >= TRIES_MAX:
            return Judgement(Move.REFUSED, f"not sent: GitHub's rate limit, {TRIES_MAX} tries")
        case Move.WAIT if judgement.wait_s > history.left_s:
            return Judgement(
                Move.REFUSED,
                f"not sent: GitHub's rate limit asks to wait {judgement.wait_s:.0f} s, and only"
                f" {max(history.left_s, 0.0):.0f} s are left",
            )
        case _:
            return judgement


def _moved(answer: Answer, errand: Errand) -> str:
    return (
        f"{errand.target} was renamed or moved (GitHub answered {answer.status}): correct its name;"
        " the redirect was not followed"
    )


def _forbidden(answer: Answer, errand: Errand) -> str:
    if is_suspended(answer):
        return SUSPENDED
    return (
        f"GitHub refused the {errand.noun} (403): grant the App {errand.permission} on"
        f" {errand.target} and have the organisation accept it{_said(answer)}"
    )


def _not_found(_: Answer, errand: Errand) -> str:
    return f"{errand.not_found} (404)"


def _permanent(answer: Answer, errand: Errand) -> str:
    """Return the sentence for a refusal that sending again would not change."""
    rules: Mapping[int, Callable[[Answer, Errand], str]] = _SENTENCES
    sentence = rules.get(answer.status)
    if sentence is not None:
        return sentence(answer, errand)
    return f"GitHub did not accept the {errand.noun} ({answer.status}){_said(answer)}"


def _said(answer: Answer) -> str:
    said = message(answer)
    return f": GitHub says {said}" if said else ""


_SENTENCES: Mapping[int, Callable[[Answer, Errand], str]] = MappingProxyType(
    {int(HTTPStatus.FORBIDDEN): _forbidden, int(HTTPStatus.NOT_FOUND): _not_found}
)
