"""The rules of an answer as tables: what it means by itself, and after others before it."""

import json

import pytest

from core_console.githubapp.answers import Answer, fault_of, limit_wait_s, message, redact
from core_console.githubapp.dispatch import dispatch_errand
from core_console.githubapp.judge import History, Judgement, Move, judge, settle
from tests.fakes import NOON

ERRAND = dispatch_errand("runink-demo/core")
EPOCH = int(NOON.timestamp())


def answer(status: int, said: str = "", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, json.dumps({"message": said}).encode())


@pytest.mark.parametrize(
    ("given", "move"),
    [
        (answer(204), Move.ACCEPTED),
        (answer(200), Move.UNKNOWN),
        (answer(201), Move.UNKNOWN),
        (answer(202), Move.UNKNOWN),
        (answer(301), Move.REFUSED),
        (answer(302), Move.REFUSED),
        (answer(307), Move.REFUSED),
        (answer(308), Move.REFUSED),
        (answer(400), Move.REFUSED),
        (answer(401), Move.MINT_AGAIN),
        (answer(403, "Resource not accessible by integration"), Move.REFUSED),
        (answer(403, "Resource not accessible", x_ratelimit_remaining="4999"), Move.REFUSED),
        (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(EPOCH + 5)), Move.WAIT),
        (answer(403, retry_after="5"), Move.WAIT),
        (answer(403, "You have exceeded a secondary rate limit"), Move.WAIT),
        (answer(404), Move.REFUSED),
        (answer(408), Move.REFUSED),
        (answer(422), Move.REFUSED),
        (answer(429), Move.WAIT),
        (answer(500), Move.UNKNOWN),
        (answer(502), Move.UNKNOWN),
        (answer(503, retry_after="5"), Move.UNKNOWN),
        (answer(504), Move.UNKNOWN),
    ],
)
def test_each_answer_has_one_move(given: Answer, move: Move) -> None:
    found = judge(given, ERRAND, NOON)
    assert found.move is move
    assert bool(found.detail) is (move in {Move.REFUSED, Move.UNKNOWN})
    assert len(found.detail.encode()) <= 500


@pytest.mark.parametrize(
    ("given", "wait_s"),
    [
        (answer(403), None),
        (answer(503, retry_after="9"), None),
        (answer(429), 60.0),
        (answer(403, retry_after="7"), 7.0),
        (answer(403, retry_after="0"), 1.0),
        (answer(403, retry_after="soon"), 60.0),
        (answer(403, retry_after="-3"), 60.0),
        (answer(403, retry_after="999999999"), 3600.0),
        (answer(429, retry_after="3", x_ratelimit_remaining="0"), 3.0),
        (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(EPOCH + 42)), 42.0),
        (answer(403, x_ratelimit_remaining="0", x_ratelimit_reset=str(EPOCH - 42)), 1.0),
        (answer(403, x_ratelimit_remaining="0"), 60.0),
        (answer(403, x_ratelimit_remaining="10"), None),
        (answer(403, "You have exceeded a Secondary rate limit"), 60.0),
    ],
)
def test_a_limit_is_told_from_a_refusal_and_its_wait_is_bounded(
    given: Answer, wait_s: float | None
) -> None:
    assert limit_wait_s(given, NOON) == wait_s


@pytest.mark.parametrize(
    ("found", "history", "move"),
    [
        (Move.MINT_AGAIN, History(left_s=60), Move.MINT_AGAIN),
        (Move.MINT_AGAIN, History(minted_again=True, left_s=60), Move.REFUSED),
        (Move.WAIT, History(left_s=10), Move.WAIT),
        (Move.WAIT, History(left_s=9.9), Move.REFUSED),
        (Move.WAIT, History(limited=1, left_s=60), Move.WAIT),
        (Move.WAIT, History(limited=2, left_s=60), Move.REFUSED),
        (Move.UNKNOWN, History(left_s=60), Move.UNKNOWN),
        (Move.ACCEPTED, History(limited=2, minted_again=True), Move.ACCEPTED),
    ],
)
def test_what_has_been_tried_bounds_what_is_tried(
    found: Move, history: History, move: Move
) -> None:
    assert settle(Judgement(found, wait_s=10.0), history).move is move


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(200, True), (301, False), (401, False), (403, False), (404, False), (429, True), (502, True)],
)
def test_a_fault_says_whether_to_ask_again(status: int, *, retryable: bool) -> None:
    assert fault_of(answer(status), NOON).retryable is retryable


@pytest.mark.parametrize(
    "secret",
    [
        "ghs_" + "a" * 36,
        "ghs_4711_" + "aB9-" * 20 + "." + "c" * 200 + "." + "d_e" * 30,
        "ghp_" + "a" * 36,
        "github_pat_" + "a" * 60,
        "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiI0NzExIn0.c2lnbmF0dXJl",
        "-----BEGIN RSA PRIVATE KEY-----",
    ],
)
def test_nothing_like_a_secret_is_repeated_from_an_answer(secret: str) -> None:
    shown = message(answer(422, f"bad value {secret} here"))
    assert "(redacted)" in shown
    for part in secret.replace("-----", ".").split("."):
        assert not part or part not in shown


def test_githubs_words_become_one_bounded_printable_line() -> None:
    shown = redact("a\nb\x1b[31m\u202e" + "x" * 500)
    assert len(shown) == 160
    assert shown.isprintable()
    assert shown.isascii()


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"message":null}', b'{"message":3}', b"\xff"]
)
def test_an_answer_without_a_sentence_has_none(body: bytes) -> None:
    assert message(Answer(422, {}, body)) == ""
    assert judge(Answer(422, {}, body), ERRAND, NOON).detail.endswith("(422)")
