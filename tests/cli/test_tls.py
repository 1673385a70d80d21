"""TLS from the command line: the named authority is trusted, and nobody else."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from click.testing import Result

from core_console.cli.failure import Exit
from tests.certificates import certificate

Cli = Callable[..., Result]


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve nothing, but by TLS; give the address and the authority's file."""
    chain, key = certificate()
    server = grpc.server(ThreadPoolExecutor(max_workers=1))
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)]))
    server.start()
    (tmp_path / "ca.pem").write_bytes(chain)
    yield f"127.0.0.1:{port}", tmp_path / "ca.pem"
    server.stop(None).wait()


def test_the_named_authority_is_trusted(secured: tuple[str, Path], run: Cli) -> None:
    address, ca = secured
    for url in (address, f"https://{address}"):
        result = run("agents", CORE_CONSOLE_URL=url, CORE_CONSOLE_CA=str(ca))
        # The call got through to a server that has no such method.
        assert result.stderr.startswith("UNIMPLEMENTED: ")
        assert result.exit_code == Exit.REFUSED


def test_an_unknown_authority_is_not_trusted(secured: tuple[str, Path], run: Cli) -> None:
    result = run("agents", CORE_CONSOLE_URL=f"https://{secured[0]}")
    assert result.exit_code == Exit.UNREACHABLE


def test_a_console_with_tls_is_not_spoken_to_in_clear(secured: tuple[str, Path], run: Cli) -> None:
    assert run("agents", CORE_CONSOLE_URL=secured[0]).exit_code == Exit.UNREACHABLE
