"""What an Authorization header says by itself, before anybody is asked.

Owns the shape of a bearer. Free and local: a bad one costs GitHub nothing, and no part of it is
ever repeated in an answer.
"""

import re
from collections.abc import Sequence
from hashlib import sha256

from core_console.ports import ReporterVerdict, Standing

# GitHub's tokens are 40 to about 520 characters and may grow; headers end at 8 KiB.
_CHARS_MAX = 4096

# 36 and more after the prefix; the newer form has dots, underscores and dashes in it.
_INSTALLATION_TOKEN = re.compile(r"ghs_[A-Za-z0-9._-]{36,}", re.ASCII)

_KINDS = {
    "ghp_": "a personal access token",
    "github_pat_": "a personal access token",
    "gho_": "an OAuth token",
    "ghu_": "a user's token",
    "ghr_": "a refresh token",
}

MISSING = ReporterVerdict(Standing.INVALID, "missing bearer token")


def read_bearer(authorization: Sequence[str]) -> str | ReporterVerdict:
    """Return the token of the one Authorization header, or why there is none to look at."""
    if len(authorization) > 1:
        return ReporterVerdict(Standing.INVALID, "more than one Authorization header")
    scheme, _, token = (authorization[0] if authorization else "").strip().partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer" or not token:
        return MISSING
    for prefix, kind in _KINDS.items():
        if token.startswith(prefix):
            return ReporterVerdict(
                Standing.INVALID, f"{kind} is not accepted: mint an installation token of the App"
            )
    if len(token) > _CHARS_MAX or not _INSTALLATION_TOKEN.fullmatch(token):
        return ReporterVerdict(
            Standing.INVALID, "the bearer is not an installation token of a GitHub App"
        )
    return token


def fingerprint(token: str) -> bytes:
    """Return what a token is remembered by; it cannot be turned back into the token."""
    return sha256(token.encode()).digest()
