"""What the App needs to know of itself and of GitHub, checked once.

Owns the App's settings and their faults. Never reads the environment, and never shows the key.
"""

import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

# GitHub makes 2048-bit keys for Apps; a shorter one is no App key.
_KEY_BITS_MIN = 2048

# A name, never a path: it becomes one part of an address.
_REPOSITORY = re.compile(r"[A-Za-z0-9._-]{1,100}", re.ASCII)
_LOGIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,99})", re.ASCII)

_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def is_repository_name(name: str) -> bool:
    """Say whether `name` is a repository's name, without owner or address."""
    return bool(_REPOSITORY.fullmatch(name)) and name not in {".", ".."}


def load_key(pem: str) -> RSAPrivateKey:
    r"""Return the RSA key in `pem`, which may carry its line ends as the two characters `\n`.

    Raises:
        ValueError: it is not an unencrypted RSA private key of at least 2048 bits.
    """
    text = pem.replace("\\n", "\n").strip() + "\n"
    try:
        key = load_pem_private_key(text.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ValueError("the App's private key is not an unencrypted PEM key") from None
    if not isinstance(key, RSAPrivateKey) or key.key_size < _KEY_BITS_MIN:
        raise ValueError("the App's private key is not an RSA key of at least 2048 bits")
    return key


def _url_fault(name: str, url: str) -> str | None:
    """Say what is wrong with a base address, None when nothing."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return f"{name}: is not an address"
    if not host or parts.query or parts.fragment or parts.username is not None:
        return f"{name}: is not a plain address such as https://api.github.com"
    if parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK):
        return None
    return f"{name}: must be https (plain http is for a loopback address only)"


def _key_fault(pem: str) -> str | None:
    try:
        load_key(pem)
    except ValueError as error:
        return f"CORE_GH_APP_PRIVATE_KEY: {error}"
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class GitHubSettings:
    """The App (05, section 1); a ValueError names every fault, one line each.

    `app_id` is the App's id or its client id. `org` and `agents_repo` are names: GitHub's numeric
    ids decide, these only have to agree with them.
    """

    app_id: str
    private_key: str = field(repr=False)
    installation_id: int | None = None
    org: str | None = None
    agents_repo: str = "core"
    api_url: str = "https://api.github.com"
    graphql_url: str = ""
    server_url: str = "https://github.com"

    def __post_init__(self) -> None:
        """Derive the GraphQL address and refuse what cannot work."""
        object.__setattr__(self, "api_url", self.api_url.rstrip("/"))
        object.__setattr__(self, "graphql_url", self.graphql_url or f"{self.api_url}/graphql")
        faults = (
            None if self.app_id.strip() else "CORE_GH_APP_ID: is empty",
            _key_fault(self.private_key),
            None
            if self.org is None or _LOGIN.fullmatch(self.org)
            else "CORE_GITHUB_ORG: is not the login of an organisation",
            None
            if is_repository_name(self.agents_repo)
            else "CORE_AGENTS_REPO: is not a repository's name (no owner, no address)",
            _url_fault("CORE_GITHUB_API_URL", self.api_url),
            _url_fault("CORE_GITHUB_GRAPHQL_URL", self.graphql_url),
            _url_fault("CORE_GITHUB_SERVER_URL", self.server_url),
        )
        found = [fault for fault in faults if fault]
        if found:
            raise ValueError("\n".join(found))
