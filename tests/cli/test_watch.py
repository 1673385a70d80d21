"""Following a run: until it ends, through a restart of the console, and never for ever."""

import io
import json
import re
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest
from click.testing import Result
from google.protobuf.message import Message
from rich.cells import cell_len
from rich.console import Console
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli import watch
from core_console.cli.failure import Exit
from core_console.clock import SystemClock
from tests.cli.conftest import LaidDownConsole

Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let time pass without waiting for it; the pauses asked for are its account."""
    asked: list[float] = []
    monkeypatch.setattr(SystemClock, "pause", lambda _clock, seconds: asked.append(seconds))
    monkeypatch.setattr(SystemClock, "monotonic", lambda _clock: sum(asked))
    return asked


def run_at(
    status: pb.RunStatus.ValueType, step: pb.StepRunStatus.ValueType, detail: str = ""
) -> pb.GetRunResponse:
    inner = pb.StepRun(step=pb.Step(id="detect"), status=step)
    return pb.GetRunResponse(run=pb.Run(id="PBR-1", status=status, steps=[inner], detail=detail))


WAITING = run_at(pb.RUN_STATUS_WAITING_AGENT, pb.STEP_RUN_STATUS_WAITING_AGENT)
DONE = run_at(pb.RUN_STATUS_SUCCEEDED, pb.STEP_RUN_STATUS_SUCCEEDED)


def test_a_run_is_followed_until_it_succeeds_with_one_line_per_change(
    console: LaidDownConsole, ask: Cli, pauses: list[float]
) -> None:
    console.lay_down("GetRun", WAITING, WAITING, WAITING, DONE)
    result = ask("run", "watch", "PBR-1")
    assert result.exit_code == Exit.OK
    line = "PBR-1 WAITING_AGENT, 0 of 1 steps done, at detect"
    assert result.stdout.splitlines().count(line) == 1
    assert "SUCCEEDED" in result.stdout
    assert pauses == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    "status",
    [
        pb.RUN_STATUS_FAILED,
        pb.RUN_STATUS_REJECTED,
        pb.RUN_STATUS_CANCELLED,
        pb.RUN_STATUS_TIMED_OUT,
        pb.RUN_STATUS_EXPIRED,
    ],
)
def test_any_other_end_is_exit_code_1(
    console: LaidDownConsole, ask: Cli, status: pb.RunStatus.ValueType
) -> None:
    console.lay_down("GetRun", run_at(status, pb.STEP_RUN_STATUS_FAILED, "why it ended"))
    result = ask("run", "watch", "PBR-1")
    assert result.exit_code == Exit.REFUSED
    assert "why it ended" in result.stdout


def told(found: pb.GetRunResponse, revision: int) -> pb.WatchActivityResponse:
    return pb.WatchActivityResponse(revision=revision, run=found.run)


BEAT = pb.WatchActivityResponse(revision=9, heartbeat=pb.Heartbeat())
OTHER = pb.WatchActivityResponse(revision=9, run=pb.Run(id="PBR-2", status=pb.RUN_STATUS_FAILED))


def test_what_the_console_tells_is_not_asked_for(
    console: LaidDownConsole, ask: Cli, pauses: list[float]
) -> None:
    begun = run_at(pb.RUN_STATUS_RUNNING, pb.STEP_RUN_STATUS_RUNNING)
    begun.run.revision = 7
    console.lay_down("GetRun", begun)
    console.lay_down_stream(BEAT, OTHER, told(WAITING, 8), BEAT, told(DONE, 9))
    result = ask("run", "watch", "PBR-1")
    assert result.exit_code == Exit.OK
    lines = [line for line in result.stdout.splitlines() if line.startswith("PBR-1 ")]
    assert lines[:2] == [
        "PBR-1 RUNNING, 0 of 1 steps done, at detect",
        "PBR-1 WAITING_AGENT, 0 of 1 steps done, at detect",
    ]
    assert console.watched == [pb.WatchActivityRequest(after_revision=7)]
    assert (len(console.requests), pauses) == (1, [])


def test_a_stream_that_breaks_is_opened_again_where_the_run_stands(
    console: LaidDownConsole, ask: Cli, pauses: list[float]
) -> None:
    later = run_at(pb.RUN_STATUS_WAITING_AGENT, pb.STEP_RUN_STATUS_WAITING_AGENT)
    later.run.revision = 12
    console.lay_down("GetRun", WAITING, grpc.StatusCode.UNAVAILABLE, later)
    console.lay_down_stream(BEAT, grpc.StatusCode.UNAVAILABLE)
    console.lay_down_stream(told(DONE, 13))
    assert ask("run", "watch", "PBR-1").exit_code == Exit.OK
    assert console.watched[1] == pb.WatchActivityRequest(after_revision=12)
    assert pauses == [1.0, 1.0]


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED]
)
def test_a_console_that_cannot_tell_is_asked_once_a_second(
    console: LaidDownConsole, ask: Cli, pauses: list[float], code: grpc.StatusCode
) -> None:
    console.lay_down("GetRun", WAITING, WAITING, WAITING, DONE)
    console.lay_down_stream(code)
    assert ask("run", "watch", "PBR-1").exit_code == Exit.OK
    assert (len(console.watched), pauses) == (1, [1.0, 1.0, 1.0])


def test_a_stream_that_says_nothing_any_more_is_left_for_a_question(
    console: LaidDownConsole, ask: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_STREAM_S", 0.2)
    console.lay_down("GetRun", WAITING, DONE)
    left = threading.Event()
    monkeypatch.setattr(console, "watch", lambda _request, context: silent(context, left))
    assert ask("run", "watch", "PBR-1").exit_code == Exit.OK
    assert left.wait(10), "and it is hung up"


def silent(context: grpc.ServicerContext, left: threading.Event) -> Iterator[Message]:
    """Say nothing until the caller hangs up."""
    context.add_callback(left.set)
    left.wait(10)
    yield from ()


def test_for_machines_the_last_answer_alone_is_on_standard_output(
    console: LaidDownConsole, ask: Cli
) -> None:
    console.lay_down("GetRun", WAITING, DONE)
    result = ask("run", "watch", "PBR-1", "-o", "json")
    assert json.loads(result.stdout)["run"]["status"] == "RUN_STATUS_SUCCEEDED"
    assert "WAITING_AGENT" in result.stderr


def test_a_restart_of_the_console_is_sat_out(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("GetRun", WAITING, *[grpc.StatusCode.UNAVAILABLE] * 5, DONE)
    assert ask("run", "watch", "PBR-1").exit_code == Exit.OK


def test_a_console_that_stays_away_is_unreachable(
    console: LaidDownConsole, ask: Cli, pauses: list[float]
) -> None:
    console.lay_down("GetRun", grpc.StatusCode.UNAVAILABLE)
    assert ask("run", "watch", "PBR-1").exit_code == Exit.UNREACHABLE
    assert len(console.requests) == 15
    assert len(pauses) == 14


def test_an_unknown_run_is_refused_at_once(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("GetRun", grpc.StatusCode.NOT_FOUND)
    assert ask("run", "watch", "PBR-1").exit_code == Exit.REFUSED
    assert len(console.requests) == 1


def test_following_ends_when_the_patience_does(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("GetRun", WAITING)
    result = ask("run", "watch", "PBR-1", "--for", "3s")
    assert result.exit_code == Exit.UNREACHABLE
    assert result.stderr.startswith("not ended yet: PBR-1 WAITING_AGENT")
    assert len(console.requests) == 4


def test_on_a_terminal_the_line_moves_and_reads_no_markup(
    console: LaidDownConsole, ask: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        watch, "terminal", lambda **_: Console(file=screen, force_terminal=True, width=200)
    )
    waiting = run_at(
        pb.RUN_STATUS_WAITING_AGENT, pb.STEP_RUN_STATUS_WAITING_AGENT, "[/red][blink]\x1b[5mhello"
    )
    console.lay_down("GetRun", waiting, waiting, DONE)
    result = ask("run", "watch", "PBR-1")
    assert result.exit_code == Exit.OK
    assert "at detect: [/red][blink][5mhello" in screen.getvalue()
    assert "WAITING_AGENT" not in result.stdout


def test_a_console_that_is_away_is_told_once_and_waited_for(
    console: LaidDownConsole, ask: Cli
) -> None:
    console.lay_down("GetRun", WAITING, *[grpc.StatusCode.UNAVAILABLE] * 3, WAITING, DONE)
    lines = ask("run", "watch", "PBR-1").stdout.splitlines()
    line = "PBR-1 WAITING_AGENT, 0 of 1 steps done, at detect"
    assert lines[:3] == [line, "the console does not answer; trying again", line]


def test_on_a_terminal_the_line_never_wraps(
    console: LaidDownConsole, ask: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        watch, "terminal", lambda **_: Console(file=screen, force_terminal=True, width=60)
    )
    waiting = run_at(
        pb.RUN_STATUS_WAITING_AGENT, pb.STEP_RUN_STATUS_WAITING_AGENT, "a long detail " * 20
    )
    waiting.run.steps[0].deadline.FromJsonString("2026-12-03T12:00:00Z")
    console.lay_down("GetRun", waiting, waiting, DONE)
    assert ask("run", "watch", "PBR-1").exit_code == Exit.OK
    shown = (
        re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue()).replace("\r", "\n").splitlines()
    )
    assert any(line.endswith("…") for line in shown), shown
    assert max(map(cell_len, shown)) <= 60
