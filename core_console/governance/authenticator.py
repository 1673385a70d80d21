"""Who is calling: the bearer of a call, read with the root's key as it is now.

Owns how often the key is looked at, and the memory of tokens whose signature was good. Never keeps
or shows a token.
"""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from msgspec import Struct

from core_console.decide.identity import Admission, SignIn, is_admitted
from core_console.decide.outcome import Code, Refused
from core_console.governance.rootkey import KeyFile, RootKey
from core_console.governance.tokens import (
    Claims,
    Identity,
    named,
    signed_claims,
    unauthenticated,
    untimely,
)
from core_console.ports import Fault
from core_console.settings import Settings

LOOK_AGAIN = timedelta(milliseconds=100)
"""How long a verified token is believed without another look at the key: a look gives up the
interpreter to other threads, and would be the one such pause in every call."""

_VERIFIED_MAX = 4096
"""Tokens remembered as verified: far more than an organisation has operators, and under 2 MB."""


class _Verified(Struct, frozen=True, gc=False):
    """A token whose signature is good, and what it comes to while its times are too."""

    claims: Claims
    answer: Identity | Refused


def _admit(identity: Identity, admission: Admission) -> Identity | Refused:
    if is_admitted(identity.email, admission, sign_in=SignIn.LOCAL):
        return identity
    return Refused(Code.PERMISSION_DENIED, f"{identity.email} is not admitted to this console")


class Authenticator:
    """Says who is calling. One for each process; safe for any number of calls in one thread."""

    def __init__(self, settings: Settings) -> None:
        """Look for the root's key.

        Raises:
            Fault: there is one, but it cannot be used.
        """
        self._admission = settings.admission
        self._file = KeyFile(settings.root)
        self._verified: OrderedDict[bytes, _Verified] = OrderedDict()
        self._key_id = ""
        self._looked_at: datetime | None = None
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

        On an open console nobody can be named, so whatever is sent there counts as nothing. A
        rotated key ends the tokens of the one before within `LOOK_AGAIN`.
        """
        token = _bearer(authorization)
        if token is not None and self._has_just_looked(now):
            digest = _digest(token)
            known = self._verified.get(digest)
            if known is not None:
                return self._timely(digest, known, now)
        return self._looking(authorization, now)

    def _has_just_looked(self, now: datetime) -> bool:
        return self._looked_at is not None and abs(now - self._looked_at) < LOOK_AGAIN

    def _looking(self, authorization: Sequence[str], now: datetime) -> Identity | Refused | None:
        """Identify by the key as it is in this moment."""
        self._looked_at = None
        try:
            key = self._file.current()
            if self.is_open or not authorization:
                return None
        except Fault as fault:
            return Refused(Code.UNAVAILABLE, fault.message)
        if key is None:
            return unauthenticated("this console's operator key is gone, so no token can be read")
        token = _bearer(authorization)
        if token is None:
            return unauthenticated("send exactly one authorization of the form: Bearer <token>")
        return self._verify(token, key, now)

    def _verify(self, token: str, key: RootKey, now: datetime) -> Identity | Refused:
        """Return whom the token names: its signature is checked once, its times every time."""
        if key.id != self._key_id:
            self._verified.clear()
            self._key_id = key.id
        self._looked_at = now
        digest = _digest(token)
        known = self._verified.get(digest)
        if known is None:
            claims = signed_claims(token, key)
            if isinstance(claims, Refused):
                return claims
            known = _Verified(claims, _admit(named(claims), self._admission))
        return self._timely(digest, known, now)

    def _timely(self, digest: bytes, known: _Verified, now: datetime) -> Identity | Refused:
        """Return what the token comes to now, and remember it as long as it does."""
        refused = untimely(known.claims, now.timestamp())
        if refused is not None:
            self._verified.pop(digest, None)
            return refused
        self._verified[digest] = known
        self._verified.move_to_end(digest)
        if len(self._verified) > _VERIFIED_MAX:
            self._verified.popitem(last=False)
        return known.answer


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogateescape")).digest()


def _bearer(authorization: Sequence[str]) -> str | None:
    """Return the one bearer token among the values, None when there is not exactly one."""
    if len(authorization) != 1:
        return None
    scheme, _, token = authorization[0].partition(" ")
    return token if scheme.lower() == "bearer" and token and token == token.strip() else None
