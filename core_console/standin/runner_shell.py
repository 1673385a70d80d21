"""Runs one script with bash as GitHub's runner does, and ends it and its children for certain.

Owns the process: its bounds in time and output, the signals, the pipe. Never reads the
environment of this process for the script: what the script may see is given.
"""

import asyncio
import os
import shutil
import signal
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from core_console.standin.runner_records import Outcome

OUTPUT_MAX_BYTES = 1_048_576  # of one step, before masking; the job's log keeps less
PIPE_GRACE_S = 1.0  # a child that left the group may hold the pipe: it is not waited for longer

# What GitHub documents for a cancelled step: interrupt, 7.5 s, terminate, 2.5 s, kill.
_STOPPING = ((signal.SIGINT, 7.5), (signal.SIGTERM, 2.5), (signal.SIGKILL, 5.0))


class Ended(Struct, frozen=True):
    """How a script ended, and what it printed."""

    outcome: Outcome
    output: bytes
    note: str = ""


class Bash(Struct, frozen=True):
    """Where and with what a script runs."""

    workspace: Path
    env: dict[str, str]


async def run_script(
    script: Path, bash: Bash, *, timeout_s: float, cancelled: asyncio.Event
) -> Ended:
    """Run a script until it ends, its time is up or it is cancelled."""
    read_end, write_end = os.pipe()
    try:
        process = await asyncio.create_subprocess_exec(
            *(shutil.which("bash") or "/bin/bash", "--noprofile", "--norc", "-eo", "pipefail"),
            str(script),
            cwd=bash.workspace,
            env=bash.env,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=write_end,
            stderr=write_end,
            start_new_session=True,  # its own group, so that its children end with it
        )
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    pump = asyncio.create_task(_pump(read_end))
    try:
        outcome, note = await _watch(process, timeout_s, cancelled)
    finally:
        _signal(process.pid, signal.SIGKILL)
        await process.wait()
        output = await _collect(pump)
    return Ended(outcome, output, note)


async def _watch(
    process: asyncio.subprocess.Process, timeout_s: float, cancelled: asyncio.Event
) -> tuple[Outcome, str]:
    ended = asyncio.create_task(process.wait())
    stopped = asyncio.create_task(cancelled.wait())
    try:
        await asyncio.wait({ended, stopped}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            code = ended.result()
            note = "" if code == 0 else f"Error: Process completed with exit code {code}."
            return (Outcome.FAILURE if code else Outcome.SUCCESS), note
        for signal_, grace_s in _STOPPING:
            _signal(process.pid, signal_)
            if (await asyncio.wait({ended}, timeout=grace_s))[0]:
                break
        if cancelled.is_set():
            return Outcome.CANCELLED, "Error: The operation was canceled."
        return Outcome.FAILURE, "Error: The step has exceeded its time."
    finally:
        ended.cancel()
        stopped.cancel()


def _signal(group: int, signal_: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, signal_)


async def _pump(read_end: int) -> bytes:
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(read_end, "rb", buffering=0)
    )
    kept = bytearray()
    try:
        while chunk := await reader.read(65_536):
            kept += chunk[: OUTPUT_MAX_BYTES - len(kept)]
    except asyncio.CancelledError:
        pass  # the pipe is held open by a child that left: what came so far is the output
    finally:
        transport.close()
    return bytes(kept)


async def _collect(pump: asyncio.Task[bytes]) -> bytes:
    _, late = await asyncio.wait({pump}, timeout=PIPE_GRACE_S)
    if late:
        pump.cancel()
    return await pump
