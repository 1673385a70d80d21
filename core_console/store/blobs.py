"""Bytes by their own digest, one file each.

Owns a folder. A name is the SHA-256 of the content, so putting the same bytes twice is putting
them once, and a file that is not what its name says is never handed out. Which blobs are still
needed is not known here: whoever names them deletes the others.
"""

import os
import re
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from core_console.ports import Blob, Fault
from core_console.store.durable import (
    Worker,
    locked,
    make_folder,
    opened,
    read_at,
    remove_leftover,
    replace,
)
from core_console.store.faults import CorruptStore

_DIGEST = re.compile(r"[0-9a-f]{64}")

BLOB_BYTES_MAX = 16 * 1024 * 1024
"""Twice the largest feed; a larger file in the folder was not put there by us."""


class FileBlobs:
    """The blobs in the folder at `path`; any number of processes on one machine may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = path.with_name(path.name + ".lock")
        self._worker = Worker("blobs")

    async def put(self, data: bytes) -> str:
        """Keep the bytes durably and return their digest; keeping them again renews their time."""
        if len(data) > BLOB_BYTES_MAX:
            raise Fault(f"a blob has at most {BLOB_BYTES_MAX} bytes", retryable=False)
        return await self._worker.run(lambda: self._put(data))

    async def get(self, digest: str) -> bytes:
        """Return the bytes of that digest.

        Raises:
            Fault: they are gone, or the file is not what its name says.
        """
        return await self._worker.run(lambda: self._get(digest))

    async def kept(self) -> list[Blob]:
        """Return every blob that is kept."""
        return await self._worker.run(self._list)

    async def delete(self, digest: str, *, put_before: datetime | None = None) -> None:
        """Forget a blob, unless it was put at that time or later; a missing one is no error."""
        await self._worker.run(lambda: self._delete(digest, put_before))

    def close(self) -> None:
        """Finish what has begun; afterwards every call is a Fault."""
        self._worker.close()

    def _put(self, data: bytes) -> str:
        digest = sha256(data).hexdigest()
        make_folder(self._path)
        path = self._path / digest
        with locked(self._lock):
            # Written anew even if it is there: only then it is sure to be whole and durable, and
            # its time says that somebody counts on it again.
            replace(path, data, lambda: b"", 0)
        return digest

    def _get(self, digest: str) -> bytes:
        try:
            with opened(self._file(digest), os.O_RDONLY) as descriptor:
                size = os.fstat(descriptor).st_size
                data = read_at(descriptor, 0, min(size, BLOB_BYTES_MAX))
        except FileNotFoundError:
            raise Fault("a blob that the document names is gone", retryable=False) from None
        if sha256(data).hexdigest() != digest:
            raise CorruptStore("a blob's content does not match its digest")
        return data

    def _list(self) -> list[Blob]:
        if not self._path.is_dir():
            return []
        with os.scandir(self._path) as found:
            return [
                Blob(entry.name, datetime.fromtimestamp(entry.stat().st_mtime, UTC))
                for entry in found
                if _DIGEST.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            ]

    def _delete(self, digest: str, put_before: datetime | None) -> None:
        path = self._file(digest)
        with locked(self._lock):
            # Under the lock: whoever puts the same bytes meanwhile either renewed their time
            # already, or writes them anew afterwards.
            if put_before is None or _put_at(path) < put_before:
                remove_leftover(path)
                path.unlink(missing_ok=True)

    def _file(self, digest: str) -> Path:
        if not _DIGEST.fullmatch(digest):
            raise Fault("a blob's name is a SHA-256 in hex", retryable=False)
        return self._path / digest


def _put_at(path: Path) -> datetime:
    """Return when the blob was last put, the beginning of time for one that is not there."""
    try:
        return datetime.fromtimestamp(path.stat(follow_symlinks=False).st_mtime, UTC)
    except FileNotFoundError:
        return datetime.min.replace(tzinfo=UTC)
