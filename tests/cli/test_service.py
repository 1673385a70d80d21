"""The sign-in key and its tokens, from the command line: made once, recorded always."""

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
    assert verify(token, key=key, now=SystemClock().now()) == Identity("author@example.com")
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
