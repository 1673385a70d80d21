"""The environment, parsed once into a frozen object with units.

Owns every `CONSOLE_…` and `CORE_…` variable of the service. All faults are told at once, one line
each; none repeats a value, for a value may be a secret put into the wrong variable.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from core_console.addresses import Address, split_address, url_fault
from core_console.decide.identity import Admission, normalise
from core_console.githubapp.settings import GitHubSettings

KNOWN = frozenset(
    {
        "CONSOLE_ALLOWED_EMAILS",
        "CONSOLE_ALLOWED_HD",
        "CONSOLE_APPFS_DIR",
        "CONSOLE_GRPC_ADDR",
        "CONSOLE_HTTP_ADDR",
        "CONSOLE_LOCAL_TOKENS",
        "CONSOLE_OIDC_AUDIENCE",
        "CONSOLE_OIDC_ISSUER",
        "CONSOLE_SESSION_ADMINS",
        "CONSOLE_TICK_SECONDS",
        "CONSOLE_TLS_CERT",
        "CONSOLE_TLS_KEY",
        "CORE_AGENTS_REPO",
        "CORE_ATLAS_ADMINS",
        "CORE_CONSOLE_CA",
        "CORE_CONSOLE_HTTP_URL",
        "CORE_CONSOLE_TOKEN",
        "CORE_CONSOLE_URL",
        "CORE_FOUR_EYES_ALL_EDITORS",
        "CORE_GH_APP_ID",
        "CORE_GH_APP_INSTALLATION_ID",
        "CORE_GH_APP_PRIVATE_KEY",
        "CORE_GH_APP_PRIVATE_KEY_FILE",
        "CORE_GITHUB_API_URL",
        "CORE_GITHUB_GRAPHQL_URL",
        "CORE_GITHUB_ORG",
        "CORE_GITHUB_SERVER_URL",
        "CORE_SCHEDULE_CATCH_UP_MINUTES",
    }
)
"""Every variable that the service, the command line or the scripts read."""

_TICK_S = (1.0, 300.0)
"""Under a second a tick is load without use; over five minutes every deadline is late by it."""

_CATCH_UP_MINUTES = (1, 1440)
"""A slot missed for more than a day is for a person to judge, not for a catch-up."""

_KEY_FILE_BYTES_MAX = 65_536
"""Many times the largest RSA key; a bigger file is another file."""

_NUMBER = re.compile(r"[0-9]{1,9}(\.[0-9]{1,3})?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_ORG = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
_APP_ID = re.compile(r"[A-Za-z0-9.]{1,64}")


class SettingsError(Exception):
    """The environment cannot be used; `faults` has one line per fault."""

    def __init__(self, faults: tuple[str, ...]) -> None:
        super().__init__("\n".join(faults))
        self.faults = faults


@dataclass(frozen=True, slots=True)
class Tls:
    """The server's certificate chain and its private key, both PEM files."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the service runs with. `unknown` has one warning line per variable nobody reads."""

    root: Path
    grpc_addr: Address
    http_addr: Address
    tls: Tls | None
    tick_s: float
    catch_up_minutes: int
    admission: Admission
    four_eyes_all_editors: bool
    local_tokens: bool
    github: GitHubSettings | None = field(repr=False)
    unknown: tuple[str, ...] = ()


def load(environ: Mapping[str, str]) -> Settings:
    """Return the settings in `environ`; raise SettingsError with every fault found."""
    env = _Environment(environ)
    env.refuse_oidc()
    settings = Settings(
        root=env.root(),
        grpc_addr=(grpc := env.address("CONSOLE_GRPC_ADDR", "127.0.0.1:7443")),
        http_addr=(http := env.address("CONSOLE_HTTP_ADDR", "127.0.0.1:8080")),
        tls=env.tls(grpc, http),
        tick_s=env.number("CONSOLE_TICK_SECONDS", 30.0, _TICK_S),
        catch_up_minutes=env.minutes("CORE_SCHEDULE_CATCH_UP_MINUTES", 60, _CATCH_UP_MINUTES),
        admission=env.admission(),
        four_eyes_all_editors=env.flag("CORE_FOUR_EYES_ALL_EDITORS"),
        local_tokens=env.flag("CONSOLE_LOCAL_TOKENS"),
        github=env.github(),
        unknown=tuple(unknown_variables(environ)),
    )
    if env.faults:
        raise SettingsError(tuple(env.faults))
    return settings


def unknown_variables(names: Iterable[str]) -> list[str]:
    """Return one warning line for each variable that looks like ours and is read by nobody."""
    lines = []
    for name in sorted(names):
        if name.startswith(("CONSOLE_", "CORE_")) and name not in KNOWN:
            close = difflib.get_close_matches(name, sorted(KNOWN), n=1, cutoff=0.8)
            hint = f"; did you mean {close[0]}?" if close else ""
            lines.append(f"{name} is set, but it is no setting of this version{hint}")
    return lines


class _Environment:
    """Reads variables and gathers faults; a faulty one reads as its default meanwhile."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.faults: list[str] = []

    def _fault(self, line: str) -> None:
        self.faults.append(line)

    def _text(self, name: str, default: str = "") -> str:
        return self._environ.get(name, "").strip() or default

    def refuse_oidc(self) -> None:
        for name in ("CONSOLE_OIDC_ISSUER", "CONSOLE_OIDC_AUDIENCE"):
            if name in self._environ:
                self._fault(f"{name}: OIDC sign-in is not part of this version; unset it")

    def root(self) -> Path:
        text = self._text("CONSOLE_APPFS_DIR")
        if not text:
            self._fault("CONSOLE_APPFS_DIR is not set: name the folder that holds the state")
        elif Path(text).exists() and not Path(text).is_dir():
            self._fault("CONSOLE_APPFS_DIR is not a folder")
        return Path(text or ".").absolute()

    def address(self, name: str, default: str) -> Address:
        found = split_address(self._text(name, default))
        if found is None:
            self._fault(f"{name} must be host:port, such as {default}")
        return found or Address("127.0.0.1", 0)

    def tls(self, grpc: Address, http: Address) -> Tls | None:
        present = [name for name in ("CONSOLE_TLS_CERT", "CONSOLE_TLS_KEY") if self._text(name)]
        if grpc == http and grpc.port:
            self._fault("CONSOLE_GRPC_ADDR and CONSOLE_HTTP_ADDR are the same address")
        if len(present) == 1:
            self._fault(f"{present[0]} is set alone: CONSOLE_TLS_CERT and _KEY belong together")
        for name in present:
            if not Path(self._text(name)).is_file():
                self._fault(f"{name} names no file")
        if len(present) > 1:
            return Tls(*(Path(self._text(name)).absolute() for name in present))
        for name, address in (("CONSOLE_GRPC_ADDR", grpc), ("CONSOLE_HTTP_ADDR", http)):
            if not address.is_loopback:
                self._fault(
                    f"{name} is beyond loopback, where tokens would travel in clear: set "
                    "CONSOLE_TLS_CERT and CONSOLE_TLS_KEY, or bind to 127.0.0.1"
                )
        return None

    def number(self, name: str, default: float, bounds: tuple[float, float]) -> float:
        text, (low, high) = self._text(name), bounds
        if not text:
            return default
        if _NUMBER.fullmatch(text) is None or not low <= float(text) <= high:
            self._fault(f"{name} must be a number from {low:g} to {high:g}")
            return default
        return float(text)

    def minutes(self, name: str, default: int, bounds: tuple[int, int]) -> int:
        number = self.number(name, default, bounds)
        if number != int(number):
            self._fault(f"{name} must be whole minutes")
        return int(number)

    def flag(self, name: str) -> bool:
        text = self._text(name, "0")
        if text not in {"0", "1"}:
            self._fault(f"{name} must be 0 or 1")
        return text == "1"

    def _emails(self, name: str) -> frozenset[str] | None:
        if name not in self._environ:
            return None
        entries = [entry for entry in re.split(r"[,\s]+", self._environ[name]) if entry]
        if not entries:
            # Set and empty could mean everybody or nobody; neither may be guessed.
            self._fault(f"{name} is set but empty: list e-mail addresses, or unset it")
        normal = [normalise(entry) for entry in entries]
        for position, email in enumerate(normal, 1):
            if email is None:
                self._fault(f"{name}: entry {position} is not an e-mail address")
        return frozenset(email for email in normal if email is not None)

    def _domain(self) -> str | None:
        name = "CONSOLE_ALLOWED_HD"
        if name not in self._environ:
            return None
        found = normalise("a@" + self._environ[name].strip())
        if found is None:
            self._fault(f"{name} must be one mail domain, such as example.com, or unset")
        return (found or "a@").removeprefix("a@")

    def admission(self) -> Admission:
        return Admission(
            allowed_emails=self._emails("CONSOLE_ALLOWED_EMAILS"),
            allowed_domain=self._domain(),
            admins=self._emails("CORE_ATLAS_ADMINS"),
            auditors=self._emails("CONSOLE_SESSION_ADMINS") or frozenset(),
        )

    def github(self) -> GitHubSettings | None:
        api_url = self._url("CORE_GITHUB_API_URL", "https://api.github.com")
        graphql_url = self._url("CORE_GITHUB_GRAPHQL_URL", f"{api_url}/graphql")
        server_url = self._url("CORE_GITHUB_SERVER_URL", "https://github.com")
        agents_repo = self._named("CORE_AGENTS_REPO", _NAME, "core")
        org = self._named("CORE_GITHUB_ORG", _ORG)
        app_id = self._named("CORE_GH_APP_ID", _APP_ID)
        installation_id = self._named(
            "CORE_GH_APP_INSTALLATION_ID", re.compile(r"[1-9][0-9]{0,17}")
        )
        private_key = self._private_key()
        has_key = self._text("CORE_GH_APP_PRIVATE_KEY") or self._text(
            "CORE_GH_APP_PRIVATE_KEY_FILE"
        )
        if bool(self._text("CORE_GH_APP_ID")) != bool(has_key):
            self._fault("CORE_GH_APP_ID and CORE_GH_APP_PRIVATE_KEY[_FILE] belong together")
        if not (app_id and private_key):
            return None
        try:
            return GitHubSettings(
                app_id=app_id,
                private_key=private_key,
                installation_id=int(installation_id) if installation_id else None,
                org=org or None,
                agents_repo=agents_repo,
                api_url=api_url,
                graphql_url=graphql_url,
                server_url=server_url,
            )
        except ValueError as error:
            self.faults.extend(str(error).splitlines())
            return None

    def _named(self, name: str, pattern: re.Pattern[str], default: str = "") -> str:
        text = self._text(name, default)
        if text and (pattern.fullmatch(text) is None or text in {".", ".."}):
            self._fault(f"{name} is not of the form that GitHub gives it")
            return default
        return text

    def _url(self, name: str, default: str) -> str:
        text = self._text(name, default)
        if (reason := url_fault(text)) is not None:
            self._fault(f"{name} {reason}")
            return default
        return text

    def _private_key(self) -> str:
        name, file_name = "CORE_GH_APP_PRIVATE_KEY", "CORE_GH_APP_PRIVATE_KEY_FILE"
        text, path = self._text(name), self._text(file_name)
        if text and path:
            self._fault(f"{name} and {file_name} are both set; set one")
            return ""
        if path:
            text = self._file(file_name, Path(path))
        # Some tools can keep no newline in a variable and write it as backslash and n.
        return text.replace("\\n", "\n")

    def _file(self, name: str, path: Path) -> str:
        try:
            with path.open("rb") as file:
                return file.read(_KEY_FILE_BYTES_MAX).decode("ascii")
        except (OSError, UnicodeDecodeError):
            self._fault(f"{name} names no readable PEM file")
            return ""
