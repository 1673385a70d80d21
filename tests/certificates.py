"""A certificate of its own for 127.0.0.1, made anew for whoever asks."""

from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

SINCE = datetime(2020, 1, 1, tzinfo=UTC)
"""The client's TLS looks at the machine's own clock, so a certificate is good for long."""


class Pair(NamedTuple):
    """A certificate, which is its own authority, and its key: both PEM."""

    certificate: bytes
    key: bytes

    def in_files(self, folder: Path) -> tuple[Path, Path]:
        """Return the files that hold it now."""
        files = folder / "cert.pem", folder / "key.pem"
        for file, data in zip(files, self, strict=True):
            file.write_bytes(data)
        return files


def certificate() -> Pair:
    """Return a certificate for 127.0.0.1 and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "console.example.com")])
    names = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(SINCE)
        .not_valid_after(SINCE + timedelta(days=36_500))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(made.public_bytes(Encoding.PEM), pem)
