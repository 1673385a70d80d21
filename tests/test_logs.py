"""How the service logs: nothing like a credential leaves, and no flood fills the disk."""

import time

import pytest

from core_console import logs

JWT = "eyJhbGciOiJ.eyJzdWIiOi.c2lnbmF0dXJl"


def redacted(text: str) -> object:
    return logs.redact(None, "info", {"event": text})["event"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"token {JWT}, again", "token [redacted], again"),
        (f"x{JWT}", "[redacted]"),
        ("eyJ.two.parts", "eyJ.two.parts"),
        ("ghp_abc.d and AKIA1", "[redacted] and [redacted]"),
        ("nothing of that kind", "nothing of that kind"),
    ],
)
def test_what_looks_like_a_credential_is_not_logged(text: str, shown: str) -> None:
    assert redacted(text) == shown


@pytest.mark.parametrize("piece", ["eyJ", "eyJa.", "-----BEGIN"])
def test_a_text_of_a_megabyte_is_redacted_quickly(piece: str) -> None:
    began = time.process_time()
    assert redacted(piece * (1_000_000 // len(piece)))
    assert time.process_time() - began < 2
