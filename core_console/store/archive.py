"""One file that holds named pieces: a tar, so that people can look into it with any tool.

Owns how it is written (durably, whole or not at all, never over another file) and read (bounded,
regular members alone). Knows nothing of what the pieces mean.
"""

import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from core_console.ports import Fault
from core_console.store.durable import opened, sync_folder
from core_console.store.faults import told_as_faults

PIECE_BYTES_MAX = 64 * 1024 * 1024
"""The largest document that a file store takes; a larger piece was not put there by us."""

_NOT_OURS = "this is no backup of a console, or it is damaged: take another one"

_READ_ERRORS = (tarfile.TarError, EOFError, ValueError)


class Writer:
    """Adds pieces to an archive that is being written."""

    def __init__(self, archive: tarfile.TarFile, made_at_s: int) -> None:
        self._archive = archive
        self._made_at_s = made_at_s

    def add(self, name: str, data: bytes) -> None:
        """Add one piece."""
        member = tarfile.TarInfo(name)
        member.size, member.mode, member.mtime = len(data), 0o600, self._made_at_s
        with told_as_faults():
            self._archive.addfile(member, io.BytesIO(data))


@contextmanager
def writing(path: Path, made_at_s: int) -> Iterator[Writer]:
    """Write an archive; it stands at `path` only once the block ended well.

    Raises:
        Fault: a file is there already, or the disk refuses.
    """
    if path.exists():
        raise Fault("a file of that name is there already: name another one", retryable=False)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with told_as_faults(), opened(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as descriptor:
            with (
                os.fdopen(os.dup(descriptor), "wb") as stream,
                tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive,
            ):
                yield Writer(archive, made_at_s)
            os.fsync(descriptor)
        _name(draft, path)
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def _name(draft: Path, path: Path) -> None:
    """Give the finished file its name, unless somebody took it meanwhile."""
    with told_as_faults():
        try:
            path.hardlink_to(draft)
        except FileExistsError:
            sentence = "a file of that name is there already: name another one"
            raise Fault(sentence, retryable=False) from None
        except PermissionError:  # so say file systems without hard links, such as some shares
            draft.replace(path)
        sync_folder(path.parent)


class Reader:
    """Gives the pieces of an archive by their names."""

    def __init__(self, archive: tarfile.TarFile) -> None:
        self._archive = archive

    def get(self, name: str, *, bytes_max: int = PIECE_BYTES_MAX) -> bytes:
        """Return a piece; raise Fault when it is missing, no plain file or too large."""
        try:
            member = self._archive.getmember(name)
            stream: IO[bytes] | None = self._archive.extractfile(member)
            if stream is None or not member.isreg() or member.size > bytes_max:
                raise Fault(_NOT_OURS, retryable=False)
            data = stream.read(bytes_max + 1)
        except (KeyError, *_READ_ERRORS):
            raise Fault(_NOT_OURS, retryable=False) from None
        if len(data) != member.size:
            raise Fault(_NOT_OURS, retryable=False)
        return data


@contextmanager
def reading(path: Path) -> Iterator[Reader]:
    """Give the pieces of the archive at `path`; raise Fault when it is none."""
    with told_as_faults(), path.open("rb") as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r:") as archive:
                yield Reader(archive)
        except _READ_ERRORS:
            raise Fault(_NOT_OURS, retryable=False) from None
