"""A process of its own that shares a store with others, or dies in the middle of a write.

Run as `python -m tests.store.victim MODE FOLDER N`.
"""

import asyncio
import json
import os
import signal
import sys
from itertools import product
from pathlib import Path

from core_console.ports import Conflict
from core_console.store.file import FileDocument
from core_console.store.filelog import FileLog
from tests.store.faulty import SystemCalls, put_in_place

OLD = b"old " * 50_000
NEW = b"new " * 60_000
WAYS = ("before", "after", "torn")


def line(seq: int, who: str = "x") -> bytes:
    return json.dumps({"seq": seq, "who": who}).encode()


async def swap_once(folder: Path) -> None:
    document = FileDocument(folder / "document")
    stored = await document.load()
    await document.swap(stored.version, NEW)


async def append_once(folder: Path) -> None:
    log = FileLog(folder / "log")
    seq = await log.last_seq()
    await log.append(seq, [line(seq + 1), line(seq + 2)])


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_every_call(mode: str, folder: Path) -> None:
    """Leave one folder for each point at which a child that wrote was killed."""
    work = {"swap": swap_once, "append": append_once}[mode]
    for way, spare in product(WAYS, (False, True)):
        at = 0
        killed = True
        while killed:
            at += 1
            place = folder / f"{way}-{spare}-{at:02}"
            place.mkdir(mode=0o700)
            asyncio.run(prepare(place, spare=spare))
            child = os.fork()
            if child == 0:
                put_in_place(SystemCalls(at, die, after=way == "after", torn=way == "torn"))
                asyncio.run(work(place))
                os._exit(0)
            _, status = os.waitpid(child, 0)
            killed = os.WIFSIGNALED(status)


async def prepare(folder: Path, *, spare: bool) -> None:
    document = FileDocument(folder / "document")
    version = await document.swap("", b"older") if spare else ""
    await document.swap(version, OLD)
    document.close()
    log = FileLog(folder / "log")
    await log.append(0, [line(1)])
    log.close()


async def count_up(folder: Path, times: int) -> None:
    """Add 1 to the shared counter `times` times."""
    document = FileDocument(folder / "document")
    while times:
        stored = await document.load()
        try:
            await document.swap(stored.version, b"%d" % (int(stored.data or b"0") + 1))
        except Conflict:
            continue
        times -= 1


async def append_up(folder: Path, times: int) -> None:
    """Append `times` lines to the shared log."""
    log = FileLog(folder / "log")
    while times:
        seq = await log.last_seq()
        try:
            await log.append(seq, [line(seq + 1, str(os.getpid()))])
        except Conflict:
            continue
        times -= 1


def main(mode: str, folder: str, times: str) -> None:
    match mode:
        case "count":
            asyncio.run(count_up(Path(folder), int(times)))
        case "lines":
            asyncio.run(append_up(Path(folder), int(times)))
        case _:
            die_at_every_call(mode, Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
