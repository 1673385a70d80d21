"""What the stand-in knows: an App, accounts, installations, repositories, tokens, what it accepted.

Owns the world behind the API. Never speaks HTTP and never decides what an
answer looks like.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from msgspec import Struct

from core_console.ports import Clock
from core_console.standin.api_tokens import TokenFormat, token_text

# GitHub's own bot behind every workflow's GITHUB_TOKEN.
ACTIONS_BOT_LOGIN = "github-actions[bot]"
ACTIONS_BOT_ID = 41_898_282

# An installation token lives exactly one hour.
TOKEN_LIFE = timedelta(hours=1)

# A stand-in that runs for days must not grow: of each kind the newest are kept.
_KEPT_MAX = 10_000

# What an App of the console is granted (05, section 1).
GRANTED = {"actions": "read", "contents": "write", "issues": "write", "metadata": "read"}


class DispatchEvent(Struct, frozen=True, gc=False):
    """One accepted repository_dispatch, as the workflows of `repository` (owner/name) see it."""

    repository: str
    event_type: str
    client_payload: dict[str, Any]
    sender_login: str
    sender_id: int


class Comment(Struct, frozen=True, gc=False):
    """One comment that was posted on an issue of `repository` (owner/name)."""

    repository: str
    issue: int
    body: str
    login: str


class Call(Struct, frozen=True, gc=False):
    """One request that the API answered; it never holds a token. `status` 0 is no answer."""

    method: str
    path: str
    status: int


@dataclass(slots=True)
class Account:
    """An organisation; `id` never changes, `login` may."""

    id: int
    login: str


@dataclass(slots=True)
class Repository:
    """A private repository and its open issues."""

    id: int
    owner: Account
    name: str
    issues: set[int] = field(default_factory=set)

    @property
    def full_name(self) -> str:
        """Return `owner/name`."""
        return f"{self.owner.login}/{self.name}"


@dataclass(slots=True)
class Installation:
    """The App on one account: what it was granted, and on which repositories (by id)."""

    id: int
    account: Account
    permissions: dict[str, str]
    repositories: set[int] = field(default_factory=set)
    suspended_at: datetime | None = None


@dataclass(slots=True)
class Token:
    """A live token: whose it is, what it may do and until when.

    `unready_calls` more calls are answered 401, as GitHub does just after a mint.
    """

    bot_login: str
    bot_id: int
    installation: Installation
    repositories: frozenset[int]
    permissions: dict[str, str]
    expires_at: datetime
    unready_calls: int = 0


@dataclass(slots=True)
class App:
    """The console's App: its numeric id, its client id, its bot and its public key (PEM)."""

    id: int
    client_id: str
    slug: str
    bot_id: int
    public_key: bytes

    @property
    def bot_login(self) -> str:
        """Return the login of the App's bot."""
        return f"{self.slug}[bot]"


# Called once for each accepted dispatch, before it is answered.
OnDispatch = Callable[[DispatchEvent], Awaitable[None]]


async def _ignore(event: DispatchEvent) -> None:
    """Take an accepted dispatch to a repository without a workflow: nothing happens."""


class World:
    """Everything that the API answers from; changed by requests and by the control endpoint."""

    def __init__(self, clock: Clock, app: App, *, on_dispatch: OnDispatch = _ignore) -> None:
        self.clock = clock
        self.app = app
        self.on_dispatch = on_dispatch
        self.installations: dict[int, Installation] = {}
        self.repositories: dict[int, Repository] = {}
        self.renamed: dict[str, int] = {}
        self.tokens: dict[str, Token] = {}
        self.dispatches: deque[DispatchEvent] = deque(maxlen=_KEPT_MAX)
        self.comments: deque[Comment] = deque(maxlen=_KEPT_MAX)
        self.calls: deque[Call] = deque(maxlen=_KEPT_MAX)
        self.token_format = TokenFormat.LONG
        self.unready_calls = 0
        self._last_id = 1_000

    def new_id(self) -> int:
        """Return a number that no other object of this world has."""
        self._last_id += 1
        return self._last_id

    def add_installation(self, login: str) -> Installation:
        """Make an account and install the App on it with all that the console needs."""
        account = Account(self.new_id(), login)
        installation = Installation(self.new_id(), account, dict(GRANTED))
        self.installations[installation.id] = installation
        return installation

    def add_repository(
        self, installation: Installation, name: str, *, issues: set[int] | None = None
    ) -> Repository:
        """Make a repository of the installation's account that the App is installed on."""
        repository = Repository(self.new_id(), installation.account, name, issues or set())
        self.repositories[repository.id] = repository
        installation.repositories.add(repository.id)
        return repository

    def uninstall(self, installation: Installation) -> None:
        """Take the App off an account; its tokens end with it."""
        del self.installations[installation.id]
        self.tokens = {
            text: token
            for text, token in self.tokens.items()
            if token.installation is not installation
        }

    def rename_repository(self, repository: Repository, name: str) -> None:
        """Rename a repository; its old name answers with a redirect from now on."""
        self.renamed[repository.full_name.lower()] = repository.id
        repository.name = name

    def repository_named(self, full_name: str) -> Repository | None:
        """Return the repository of that name, in any case, or None."""
        wanted = full_name.lower()
        return next(
            (one for one in self.repositories.values() if one.full_name.lower() == wanted), None
        )

    def installation_on(self, login: str) -> Installation | None:
        """Return the App's installation on that account, in any case, or None."""
        wanted = login.lower()
        found = (one for one in self.installations.values() if one.account.login.lower() == wanted)
        return next(found, None)

    def mint(
        self,
        installation: Installation,
        *,
        repositories: frozenset[int] | None = None,
        permissions: dict[str, str] | None = None,
    ) -> tuple[str, Token]:
        """Mint an installation token of the console's App, narrowed as asked."""
        token = Token(
            bot_login=self.app.bot_login,
            bot_id=self.app.bot_id,
            installation=installation,
            repositories=frozenset(installation.repositories)
            if repositories is None
            else repositories,
            permissions=dict(installation.permissions if permissions is None else permissions),
            expires_at=self.clock.now() + TOKEN_LIFE,
            unready_calls=self.unready_calls,
        )
        return self.register(token), token

    def mint_foreign(
        self,
        installation: Installation,
        *,
        bot_login: str,
        bot_id: int,
        repositories: frozenset[int],
    ) -> str:
        """Mint a token of another App, or a workflow's GITHUB_TOKEN, on the same account."""
        return self.register(
            Token(
                bot_login=bot_login,
                bot_id=bot_id,
                installation=installation,
                repositories=repositories,
                permissions={"contents": "write", "issues": "write", "metadata": "read"},
                expires_at=self.clock.now() + TOKEN_LIFE,
            )
        )

    def register(self, token: Token) -> str:
        """Make `token` live and return its text, in the format that is set."""
        text = token_text(self.app.id, self.token_format)
        self.tokens[text] = token
        if len(self.tokens) > _KEPT_MAX:
            del self.tokens[next(iter(self.tokens))]
        return text

    async def accept_dispatch(self, event: DispatchEvent) -> None:
        """Record an accepted dispatch and hand it on."""
        self.dispatches.append(event)
        await self.on_dispatch(event)
