"""Runs the steps of one job, in order, with GitHub's rules for conditions, outcomes and bounds.

Owns a job from its first step to its post steps. Never decides whether the job runs at all.
"""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Any

from msgspec import Struct

from core_console.standin.actions import ActionName
from core_console.standin.actions_run import ActionFault, Desk, perform
from core_console.standin.expressions import Scope, Status, evaluate_condition
from core_console.standin.runner_files import (
    CommandFileFault,
    CommandFiles,
    make_command_files,
    read_lines,
    read_values,
)
from core_console.standin.runner_records import JobState, Outcome
from core_console.standin.runner_shell import Bash, run_script
from core_console.standin.workflow import Job, RunsScript, Step, UsesAction

CANCEL_GRACE_MINUTES = 5  # what GitHub leaves a cancelled job for its last steps


class Place(Struct, frozen=True):
    """Where a job runs and what it may know."""

    folder: Path
    desk: Desk
    contexts: dict[str, Any]
    """github, vars, secrets and needs."""
    variables: dict[str, str]
    """The GITHUB_… and RUNNER_… variables, which no step can change."""
    cancelled: asyncio.Event
    minute_s: float


def success_scope(contexts: dict[str, Any], status: Outcome) -> Scope:
    """Return the scope of a condition when things went as `status` says so far."""
    answers = {
        Status.ALWAYS: True,
        Status.SUCCESS: status is Outcome.SUCCESS,
        Status.FAILURE: status is Outcome.FAILURE,
        Status.CANCELLED: status is Outcome.CANCELLED,
    }
    return Scope(contexts, answers)


class JobRunner:
    """One job while its steps run."""

    def __init__(self, job: Job, state: JobState, place: Place) -> None:
        self._job = job
        self._state = state
        self._place = place
        self._status = Outcome.SUCCESS
        self._steps: dict[str, dict[str, Any]] = {}
        self._env: dict[str, str] = {}
        self._paths: list[str] = []
        self._ends_at = asyncio.get_running_loop().time() + job.timeout_minutes * place.minute_s
        self._cancelled = place.cancelled

    async def run(self) -> Outcome:
        """Run every step, then the post steps; set the outputs and return the job's conclusion."""
        for number, step in enumerate(self._job.steps):
            self._note_the_end()
            outcome = await self._step(step, number)
            if step.id is not None:
                held = self._steps.setdefault(step.id, {"outputs": {}})
                held |= {"outcome": outcome.value, "conclusion": outcome.value}
            if outcome is Outcome.FAILURE and self._status is Outcome.SUCCESS:
                self._status = Outcome.FAILURE
        self._note_the_end()
        self._state.outputs = self._outputs()
        for post in reversed(self._place.desk.posts):
            await post()
        return self._status

    def _note_the_end(self) -> None:
        """Turn to cancelled, once: from then on only what asks for it runs, for a short while."""
        if self._status is Outcome.CANCELLED:
            return
        late = self._left_s() <= 0
        if late or self._cancelled.is_set():
            reason = "has exceeded its time" if late else "was canceled"
            self._state.log.write(f"Error: The job {reason}.")
            self._status = Outcome.CANCELLED
            self._cancelled = asyncio.Event()
            grace_s = CANCEL_GRACE_MINUTES * self._place.minute_s
            self._ends_at = asyncio.get_running_loop().time() + grace_s

    def _left_s(self) -> float:
        return self._ends_at - asyncio.get_running_loop().time()

    def _contexts(self, env: dict[str, str]) -> dict[str, Any]:
        job = {"status": self._status.value}
        return {**self._place.contexts, "steps": self._steps, "job": job, "env": env}

    async def _step(self, step: Step, number: int) -> Outcome:
        scope = success_scope(self._contexts(self._env), self._status)
        wanted = scope.status[Status.SUCCESS]
        if step.condition is not None:
            wanted = evaluate_condition(step.condition, scope)
        if not wanted or self._left_s() <= 0:
            return Outcome.SKIPPED
        env = {**self._env, **{name: text.render(scope) for name, text in step.env.items()}}
        scope = Scope(self._contexts(env))
        self._state.log.write(f"== {step.name.render(scope) or f'step {number + 1}'}")
        left_s = self._left_s()
        if step.timeout_minutes is not None:
            left_s = min(left_s, step.timeout_minutes * self._place.minute_s)
        match step.work:
            case RunsScript(script):
                return await self._script(step, number, script.render(scope), env, left_s)
            case UsesAction(action, inputs):
                given = {name: text.render(scope) for name, text in inputs.items()}
                return await self._action(step, ActionName(action), given, left_s)

    async def _action(
        self, step: Step, action: ActionName, inputs: dict[str, str], left_s: float
    ) -> Outcome:
        try:
            async with asyncio.timeout(left_s):
                outputs = await perform(action, inputs, self._place.desk)
        except TimeoutError:
            self._state.log.write("Error: The step has exceeded its time.")
            return Outcome.FAILURE
        except ActionFault as fault:
            self._state.log.write(f"Error: {fault}")
            return Outcome.FAILURE
        self._keep_outputs(step, outputs)
        return Outcome.SUCCESS

    async def _script(
        self, step: Step, number: int, text: str, env: dict[str, str], left_s: float
    ) -> Outcome:
        temp = self._place.folder / "temp"
        try:
            script = temp / f"step_{number}.sh"
            files = make_command_files(temp, number)
            script.write_text(text, encoding="utf-8")
            bash = Bash(self._place.desk.workspace, self._environment(env, files))
            ended = await run_script(script, bash, timeout_s=left_s, cancelled=self._cancelled)
        except (OSError, ValueError):  # a folder that a step removed, a value that no process takes
            self._state.log.write("Error: The step could not be started.")
            return Outcome.FAILURE
        output = ended.output.decode(errors="replace").rstrip("\n")
        self._state.log.write("\n".join(part for part in (output, ended.note) if part))
        if not self._understood(step, files):
            return Outcome.FAILURE
        if ended.outcome is Outcome.FAILURE and self._left_s() <= 0:
            return Outcome.CANCELLED  # it was the job's time that was over, not the step's own
        return ended.outcome

    def _understood(self, step: Step, files: CommandFiles) -> bool:
        """Take over what a step wrote for its job, and tell whether all of it made sense."""
        try:
            self._keep_outputs(step, read_values(files.output))
            self._env |= read_values(files.env)
            self._paths = [p for p in read_lines(files.path) if p][::-1] + self._paths
        except CommandFileFault as fault:
            self._state.log.write(f"Error: {fault}")
            return False
        return True

    def _environment(self, env: dict[str, str], files: CommandFiles) -> dict[str, str]:
        path = os.pathsep.join([*self._paths, os.environ.get("PATH", os.defpath)])
        own = {"HOME": str(self._place.folder / "home"), "PATH": path, "LANG": "C.UTF-8"}
        own["TMPDIR"] = str(self._place.folder / "temp")
        return {**own, **env, **self._place.variables, **files.variables()}

    def _keep_outputs(self, step: Step, outputs: dict[str, str]) -> None:
        if step.id is not None:
            self._steps[step.id] = {"outputs": outputs}

    def _outputs(self) -> dict[str, str]:
        """Return the job's outputs, without those that would carry a secret to another job."""
        scope = Scope(self._contexts(self._env))
        rendered = {name: text.render(scope) for name, text in self._job.outputs.items()}
        return {name: text for name, text in rendered.items() if not self._state.log.hides(text)}


def make_folders(folder: Path) -> Path:
    """Create a job's folders and return its workspace."""
    for name in ("workspace", "temp", "home"):
        (folder / name).mkdir(parents=True)
    return folder / "workspace"


def remove(folder: Path) -> None:
    """Remove a folder; what a script made unremovable stays."""
    shutil.rmtree(folder, ignore_errors=True)
