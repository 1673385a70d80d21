"""How the service logs: nothing like a credential leaves, and no flood fills the disk."""

import asyncio
import errno
import os
import time
from typing import Any

import pytest
import structlog

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


class Loop:
    """An event loop, as far as a handler of its troubles asks it."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def time(self) -> float:
        return self.now_s


def met(handler: logs.LoopTroubles, loop: Any, error: BaseException | None) -> None:  # noqa: ANN401 -- a double
    handler(loop, {"message": "socket.accept() out of system resource", "exception": error})


def test_a_trouble_of_the_loop_is_told_once_a_minute_and_without_its_text() -> None:
    handler, loop = logs.LoopTroubles(), Loop()
    with structlog.testing.capture_logs() as told:
        for _ in range(2_048):
            met(handler, loop, OSError(errno.EMFILE, os.strerror(errno.EMFILE), "/a/path"))
        met(handler, loop, ValueError("ghp_secret"))
        met(handler, loop, None)
        loop.now_s = logs.TROUBLES_APART_S
        met(handler, loop, OSError(errno.EMFILE, os.strerror(errno.EMFILE)))
    assert [(each["error"], each["since_last_told"]) for each in told] == [
        ("EMFILE", 0),
        ("ValueError", 0),
        ("NoneType", 0),
        ("EMFILE", 2_047),
    ]
    assert "secret" not in str(told)
    assert "/a/path" not in str(told)


async def test_the_loop_hands_its_troubles_over() -> None:
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(logs.LoopTroubles())
    try:
        with structlog.testing.capture_logs() as told:
            nothing: dict[str, str] = {}
            loop.call_soon(lambda: nothing["missing"])
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    finally:
        loop.set_exception_handler(None)
    (line,) = told
    assert line["error"] == "KeyError"
    assert any(place.startswith("<lambda>:") for place in line["where"])
