"""Asks GitHub, with a bearer, whose it is: the live half of authorizeReporter.

Owns the two questions and their patience with a fresh token. It presents the bearer to GitHub
only, never revokes it, and never keeps it.
"""

from collections.abc import Iterator

from core_console.githubapp.answers import Answer
from core_console.githubapp.installation import AppCalls
from core_console.githubapp.probes import (
    PAGE_SIZE,
    PAGES_MAX,
    VIEWER_BODY,
    judge_page,
    judge_viewer,
    out_of_reach,
    unknown,
    viewer_id,
)
from core_console.githubapp.settings import GitHubSettings
from core_console.githubapp.tokens import Tokens
from core_console.githubapp.transport import NoAnswer, NotSent, Transport
from core_console.ports import Clock, Fault, ReporterVerdict

# GitHub may not know a token for some seconds after its mint: waits before a 401 is believed.
_PATIENCE_S = (1.0, 2.0, 4.0)

_UNAUTHORIZED = 401


class Verifier:
    """Finds out whether a token is the App's authority for the organisation."""

    def __init__(
        self,
        settings: GitHubSettings,
        transport: Transport,
        clock: Clock,
        *,
        app: AppCalls,
        tokens: Tokens,
    ) -> None:
        self._settings = settings
        self._transport = transport
        self._clock = clock
        self._app = app
        self._tokens = tokens
        self._bot_id: int | None = None

    async def verify(self, token: str) -> ReporterVerdict:
        """Return the verdict on a token of the right shape; it takes two calls at best."""
        try:
            bot_id = await self._own_bot_id()
            org_id = (await self._app.installation()).account.id
            waits = iter(_PATIENCE_S)
            found = viewer_id(await self._viewer(token, waits), self._clock.now())
            if isinstance(found, ReporterVerdict):
                return found
            return judge_viewer(found, bot_id) or await self._repositories(token, org_id, waits)
        except Fault as fault:
            return unknown(fault.retry_after_s)
        except (NotSent, NoAnswer):
            return unknown()

    async def _own_bot_id(self) -> int:
        """Return our bot's numeric id, learnt once with a token that we minted.

        Raises:
            Fault: it could not be learnt.
            NotSent, NoAnswer: GitHub did not answer.
        """
        if self._bot_id is None:
            token = await self._tokens.get()
            found = viewer_id(await self._viewer(token, iter(_PATIENCE_S)), self._clock.now())
            if isinstance(found, ReporterVerdict):
                self._tokens.forget(token)
                raise Fault("GitHub did not say who the App is", retry_after_s=found.retry_after_s)
            self._bot_id = found
        return self._bot_id

    async def _viewer(self, token: str, waits: Iterator[float]) -> Answer:
        return await self._ask(
            "POST", self._settings.graphql_url, token=token, body=VIEWER_BODY, waits=waits
        )

    async def _repositories(
        self, token: str, org_id: int, waits: Iterator[float]
    ) -> ReporterVerdict:
        base = f"{self._settings.api_url}/installation/repositories?per_page={PAGE_SIZE}"
        for page in range(1, PAGES_MAX + 1):
            answer = await self._ask("GET", f"{base}&page={page}", token=token, waits=waits)
            verdict = judge_page(
                answer,
                org_id=org_id,
                agents_repo=self._settings.agents_repo,
                page=page,
                now=self._clock.now(),
            )
            if verdict is not None:
                return verdict
        return out_of_reach(self._settings.agents_repo)

    async def _ask(
        self,
        method: str,
        url: str,
        *,
        token: str,
        waits: Iterator[float],
        body: bytes | None = None,
    ) -> Answer:
        """Ask, and while `waits` last ask again after a 401."""
        while True:
            answer = await self._transport.send(method, url, bearer=token, body=body)
            wait_s = next(waits, None) if answer.status == _UNAUTHORIZED else None
            if wait_s is None:
                return answer
            await self._clock.sleep(wait_s)
