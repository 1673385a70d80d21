"""The App's own signature: a JWT that lives for nine minutes.

Owns the claims and the algorithm. Never caches: a signature costs a millisecond, a stale one a
failed dispatch.
"""

from datetime import datetime, timedelta

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

# GitHub's clock may be behind ours: it refuses an `iat` that lies in its future.
_BACK = timedelta(seconds=60)

# GitHub allows ten minutes by its own clock; a full ten fails when ours is a second fast.
_AHEAD = timedelta(minutes=9)


def app_jwt(app_id: str, key: RSAPrivateKey, now: datetime) -> str:
    """Return a JWT that says "I am the App" from a minute before `now` until 9 minutes after."""
    claims = {
        "iat": int((now - _BACK).timestamp()),
        "exp": int((now + _AHEAD).timestamp()),
        "iss": app_id,
    }
    return jwt.encode(claims, key, algorithm="RS256")
