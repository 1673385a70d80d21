import json
import shutil
from collections.abc import Callable
from itertools import product

import pytest

from tests.github.conftest import PAYLOAD, TOKEN, Shell
from tests.github.local_server import Answer, Asked, LocalServer

InTurn = Callable[..., Callable[[Asked], Answer]]
ORDER = ["success", "skipped", "cancelled", "failure"]


def report(shell: Shell, **variables: str | None) -> tuple[int, str, list[int]]:
    said = shell.run("playbook-step-report.sh", "datagov", **variables)
    return said.code, said.text, said.waits_s


def test_a_report_holds_exactly_the_six_fields(shell: Shell, console: LocalServer) -> None:
    code, text, _ = report(shell, AGENT_DETAIL="3 connections assessed")
    assert code == 0, text
    (asked,) = console.asked
    assert (asked.method, asked.path) == ("POST", "/api/playbook-runs/step-report")
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"
    assert asked.headers["content-type"] == "application/json"
    assert asked.json() == {
        "runId": "PBR-1",
        "stepId": "detect",
        "agent": "datagov",
        "conclusion": "success",
        "detail": "3 connections assessed",
        "githubRunUrl": "https://github.com/acme/core/actions/runs/77",
    }


@pytest.mark.parametrize(
    ("outcome", "job"),
    [*product(ORDER, ORDER), ("", "success"), ("success", ""), ("odd", "success"), ("", "")],
)
def test_the_worse_of_outcome_and_job_is_reported(
    shell: Shell, console: LocalServer, outcome: str, job: str
) -> None:
    def rank(name: str) -> int:
        return ORDER.index(name) if name in ORDER else 3

    report(shell, AGENT_OUTCOME=outcome, AGENT_JOB_RESULT=job)
    assert console.asked[0].json()["conclusion"] == ORDER[max(rank(outcome), rank(job))]


@pytest.mark.parametrize("missing", ["AGENT_OUTCOME", "AGENT_JOB_RESULT"])
def test_what_is_unset_is_a_failure(shell: Shell, console: LocalServer, missing: str) -> None:
    report(shell, **{missing: None})
    assert console.asked[0].json()["conclusion"] == "failure"


@pytest.mark.parametrize(
    ("findings", "delivered", "conclusion"),
    [
        ("", "skipped", "success"),
        ("12", "success", "success"),
        ("12", "failure", "failure"),
        ("12", "skipped", "failure"),
        ("12", "cancelled", "failure"),
        ("12", "", "failure"),
    ],
)
def test_findings_that_were_not_delivered_make_it_a_failure(
    shell: Shell, console: LocalServer, findings: str, delivered: str, conclusion: str
) -> None:
    report(shell, FINDINGS=findings, FINDINGS_OUTCOME=delivered)
    assert console.asked[0].json()["conclusion"] == conclusion


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 413])
def test_a_refusal_is_logged_and_not_retried(
    shell: Shell, console: LocalServer, status: int
) -> None:
    console.answer = lambda _: Answer(status, {"error": "the step is not awaiting a report"})
    code, text, waits = report(shell)
    assert (code, waits, len(console.asked)) == (1, [], 1)
    assert f"{status}: the step is not awaiting a report" in text
    assert "NOT delivered" in text


@pytest.mark.parametrize("status", [301, 307])
def test_a_redirect_is_not_followed(shell: Shell, console: LocalServer, status: int) -> None:
    console.answer = lambda _: Answer(status, {}, {"Location": f"{console.url}/elsewhere"})
    code, _, waits = report(shell)
    assert (code, waits, len(console.asked)) == (1, [], 1)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_console_is_tried_again(
    shell: Shell, console: LocalServer, in_turn: InTurn, status: int
) -> None:
    console.answer = in_turn(Answer(status), Answer(status), Answer(200, {"accepted": True}))
    code, text, waits = report(shell)
    assert (code, waits, len(console.asked)) == (0, [2, 4], 3), text
    assert len({asked.body for asked in console.asked}) == 1, "every attempt is the same report"


def test_retries_end(shell: Shell, console: LocalServer) -> None:
    console.answer = lambda _: Answer(503)
    code, text, waits = report(shell)
    assert (code, len(console.asked), waits) == (1, 6, [2, 4, 8, 16, 30])
    assert "given up after 6 attempts" in text


@pytest.mark.parametrize(
    ("asked_for", "waits"),
    [
        ("7", 7),
        ("0", 0),
        ("08", 8),
        ("60", 60),
        ("61", 60),
        ("999999", 60),
        ("Wed, 21 Oct 2026 07:28:00 GMT", 2),
        ("-1", 2),
        ("1.5", 2),
        ("$(id)", 2),
        ("99999999999999999999", 2),
    ],
)
def test_retry_after_is_honoured_within_a_bound(
    shell: Shell, console: LocalServer, in_turn: InTurn, asked_for: str, waits: int
) -> None:
    console.answer = in_turn(
        Answer(503, {}, {"Retry-After": asked_for}), Answer(200, {"accepted": True})
    )
    assert report(shell)[0::2] == (0, [waits])


def test_all_waiting_together_is_bounded(shell: Shell, console: LocalServer) -> None:
    console.answer = lambda _: Answer(429, {}, {"Retry-After": "3600"})
    code, _, waits = report(shell)
    assert code == 1
    assert waits == [60, 60, 60, 60]


def test_a_dropped_connection_is_tried_again(
    shell: Shell, console: LocalServer, in_turn: InTurn
) -> None:
    console.answer = in_turn(Answer(None), Answer(200, {"accepted": True}))
    assert report(shell)[0::2] == (0, [2])


def test_a_refused_connection_is_tried_again_and_then_fails(shell: Shell) -> None:
    shell.url = "http://127.0.0.1:1"
    code, text, waits = report(shell)
    assert (code, waits) == (1, [2, 4, 8, 16, 30])
    assert "could not be reached" in text


def test_a_duplicate_is_a_success(shell: Shell, console: LocalServer) -> None:
    console.answer = lambda _: Answer(200, {"accepted": True, "duplicate": True})
    code, text, _ = report(shell)
    assert code == 0
    assert "had it already" in text


@pytest.mark.parametrize(
    "body", [b"<html>", b"", {}, {"accepted": False}, {"accepted": "true"}, []]
)
def test_a_200_that_is_not_the_consoles_is_a_failure(
    shell: Shell, console: LocalServer, body: object
) -> None:
    console.answer = lambda _: Answer(200, body)
    assert report(shell)[0] == 1


@pytest.mark.parametrize(
    "url",
    [
        None,
        "",
        "console.example.com",
        "ftp://console.example.com",
        "http://console.example.com",
        "http://127.0.0.1.example.com",
        "http://127.0.0.1:1@example.com",
        "https://user:pass@console.example.com",
        "https://console.example.com/?q=1",
        "https://console.example.com\nheader = x",
        "file:///etc/passwd",
    ],
)
def test_an_unsafe_address_gets_no_token(
    shell: Shell, console: LocalServer, url: str | None
) -> None:
    code, text, waits = report(shell, CORE_CONSOLE_HTTP_URL=url)
    assert (code, waits, console.asked) == (1, [], [])
    assert "CORE_CONSOLE_HTTP_URL" in text


def test_a_trailing_slash_of_the_address_does_not_matter(
    shell: Shell, console: LocalServer
) -> None:
    report(shell, CORE_CONSOLE_HTTP_URL=console.url + "/")
    assert console.asked[0].path == "/api/playbook-runs/step-report"


@pytest.mark.parametrize("token", [None, "", "a b", 'x"\nurl = "http://127.0.0.1:1', "a" * 4097])
def test_a_token_that_is_none_is_not_sent(
    shell: Shell, console: LocalServer, token: str | None
) -> None:
    code, text, _ = report(shell, APP_TOKEN=token)
    assert (code, console.asked) == (1, [])
    assert "no App token" in text


def test_a_token_of_4096_characters_is_sent(shell: Shell, console: LocalServer) -> None:
    report(shell, APP_TOKEN="a" * 4096)
    assert console.asked[0].headers["authorization"] == "Bearer " + "a" * 4096


def test_the_token_is_in_no_argument(shell: Shell) -> None:
    curl = shutil.which("curl")
    spy = shell.folder / "bin" / "curl"
    spy.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >>"{shell.folder}/arguments"\nexec {curl} "$@"\n'
    )
    spy.chmod(0o755)
    assert report(shell)[0] == 0
    arguments = (shell.folder / "arguments").read_text()
    assert "--max-time" in arguments
    assert TOKEN not in arguments


@pytest.mark.parametrize(
    "detail",
    [
        'quote " backslash \\ dollar $(id) `id`',
        '", "conclusion": "success", "x": "',
        "-n",
        "@/etc/passwd",
        "%s%n",
    ],
)
def test_no_detail_can_change_the_report(shell: Shell, console: LocalServer, detail: str) -> None:
    report(shell, AGENT_DETAIL=detail, AGENT_OUTCOME="failure")
    sent = console.asked[0].json()
    assert (sent["conclusion"], sent["detail"]) == ("failure", detail)


@pytest.mark.parametrize(
    ("detail", "sent"),
    [
        ("two\nlines", "two lines"),
        ("a\x1b[31mred\x07", "a [31mred"),
        ("a\u202eb\u2066c\u200fd", "a b c d"),
        ("a\u0085b\u2028c", "a b c"),
        ("  spaces  ", "spaces"),
        ("", "agent step success, job success"),
        (" \n ", "agent step success, job success"),
    ],
)
def test_a_detail_is_one_clean_line(
    shell: Shell, console: LocalServer, detail: str, sent: str
) -> None:
    report(shell, AGENT_DETAIL=detail)
    assert console.asked[0].json()["detail"] == sent


@pytest.mark.parametrize("character", ["a", "é", "€", "🙂"])
def test_a_long_detail_is_cut_at_500_bytes(
    shell: Shell, console: LocalServer, character: str
) -> None:
    report(shell, AGENT_DETAIL=character * 600)
    sent = console.asked[0].json()["detail"]
    assert 490 < len(sent.encode()) <= 500
    assert sent.endswith("…")


@pytest.mark.parametrize(
    "secret",
    [
        "ghs_abc",
        "github_pat_x",
        "AKIAABCDEF",
        "xoxb-1",
        "-----BEGIN PRIVATE KEY",
        "eyJhbGciOi.eyJpc3MiOi.c2lnbmF0dXJl",
    ],
)
def test_a_detail_like_a_credential_is_withheld_and_the_step_still_reported(
    shell: Shell, console: LocalServer, secret: str
) -> None:
    code, text, _ = report(shell, AGENT_DETAIL=f"found {secret} here")
    assert code == 0
    assert secret not in console.asked[0].json()["detail"]
    assert "withheld" in console.asked[0].json()["detail"]
    assert secret not in text


@pytest.mark.parametrize("field", ["run_id", "step_id", "agent"])
def test_a_bad_payload_reports_nothing(shell: Shell, console: LocalServer, field: str) -> None:
    shell.event = {"client_payload": PAYLOAD | {field: "a\nb"}}
    assert (report(shell)[0], console.asked) == (1, [])


def test_what_the_console_says_can_start_no_workflow_command(
    shell: Shell, console: LocalServer
) -> None:
    console.answer = lambda _: Answer(409, {"error": "x\n::add-mask::y\n##[debug]z"})
    text = report(shell)[1]
    assert "::" not in text
    assert "##" not in text


def test_settings_of_a_curlrc_are_ignored(shell: Shell, console: LocalServer) -> None:
    (shell.folder / ".curlrc").write_text('header = "X-Injected: yes"\n')
    report(shell, HOME=str(shell.folder))
    assert "x-injected" not in console.asked[0].headers


def test_the_body_is_json_even_for_strange_ids(shell: Shell, console: LocalServer) -> None:
    shell.event = {"client_payload": PAYLOAD | {"step_id": "-._-"}}
    report(shell)
    assert json.loads(console.asked[0].body)["stepId"] == "-._-"
