"""One run of one workflow: which of its jobs run, in which order, and how the run ended.

Owns `needs`, the conditions and concurrency of jobs, and what a job may know of its run. The steps
are another module's.
"""

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from core_console.ports import Clock
from core_console.standin.actions_run import Artifacts, Desk
from core_console.standin.expressions import Scope, Status, evaluate_condition
from core_console.standin.runner_groups import Groups, Replaced
from core_console.standin.runner_job import JobRunner, Place, make_folders, remove, success_scope
from core_console.standin.runner_records import JobLog, JobState, Outcome, WorkflowRun
from core_console.standin.workflow import Job, Workflow

JOBS_AT_ONCE = 4  # a laptop's cores; GitHub has more, and the rest waits


class Site(Struct, frozen=True):
    """What all runs of a repository share."""

    repository: str
    urls: dict[str, str]
    variables: dict[str, str]
    secrets: dict[str, str]
    clock: Clock
    minute_s: float
    groups: Groups
    machines: asyncio.Semaphore


class Happening(Struct, frozen=True):
    """What started a run."""

    event_name: str
    event: Mapping[str, Any]
    actor: str
    actor_id: int


class Head(Struct, frozen=True):
    """The repository's default branch when it happened."""

    sha: str
    snapshot: Path


class RunState:
    """One run while it is worked on."""

    def __init__(
        self,
        run_id: int,
        workflow: Workflow,
        *,
        site: Site,
        happening: Happening,
        head: Head,
        folder: Path,
    ) -> None:
        self.run_id = run_id
        self.workflow = workflow
        self.site = site
        self.happening = happening
        self.head = head
        self.folder = folder
        self.artifacts = Artifacts(folder / "artifacts")
        self.cancelled = asyncio.Event()
        secrets = list(site.secrets.values())
        self.jobs = {name: JobState(name, JobLog(secrets)) for name in workflow.jobs}
        self.run_name = workflow.name
        if workflow.run_name is not None:
            scope = Scope({"github": self.github(), "vars": site.variables})
            self.run_name = workflow.run_name.render(scope).strip()

    def github(self) -> dict[str, Any]:
        """Return the github context, as far as the loader's expressions and actions use it."""
        owner = self.site.repository.split("/")[0]
        return {
            **self.site.urls,
            "actor": self.happening.actor,
            "actor_id": str(self.happening.actor_id),
            "event": self.happening.event,
            "event_name": self.happening.event_name,
            "ref": "refs/heads/main",
            "ref_name": "main",
            "ref_type": "branch",
            "repository": self.site.repository,
            "repository_owner": owner,
            "run_attempt": "1",
            "run_id": str(self.run_id),
            "run_number": str(self.run_id),
            "sha": self.head.sha,
            "workflow": self.workflow.name,
        }

    def end(self) -> None:
        """Call every job cancelled that has no conclusion: nothing works on this run any more."""
        for job in self.jobs.values():
            job.conclusion = job.conclusion or Outcome.CANCELLED

    def record(self) -> WorkflowRun:
        """Return the record of this run as it is now."""
        jobs = tuple(job.record() for job in self.jobs.values())
        return WorkflowRun(
            self.run_id, self.workflow.file, self.run_name, _conclusion(self.jobs), jobs
        )


def _conclusion(jobs: Mapping[str, JobState]) -> Outcome | None:
    ended = {job.conclusion for job in jobs.values()}
    for outcome in (None, Outcome.FAILURE, Outcome.CANCELLED, Outcome.SUCCESS):
        if outcome in ended:
            return outcome
    return Outcome.SKIPPED


async def run_workflow(run: RunState) -> None:
    """Run every job that its needs and its condition let run."""
    done = {name: asyncio.Event() for name in run.workflow.jobs}
    try:
        async with asyncio.TaskGroup() as group:
            for job in run.workflow.jobs.values():
                group.create_task(_when_ready(run, job, done))
    finally:
        remove(run.folder)


async def _when_ready(run: RunState, job: Job, done: Mapping[str, asyncio.Event]) -> None:
    for need in job.needs:
        await done[need].wait()
    state = run.jobs[job.id]
    contexts = _contexts(run, job)
    if not _is_wanted(run, job, contexts):
        state.conclusion = Outcome.SKIPPED
    else:
        state.conclusion = await _queued(run, job, contexts)
    done[job.id].set()


def _contexts(run: RunState, job: Job) -> dict[str, Any]:
    needs = {
        need: {"result": run.jobs[need].conclusion, "outputs": run.jobs[need].outputs}
        for need in job.needs
    }
    return {"github": run.github(), "vars": run.site.variables, "needs": needs}


def _is_wanted(run: RunState, job: Job, contexts: dict[str, Any]) -> bool:
    scope = success_scope(contexts, _status(run, job))
    if job.condition is None:
        return scope.status[Status.SUCCESS]
    return evaluate_condition(job.condition, scope)


def _status(run: RunState, job: Job) -> Outcome:
    """Return how everything before a job went; SKIPPED is neither success nor failure.

    All ancestors count, not only the jobs that it names: GitHub's success() asks the whole chain.
    """
    before = {run.jobs[name].conclusion for name in _ancestors(run.workflow, job)}
    if run.cancelled.is_set():
        return Outcome.CANCELLED
    if Outcome.FAILURE in before:
        return Outcome.FAILURE
    return Outcome.SUCCESS if before <= {Outcome.SUCCESS} else Outcome.SKIPPED


def _ancestors(workflow: Workflow, job: Job) -> set[str]:
    found: set[str] = set()
    for need in job.needs:
        found |= {need} | _ancestors(workflow, workflow.jobs[need])
    return found


async def _queued(run: RunState, job: Job, contexts: dict[str, Any]) -> Outcome:
    """Wait for the job's group and for a machine, then run it."""
    if job.concurrency is None:
        return await _on_a_machine(run, job, contexts)
    try:
        async with run.site.groups.hold(job.concurrency.group.render(Scope(contexts))):
            return await _on_a_machine(run, job, contexts)
    except Replaced:
        run.jobs[job.id].log.write("Error: a newer job of the same concurrency group replaced it.")
        return Outcome.CANCELLED


async def _on_a_machine(run: RunState, job: Job, contexts: dict[str, Any]) -> Outcome:
    async with run.site.machines:
        if not _is_wanted(run, job, contexts):  # it was cancelled while it waited
            return Outcome.CANCELLED
        folder = run.folder / job.id
        workspace = make_folders(folder)
        contexts = {**contexts, "secrets": run.site.secrets}
        contexts["github"] |= {"job": job.id, "workspace": str(workspace)}
        place = Place(
            folder=folder,
            desk=_desk(run, job, workspace),
            contexts=contexts,
            variables=_variables(contexts["github"], folder),
            cancelled=run.cancelled,
            minute_s=run.site.minute_s,
        )
        try:
            return await JobRunner(job, run.jobs[job.id], place).run()
        finally:
            remove(folder)


def _desk(run: RunState, job: Job, workspace: Path) -> Desk:
    return Desk(
        workspace=workspace,
        snapshot=run.head.snapshot,
        artifacts=run.artifacts,
        log=run.jobs[job.id].log,
        clock=run.site.clock,
        api_url=run.site.urls["api_url"],
        repository=run.site.repository,
        posts=[],
    )


def _variables(github: Mapping[str, Any], folder: Path) -> dict[str, str]:
    event_path = folder / "temp" / "event.json"
    event_path.write_text(json.dumps(github["event"]), encoding="utf-8")
    known = {f"GITHUB_{k.upper()}": v for k, v in github.items() if isinstance(v, str)}
    return known | {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_PATH": str(event_path),
        "RUNNER_ARCH": "X64",
        "RUNNER_OS": "Linux",
        "RUNNER_TEMP": str(folder / "temp"),
    }
