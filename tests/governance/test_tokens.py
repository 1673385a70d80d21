"""Operator tokens: what is issued is accepted, and nothing else ever is."""

import base64
import json
import stat
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from core_console.decide.identity import Admission
from core_console.decide.outcome import Code, Refused
from core_console.governance import authenticator as tokens_seen
from core_console.governance import tokens
from core_console.governance.authenticator import LOOK_AGAIN, Authenticator
from core_console.governance.rootkey import KeyFile, RootKey, key_path, make_key, rotate_key
from core_console.governance.tokens import Identity, issue, verify
from core_console.ports import Fault
from core_console.settings import Settings, load

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
ANN = "ann@example.com"


class CountedIds:
    def __init__(self) -> None:
        self._numbers = count(1)

    def new(self, prefix: str) -> str:
        return f"{prefix}-{next(self._numbers)}"

    def jitter(self, spread: float) -> float:
        return 1 + spread * 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    make_key(tmp_path, CountedIds())
    return tmp_path


@pytest.fixture
def key(root: Path) -> RootKey:
    found = KeyFile(root).current()
    assert found is not None
    return found


def settings_of(root: Path, **extra: str) -> Settings:
    return load({"CONSOLE_APPFS_DIR": str(root), **extra})


def token_of(key: RootKey, email: str = ANN, ttl: timedelta = HOUR) -> str:
    return issue(email, ttl, key=key, now=NOW, token_id="TOK-1")


def refusal(found: Identity | Refused | None) -> str:
    assert isinstance(found, Refused), found
    assert found.code is Code.UNAUTHENTICATED
    return found.reason


def claims(**changes: object) -> dict[str, object]:
    issued = int(NOW.timestamp())
    whole = {
        "iss": "core-console",
        "aud": "core-console",
        "sub": ANN,
        "email": ANN,
        "iat": issued,
        "exp": issued + 3600,
        "jti": "TOK-1",
        **changes,
    }
    return {name: value for name, value in whole.items() if value is not None}


def signed(key: RootKey, payload: dict[str, object]) -> str:
    return jwt.encode(payload, key.private, algorithm="EdDSA")


def test_an_issued_token_names_its_operator_in_one_spelling(key: RootKey) -> None:
    token = token_of(key, " Ann@Example.COM ")
    assert verify(token, key=key, now=NOW) == Identity(ANN)
    assert jwt.get_unverified_header(token) == {"alg": "EdDSA", "typ": "JWT", "kid": key.id}


def test_a_token_ends_exactly_at_its_expiry(key: RootKey) -> None:
    token = token_of(key)
    last = NOW + HOUR - timedelta(milliseconds=1)
    assert verify(token, key=key, now=last) == Identity(ANN)
    assert "expired at 2026-11-30 13:00:00 UTC" in refusal(verify(token, key=key, now=NOW + HOUR))


@pytest.mark.parametrize("ttl", [timedelta(0), -HOUR, timedelta(days=30, seconds=1)])
def test_no_token_is_issued_for_longer_than_30_days(key: RootKey, ttl: timedelta) -> None:
    with pytest.raises(ValueError, match="between 1 second and 30 days"):
        token_of(key, ttl=ttl)


def test_a_token_of_30_days_is_the_longest(key: RootKey) -> None:
    longest = timedelta(days=30)
    found = verify(token_of(key, ttl=longest), key=key, now=NOW)
    assert found == Identity(ANN)


def test_no_token_is_issued_to_what_is_no_address(key: RootKey) -> None:
    with pytest.raises(ValueError, match="not an e-mail address"):
        token_of(key, "ann")


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": None},
        {"iat": None},
        {"jti": None},
        {"sub": None},
        {"email": None},
        {"iss": None},
        {"aud": None},
        {"iss": "another"},
        {"aud": "another"},
        {"aud": ["core-console", "another"]},
        {"exp": str(int(NOW.timestamp()) + 60)},
        {"exp": NOW.timestamp() + 0.5},
        {"iat": True},
        {"nbf": int(NOW.timestamp()) + 999},
        {"admin": True},
        {"sub": "bob@example.com"},
        {"email": "Ann@example.com", "sub": "Ann@example.com"},
        {"email": "ann", "sub": "ann"},
        {"exp": int(NOW.timestamp()) + 31 * 86_400},
        {"exp": 10**30},
        {"iat": -(10**15), "exp": -(10**15) + 60},
        {"iat": int(NOW.timestamp()) + 61, "exp": int(NOW.timestamp()) + 90},
        {"exp": int(NOW.timestamp()) - 10},
    ],
    ids=str,
)
def test_any_other_claims_are_refused_even_when_signed(
    key: RootKey, changes: dict[str, object]
) -> None:
    assert refusal(verify(signed(key, claims(**changes)), key=key, now=NOW))


def test_a_clock_that_is_a_minute_behind_is_forgiven(key: RootKey) -> None:
    token = token_of(key)
    assert verify(token, key=key, now=NOW - timedelta(seconds=60)) == Identity(ANN)
    assert "from the future" in refusal(verify(token, key=key, now=NOW - timedelta(seconds=61)))


def forgeries(key: RootKey) -> dict[str, str]:
    public = key.private.public_key()
    raw = public.public_bytes(Encoding.Raw, PublicFormat.Raw)
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    header, payload, signature = token_of(key).split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims(sub="eve@example.com")).encode()).decode()
    return {
        "none": jwt.encode(claims(), "", algorithm="none"),
        "HS256 with the public key": jwt.encode(claims(), raw, algorithm="HS256"),
        "RS256": jwt.encode(claims(), other, algorithm="RS256"),
        "another Ed25519 key": signed(RootKey(Ed25519PrivateKey.generate(), "x"), claims()),
        "changed payload": f"{header}.{body.rstrip('=')}.{signature}",
        "no signature": f"{header}.{payload}.",
        "not JSON": "e30.e30.e30",
        "empty": "",
        "not ASCII": "é.é.é",
        "lone surrogate": "\udcff",
        "NUL": "\0",
        "over-long": token_of(key) + "A" * 4096,
        "GitHub token": "ghs_0123456789",
    }


def test_a_forgery_is_refused_whatever_it_is(key: RootKey) -> None:
    for name, token in forgeries(key).items():
        reason = refusal(verify(token, key=key, now=NOW))
        assert reason, name
        assert not token or token not in reason, name


def test_the_key_file_is_for_its_owner_only(root: Path) -> None:
    assert stat.S_IMODE(key_path(root).stat().st_mode) == 0o600
    assert [path.name for path in key_path(root).parent.iterdir()] == ["operator-key.pem"]


def test_the_key_is_made_once(root: Path, key: RootKey) -> None:
    before = key_path(root).read_bytes()
    assert not make_key(root, CountedIds())
    assert key_path(root).read_bytes() == before
    assert key.id in repr(key)
    assert [path.name for path in key_path(root).parent.iterdir()] == ["operator-key.pem"]


def test_a_key_that_cannot_be_written_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "var").touch()
    with pytest.raises(Fault, match="cannot be written"):
        make_key(tmp_path, CountedIds())


@pytest.mark.parametrize("later", [LOOK_AGAIN, -LOOK_AGAIN], ids=["in time", "the clock jumps"])
def test_rotating_ends_every_earlier_token(root: Path, key: RootKey, later: timedelta) -> None:
    authenticator = Authenticator(settings_of(root))
    header = [f"Bearer {token_of(key)}"]
    assert authenticator.identify(header, NOW) == Identity(ANN)
    rotate_key(root, CountedIds())
    assert "not signed by this console's present key" in refusal(
        authenticator.identify(header, NOW + later)
    )
    assert refusal(authenticator.identify(header, NOW + later)), "and it stays refused"
    fresh = KeyFile(root).current()
    assert fresh is not None
    assert authenticator.identify([f"Bearer {token_of(fresh)}"], NOW) == Identity(ANN)
    assert stat.S_IMODE(key_path(root).stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_reach_is_not_used(root: Path, mode: int) -> None:
    key_path(root).chmod(mode)
    with pytest.raises(Fault, match="can be read by others"):
        Authenticator(settings_of(root))


def test_a_link_in_place_of_the_key_is_not_followed(root: Path) -> None:
    elsewhere = root / "elsewhere.pem"
    key_path(root).rename(elsewhere)
    key_path(root).symlink_to(elsewhere)
    with pytest.raises(Fault, match="cannot be read"):
        KeyFile(root).current()


@pytest.mark.parametrize("content", [b"", b"garbage"])
def test_a_damaged_key_is_a_fault(root: Path, content: bytes) -> None:
    key_path(root).write_bytes(content)
    with pytest.raises(Fault, match="no Ed25519 key"):
        KeyFile(root).current()


def test_a_key_that_breaks_later_is_unavailable_and_opens_nothing(root: Path, key: RootKey) -> None:
    authenticator = Authenticator(settings_of(root))
    key_path(root).write_bytes(b"garbage")
    found = authenticator.identify([f"Bearer {token_of(key)}"], NOW)
    assert isinstance(found, Refused)
    assert found.code is Code.UNAVAILABLE


def test_without_a_key_the_console_is_open_and_nobody_is_named(tmp_path: Path) -> None:
    authenticator = Authenticator(settings_of(tmp_path))
    assert authenticator.is_open
    assert authenticator.identify([], NOW) is None
    assert authenticator.identify(["Bearer whatever"], NOW) is None


def test_a_key_made_later_closes_the_console(tmp_path: Path) -> None:
    authenticator = Authenticator(settings_of(tmp_path))
    make_key(tmp_path, CountedIds())
    assert not authenticator.is_open
    assert refusal(authenticator.identify(["Bearer whatever"], NOW))


def test_a_new_token_is_good_at_once_and_ends_what_the_old_key_signed(
    root: Path, key: RootKey
) -> None:
    authenticator = Authenticator(settings_of(root))
    old = [f"Bearer {token_of(key)}"]
    assert authenticator.identify(old, NOW) == Identity(ANN)
    rotate_key(root, CountedIds())
    fresh = KeyFile(root).current()
    assert fresh is not None
    assert authenticator.identify([f"Bearer {token_of(fresh)}"], NOW) == Identity(ANN)
    assert refusal(authenticator.identify(old, NOW))


def test_a_key_that_is_lost_later_ends_every_token(root: Path, key: RootKey) -> None:
    authenticator = Authenticator(settings_of(root))
    header = [f"Bearer {token_of(key)}"]
    assert authenticator.identify(header, NOW) == Identity(ANN)
    key_path(root).unlink()
    for _ in range(2):
        assert "key is gone" in refusal(authenticator.identify(header, NOW + LOOK_AGAIN))


def test_losing_the_key_does_not_open_the_console(root: Path, key: RootKey) -> None:
    authenticator = Authenticator(settings_of(root))
    key_path(root).unlink()
    assert not authenticator.is_open
    assert "key is gone" in refusal(authenticator.identify([f"Bearer {token_of(key)}"], NOW))


def test_a_caller_without_authorization_is_nobody_yet(root: Path) -> None:
    assert Authenticator(settings_of(root)).identify([], NOW) is None


@pytest.mark.parametrize(
    "values",
    [
        [""],
        ["Bearer"],
        ["Bearer "],
        ["Bearer  {token}"],
        ["Bearer {token} "],
        ["Basic {token}"],
        ["{token}"],
        ["Bearer {token}", "Bearer {token}"],
    ],
)
def test_authorization_is_exactly_one_bearer(root: Path, key: RootKey, values: list[str]) -> None:
    sent = [value.replace("{token}", token_of(key)) for value in values]
    reason = refusal(Authenticator(settings_of(root)).identify(sent, NOW))
    assert token_of(key) not in reason


def test_the_scheme_is_read_in_any_case(root: Path, key: RootKey) -> None:
    sent = [f"bearer {token_of(key)}"]
    assert Authenticator(settings_of(root)).identify(sent, NOW) == Identity(ANN)


def test_the_admission_list_applies_to_local_tokens(root: Path, key: RootKey) -> None:
    settings = settings_of(root, CONSOLE_ALLOWED_EMAILS="bob@example.com")
    found = Authenticator(settings).identify([f"Bearer {token_of(key)}"], NOW)
    assert found == Refused(
        Code.PERMISSION_DENIED, "ann@example.com is not admitted to this console"
    )
    assert settings.admission == Admission(allowed_emails=frozenset({"bob@example.com"}))


def test_the_domain_applies_to_local_tokens(root: Path, key: RootKey) -> None:
    authenticator = Authenticator(settings_of(root, CONSOLE_ALLOWED_HD="example.org"))
    found = authenticator.identify([f"Bearer {token_of(key)}"], NOW)
    assert isinstance(found, Refused)
    inside = [f"Bearer {token_of(key, 'ann@example.org')}"]
    assert authenticator.identify(inside, NOW) == Identity("ann@example.org")


def test_a_verified_token_still_expires(root: Path, key: RootKey) -> None:
    authenticator = Authenticator(settings_of(root))
    header = [f"Bearer {token_of(key)}"]
    assert authenticator.identify(header, NOW) == Identity(ANN)
    assert "expired" in refusal(authenticator.identify(header, NOW + HOUR))


def test_a_signature_is_checked_once_and_remembered_within_bounds(
    root: Path, key: RootKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens_seen, "_VERIFIED_MAX", 2)
    checks: list[str] = []
    check = tokens.signed_claims

    def counted(token: str, key: RootKey) -> tokens.Claims | Refused:
        checks.append(token)
        return check(token, key)

    monkeypatch.setattr(tokens_seen, "signed_claims", counted)
    authenticator = Authenticator(settings_of(root))
    headers = [[f"Bearer {token_of(key, f'op{number}@example.com')}"] for number in range(3)]
    for header in (headers[0], headers[0], headers[1], headers[2], headers[2], headers[0]):
        assert isinstance(authenticator.identify(header, NOW), Identity)
    assert len(checks) == 4
    assert len(authenticator._verified) == 2
