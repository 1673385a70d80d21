"""Following one run: ask for it once a second until it ends.

Owns the pace, the patience and the progress line. Only a terminal gets a line that moves; anything
else gets one plain line per change.
"""

from contextlib import nullcontext

from rich.status import Status
from rich.text import Text
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import Connection
from core_console.cli.failure import Exit, Failed, printable
from core_console.cli.output import Form, instant, short_name, terminal
from core_console.clock import SystemClock

_PACE_S = 1.0
"""A person sees no difference below it, and a console feels no load from it."""

_MISSES_MAX = 15
"""A restart or a fail-over of the console takes seconds; after this many tries it is gone."""

_FINAL = frozenset(
    {
        pb.RUN_STATUS_SUCCEEDED,
        pb.RUN_STATUS_FAILED,
        pb.RUN_STATUS_REJECTED,
        pb.RUN_STATUS_CANCELLED,
        pb.RUN_STATUS_TIMED_OUT,
        pb.RUN_STATUS_EXPIRED,
    }
)
_CURRENT = frozenset(
    {
        pb.STEP_RUN_STATUS_RUNNING,
        pb.STEP_RUN_STATUS_WAITING_AGENT,
        pb.STEP_RUN_STATUS_WAITING_APPROVAL,
    }
)


def current_step(run: pb.Run) -> pb.StepRun | None:
    """Return the step that the run is at, None when there is none."""
    return next((step for step in run.steps if step.status in _CURRENT), None)


def step_status(step: pb.StepRun) -> str:
    """Return a step run's status by its short name."""
    return short_name(pb.StepRunStatus.DESCRIPTOR, step.status)


def progress(run: pb.Run) -> str:
    """Return where the run stands, on one line."""
    step = current_step(run)
    done = sum(step.status == pb.STEP_RUN_STATUS_SUCCEEDED for step in run.steps)
    line = f"{run.id} {short_name(pb.RunStatus.DESCRIPTOR, run.status)}, "
    line += f"{done} of {len(run.steps)} steps done"
    if step is not None:
        until = f" until {instant(step.deadline)}" if step.HasField("deadline") else ""
        line += f", at {step.step.id}{until}"
    return printable(line + (f": {run.detail}" if run.detail else ""))


class Watch:
    """Follows runs over one connection."""

    def __init__(self, connection: Connection, form: Form, clock: SystemClock) -> None:
        self._connection = connection
        self._clock = clock
        # With JSON on standard output the progress goes beside it, not into it.
        self._screen = terminal(to_errors=form is Form.JSON)
        self._last = ""

    def follow(self, run_id: str, limit_s: float) -> pb.GetRunResponse:
        """Return the run once it has ended; raise Failed when `limit_s` passes before."""
        until = self._clock.monotonic() + limit_s
        moving = self._screen.status("…") if self._screen.is_terminal else None
        with moving or nullcontext():
            while True:
                response = self._ask(run_id)
                if response.run.status in _FINAL:
                    return response
                self._tell(response.run, moving)
                if self._clock.monotonic() >= until:
                    raise Failed(Exit.REFUSED, f"not ended yet: {progress(response.run)}")
                self._clock.pause(_PACE_S)

    def _ask(self, run_id: str) -> pb.GetRunResponse:
        request = pb.GetRunRequest(id=run_id)
        for _ in range(_MISSES_MAX - 1):
            try:
                return self._connection.call(self._connection.playbooks.GetRun, request)
            except Failed as failed:
                if failed.exit_code != Exit.UNREACHABLE:
                    raise
                self._clock.pause(_PACE_S)
        return self._connection.call(self._connection.playbooks.GetRun, request)

    def _tell(self, run: pb.Run, moving: Status | None) -> None:
        line = progress(run)
        if moving is not None:
            moving.update(Text(line))  # a plain str would be read as markup
        elif line != self._last:
            self._screen.print(line)
        self._last = line
