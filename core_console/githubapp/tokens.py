"""The App's installation token: minted when needed, kept until five minutes before its end.

Owns the one live token. It is never shown, and one mint is in flight at most.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from http import HTTPStatus

from msgspec import Struct

from core_console.githubapp.answers import Answer, expect
from core_console.githubapp.installation import AppCalls
from core_console.ports import Clock, Fault

# A token lives one hour; nothing that starts with one may outlive it.
_SPARE = timedelta(minutes=5)


class _MintBody(Struct, frozen=True):
    token: str
    expires_at: datetime
    permissions: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class _Minted:
    text: str = field(repr=False)
    expires_at: datetime


def read_mint(answer: Answer, now: datetime) -> tuple[str, datetime]:
    """Return a minted token and when it ends.

    Raises:
        Fault: GitHub minted none.
    """
    if answer.status == HTTPStatus.NOT_FOUND:
        raise Fault("the App's installation is gone: install the App again", retryable=False)
    body = expect(answer, _MintBody, now, status=HTTPStatus.CREATED)
    if body.expires_at.tzinfo is None or not body.token.startswith("ghs_"):
        raise Fault("GitHub minted something that is no installation token", retryable=False)
    return body.token, body.expires_at


class Tokens:
    """The App's authority on its installation."""

    def __init__(self, app: AppCalls, clock: Clock) -> None:
        self._app = app
        self._clock = clock
        self._lock = asyncio.Lock()
        self._minted: _Minted | None = None

    async def get(self) -> str:
        """Return a token that lives at least five more minutes.

        Raises:
            Fault: none could be minted.
        """
        async with self._lock:
            minted = self._minted
            if minted is None or self._clock.now() >= minted.expires_at - _SPARE:
                minted = self._minted = await self._mint()
            return minted.text

    def forget(self, token: str) -> None:
        """Drop `token`, which GitHub no longer takes; a newer one is kept."""
        if self._minted is not None and self._minted.text == token:
            self._minted = None

    async def _mint(self) -> _Minted:
        installation = await self._app.installation()
        answer = await self._app.ask("POST", f"/app/installations/{installation.id}/access_tokens")
        if answer.status == HTTPStatus.NOT_FOUND:
            self._app.forget()
        return _Minted(*read_mint(answer, self._clock.now()))
