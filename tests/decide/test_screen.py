"""Nobody writes control characters, bidi overrides or credentials, and no answer repeats one."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.decide import screen
from core_console.decide.outcome import Violation

CONTROL = "holds a control character; remove it"
BIDI = "holds a bidi control character; remove it"
SURROGATE = "is not valid Unicode; send it as UTF-8"
CREDENTIAL = "holds what looks like a credential; remove it"

CREDENTIALS = [
    *(f"gh{kind}_x" for kind in "pousr"),
    "github_pat_11A",
    "AKIAIOSFODNN7EXAMPLE",
    *(f"xox{kind}-1" for kind in "abp"),
    "-----BEGIN PRIVATE KEY-----",
    "eyJhbGciOiJ.eyJzdWIiOi.c2lnbmF0dXJl",
    "eyJhbGciOiJ.eyJzdWIiOi.",  # alg none: the third part is empty
]


def descriptions(value: str, *, prose: bool = False) -> list[str]:
    found = screen.flaws("note", value, prose=prose)
    assert all(each.field == "note" for each in found)
    return [each.description for each in found]


@pytest.mark.parametrize("credential", CREDENTIALS)
@pytest.mark.parametrize("around", ["{}", "key: {}, keep it", "a{}b"])
def test_a_credential_is_refused_and_never_repeated(credential: str, around: str) -> None:
    assert descriptions(around.format(credential)) == [CREDENTIAL]
    assert credential not in repr(screen.flaws("note", credential))


@pytest.mark.parametrize(
    "harmless",
    [
        "",
        "ghx_abc",
        "gh_p",
        "akia",
        "xoxc-1",
        "----BEGIN",
        "eyJhbGciOiJ.two-parts",
        "a.b.c",
        "é漢🙂",
    ],
)
def test_what_only_resembles_a_credential_may_be_written(harmless: str) -> None:
    assert descriptions(harmless) == []


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029])
def test_every_control_character_is_refused_in_one_line(code: int) -> None:
    assert descriptions(f"a{chr(code)}b") == [CONTROL]


@pytest.mark.parametrize("code", [*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029])
def test_prose_may_have_tabs_and_line_ends_and_no_other_control(code: int) -> None:
    expected = [] if chr(code) in "\t\n\r" else [CONTROL]
    assert descriptions(f"a{chr(code)}b", prose=True) == expected


@pytest.mark.parametrize(
    "code", [0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
@pytest.mark.parametrize("prose", [False, True])
def test_every_bidi_control_is_refused(code: int, *, prose: bool) -> None:
    assert descriptions(f"a{chr(code)}b", prose=prose) == [BIDI]


@pytest.mark.parametrize("code", [0xD800, 0xDBFF, 0xDC00, 0xDFFF])
def test_half_a_surrogate_pair_is_refused(code: int) -> None:
    assert descriptions(chr(code)) == [SURROGATE]


def test_every_fault_of_a_text_is_told() -> None:
    assert descriptions("\0\u202eghp_\ud800") == [CONTROL, BIDI, SURROGATE, CREDENTIAL]


@given(st.characters(categories=("L", "N", "P", "S", "M", "Zs")))
def test_any_visible_character_may_be_written(character: str) -> None:
    assert descriptions(character) == []


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a" * 10, []),
        ("a" * 11, ["has 11 bytes; at most 10"]),
        ("é" * 5, []),
        ("é" * 6, ["has 12 bytes; at most 10"]),
        ("\ud800" * 4, ["has 12 bytes; at most 10"]),
        ("ghp_" * 3, ["has 12 bytes; at most 10"]),
    ],
)
def test_a_text_is_bounded_in_bytes_before_it_is_screened(value: str, expected: list[str]) -> None:
    found = screen.text("note", value, bytes_max=10)
    assert [each.description for each in found] == expected


def test_thousands_are_told_with_a_comma() -> None:
    (found,) = screen.text("note", "a" * 1001, bytes_max=1000)
    assert found.description == "has 1,001 bytes; at most 1,000"


@pytest.mark.parametrize("value", ["", " ", "\t\n "])
def test_a_required_text_of_white_space_is_none(value: str) -> None:
    (found,) = screen.text("note", value, bytes_max=10, required=True)
    assert found == Violation("note", "is required; write why")


def test_an_optional_text_may_be_empty() -> None:
    assert screen.text("note", "", bytes_max=10) == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("", ["is required"]),
        ("  ", ["is required"]),
        ("é", []),
        ("é" * 10, []),
        ("é" * 11, ["has 11 characters; at most 10"]),
        ("a\nb", [CONTROL]),
    ],
)
def test_a_name_is_bounded_in_characters(value: str, expected: list[str]) -> None:
    found = screen.characters("playbook.name", value, least=1, most=10)
    assert [each.description for each in found] == expected


def test_prose_is_bounded_in_characters_and_may_have_lines() -> None:
    assert screen.characters("d", "a\nb", least=0, most=3, prose=True) == ()
    assert screen.characters("d", "", least=0, most=3, prose=True) == ()


@pytest.mark.parametrize(
    "piece", ["eyJ", "eyJabcde.", "eyJabcde.eyJabcd.", "ey", "a", "gh", "-----BEGI", "xo."]
)
def test_a_text_of_a_megabyte_is_screened_quickly(piece: str) -> None:
    text = piece * (1_000_000 // len(piece))
    began = time.process_time()
    screen.flaws("note", text)
    assert time.process_time() - began < 2


@given(st.lists(st.sampled_from(["eyJ", "a", "ey", "J", "bcdef", ".", " ", "-"]), max_size=14))
def test_a_jwt_is_found_wherever_a_plain_search_finds_it(pieces: list[str]) -> None:
    text = "".join(pieces)
    plain = re.search(r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.", text)
    assert descriptions(text) == ([CREDENTIAL] if plain else [])
