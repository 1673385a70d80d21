"""Putting another file in the place of a document's, with the old one kept beside it.

Owns the order of these steps, so that at every instant one whole document stands there. Only for
who has the root alone: a running console's document is changed by swaps.
"""

import os
from pathlib import Path

from core_console.store.durable import opened, read_at, remove_leftover, replace, sync_folder
from core_console.store.faults import told_as_faults
from core_console.store.file import BODY_BYTES_MAX, FileDocument


def raw(path: Path) -> bytes:
    """Return what stands at `path`, whatever it is worth, b"" when nothing does."""
    with told_as_faults():
        if not path.exists():
            return b""
        with opened(path, os.O_RDONLY) as descriptor:
            return read_at(descriptor, 0, min(os.fstat(descriptor).st_size, 2 * BODY_BYTES_MAX))


async def put_in_place(path: Path, data: bytes, kept: str) -> None:
    """Make `data` the document at `path`; the file before it stays beside it, named `kept`.

    Raises:
        Fault: the disk refuses. The document is then the old one or the new one, and whole.
    """
    fresh = path.with_name(path.name + ".restoring")
    _clear(fresh)
    document = FileDocument(fresh)
    try:
        await document.swap("", data)
    finally:
        document.close()
    _change_places(path, fresh, path.with_name(kept))
    _clear(fresh)


def _clear(fresh: Path) -> None:
    """Remove what a restore left that did not come to its end."""
    with told_as_faults():
        for ending in ("", ".lock", ".turn"):
            fresh.with_name(fresh.name + ending).unlink(missing_ok=True)
        remove_leftover(fresh)


def _change_places(path: Path, fresh: Path, kept: Path) -> None:
    with told_as_faults():
        if path.exists():
            replace(kept, raw(path), lambda: b"", 0)
        fresh.replace(path)
        sync_folder(path.parent)
