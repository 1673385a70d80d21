"""The root's own Ed25519 key: a file that only its owner may read.

Owns making, replacing and reading that file. It is made once and never replaced except by an
explicit rotation, which ends every token that the old key signed. Never shows key material.
"""

import os
import stat
from hashlib import sha256
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from msgspec import Struct

from core_console.ports import Fault, Ids

_FILE_BYTES_MAX = 4096
"""An Ed25519 key in PEM is about 120 bytes; a larger file is another file."""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_KEY_ID_CHARACTERS = 16


class RootKey(Struct, frozen=True, gc=False):
    """The key and its id, which is the start of its public half's SHA-256."""

    private: Ed25519PrivateKey
    id: str

    def __repr__(self) -> str:
        """Return the id alone."""
        return f"RootKey({self.id})"


def key_path(root: Path) -> Path:
    """Return where the key of the root lies."""
    return root / "var" / "lib" / "operator-key.pem"


def make_key(root: Path, ids: Ids) -> bool:
    """Make the root's key durably unless there is one; tell whether it was made.

    Raises:
        Fault: it cannot be written.
    """
    return _write(root, ids, replace=False)


def rotate_key(root: Path, ids: Ids) -> None:
    """Replace the root's key durably, so that every token signed before is refused.

    Raises:
        Fault: it cannot be written; the old key stands.
    """
    _write(root, ids, replace=True)


def _write(root: Path, ids: Ids, *, replace: bool) -> bool:
    path = key_path(root)
    draft = path.with_name(f".{path.name}.{ids.new('new')}")
    pem = Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            _write_durably(draft, pem)
            # A link fails when the name is taken, so two `init` at once make one key.
            (draft.replace if replace else path.hardlink_to)(path if replace else draft)
        finally:
            draft.unlink(missing_ok=True)
        _sync_folder(path.parent)
    except FileExistsError:
        return False
    except OSError as error:
        raise Fault(f"the operator key cannot be written: {error.strerror}") from error
    return True


def _write_durably(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class KeyFile:
    """The key as it lies in the root, read again only when the file has changed."""

    def __init__(self, root: Path) -> None:
        self._path = key_path(root)
        self._seen: tuple[int, int, int, int] | None = None
        self._key: RootKey | None = None

    def current(self) -> RootKey | None:
        """Return the key, None when there is none.

        Raises:
            Fault: there is one, but it is open to others or is no Ed25519 key.
        """
        try:
            status = os.lstat(self._path)
        except FileNotFoundError:
            self._seen, self._key = None, None
            return None
        except OSError as error:
            raise Fault(f"the operator key cannot be read: {error.strerror}") from error
        seen = (status.st_ino, status.st_mtime_ns, status.st_size, status.st_mode)
        if seen != self._seen:
            self._key = _read(self._path)
            self._seen = seen
        return self._key


def _read(path: Path) -> RootKey:
    try:
        # A link could lead to a key that somebody else may write.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if os.fstat(file.fileno()).st_mode & _OTHERS:
                raise Fault(
                    "the operator key can be read by others: set its mode to 0600 and rotate it",
                    retryable=False,
                )
            pem = file.read(_FILE_BYTES_MAX)
    except OSError as error:
        raise Fault(f"the operator key cannot be read: {error.strerror}") from error
    return _parse(pem)


def _parse(pem: bytes) -> RootKey:
    try:
        private = load_pem_private_key(pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise Fault("the operator key is no Ed25519 key: rotate it", retryable=False) from None
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return RootKey(private, sha256(public).hexdigest()[:_KEY_ID_CHARACTERS])
