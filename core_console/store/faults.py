"""What a store says when it fails: one plain sentence, never a path.

Owns the translation of the machine's errors into `Fault`, and the fault of a store that is
damaged. Never repairs anything.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

from core_console.ports import Fault

_SENTENCES = {
    errno.ENOSPC: "the disk is full: make room, and the console goes on by itself",
    errno.EDQUOT: "the disk quota is used up: make room, and the console goes on by itself",
    errno.EFBIG: "the file is larger than this process may write: raise its file size limit",
    errno.EROFS: "the disk is mounted read-only: mount it writable again",
    errno.EACCES: "the store may not be opened: give the console's user the right to its folder",
    errno.EPERM: "the store may not be changed: give the console's user the right to its folder",
    errno.EIO: "the disk reports an input/output error: check it before anything else",
    errno.EMFILE: "this process has too many files open: raise its limit",
    errno.ENFILE: "the machine has too many files open: raise its limit",
    errno.ENOENT: "a file or folder of the store is gone: stop the console and put it back",
}


class CorruptStore(Fault):
    """What is stored cannot be what the console wrote; it is left exactly as it is."""

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what}: keep the file as it is for examination, stop the console and restore a "
            "backup; nothing was overwritten",
            retryable=False,
        )


def fault_of(error: OSError) -> Fault:
    """Return the Fault that tells people what the machine's error means."""
    code = error.errno or 0
    known = _SENTENCES.get(code)
    return Fault(known or f"the store failed: {os.strerror(code).lower()}")


@contextmanager
def told_as_faults() -> Iterator[None]:
    """Let no OSError out, only the Fault that it means."""
    try:
        yield
    except OSError as error:
        raise fault_of(error) from error
