"""The sign-in key and its tokens, from the command line: made once, recorded always."""

import socket
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from click.testing import Result

from core_console.cli.failure import Exit
from core_console.clock import SystemClock
from core_console.governance.rootkey import KeyFile, key_path
from core_console.governance.tokens import Identity, verify
from core_console.governance.verify import verify as verify_chain
from core_console.model.audit import AuditRecord

Cli = Callable[..., Result]


@pytest.fixture
def local(run: Cli, tmp_path: Path) -> Cli:
    """Run a command on a root of its own."""

    def invoke(*args: str, **environ: str) -> Result:
        return run(*args, CONSOLE_APPFS_DIR=str(tmp_path), **environ)

    return invoke


def records(root: Path) -> list[AuditRecord]:
    with (root / "var/log/audit").open("rb") as stream:
        assert verify_chain(stream).intact
    lines = (root / "var/log/audit").read_bytes().splitlines()
    return [msgspec.json.decode(line, type=AuditRecord) for line in lines]


def test_init_makes_a_key_and_never_replaces_it(local: Cli, tmp_path: Path) -> None:
    assert local("init").exit_code == Exit.OK
    before = key_path(tmp_path).read_bytes()
    again = local("init")
    assert (again.exit_code, again.stdout) == (
        Exit.OK,
        "the operator key is there already; nothing was changed\n",
    )
    assert key_path(tmp_path).read_bytes() == before
    assert [record.action for record in records(tmp_path)] == ["identity.key.create"]
    for folder in (tmp_path / "var", tmp_path / "var/lib", tmp_path / "var/log"):
        assert not stat.S_IMODE(folder.stat().st_mode) & 0o077


def test_token_prints_the_token_alone_and_records_its_issue(local: Cli, tmp_path: Path) -> None:
    local("init")
    result = local("token", "--email", "Author@Example.com", "--ttl", "12h")
    assert (result.exit_code, result.stderr) == (Exit.OK, "")
    token = result.stdout.removesuffix("\n")
    key = KeyFile(tmp_path).current()
    assert key is not None
    named = verify(token, key=key, now=SystemClock().now())
    assert isinstance(named, Identity)
    assert named.email == "author@example.com"
    record = records(tmp_path)[-1]
    assert (record.action, record.target, record.outcome, record.subject) == (
        "identity.token.issue",
        "author@example.com",
        "success",
        "identity",
    )
    assert record.actor.startswith("os:")
    assert "expires at" in record.detail
    assert token not in (tmp_path / "var/log/audit").read_text()


def test_a_token_that_cannot_be_recorded_is_not_printed(local: Cli, tmp_path: Path) -> None:
    local("init")
    log = tmp_path / "var/log/audit"
    log.write_bytes(b"not a record\n" * 3)
    result = local("token", "--email", "author@example.com")
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")


def test_rotating_ends_the_tokens_and_is_recorded(local: Cli, tmp_path: Path) -> None:
    local("init")
    token = local("token", "--email", "author@example.com").stdout.strip()
    assert local("init", "--rotate").exit_code == Exit.OK
    key = KeyFile(tmp_path).current()
    assert key is not None
    assert not isinstance(verify(token, key=key, now=SystemClock().now()), Identity)
    assert records(tmp_path)[-1].action == "identity.key.rotate"


def test_without_a_key_no_token_is_issued(local: Cli, tmp_path: Path) -> None:
    result = local("token", "--email", "author@example.com")
    assert result.exit_code == Exit.REFUSED
    assert result.stderr == "there is no operator key yet: run core-console init\n"
    assert not (tmp_path / "var/log").exists()


@pytest.mark.parametrize(
    "args",
    [
        ("--email", "author"),
        ("--email", "author@example.com", "--ttl", "31d"),
        ("--email", "author@example.com", "--ttl", "12"),
        ("--ttl", "12h"),
    ],
    ids=" ".join,
)
def test_bad_usage_issues_and_records_nothing(
    local: Cli, tmp_path: Path, args: tuple[str, ...]
) -> None:
    local("init")
    result = local("token", *args)
    assert (result.exit_code, result.stdout) == (Exit.USAGE, "")
    assert len(records(tmp_path)) == 1


def test_nobody_gets_a_token_who_would_not_be_admitted(local: Cli, tmp_path: Path) -> None:
    local("init")
    result = local(
        "token", "--email", "eve@example.com", CONSOLE_ALLOWED_EMAILS="author@example.com"
    )
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert len(records(tmp_path)) == 1


def test_a_key_that_others_can_read_is_not_used(local: Cli, tmp_path: Path) -> None:
    local("init")
    key_path(tmp_path).chmod(0o644)
    result = local("token", "--email", "author@example.com")
    assert result.exit_code == Exit.REFUSED
    assert "can be read by others" in result.stderr
    assert str(tmp_path) not in result.stderr


def test_bad_settings_stop_serve_with_one_line_per_fault(local: Cli) -> None:
    result = local(
        "serve", CONSOLE_GRPC_ADDR="0.0.0.0:7443", CONSOLE_TICK_SECONDS="0", CORE_ATLAS_ADMIN="x"
    )
    assert result.exit_code == Exit.USAGE
    warning, *faults = result.stderr.splitlines()
    assert warning.startswith("warning: CORE_ATLAS_ADMIN is set, but")
    assert [line.split()[0] for line in faults] == ["CONSOLE_GRPC_ADDR", "CONSOLE_TICK_SECONDS"]


def test_serve_does_not_start_on_a_corrupt_document_and_leaves_it_alone(
    local: Cli, tmp_path: Path
) -> None:
    document = tmp_path / "var/lib/atlas-playbooks"
    document.parent.mkdir(parents=True)
    document.write_bytes(b"garbage")
    result = local("serve", CONSOLE_GRPC_ADDR="127.0.0.1:0", CONSOLE_HTTP_ADDR="127.0.0.1:0")
    assert result.exit_code == Exit.REFUSED
    assert len(result.stderr.splitlines()) == 1
    assert str(tmp_path) not in result.stderr
    assert document.read_bytes() == b"garbage"


def test_an_exported_log_is_verified_without_a_console(local: Cli, tmp_path: Path) -> None:
    local("init")
    local("token", "--email", "author@example.com")
    log = tmp_path / "var/log/audit"
    intact = local("audit", "verify", "--file", str(log))
    assert intact.exit_code == Exit.OK
    assert intact.stdout.startswith("intact: 2 records")
    log.write_bytes(log.read_bytes().replace(b"author@", b"second@"))
    edited = local("audit", "verify", "--file", str(log))
    assert edited.exit_code == Exit.REFUSED
    assert "record 2" in edited.stdout
    absent = local("audit", "verify", "--file", str(tmp_path / "absent"))
    assert absent.exit_code == Exit.USAGE


def test_a_file_that_is_no_audit_log_is_told_as_such(local: Cli, tmp_path: Path) -> None:
    foreign = tmp_path / "plan.csv"
    foreign.write_text("ItemId,Description\nA-1,Torque wrench\n")
    result = local("audit", "verify", "--file", str(foreign))
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert result.stderr.startswith("this is no audit log: it holds no record")


def test_an_empty_log_proves_nothing(local: Cli, tmp_path: Path) -> None:
    empty = tmp_path / "audit"
    empty.touch()
    result = local("audit", "verify", "--file", str(empty))
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "0 records\n")
    assert "an empty log proves nothing" in result.stderr


def test_a_first_record_that_was_edited_is_still_named(local: Cli, tmp_path: Path) -> None:
    local("init")
    log = tmp_path / "var/log/audit"
    log.write_bytes(b"X" + log.read_bytes()[1:])
    result = local("audit", "verify", "--file", str(log))
    assert result.exit_code == Exit.REFUSED
    assert "record 1" in result.stdout


def test_a_folder_that_cannot_be_made_is_told_by_its_setting(run: Cli, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for command in ("init", "serve"):
        result = run(command, CONSOLE_APPFS_DIR=str(tmp_path / "file" / "root"))
        assert result.exit_code == Exit.USAGE
        assert result.stderr == "CONSOLE_APPFS_DIR cannot be created: Not a directory\n"


def test_each_port_that_is_taken_is_told_by_its_setting(local: Cli) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as one,
        socket.create_server(("::1", 0), family=socket.AF_INET6) as other,
    ):
        grpc = f"127.0.0.1:{one.getsockname()[1]}"
        http = f"[::1]:{other.getsockname()[1]}"
        result = local("serve", CONSOLE_GRPC_ADDR=grpc, CONSOLE_HTTP_ADDR=http)
    assert result.exit_code == Exit.REFUSED
    taken = "cannot be bound: another process has it: end it, or set another"
    assert result.stderr.splitlines() == [
        f"{grpc} {taken} CONSOLE_GRPC_ADDR",
        f"{http} {taken} CONSOLE_HTTP_ADDR",
    ]


def test_an_address_of_another_machine_is_told_by_its_setting(local: Cli, tmp_path: Path) -> None:
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    result = local(
        "serve",
        CONSOLE_GRPC_ADDR="192.0.2.1:7443",
        CONSOLE_HTTP_ADDR="127.0.0.1:0",
        CONSOLE_TLS_CERT=str(tmp_path / "cert.pem"),
        CONSOLE_TLS_KEY=str(tmp_path / "key.pem"),
    )
    assert result.exit_code == Exit.REFUSED
    assert result.stderr == (
        "192.0.2.1:7443 cannot be bound: it is no address of this machine: "
        "set another CONSOLE_GRPC_ADDR\n"
    )


def served(local: Cli, monkeypatch: pytest.MonkeyPatch, **environ: str) -> list[str]:
    """Return what `serve` says before it serves."""

    async def nothing(_: object) -> None:
        pass

    monkeypatch.setattr("core_console.app.serve", nothing)
    result = local(
        "serve", CONSOLE_GRPC_ADDR="127.0.0.1:0", CONSOLE_HTTP_ADDR="127.0.0.1:0", **environ
    )
    assert (result.exit_code, result.stdout) == (Exit.OK, "")
    lines: list[str] = result.stderr.splitlines()
    return lines


def test_serve_says_what_it_stands_on_and_warns_once_when_nobody_can_sign_in(
    local: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, github, warning = served(local, monkeypatch)
    assert state == f"the state is in {tmp_path}"
    assert github.startswith("no GitHub App is configured")
    assert warning.startswith("warning: there is no operator key, so everybody may read and nobody")
    assert warning.endswith("run core-console init")
    local("init")
    assert served(local, monkeypatch) == [state, github]
    key_path(tmp_path).chmod(0o644)
    assert "can be read by others" in served(local, monkeypatch)[2]
