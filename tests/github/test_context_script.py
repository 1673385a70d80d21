import pytest

from tests.github.conftest import PAYLOAD, Shell


def test_a_good_payload_is_exported(shell: Shell) -> None:
    said = shell.run("playbook-context.sh", "datagov")
    assert said.code == 0, said.text
    assert said.env_file.splitlines() == [
        "PLAYBOOK_ID=PB-1",
        "PLAYBOOK_RUN_ID=PBR-1",
        "PLAYBOOK_STEP_ID=detect",
        "PLAYBOOK_CHAIN_DEPTH=1",
    ]


@pytest.mark.parametrize("depth", [0, 3])
def test_a_depth_from_0_to_3_is_accepted(shell: Shell, depth: int) -> None:
    shell.event = {"client_payload": PAYLOAD | {"chain_depth": depth}}
    assert f"PLAYBOOK_CHAIN_DEPTH={depth}\n" in shell.run("playbook-context.sh", "datagov").env_file


BAD_IDS = [
    *("", ".", "..", "a" * 65, "a b", "a/b", "a=b", "$(touch hacked)", "`id`", "é", "a\u202eb"),
    *("a\nPATH=/tmp", "a\n", "\na", "a\r", "a\u0000b", 7, None, True, ["a"], {"a": "b"}),
]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("step_id", value) for value in BAD_IDS),
        *(("run_id", value) for value in ("a\n", "..", 7)),
        *(("playbook_id", value) for value in ("a\n", "..", 7)),
    ],
)
def test_an_id_that_is_no_id_exports_nothing(shell: Shell, field: str, value: object) -> None:
    shell.event = {"client_payload": PAYLOAD | {field: value}}
    said = shell.run("playbook-context.sh", "datagov")
    assert said.code == 1
    assert said.env_file == ""
    assert field in said.text
    assert not (shell.folder / "hacked").exists()


def test_an_id_of_64_characters_is_accepted(shell: Shell) -> None:
    shell.event = {"client_payload": PAYLOAD | {"step_id": "a" * 64}}
    assert shell.run("playbook-context.sh", "datagov").code == 0


@pytest.mark.parametrize("depth", [-1, 4, 1.5, "1", None, True, [1], "1\nPATH=/tmp"])
def test_a_depth_that_is_none_exports_nothing(shell: Shell, depth: object) -> None:
    shell.event = {"client_payload": PAYLOAD | {"chain_depth": depth}}
    said = shell.run("playbook-context.sh", "datagov")
    assert (said.code, said.env_file) == (1, "")


@pytest.mark.parametrize("agent", ["risk", "", "datagov\n", "DATAGOV", None, 5])
def test_another_agents_payload_is_refused(shell: Shell, agent: object) -> None:
    shell.event = {"client_payload": PAYLOAD | {"agent": agent}}
    said = shell.run("playbook-context.sh", "datagov")
    assert (said.code, said.env_file) == (1, "")


@pytest.mark.parametrize("event", [{}, [], {"client_payload": "x"}, "not json", "", "null"])
def test_an_event_without_a_payload_is_refused(shell: Shell, event: object) -> None:
    shell.event = event
    said = shell.run("playbook-context.sh", "datagov")
    assert (said.code, said.env_file) == (1, "")


@pytest.mark.parametrize("field", list(PAYLOAD))
def test_every_field_is_required(shell: Shell, field: str) -> None:
    shell.event = {"client_payload": {k: v for k, v in PAYLOAD.items() if k != field}}
    said = shell.run("playbook-context.sh", "datagov")
    assert (said.code, said.env_file) == (1, "")


def test_the_payload_is_never_printed(shell: Shell) -> None:
    shell.event = {"client_payload": PAYLOAD | {"run_id": "::set-env name=X::secret-text"}}
    assert "secret-text" not in shell.run("playbook-context.sh", "datagov").text
