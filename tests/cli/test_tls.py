"""TLS from the command line: the named authority is trusted, and nobody else."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import grpc
import pytest
from click.testing import Result
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from core_console.cli.failure import Exit

Cli = Callable[..., Result]


def certificate() -> tuple[bytes, bytes]:
    """Return a key and a certificate of its own for 127.0.0.1, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "console.example.com")])
    since = datetime(2020, 1, 1, tzinfo=UTC)
    found = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(since)
        .not_valid_after(since + timedelta(days=36_500))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem, found.public_bytes(Encoding.PEM)


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Serve nothing, but by TLS; give the address and the authority's file."""
    key, chain = certificate()
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
