"""The organisation's name, learnt from the installation once GitHub can be asked.

Owns when it is asked. A mismatch between the settings and the installation stops the console at
its start; GitHub being away does not, for the console's own work needs no GitHub.
"""

from core_console.githubapp.app import GitHubApp
from core_console.githubapp.settings import GitHubSettings
from core_console.ports import Fault


class Organisation:
    """The organisation of one App, and the addresses of its agents repository's runs."""

    def __init__(self, settings: GitHubSettings, github: GitHubApp) -> None:
        self._settings = settings
        self._github = github
        self._login = ""

    async def learn(self) -> None:
        """Ask GitHub unless it has answered before; its spelling of the name counts.

        Raises:
            Fault: it cannot be asked now (retryable), or the settings do not fit (not retryable).
        """
        if not self._login:
            self._login = await self._github.resolve()

    def run_url_prefix(self) -> str:
        """Return how every run's address in the agents repository begins.

        Raises:
            Fault: the organisation is not known yet.
        """
        if not self._login:
            raise Fault("GitHub could not be asked for the organisation yet; send again")
        settings = self._settings
        return f"{settings.server_url}/{self._login}/{settings.agents_repo}/actions/runs/"
