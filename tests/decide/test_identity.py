"""Who is who: one spelling of an address, and what the lists say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.decide.identity import (
    Admission,
    SignIn,
    is_admin,
    is_admitted,
    is_auditor,
    normalise,
)

ANN = "ann@example.com"


@pytest.mark.parametrize(
    "variant",
    [
        "ann@example.com",
        "Ann@Example.COM",
        "  ann@example.com\t\n",
        "\u00a0ann@example.com\u3000",
        "\uff41\uff4e\uff4e\uff20\uff45xample.com",  # full-width letters and at sign
        "\U0001d41a\U0001d427\U0001d427@example.com",  # mathematical bold
    ],
)
def test_variants_of_one_address_are_one_person(variant: str) -> None:
    assert normalise(variant) == ANN


def test_the_kelvin_sign_is_the_letter_k() -> None:
    assert normalise("\u212ate@example.com") == "kte@example.com"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ann",
        "@example.com",
        "ann@",
        "ann@@example.com",
        "ann@example@com",
        "ann smith@example.com",
        "ann\u200b@example.com",  # zero width space
        "\u202eann@example.com",  # bidi override
        "ann\x00@example.com",
        "ann@example.com\x7f",
        "\u0430nn@example.com",  # Cyrillic a
        "ann@ex\u00e4mple.com",
        "\u0130nn@example.com",  # dotted capital I folds to two code points
        ".ann@example.com",
        "ann..b@example.com",
        "ann@-example.com",
        "ann@example..com",
        "<ann@example.com>",
        "ann@example.com,bob@example.com",
        "agent:ann@example.com",
        "a" * 243 + "@example.com",
        "\ufdfa" * 100 + "@example.com",  # one character that normalises to eighteen
        "a" * 2000,
    ],
)
def test_anything_else_is_nobody(text: str) -> None:
    assert normalise(text) is None


def test_the_longest_address_is_an_address() -> None:
    assert normalise("a" * 242 + "@example.com") == "a" * 242 + "@example.com"


@given(st.text(max_size=40) | st.emails())
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert once is None or (normalise(once) == once and once.isascii() and once == once.lower())


def test_without_lists_a_local_token_is_admitted_and_an_issuers_word_is_not() -> None:
    assert is_admitted(ANN, Admission(), sign_in=SignIn.LOCAL)
    assert not is_admitted(ANN, Admission(), sign_in=SignIn.OIDC)


@pytest.mark.parametrize("sign_in", SignIn)
def test_the_list_admits_exactly_its_members(sign_in: SignIn) -> None:
    admission = Admission(allowed_emails=frozenset({ANN}), allowed_domain="example.com")
    assert is_admitted(ANN, admission, sign_in=sign_in)
    assert not is_admitted("bob@example.com", admission, sign_in=sign_in)


@pytest.mark.parametrize("sign_in", SignIn)
@pytest.mark.parametrize(
    ("email", "admitted"),
    [
        (ANN, True),
        ("ann@sub.example.com", False),
        ("ann@notexample.com", False),
        ("ann@example.com.evil.test", False),
    ],
)
def test_the_domain_admits_exactly_itself(sign_in: SignIn, email: str, *, admitted: bool) -> None:
    admission = Admission(allowed_domain="example.com")
    assert is_admitted(email, admission, sign_in=sign_in) is admitted


def test_everybody_is_an_admin_until_admins_are_listed() -> None:
    assert is_admin(ANN, Admission())
    assert is_admin(ANN, Admission(admins=frozenset({ANN})))
    assert not is_admin("bob@example.com", Admission(admins=frozenset({ANN})))
    assert not is_admin(ANN, Admission(admins=frozenset()))


def test_nobody_is_an_auditor_until_listed() -> None:
    assert not is_auditor(ANN, Admission())
    assert not is_auditor(ANN, Admission(admins=frozenset({ANN})))
    assert is_auditor(ANN, Admission(auditors=frozenset({ANN})))
