"""Local operator tokens: EdDSA JWTs that the root's own key signs (governance, section 1).

Owns issuing, verifying and the caller's identity. One algorithm, one issuer, one audience, and
exactly the claims that are issued here: anything else is refused. Never keeps or shows a token.
"""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import jwt
import msgspec
from msgspec import Struct

from core_console.decide.identity import SignIn, is_admitted, normalise
from core_console.decide.outcome import Code, Refused
from core_console.governance.rootkey import KeyFile, RootKey
from core_console.ports import Fault
from core_console.settings import Settings

_ALGORITHM = "EdDSA"
_PARTY = "core-console"

TTL_MAX = timedelta(days=30)
"""A token cannot be taken back alone, only by rotating the key: so none lives longer."""

_CLOCK_SKEW = timedelta(seconds=60)
"""Replicas of one root may disagree by this much about when a token was issued."""

_TOKEN_CHARACTERS_MAX = 4096
"""Ours are about 400; whatever is longer is not worth a signature check."""

_VERIFIED_MAX = 4096
"""Tokens remembered as verified: far more than an organisation has operators, and under 2 MB."""


class Identity(Struct, frozen=True, gc=False):
    """Who is calling: an e-mail address in its one spelling, and until when that is proven.

    `ends_at` matters to what outlives its beginning, such as a stream; None is for as long.
    """

    email: str
    ends_at: datetime | None = None


class _Claims(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
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
    claims = _Claims(
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
    claims = _signed_claims(token, key)
    return claims if isinstance(claims, Refused) else _judge(claims, now)


def _signed_claims(token: str, key: RootKey) -> _Claims | Refused:
    if len(token) > _TOKEN_CHARACTERS_MAX or not token.isascii():
        return _unauthenticated("the bearer token is not an operator token of this console")
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
        claims = msgspec.convert(decoded["payload"], _Claims)
    except jwt.InvalidSignatureError:
        return _unauthenticated(
            "the operator token was not signed by this console's present key: issue a new one"
        )
    except (jwt.PyJWTError, msgspec.ValidationError, UnicodeError, ValueError):
        return _unauthenticated("the bearer token is not an operator token of this console")
    if normalise(claims.email) != claims.email or claims.sub != claims.email:
        return _unauthenticated("the operator token does not name an e-mail address")
    return claims


def _judge(claims: _Claims, now: datetime) -> Identity | Refused:
    now_s = now.timestamp()
    lifetime_s = claims.exp - claims.iat
    if claims.iat < 0 or not 0 < lifetime_s <= TTL_MAX.total_seconds():
        return _unauthenticated("the operator token lives longer than 30 days: issue a new one")
    if claims.iat > now_s + _CLOCK_SKEW.total_seconds():
        return _unauthenticated("the operator token is from the future: compare the clocks")
    if now_s >= claims.exp:
        ended = datetime.fromtimestamp(claims.exp, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return _unauthenticated(f"the operator token expired at {ended}: issue a new one")
    return Identity(claims.email, datetime.fromtimestamp(claims.exp, UTC))


def _unauthenticated(reason: str) -> Refused:
    return Refused(Code.UNAUTHENTICATED, reason)


class Authenticator:
    """Says who is calling. One for each process; safe for any number of calls in one thread."""

    def __init__(self, settings: Settings) -> None:
        """Look for the root's key.

        Raises:
            Fault: there is one, but it cannot be used.
        """
        self._admission = settings.admission
        self._file = KeyFile(settings.root)
        self._verified: OrderedDict[bytes, _Claims] = OrderedDict()
        self._key_id = ""
        self._had_key = self._file.current() is not None

    @property
    def is_open(self) -> bool:
        """Tell whether no sign-in is configured.

        A key that was there once and is gone leaves the console closed: losing a file must not
        open it.

        Raises:
            Fault: the key is there, but it cannot be used.
        """
        self._had_key = self._had_key or self._file.current() is not None
        return not self._had_key

    def identify(self, authorization: Sequence[str], now: datetime) -> Identity | Refused | None:
        """Return who calls, given all values of `authorization`; None is a caller without one.

        On an open console nobody can be named, so whatever is sent there counts as nothing.
        """
        try:
            key = self._file.current()
            if self.is_open or not authorization:
                return None
        except Fault as fault:
            return Refused(Code.UNAVAILABLE, fault.message)
        if key is None:
            return _unauthenticated("this console's operator key is gone, so no token can be read")
        token = _bearer(authorization)
        if token is None:
            return _unauthenticated("send exactly one authorization of the form: Bearer <token>")
        return self._admit(self._verify(token, key, now))

    def _verify(self, token: str, key: RootKey, now: datetime) -> Identity | Refused:
        if key.id != self._key_id:
            self._verified.clear()
            self._key_id = key.id
        digest = sha256(token.encode("utf-8", "surrogateescape")).digest()
        claims = self._verified.get(digest) or _signed_claims(token, key)
        if isinstance(claims, Refused):
            return claims
        identity = _judge(claims, now)
        if isinstance(identity, Refused):
            self._verified.pop(digest, None)
            return identity
        self._verified[digest] = claims
        self._verified.move_to_end(digest)
        if len(self._verified) > _VERIFIED_MAX:
            self._verified.popitem(last=False)
        return identity

    def _admit(self, identity: Identity | Refused) -> Identity | Refused:
        if isinstance(identity, Refused):
            return identity
        if not is_admitted(identity.email, self._admission, sign_in=SignIn.LOCAL):
            return Refused(
                Code.PERMISSION_DENIED, f"{identity.email} is not admitted to this console"
            )
        return identity


def _bearer(authorization: Sequence[str]) -> str | None:
    """Return the one bearer token among the values, None when there is not exactly one."""
    if len(authorization) != 1:
        return None
    scheme, _, token = authorization[0].partition(" ")
    return token if scheme.lower() == "bearer" and token and token == token.strip() else None
