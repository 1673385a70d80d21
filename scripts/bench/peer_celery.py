"""Celery on Redis: a run is a task, durable once Redis has synced it, and its step is its body.

Run in the peers' virtualenv by `scripts.bench.peers`; BENCH_REDIS is Redis's port. Acknowledged
late, so that a run whose worker dies in its step is not lost. The worker is a process of its own
with Celery's defaults; the callers use the library, so no front door is paid for.
"""

import os
import subprocess
import sys
from importlib import import_module

from scripts.bench.peer_load import Starts, asked, load, step_started

NAME = "scripts.bench.peer_celery"
celery = import_module("celery")
app = celery.Celery("bench", broker=f"redis://127.0.0.1:{os.environ['BENCH_REDIS']}/0")
app.conf.update(task_acks_late=True, task_ignore_result=True)
step = app.task(step_started, name="step")


def main() -> None:
    """Start a worker, and load it."""
    starts = Starts()
    arguments = ("--quiet", "-A", NAME, "worker", "--loglevel=ERROR")
    worker = subprocess.Popen((sys.executable, "-m", "celery", *arguments), stdout=sys.stderr)
    try:
        callers, seconds = asked()
        for each in callers:
            load(starts, step.delay, each, seconds)
    finally:
        worker.terminate()
        worker.wait(30)


if __name__ == "__main__":
    main()
