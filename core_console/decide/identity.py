"""Who somebody is, and what the console's lists say of them (governance, section 1).

Owns the one spelling of an e-mail address and the admission lists. Pure: it never reads the
environment and never checks a token.
"""

import re
import unicodedata
from enum import StrEnum

from msgspec import Struct

_INPUT_CHARACTERS_MAX = 1024
"""Longer text is no address; normalising it would only be work for an attacker's sake."""

_EMAIL_CHARACTERS_MAX = 254
"""The longest address that mail can carry (RFC 5321, section 4.5.3.1.3 less its brackets)."""

_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_EMAIL = re.compile(
    rf"[a-z0-9!#$%&'*+/=?^_`{{|}}~-]+(?:\.[a-z0-9!#$%&'*+/=?^_`{{|}}~-]+)*@{_LABEL}(?:\.{_LABEL})*"
)
"""The dot-atom of RFC 5322 on the left, host labels on the right; no quotes, comments or spaces."""


class SignIn(StrEnum):
    """How an identity was proved."""

    LOCAL = "LOCAL"
    OIDC = "OIDC"


class Admission(Struct, frozen=True, gc=False):
    """The console's lists, each address in its normal spelling; None is a list that is not set.

    `allowed_domain` counts only when `allowed_emails` is None. `auditors` may read the audit
    trail; nobody else may.
    """

    allowed_emails: frozenset[str] | None = None
    allowed_domain: str | None = None
    admins: frozenset[str] | None = None
    auditors: frozenset[str] = frozenset()


def normalise(email: str) -> str | None:
    """Return the one spelling of an e-mail address, None when it is not one.

    Trimmed, NFKC, case-folded, and ASCII only after that, so that variants of case, width and
    white space are one person for four eyes.
    """
    if len(email) > _INPUT_CHARACTERS_MAX:
        return None
    folded = unicodedata.normalize("NFKC", email.strip()).casefold()
    if len(folded) > _EMAIL_CHARACTERS_MAX or _EMAIL.fullmatch(folded) is None:
        return None
    return folded


def is_admitted(email: str, admission: Admission, *, sign_in: SignIn) -> bool:
    """Tell whether a proved identity may come in; `email` is in its normal spelling."""
    if admission.allowed_emails is not None:
        return email in admission.allowed_emails
    if admission.allowed_domain is not None:
        return email.rpartition("@")[2] == admission.allowed_domain
    # A local token is admitted by its signature; an issuer's word alone admits nobody.
    return sign_in is SignIn.LOCAL


def is_admin(email: str, admission: Admission) -> bool:
    """Tell whether an admitted identity is an Atlas admin; unset, every one of them is."""
    return admission.admins is None or email in admission.admins


def is_auditor(email: str, admission: Admission) -> bool:
    """Tell whether an admitted identity may read the audit trail; unset, nobody may."""
    return email in admission.auditors
