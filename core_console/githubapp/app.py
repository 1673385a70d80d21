"""GitHub as the console knows it: the App, or the plain fact that there is none.

Owns the wiring of the adapter. It holds no rule of its own.
"""

from collections.abc import Sequence

from core_console.githubapp.comment import comment_body, comment_errand, comment_fault
from core_console.githubapp.dispatch import dispatch_body, dispatch_errand
from core_console.githubapp.installation import AppCalls
from core_console.githubapp.missing import Diagnosis
from core_console.githubapp.reporter import Reporters
from core_console.githubapp.sender import Sender
from core_console.githubapp.settings import GitHubSettings
from core_console.githubapp.tokens import Tokens
from core_console.githubapp.transport import Timeouts, Transport
from core_console.githubapp.verify import Verifier
from core_console.model.run import Call, DispatchPayload
from core_console.ports import CallOutcome, Clock, Fault, Objection, ReporterVerdict, Standing

_DEFAULT_TIMEOUTS = Timeouts()


class GitHubApp:
    """The console's own GitHub App on its one organisation; implements `ports.GitHub`."""

    def __init__(
        self, settings: GitHubSettings, clock: Clock, *, timeouts: Timeouts = _DEFAULT_TIMEOUTS
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._transport = Transport(timeouts)
        # Apart, so that strangers' bearers can never keep a dispatch waiting for a connection.
        self._bearer_transport = Transport(timeouts)
        self._app = AppCalls(settings, self._transport, clock)
        tokens = Tokens(self._app, clock)
        self._sender = Sender(self._transport, tokens, clock)
        self._diagnosis = Diagnosis(self._app, settings.agents_repo, clock)
        verifier = Verifier(settings, self._bearer_transport, clock, app=self._app, tokens=tokens)
        self._reporters = Reporters(verifier, clock)

    async def aclose(self) -> None:
        """End what is in flight and close the client."""
        await self._reporters.aclose()
        await self._bearer_transport.aclose()
        await self._transport.aclose()

    async def resolve(self) -> str:
        """Learn the organisation from the installation and return its login.

        Raises:
            Fault: the settings and the installation disagree (not retryable), or GitHub cannot be
                asked or has no installation yet (retryable).
        """
        return (await self._app.learn()).account.login

    async def dispatch(
        self, payload: DispatchPayload, patience_s: float, objection: Objection
    ) -> CallOutcome:
        """Send one repository_dispatch, waiting out a rate limit for at most `patience_s`."""
        body = dispatch_body(payload)
        if body is None:
            return CallOutcome(Call.REFUSED, "not sent: the payload is larger than GitHub takes")
        deadline = self._clock.monotonic() + patience_s
        try:
            repository = await self._named(self._settings.agents_repo)
        except Fault as fault:
            return CallOutcome(Call.REFUSED, f"not sent: {fault.message}")
        url = f"{self._settings.api_url}/repos/{repository}/dispatches"
        return await self._sender.post(url, body, dispatch_errand(repository), deadline, objection)

    async def comment(
        self, repo: str, issue: int, body: str, patience_s: float, objection: Objection
    ) -> CallOutcome:
        """Post one comment on an issue of the organisation's repository `repo` (a name)."""
        problem = comment_fault(repo, issue, body)
        if problem is not None:
            return CallOutcome(Call.REFUSED, f"not sent: {problem}")
        deadline = self._clock.monotonic() + patience_s
        try:
            repository = await self._named(repo)
        except Fault as fault:
            return CallOutcome(Call.REFUSED, f"not sent: {fault.message}")
        url = f"{self._settings.api_url}/repos/{repository}/issues/{issue}/comments"
        errand = comment_errand(repository, issue)
        return await self._sender.post(url, comment_body(body), errand, deadline, objection)

    async def missing(self) -> tuple[str, ...]:
        """Return what keeps the console from dispatching, one sentence each."""
        return await self._diagnosis.missing()

    async def authorize_reporter(self, authorization: Sequence[str], peer: str) -> ReporterVerdict:
        """Judge the values of a request's Authorization headers; `peer` is the caller's address."""
        return await self._reporters.authorize(authorization, peer)

    async def _named(self, repo: str) -> str:
        installation = await self._app.installation()
        return f"{installation.account.login}/{repo}"


class NoGitHub:
    """No App is configured: nothing can be sent and nobody can report."""

    async def aclose(self) -> None:
        """Close nothing."""

    async def dispatch(
        self,
        payload: DispatchPayload,  # noqa: ARG002 -- the port's signature
        patience_s: float,  # noqa: ARG002 -- the port's signature
        objection: Objection,  # noqa: ARG002 -- the port's signature
    ) -> CallOutcome:
        """Refuse: there is no App to send with."""
        return CallOutcome(Call.REFUSED, "no GitHub App is configured")

    async def comment(
        self,
        repo: str,  # noqa: ARG002 -- the port's signature
        issue: int,  # noqa: ARG002 -- the port's signature
        body: str,  # noqa: ARG002 -- the port's signature
        patience_s: float,  # noqa: ARG002 -- the port's signature
        objection: Objection,  # noqa: ARG002 -- the port's signature
    ) -> CallOutcome:
        """Refuse: there is no App to send with."""
        return CallOutcome(Call.REFUSED, "no GitHub App is configured")

    async def missing(self) -> tuple[str, ...]:
        """Say that the App is missing."""
        return ("no GitHub App is configured: set CORE_GH_APP_ID and CORE_GH_APP_PRIVATE_KEY",)

    async def authorize_reporter(self, authorization: Sequence[str], peer: str) -> ReporterVerdict:  # noqa: ARG002 -- the port's signature
        """Judge nobody: without an App there is nothing to compare with."""
        return ReporterVerdict(Standing.UNCONFIGURED, "no GitHub App is configured")
