"""Local operator tokens: EdDSA JWTs that the root's own key signs (governance, section 1).

Owns issuing, verifying and the caller's identity. One algorithm, one issuer, one audience, and
exactly the claims that are issued here: anything else is refused. Never keeps or shows a token.
"""

from datetime import UTC, datetime, timedelta

import jwt
import msgspec
from msgspec import Struct

from core_console.decide.identity import normalise
from core_console.decide.outcome import Code, Refused
from core_console.governance.rootkey import RootKey

_ALGORITHM = "EdDSA"
_PARTY = "core-console"

TTL_MAX = timedelta(days=30)
"""A token cannot be taken back alone, only by rotating the key: so none lives longer."""

_CLOCK_SKEW = timedelta(seconds=60)
"""Replicas of one root may disagree by this much about when a token was issued."""

_TOKEN_CHARACTERS_MAX = 4096
"""Ours are about 400; whatever is longer is not worth a signature check."""


class Identity(Struct, frozen=True, gc=False):
    """Who is calling: an e-mail address in its one spelling."""

    email: str


class Claims(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """What an operator token says; times in seconds since 1970."""

    iss: str
    aud: str
    sub: str
    email: str
    iat: int
    exp: int
    jti: str


def issue(email: str, ttl: timedelta, *, key: RootKey, now: datetime, token_id: str) -> str:
    """Return a signed token for `email` that ends after `ttl`.

    Raises:
        ValueError: it is not an e-mail address, or the ttl is not between a second and 30 days.
    """
    normal = normalise(email)
    if normal is None:
        raise ValueError("this is not an e-mail address")
    if not timedelta(seconds=1) <= ttl <= TTL_MAX:
        raise ValueError("a token lives between 1 second and 30 days")
    issued_s = int(now.timestamp())
    claims = Claims(
        iss=_PARTY,
        aud=_PARTY,
        sub=normal,
        email=normal,
        iat=issued_s,
        exp=issued_s + int(ttl.total_seconds()),
        jti=token_id,
    )
    return jwt.encode(
        msgspec.structs.asdict(claims), key.private, algorithm=_ALGORITHM, headers={"kid": key.id}
    )


def verify(token: str, *, key: RootKey, now: datetime) -> Identity | Refused:
    """Return whom the token names, or why it names nobody."""
    claims = signed_claims(token, key)
    if isinstance(claims, Refused):
        return claims
    return untimely(claims, now.timestamp()) or named(claims)


def signed_claims(token: str, key: RootKey) -> Claims | Refused:
    """Return what the token claims, or why its signature proves nothing."""
    if len(token) > _TOKEN_CHARACTERS_MAX or not token.isascii():
        return unauthenticated("the bearer token is not an operator token of this console")
    try:
        decoded = jwt.decode_complete(
            token,
            key.private.public_key(),
            algorithms=[_ALGORITHM],
            audience=_PARTY,
            issuer=_PARTY,
            # Times are judged against the caller's `now`, never against the machine's.
            options={"verify_exp": False, "verify_iat": False, "verify_nbf": False},
        )
        claims = msgspec.convert(decoded["payload"], Claims)
    except jwt.InvalidSignatureError:
        return unauthenticated(
            "the operator token was not signed by this console's present key: issue a new one"
        )
    except (jwt.PyJWTError, msgspec.ValidationError, UnicodeError, ValueError):
        return unauthenticated("the bearer token is not an operator token of this console")
    if normalise(claims.email) != claims.email or claims.sub != claims.email:
        return unauthenticated("the operator token does not name an e-mail address")
    return claims


def untimely(claims: Claims, now_s: float) -> Refused | None:
    """Return why the token is not good now, None when it is."""
    lifetime_s = claims.exp - claims.iat
    if claims.iat < 0 or not 0 < lifetime_s <= TTL_MAX.total_seconds():
        return unauthenticated("the operator token lives longer than 30 days: issue a new one")
    if claims.iat > now_s + _CLOCK_SKEW.total_seconds():
        return unauthenticated("the operator token is from the future: compare the clocks")
    if now_s >= claims.exp:
        ended = datetime.fromtimestamp(claims.exp, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return unauthenticated(f"the operator token expired at {ended}: issue a new one")
    return None


def named(claims: Claims) -> Identity:
    """Return whom the claims name."""
    return Identity(claims.email)


def unauthenticated(reason: str) -> Refused:
    """Return the refusal of whoever cannot be named."""
    return Refused(Code.UNAUTHENTICATED, reason)
