"""A root's files, opened for a command that works on them without any console.

Owns where each document, blob and record lies, and that merely looking makes nothing that is not
there.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from core_console.cli.failure import Exit, Failed
from core_console.clock import SystemClock
from core_console.governance.chain import Chain
from core_console.ports import Blobs, Fault, Log
from core_console.ports import Document as Store
from core_console.state import parts
from core_console.state.parts import Root
from core_console.store import replacing
from core_console.store.blobs import FileBlobs
from core_console.store.file import FileDocument
from core_console.store.filelog import FileLog
from core_console.store.memory import MemoryBlobs, MemoryDocument, MemoryLog

T = TypeVar("T")

_LIB = Path("var/lib")
_BLOBS = {"capex": _LIB / "blobs", "atlas-reports": _LIB / "report-blobs"}
_LOG = Path("var/log/audit")


def done(path: Path, work: Callable[[Root], Awaitable[T]], *, writes: bool = False) -> T:
    """Return what the work on the root at `path` comes to; raise Failed with a Fault's sentence."""

    async def worked() -> T:
        async with _opened(path, writes=writes) as root:
            return await work(root)

    try:
        return asyncio.run(worked())
    except Fault as fault:
        raise Failed(Exit.REFUSED, fault.message) from None


@asynccontextmanager
async def _opened(path: Path, *, writes: bool) -> AsyncIterator[Root]:
    clock = SystemClock()
    files = {name: path / _LIB / name for name in parts.NAMES}
    documents = {name: FileDocument(file) for name, file in files.items()}
    blobs = {name: FileBlobs(path / folder) for name, folder in _BLOBS.items()}
    chain_file = FileLog(path / _LOG)
    log: Log = chain_file if writes or _is_there(path / _LOG) else MemoryLog()

    async def replace(name: str, data: bytes, beside: str) -> None:
        await replacing.put_in_place(files[name], data, f"{name}.{beside}")

    try:
        yield Root(
            stores={name: _stored(files[name], each) for name, each in documents.items()},
            blobs={
                name: _kept(path / _BLOBS[name], each, writes=writes)
                for name, each in blobs.items()
            },
            log=log,
            chain=Chain(log, clock),
            replace=replace,
        )
    finally:
        for document in documents.values():
            document.close()
        for each in blobs.values():
            each.close()
        chain_file.close()


def _stored(file: Path, document: FileDocument) -> Store:
    return document if _is_there(file) else MemoryDocument()


def _kept(folder: Path, blobs: FileBlobs, *, writes: bool) -> Blobs:
    return blobs if writes or _is_there(folder) else MemoryBlobs(SystemClock())


def _is_there(path: Path) -> bool:
    return os.path.lexists(path)
