import json
from collections.abc import Callable

import pytest

from tests.github.conftest import TOKEN, Shell
from tests.github.local_server import Answer, Asked, LocalServer

DOOR = "/api/judgements"


def test_a_report_is_delivered_unchanged(shell: Shell, console: LocalServer) -> None:
    file = shell.folder / "report.json"
    file.write_text('{"a":  1, "b": "é"}\n')
    said = shell.run("agent-report.sh", DOOR, str(file))
    assert said.code == 0, said.text
    (asked,) = console.asked
    assert (asked.method, asked.path, asked.body) == ("POST", DOOR, file.read_bytes())
    assert asked.headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("text", ["", "[]", "{", "{} {}", '"x"', "null"])
def test_a_report_that_is_no_object_is_not_sent(
    shell: Shell, console: LocalServer, text: str
) -> None:
    (shell.folder / "report.json").write_text(text)
    said = shell.run("agent-report.sh", DOOR, str(shell.folder / "report.json"))
    assert (said.code, console.asked) == (1, [])


@pytest.mark.parametrize(("filler", "code"), [(1_048_576, 0), (1_048_577, 1)])
def test_a_report_may_have_1_mib(
    shell: Shell, console: LocalServer, filler: int, code: int
) -> None:
    empty = len(json.dumps({"a": ""}))
    (shell.folder / "report.json").write_text(json.dumps({"a": "x" * (filler - empty)}))
    said = shell.run("agent-report.sh", DOOR, str(shell.folder / "report.json"))
    assert said.code == code, said.text
    assert len(console.asked) == 1 - code


def test_a_link_or_nothing_at_all_is_not_sent(shell: Shell, console: LocalServer) -> None:
    (shell.folder / "real.json").write_text("{}")
    (shell.folder / "link.json").symlink_to(shell.folder / "real.json")
    for name in ("link.json", "none.json"):
        assert shell.run("agent-report.sh", DOOR, str(shell.folder / name)).code == 1
    assert console.asked == []


def test_an_undelivered_report_fails(
    shell: Shell, console: LocalServer, in_turn: Callable[..., Callable[[Asked], Answer]]
) -> None:
    (shell.folder / "report.json").write_text("{}")
    console.answer = in_turn(Answer(503), Answer(404, {"error": "no such door"}))
    said = shell.run("agent-report.sh", DOOR, str(shell.folder / "report.json"))
    assert (said.code, said.waits_s) == (1, [2])
    assert "NOT delivered" in said.text


def test_inputs_are_saved_as_they_are(shell: Shell, console: LocalServer) -> None:
    console.answer = lambda _: Answer(200, {"rules": []})
    file = shell.folder / "inputs.json"
    said = shell.run("agent-inputs.sh", "/api/rules-recon/inputs", str(file))
    assert said.code == 0, said.text
    assert json.loads(file.read_text()) == {"rules": []}
    assert (console.asked[0].method, console.asked[0].body) == ("GET", b"")


@pytest.mark.parametrize("answer", [Answer(404), Answer(200, b"<html>"), Answer(200, [])])
def test_inputs_that_are_none_leave_no_file(
    shell: Shell, console: LocalServer, answer: Answer
) -> None:
    console.answer = lambda _: answer
    file = shell.folder / "inputs.json"
    assert shell.run("agent-inputs.sh", "/api/rules-recon/inputs", str(file)).code == 1
    assert not file.exists()
