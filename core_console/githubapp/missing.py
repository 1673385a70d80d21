"""What keeps the console from dispatching, one sentence each.

Owns the diagnosis. It changes nothing at GitHub and never guesses: what could not be asked is
said to be unknown.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus

from msgspec import Struct

from core_console.githubapp.answers import SUSPENDED, Answer, expect, is_redirect
from core_console.githubapp.installation import AppCalls, Installation
from core_console.ports import Clock, Fault

# Long enough that a list of agents costs GitHub nothing, short enough to see a repair at once.
_GOOD_FOR_S = 30.0
_BAD_FOR_S = 5.0

# What the console needs, and for what (05, section 1).
_NEEDED: Mapping[str, str] = {"contents": "dispatches", "issues": "notify steps"}


class _Id(Struct, frozen=True):
    id: int


def missing_permissions(granted: Mapping[str, str]) -> tuple[str, ...]:
    """Return a sentence for each permission that the App lacks."""
    return tuple(
        f"the App is not granted {name}: write, which {use} need"
        for name, use in _NEEDED.items()
        if granted.get(name) not in {"write", "admin"}
    )


def judge_repository(
    answer: Answer, repository: str, installation_id: int, now: datetime
) -> tuple[str, ...]:
    """Return what is wrong with the agents repository, from GitHub's answer about its App."""
    if is_redirect(answer):
        return (f"the agents repository {repository} was renamed: correct CORE_AGENTS_REPO",)
    if answer.status == HTTPStatus.NOT_FOUND:
        sentence = (
            f"there is no agents repository {repository} that the App is installed on: check"
            " CORE_AGENTS_REPO and the installation's repositories"
        )
        return (sentence,)
    try:
        found = expect(answer, _Id, now)
    except Fault as fault:
        return (f"the agents repository could not be checked: {fault.message}",)
    if found.id != installation_id:
        return (f"the agents repository {repository} belongs to another installation of the App",)
    return ()


class Diagnosis:
    """Asks GitHub what is missing and remembers the answer briefly."""

    def __init__(self, app: AppCalls, agents_repo: str, clock: Clock) -> None:
        self._app = app
        self._agents_repo = agents_repo
        self._clock = clock
        self._lock = asyncio.Lock()
        self._found: tuple[str, ...] = ()
        self._good_until: float | None = None

    async def missing(self) -> tuple[str, ...]:
        """Return what is missing, one sentence each; empty when nothing is."""
        async with self._lock:
            now = self._clock.monotonic()
            if self._good_until is None or now >= self._good_until:
                self._found = await self._ask()
                self._good_until = now + (_BAD_FOR_S if self._found else _GOOD_FOR_S)
            return self._found

    async def _ask(self) -> tuple[str, ...]:
        try:
            installation = await self._app.learn()
            if installation.suspended:
                return (SUSPENDED,)
            return missing_permissions(installation.permissions or {}) + await self._repository(
                installation
            )
        except Fault as fault:
            return (fault.message,)

    async def _repository(self, installation: Installation) -> tuple[str, ...]:
        repository = f"{installation.account.login}/{self._agents_repo}"
        answer = await self._app.ask("GET", f"/repos/{repository}/installation")
        return judge_repository(answer, repository, installation.id, self._clock.now())
