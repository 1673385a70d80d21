"""What the disk costs a durable call: group commit, a disk that syncs slower, the bytes written.

Run: .venv/bin/python -m scripts.bench.store. Sixteen callers on real processes and a full
document. The rate counts RunNow and the CancelRun that frees its playbook, two durable calls of
about the same cost; p50 and p99 are RunNow's alone. Each console has a fresh root.
"""

import asyncio
from dataclasses import replace
from pathlib import Path

from scripts.bench.consoles import launched, root_with, serving
from scripts.bench.measuring import Row, run
from scripts.bench.run_now import FULL_BYTES, bare_write, document
from scripts.bench.transitions import start_and_end

CALLERS = 16
SLOWER_MS = 5
_SLOWER = ("--sync-ms", str(SLOWER_MS))
_ALONE = ("--batch-max", "1")


def loaded(folder: Path, seconds: float, name: str, *options: str) -> Row:
    """Measure a console with the launcher's options; the ratio is the bytes of one call."""
    folder.mkdir()
    root = root_with(folder / "root", document(FULL_BYTES))
    with serving(root, launched(*options)) as console:
        before = [0]

        def begins() -> None:
            before[0] = console.written_bytes()

        load = asyncio.run(start_and_end([console.address], root.token, CALLERS, seconds, begins))
        written_kb = (console.written_bytes() - before[0]) / load.calls / 1_000
    return load.row(name, f"{written_kb:,.0f} kB a call")


def against(row: Row, base: Row, what: str) -> Row:
    """Return the row with its rate as a ratio to the base's."""
    return replace(row, ratio=f"{row.rate / base.rate:.2f} of {what}, {row.ratio}")


def measured(folder: Path, seconds: float) -> list[Row]:
    """Measure the four consoles, and a bare durable write beside them."""
    bare = bare_write(folder, FULL_BYTES)
    alone = loaded(folder / "alone", seconds, "one swap a call", *_ALONE)
    group = loaded(folder / "group", seconds, "group commit")
    slow = f"a sync {SLOWER_MS} ms slower"
    slow_alone = loaded(folder / "sa", seconds, f"one swap a call, {slow}", *_SLOWER, *_ALONE)
    slow_group = loaded(folder / "sg", seconds, f"group commit, {slow}", *_SLOWER)
    return [
        bare,
        against(alone, bare, "bare writes"),
        against(group, alone, "one swap a call"),
        slow_alone,
        against(slow_group, slow_alone, "the same alone"),
        replace(slow_group, name="  the same", ratio=f"{slow_group.rate / group.rate:.2f} of fast"),
    ]


if __name__ == "__main__":
    run(__doc__, measured)
