"""The recipe by which a file is changed so that no crash can leave half of it.

Owns the system calls: the lock, the replacement of a file, the folder. Knows nothing of what is
inside the files. Everything here blocks, so it is called in a `Worker`, never on the event loop.
"""

import asyncio
import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from core_console.ports import Fault
from core_console.store.faults import CorruptStore, told_as_faults

_FILE_MODE = 0o600
_FOLDER_MODE = 0o700
_SAFELY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""A link that somebody put in a file's place is never followed, and a pipe is never waited for."""

_POLLS = ((200, 0.000_2), (2_480, 0.002))
"""How often a held lock is asked for and the pause in seconds: about 5 s in all.

A holder needs a millisecond or two, so the first asks come quickly; a holder that was stopped or
hangs on its disk must not hang everybody else for ever.
"""

_PAGE_BYTES = 4096

T = TypeVar("T")


class Worker:
    """One thread of a store's own: its calls run one after another, in order.

    The event loop's default pool is shared with name look-ups and the like, and would let two
    calls of one store overtake each other.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._closed = False

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns; raise Fault for what the machine refuses.

        Work that has begun goes on when its caller is cancelled.
        """
        if self._closed:
            raise Fault("the store is closed", retryable=False)
        with told_as_faults():
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def close(self) -> None:
        """Finish what has begun and end the thread."""
        self._closed = True
        self._pool.shutdown(wait=True)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the advisory lock of the lock file at `path`; raise Fault when it stays taken.

    The lock lies on a file of its own because the locked file is replaced: a lock on it would
    be a lock on what is no longer there. The system drops it when its holder dies.
    """
    with opened(path, os.O_RDWR | os.O_CREAT) as descriptor:
        _take(descriptor)
        yield


def _take(descriptor: int) -> None:
    if not is_taken(descriptor, _POLLS):
        sentence = "another process has held the store's lock for seconds: see what it waits for"
        raise Fault(sentence)


def is_taken(descriptor: int, polls: Iterable[tuple[int, float]]) -> bool:
    """Take the descriptor's lock; say whether it could be had within so many polls and pauses."""
    pause = threading.Event()
    for times, pause_s in polls:
        for _ in range(times):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                pause.wait(pause_s)
            else:
                return True
    return False


def make_folder(folder: Path) -> None:
    """Make the folder and those above it that are missing, each one durably."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):
        os.mkdir(folder, _FOLDER_MODE)  # noqa: PTH102 -- every system call here goes through `os`
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in the folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """Give the descriptor of the file at `path`; raise CorruptStore when it is no file.

    Opening a pipe or a device may wait for ever, in a thread that no signal reaches.
    """
    descriptor = os.open(path, flags | _SAFELY, _FILE_MODE)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CorruptStore("what lies in the place of a file of the store is no file")
        yield descriptor
    finally:
        os.close(descriptor)


def read_at(descriptor: int, offset: int, size: int) -> bytes:
    """Return `size` bytes from `offset` on, fewer only when the file ends before."""
    data = os.pread(descriptor, size, offset)
    while 0 < len(data) < size:
        more = os.pread(descriptor, size - len(data), offset + len(data))
        if not more:
            break
        data += more
    return data


def write_all(descriptor: int, data: bytes) -> None:
    """Write all the bytes, however few the system takes at a time."""
    waiting = memoryview(data)
    while waiting:
        written = os.write(descriptor, waiting)
        if written == 0:
            raise OSError(errno.EIO, "nothing was written")
        waiting = waiting[written:]


def sync_data(descriptor: int) -> None:
    """Make the file's content durable, and its length, but not its times."""
    # Not every system has the cheaper call.
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(descriptor)


def temporary_of(path: Path) -> Path:
    """Return the one temporary file that may stand beside `path`.

    One name is enough, because it is only touched under the lock; so what a dead writer left
    is found without looking through the folder.
    """
    return path.with_name(path.name + ".tmp")


def remove_leftover(path: Path) -> None:
    """Remove the temporary file that a dead writer left; call it under the lock."""
    with suppress(FileNotFoundError):
        os.unlink(temporary_of(path))  # noqa: PTH108 -- every system call here goes through `os`


def spare_of(path: Path) -> Path:
    """Return where the file that was replaced last is kept, to be written over."""
    return path.with_name(path.name + ".spare")


def replace(
    path: Path, body: bytes, head: Callable[[], bytes], head_bytes: int, *, reuse: bool = False
) -> None:
    """Replace the file by `head` and `body`, durably; call it under the lock.

    Write a temporary file, sync it, rename it over the old one, sync the folder. When the last
    sync fails the new file is in place and may be gone after a crash: the caller cannot know.
    The head, of `head_bytes`, is worked out while the disk is already writing the body. With
    `reuse` the temporary file is the one that was replaced the time before: its room on the disk
    is written over, which takes half the time of finding new room and giving up the old.
    """
    temporary = temporary_of(path)
    remove_leftover(path)
    flags = os.O_WRONLY if reuse and _take_spare(path) else os.O_WRONLY | os.O_CREAT | os.O_EXCL
    try:
        with opened(temporary, flags) as descriptor:
            os.lseek(descriptor, head_bytes, os.SEEK_SET)
            write_all(descriptor, body)
            _start_writing(descriptor)
            os.lseek(descriptor, 0, os.SEEK_SET)
            write_all(descriptor, head())
            os.ftruncate(descriptor, head_bytes + len(body))
            os.fsync(descriptor)
        if reuse:
            _keep_spare(path)
        os.rename(temporary, path)  # noqa: PTH104 -- every system call here goes through `os`
    except OSError:
        # A file whose sync failed is never synced again: its pages may be lost and marked clean.
        with suppress(OSError):
            remove_leftover(path)
        raise
    sync_folder(path.parent)


def _take_spare(path: Path) -> bool:
    """Make the spare file the temporary one; say whether there was one that is nobody else's.

    A file with a second name may be the very document, or a copy that somebody made by a link.
    """
    spare = spare_of(path)
    try:
        found = os.lstat(spare)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            os.rename(spare, temporary_of(path))  # noqa: PTH104 -- every system call here goes through `os`
            return True
        os.unlink(spare)  # noqa: PTH108 -- every system call here goes through `os`
    except OSError:  # there is none, or it is in the way: a new file is as good
        remove_leftover(path)
    return False


def _keep_spare(path: Path) -> None:
    """Give the file that is about to be replaced a second name, if the system can."""
    with suppress(OSError):
        os.link(path, spare_of(path), follow_symlinks=False)


def _start_writing(descriptor: int) -> None:
    """Let the disk begin with the file: a saving of time alone, for nothing depends on it.

    The advice that its pages are not needed makes Linux start to write the dirty ones. The first
    page is left out, because the head is still missing in it.
    """
    if not hasattr(os, "posix_fadvise"):
        return
    with suppress(OSError):
        os.posix_fadvise(descriptor, _PAGE_BYTES, 0, os.POSIX_FADV_DONTNEED)
