"""Runs the workflows of the agents repository for what happens there, as GitHub would.

Owns the runs: which workflows listen, the bounds, and the end of every process that was started.
Never runs what the loader did not accept.
"""

import asyncio
import subprocess
from collections import deque
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from core_console.clock import SystemClock
from core_console.ports import Clock
from core_console.standin.runner_groups import Groups
from core_console.standin.runner_job import remove
from core_console.standin.runner_layout import take_snapshot
from core_console.standin.runner_records import Outcome, WorkflowRun
from core_console.standin.runner_run import (
    JOBS_AT_ONCE,
    Happening,
    Head,
    RunState,
    Site,
    run_workflow,
)
from core_console.standin.state import DispatchEvent
from core_console.standin.workflow import Workflow, WorkflowFault
from core_console.standin.workflow_load import load_workflows

RUNS_KEPT_MAX = 100  # finished ones; a dispatch makes six
RUNS_IN_FLIGHT_MAX = 500  # what GitHub queues in 10 s; it drops what is beyond, and so does this
HAPPENINGS_MAX = 100  # each copies the repository before its runs are counted
FIRST_RUN_ID = 10_000_000_001  # as long as GitHub's, so that nothing relies on a short one


class Runner:
    """The runner of one repository's workflows; made and used inside one event loop."""

    def __init__(  # noqa: PLR0913 -- GitHub's addresses, the organisation's settings and two test hooks
        self,
        tree: Path,
        *,
        api_url: str,
        graphql_url: str,
        server_url: str,
        repository: str,
        variables: dict[str, str],
        secrets: dict[str, str],
        work_dir: Path,
        clock: Clock | None = None,
        minute_s: float = 60.0,
    ) -> None:
        """Load the workflows of `tree`; `minute_s` is how long a minute of a timeout lasts.

        Raises:
            WorkflowFault: a workflow file would not run at GitHub.
        """
        self._tree = tree
        self._work_dir = work_dir
        self._site = Site(
            repository=repository,
            urls={"api_url": api_url, "graphql_url": graphql_url, "server_url": server_url},
            variables=dict(variables),
            secrets=dict(secrets),
            clock=clock or SystemClock(),
            minute_s=minute_s,
            groups=Groups(),
            machines=asyncio.Semaphore(JOBS_AT_ONCE),
        )
        load_workflows(tree)
        self._run_ids = count(FIRST_RUN_ID)
        self._numbers = count(1)
        self._finished: deque[WorkflowRun] = deque(maxlen=RUNS_KEPT_MAX)
        self._in_flight: dict[int, RunState] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def runs(self) -> list[WorkflowRun]:
        """The runs in flight and the newest finished ones, oldest first."""
        found = [*self._finished, *(run.record() for run in self._in_flight.values())]
        return sorted(found, key=lambda run: run.run_id)

    async def dispatch(self, event: DispatchEvent) -> None:
        """Start a run of every workflow that listens to this event, and return at once."""
        if event.repository != self._site.repository:
            return
        body = {
            "action": event.event_type,
            "branch": "main",
            "client_payload": event.client_payload,
            **self._common(event.sender_login, event.sender_id),
        }
        happening = Happening("repository_dispatch", body, event.sender_login, event.sender_id)
        self._start(happening, lambda workflow: event.event_type in workflow.dispatch_types)

    async def run_by_hand(self, workflow_file: str, actor: str = "octocat") -> None:
        """Start one workflow as a person does (workflow_dispatch), and return at once."""
        body = {"inputs": None, "ref": "refs/heads/main", **self._common(actor, 1)}
        happening = Happening("workflow_dispatch", body, actor, 1)
        self._start(happening, lambda workflow: workflow.by_hand and workflow.file == workflow_file)

    async def cancel(self, run_id: int) -> None:
        """Cancel a run in flight as a person at GitHub does; others are left alone."""
        if (run := self._in_flight.get(run_id)) is not None:
            run.cancelled.set()

    async def settle(self) -> None:
        """Wait until no run is in flight."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    async def close(self) -> None:
        """End every run with its processes, and remove what they left."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _common(self, sender: str, sender_id: int) -> dict[str, Any]:
        owner, name = self._site.repository.split("/")
        kind = "Bot" if sender.endswith("[bot]") else "User"
        return {
            "repository": {
                "name": name,
                "full_name": self._site.repository,
                "owner": {"login": owner, "type": "Organization"},
                "default_branch": "main",
            },
            "organization": {"login": owner},
            "sender": {"login": sender, "id": sender_id, "type": kind},
        }

    def _start(self, happening: Happening, listens: Callable[[Workflow], bool]) -> None:
        if len(self._tasks) >= HAPPENINGS_MAX:
            self._could_not_start(f"more than {HAPPENINGS_MAX} events are worked on: dropped")
            return
        task = asyncio.create_task(self._run_all(happening, listens))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_all(self, happening: Happening, listens: Callable[[Workflow], bool]) -> None:
        folder = self._work_dir / f"happening-{next(self._numbers)}"
        try:
            sha = await asyncio.to_thread(take_snapshot, self._tree, folder / "snapshot")
            head = Head(sha, folder / "snapshot")
            workflows = await asyncio.to_thread(load_workflows, head.snapshot)
            async with asyncio.TaskGroup() as group:
                for workflow in filter(listens, workflows):
                    if len(self._in_flight) < RUNS_IN_FLIGHT_MAX:
                        group.create_task(self._run(workflow, happening, head, folder))
        except (WorkflowFault, OSError, subprocess.SubprocessError) as fault:
            self._could_not_start(str(fault))
        finally:
            remove(folder)

    async def _run(
        self, workflow: Workflow, happening: Happening, head: Head, folder: Path
    ) -> None:
        run_id = next(self._run_ids)
        run = RunState(
            run_id,
            workflow,
            site=self._site,
            happening=happening,
            head=head,
            folder=folder / str(run_id),
        )
        self._in_flight[run_id] = run
        try:
            await run_workflow(run)
        finally:
            run.end()
            del self._in_flight[run_id]
            self._finished.append(run.record())

    def _could_not_start(self, fault: str) -> None:
        """Keep a run that has no job, as GitHub does for a file that it cannot read."""
        run_id = next(self._run_ids)
        self._finished.append(WorkflowRun(run_id, "", "", Outcome.FAILURE, (), fault))
