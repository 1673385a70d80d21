"""How fast an audit log is written and verified, and whether the memory stays where it was.

Run: .venv/bin/python -m scripts.bench.chain. The chain is written by the code that the console
writes it with, and verified in a process of its own, so that its memory is its own. The baseline
reads the same file and hashes each line once. p50 and p99 are those of the whole file.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from core_console.clock import SystemClock
from core_console.governance.chain import Chain
from core_console.governance.verify import verify
from core_console.model.audit import Entry, OutboxEntry, Outcome
from core_console.store.filelog import FileLog
from scripts.bench.measuring import Row, row_of, show

RECORDS = (20_000, 200_000)
"""Ten times the records must not take ten times the memory."""

ROUNDS = 5
_GROUP = 256


async def write(path: Path, records: int) -> None:
    """Write a chain of so many records, as the console drains its outbox."""
    clock, log = SystemClock(), FileLog(path)
    chain, now = Chain(log, clock), clock.now()

    def waiting(number: int) -> OutboxEntry:
        target = f"PB-{number % 100:016d}/PBR-{number:016d}"
        said = f"bench@example.com started run PBR-{number:016d} of playbook 'Playbook {number}'"
        entry = Entry(
            now, "bench@example.com", "playbook.run", target, Outcome.SUCCESS, said, "playbook"
        )
        return OutboxEntry(number, entry)

    for first in range(1, records + 1, _GROUP):
        outbox = [waiting(number) for number in range(first, min(first + _GROUP, records + 1))]
        await chain.drain("metadoc", outbox)
    log.close()


def memory_kib(name: str) -> int:
    """Return a figure of this process's memory: VmRSS or VmHWM (its peak)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.split(f"{name}:")[1].split()[0])


@dataclass
class Verified:
    """The seconds of each round, verified and bare, and the MiB above what was idle."""

    whole_s: list[float] = field(default_factory=list)
    bare_s: list[float] = field(default_factory=list)
    records: int = 0
    grown_mib: float = 0.0


def verified(path: Path) -> Verified:
    """Verify the file, and read and hash it, in turns."""
    before, result = memory_kib("VmRSS"), Verified()
    for _ in range(ROUNDS):
        began = time.perf_counter()
        with path.open("rb") as log:
            found = verify(log)
        result.whole_s.append(time.perf_counter() - began)
        assert found.intact, found
        result.records = found.records
        began = time.perf_counter()
        with path.open("rb") as log:
            for line in log:
                sha256(line).hexdigest()
        result.bare_s.append(time.perf_counter() - began)
    result.grown_mib = (memory_kib("VmHWM") - before) / 1_024
    return result


def measured(folder: Path) -> list[Row]:
    """Write a short and a long log, and verify each in a process of its own."""
    rows = []
    for records in RECORDS:
        path = folder / f"{records}.log"
        began = time.perf_counter()
        asyncio.run(write(path, records))
        took_s = time.perf_counter() - began
        command = (sys.executable, "-m", "scripts.bench.chain", "--verify", str(path))
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        written = Row(f"written, {records:,} records", records / took_s, took_s * 1e3, took_s * 1e3)
        rows += [written, *_judged(records, Verified(**json.loads(done.stdout)))]
    return rows


def _judged(records: int, found: Verified) -> list[Row]:
    assert found.records == records, found
    bare = _a_second("read and hashed", records, found.bare_s)
    whole = _a_second("verified", records, found.whole_s)
    memory = f"{found.grown_mib:.1f} MiB more memory"
    return [bare, replace(whole, ratio=f"{whole.rate / bare.rate:.2f} of hashing, {memory}")]


def _a_second(what: str, records: int, rounds_s: list[float]) -> Row:
    name = f"{what}, {records:,} records"
    row = row_of(name, [each * 1_000 for each in rounds_s], sum(rounds_s))
    return replace(row, rate=records * row.rate)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verify", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    if given.verify:
        json.dump(asdict(verified(given.verify)), sys.stdout)
        return
    with tempfile.TemporaryDirectory(dir=".") as name:
        show(measured(Path(name)), json_path=given.json)


if __name__ == "__main__":
    main()
