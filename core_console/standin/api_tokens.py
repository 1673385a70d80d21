"""The texts of installation tokens, in GitHub's two shapes.

Owns what they look like. Never knows what one is good for.
"""

import secrets
import string
from enum import StrEnum


class TokenFormat(StrEnum):
    """The two shapes of an installation token that are in use."""

    LONG = "long"
    SHORT = "short"


def token_text(app_id: int, shape: TokenFormat) -> str:
    """Return a new token: 40 characters, or GitHub's newer form with dots (about 380)."""
    if shape is TokenFormat.SHORT:
        letters = string.ascii_letters + string.digits
        return "ghs_" + "".join(secrets.choice(letters) for _ in range(36))
    head, claims, signature = (secrets.token_urlsafe(size) for size in (27, 171, 72))
    return f"ghs_{app_id}_{head}.{claims}.{signature}"
