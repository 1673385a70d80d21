"""The console on a slower disk, without group commit, or hurried: for what that costs or saves.

Run as a process by the benchmarks: `python -m scripts.bench.launch --sync-ms 5 serve`. It changes
the process before the console starts, and nothing of the console itself.
"""

import argparse
import os
import sys
from collections.abc import Callable

from core_console import company, inbox
from core_console.__main__ import main as console
from core_console.clock import SystemClock


def slower(sync: Callable[[int], None], by_s: float) -> Callable[[int], None]:
    """Return the sync with a pause after it; like the disk's own, it lets other threads run."""
    clock = SystemClock()

    def synced(descriptor: int) -> None:
        sync(descriptor)
        clock.pause(by_s)

    return synced


def main() -> None:
    """Take the disk's and the writer's settings from the command line, and be the console."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sync-ms", type=float, default=0.0, help="how much longer a sync takes")
    parser.add_argument("--batch-max", type=int, default=inbox.BATCH_MAX, help="calls a swap")
    parser.add_argument("--alone", action="store_true", help="wait for nobody before a swap")
    given, rest = parser.parse_known_args()
    if given.sync_ms:
        os.fsync = slower(os.fsync, given.sync_ms / 1_000)  # type: ignore[assignment] # by descriptor
        os.fdatasync = slower(os.fdatasync, given.sync_ms / 1_000)  # type: ignore[assignment] # too
    inbox.BATCH_MAX = given.batch_max
    if given.alone:
        company.IDLE_POLLS = company.IDLE_POLLS_IN_DOUBT = 0
    sys.argv[1:] = rest
    console()


if __name__ == "__main__":
    main()
