"""Following one run until it ends: told as it changes, asked for when nobody can tell.

Owns the pace, the patience and the progress line. Only a terminal gets a line that moves; anything
else gets one plain line per change.
"""

from collections.abc import Iterator
from contextlib import closing, nullcontext
from itertools import chain

from rich.status import Status
from rich.text import Text
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import Connection
from core_console.cli.failure import Exit, Failed, printable
from core_console.cli.output import Form, short_name, terminal
from core_console.cli.run_view import FINAL, current_step
from core_console.cli.times import instant, near
from core_console.clock import SystemClock

_PACE_S = 1.0
"""A person sees no difference below it, and a console feels no load from it."""

_STREAM_S = 60.0
"""A connection that died without a word is noticed by then: the run is asked for again."""

_MISSES_MAX = 15
"""A restart or a fail-over of the console takes seconds; after this many tries it is gone."""

_SPINNER_COLUMNS = 3
"""The turning sign before the line, its blank, and one column that stays free."""


def progress(run: pb.Run) -> str:
    """Return where the run stands, on one line."""
    step = current_step(run)
    line = _begun(run)
    if step is not None:
        until = f" until {instant(step.deadline)}" if step.HasField("deadline") else ""
        line += f", at {step.step.id}{until}"
    return printable(line + (f": {run.detail}" if run.detail else ""))


def _begun(run: pb.Run) -> str:
    done = sum(step.status == pb.STEP_RUN_STATUS_SUCCEEDED for step in run.steps)
    status = short_name(pb.RunStatus.DESCRIPTOR, run.status)
    return f"{run.id} {status}, {done} of {len(run.steps)} steps done"


class Watch:
    """Follows runs over one connection."""

    def __init__(self, connection: Connection, form: Form, clock: SystemClock) -> None:
        self._connection = connection
        self._clock = clock
        # With JSON on standard output the progress goes beside it, not into it.
        self._screen = terminal(to_errors=form is Form.JSON)
        self._last = ""
        self._is_told = True

    def follow(self, run_id: str, limit_s: float) -> pb.GetRunResponse:
        """Return the run once it has ended; raise Failed when `limit_s` passes before."""
        until = self._clock.monotonic() + limit_s
        moving = self._screen.status("…") if self._screen.is_terminal else None
        with moving or nullcontext():
            while True:
                found = self._ask(run_id, moving).run
                is_over = self._clock.monotonic() >= until
                for run in chain((found,), self._changes(found, until)):
                    if run.status in FINAL:
                        return pb.GetRunResponse(run=run)
                    self._tell(progress(run), self._short(run), moving)
                if is_over:
                    raise Failed(Exit.UNREACHABLE, f"not ended yet: {progress(found)}")

    def _changes(self, run: pb.Run, until: float) -> Iterator[pb.Run]:
        """Yield the run's later states for as long as the console tells them, a second at least.

        A console that is away for a while is asked again; one that has no such stream, or no
        place for one more, is not.
        """
        left_s = until - self._clock.monotonic()
        if left_s <= 0:
            return
        if self._is_told:
            request = pb.WatchActivityRequest(after_revision=run.revision)
            method = self._connection.playbooks.WatchActivity
            stream = self._connection.stream(method, request, timeout_s=min(left_s, _STREAM_S))
            try:
                with closing(stream) as messages:
                    yield from (each.run for each in messages if each.run.id == run.id)
            except Failed as failed:
                self._is_told = failed.exit_code == Exit.UNREACHABLE
        self._clock.pause(_PACE_S)

    def _ask(self, run_id: str, moving: Status | None) -> pb.GetRunResponse:
        """Return the run; sit out a console that is away for a while."""
        request = pb.GetRunRequest(id=run_id)
        for left in range(_MISSES_MAX - 1, 0, -1):
            try:
                return self._connection.call(self._connection.playbooks.GetRun, request)
            except Failed as failed:
                if failed.exit_code != Exit.UNREACHABLE:
                    raise
                again = "the console does not answer; trying again"
                self._tell(again, f"{again} ({left} s left)", moving)
                self._clock.pause(_PACE_S)
        return self._connection.call(self._connection.playbooks.GetRun, request)

    def _tell(self, line: str, short: str, moving: Status | None) -> None:
        if moving is not None:
            text = Text(printable(short))  # a plain str would be read as markup
            text.truncate(self._screen.width - _SPINNER_COLUMNS, overflow="ellipsis")
            moving.update(text)
        elif line != self._last:
            self._screen.print(line)
        self._last = line

    def _short(self, run: pb.Run) -> str:
        """Return where the run stands in the order in which it may be cut."""
        step = current_step(run)
        if step is None:
            return _begun(run)
        until = near(step.deadline, self._clock.now())
        at = f", at {step.step.id}" + (f", {until}" if until else "")
        return f"{_begun(run)}{at}" + (f": {run.detail}" if run.detail else "")
