"""Which installation of the App is ours: a given id, or the only one.

Owns the lookup and the organisation's numeric id. Never takes a name for an identity: names can
be changed and imitated, and only have to agree with what the ids say.
"""

from collections.abc import Mapping
from http import HTTPStatus

from msgspec import UNSET, Struct, UnsetType

from core_console.githubapp.answers import Answer, expect
from core_console.githubapp.jwt import app_jwt
from core_console.githubapp.settings import GitHubSettings, load_key
from core_console.githubapp.transport import NoAnswer, NotSent, Transport
from core_console.ports import Clock, Fault


class Account(Struct, frozen=True):
    """An organisation at GitHub: `id` is who it is, `login` what it is called today."""

    id: int
    login: str


class Installation(Struct, frozen=True):
    """The App on one account."""

    id: int
    account: Account
    permissions: Mapping[str, str] | None = None
    suspended_at: str | UnsetType | None = UNSET

    @property
    def suspended(self) -> bool:
        """Say whether an owner has suspended it."""
        return isinstance(self.suspended_at, str)


def choose(found: list[Installation], settings: GitHubSettings) -> Installation:
    """Return the installation that is meant, when no id was given.

    Raises:
        Fault: there is none, there are several and none is the organisation's, or it is on
            another account than the settings say.
    """
    org = (settings.org or "").lower()
    named = [one for one in found if one.account.login.lower() == org]
    if len(found) > 1 and len(named) != 1:
        raise Fault(
            f"the App has {len(found)} installations: set CORE_GH_APP_INSTALLATION_ID",
            retryable=False,
        )
    if not found:
        on = f" on {settings.org}" if settings.org else ""
        raise Fault(f"the App is not installed{on}: install it on the organisation")
    return agree(named[0] if named else found[0], settings)


def agree(installation: Installation, settings: GitHubSettings) -> Installation:
    """Return `installation` if it is on the organisation of the settings, when they name one.

    Raises:
        Fault: it is on another account.
    """
    login = installation.account.login
    if settings.org and settings.org.lower() != login.lower():
        raise Fault(
            f"CORE_GITHUB_ORG is {settings.org}, but the App's installation {installation.id} is"
            f" on {login}: correct one of them",
            retryable=False,
        )
    return installation


class AppCalls:
    """Questions that are asked as the App itself, and the installation that they found."""

    def __init__(self, settings: GitHubSettings, transport: Transport, clock: Clock) -> None:
        self._settings = settings
        self._transport = transport
        self._clock = clock
        self._key = load_key(settings.private_key)
        self._known: Installation | None = None
        self._org_id: int | None = None

    async def ask(self, method: str, path: str) -> Answer:
        """Send one question signed by the App.

        Raises:
            Fault: GitHub could not be reached.
        """
        bearer = app_jwt(self._settings.app_id.strip(), self._key, self._clock.now())
        try:
            return await self._transport.send(
                method, f"{self._settings.api_url}{path}", bearer=bearer
            )
        except NotSent:
            raise Fault("GitHub could not be reached") from None
        except NoAnswer:
            raise Fault("GitHub did not answer") from None

    async def installation(self) -> Installation:
        """Return the installation, asking GitHub only the first time.

        Raises:
            Fault: as `learn`.
        """
        return self._known or await self.learn()

    def forget(self) -> None:
        """Ask again next time: what is known has proved stale."""
        self._known = None

    async def learn(self) -> Installation:
        """Ask GitHub for the installation and remember it.

        Raises:
            Fault: there is none, it is not the settings' organisation, or GitHub cannot be asked.
        """
        given, now = self._settings.installation_id, self._clock.now()
        if given is None:
            answer = await self.ask("GET", "/app/installations?per_page=100")
            found = choose(expect(answer, list[Installation], now), self._settings)
        else:
            answer = await self.ask("GET", f"/app/installations/{given}")
            if answer.status == HTTPStatus.NOT_FOUND:
                raise Fault(f"the App has no installation {given}: check its id")
            found = agree(expect(answer, Installation, now), self._settings)
        if self._org_id not in {None, found.account.id}:
            raise Fault("the App's installation is now on another account: restart the console")
        self._org_id = found.account.id
        self._known = found
        return found
