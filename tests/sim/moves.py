"""How a run may differ between two durable documents.

Owns the promises about one run and its steps: legal moves, claims, deadlines, finality. One swap
may carry several whole transitions, so moves are judged by what can be reached.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from core_console.decide.status import FINAL, RUN_MOVES, RUN_OF_STEP
from core_console.model.playbook import CapexScan, DispatchAgent, Notify, RequireApproval
from core_console.model.run import Call, Run, RunStatus, StepRun, StepRunStatus
from tests.sim.broken import hold

_PENDING, _SKIPPED = StepRunStatus.PENDING, StepRunStatus.SKIPPED
_SUCCEEDED = StepRunStatus.SUCCEEDED
_OPEN = {
    DispatchAgent: StepRunStatus.WAITING_AGENT,
    RequireApproval: StepRunStatus.WAITING_APPROVAL,
    CapexScan: StepRunStatus.RUNNING,
    Notify: StepRunStatus.RUNNING,
}
_ENDINGS = {
    DispatchAgent: {"SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT"},
    RequireApproval: {"SUCCEEDED", "REJECTED", "CANCELLED", "EXPIRED"},
    CapexScan: {"SUCCEEDED", "FAILED", "CANCELLED"},
    Notify: {"SUCCEEDED", "FAILED", "CANCELLED"},
}
_CALLS = {
    Call.NONE: set(Call),
    Call.PENDING: set(Call) - {Call.NONE},
    Call.ACCEPTED: {Call.ACCEPTED},
    Call.REFUSED: {Call.REFUSED},
    # A report is the proof that an ambiguous call did arrive.
    Call.UNKNOWN: {Call.UNKNOWN, Call.ACCEPTED},
}


def _reachable() -> Mapping[RunStatus, frozenset[RunStatus]]:
    found: dict[RunStatus, frozenset[RunStatus]] = {}
    for start in RunStatus:
        seen, ahead = {start}, [start]
        while ahead:
            for after in RUN_MOVES[ahead.pop()] - seen:
                seen.add(after)
                ahead.append(after)
        found[start] = frozenset(seen)
    return found


REACHABLE = _reachable()


def judge_new(run: Run, replica: str) -> None:
    """Judge a run that was not there before."""
    judge_shape(run)
    for now in run.steps:
        _judge_step(run, StepRun(step=now.step), now, replica)


def judge_change(was: Run, now: Run, replica: str) -> None:
    """Judge what became of a run that was there before."""
    hold(
        now.status in REACHABLE[was.status],
        "legal moves",
        "{} went from {} to {}",
        was.id,
        was.status,
        now.status,
    )
    if was.status in FINAL:
        same = replace(now, revision=was.revision, steps=was.steps)
        hold(same == was, "a final status never changes", "{} changed after its end", was.id)
    _judge_identity(was, now)
    hold(len(was.steps) == len(now.steps), "steps are a copy", "{} has other steps", was.id)
    for before, after in zip(was.steps, now.steps, strict=True):
        if before != after:
            _judge_step(now, before, after, replica)
    judge_shape(now)


def _judge_identity(was: Run, now: Run) -> None:
    same = replace(
        now,
        revision=was.revision,
        steps=was.steps,
        status=was.status,
        finished_at=was.finished_at,
        detail=was.detail,
    )
    hold(same == was, "a run stays the one that it is", "{} became {}", was, now)
    hold(now.revision > was.revision or now == was, "a change moves the revision", "{}", was.id)


def _judge_step(run: Run, was: StepRun, now: StepRun, replica: str) -> None:
    name = f"step {was.step.id} of {run.id}"
    hold(was.step == now.step, "steps are a copy", "{} has another step", name)
    hold(now.call in _CALLS[was.call], "legal moves", "{}: call {} {}", name, was.call, now.call)
    if was.claimed_by:
        claims = [(each.claimed_by, each.claimed_at, each.deadline) for each in (was, now)]
        hold(claims[0] == claims[1], "a step is claimed once", "{}: {}, {}", name, *claims)
    elif now.claimed_by:
        hold(now.claimed_by == replica, "a step is claimed once", "{} for {}", name, replica)
        hold(now.claimed_at is not None, "a step is claimed once", "{} at no time", name)
    if was.finished_at is not None or was.status is _SKIPPED:
        hold(
            replace(now, call=was.call) == was,
            "a final status never changes",
            "{} changed after its end: {} to {}",
            name,
            was,
            now,
        )
    elif now.finished_at is not None:
        _judge_end(run, now, name)
    elif was.status is not _PENDING:
        hold(now.status is was.status, "legal moves", "{}: {} to {}", name, was.status, now.status)


def _judge_end(run: Run, now: StepRun, name: str) -> None:
    action = now.step.action
    cancelled = now.status is StepRunStatus.CANCELLED
    hold(now.status in _ENDINGS[type(action)], "legal moves", "{} ended {}", name, now.status)
    hold(bool(now.claimed_by) or cancelled, "a step is claimed once", "{} never was", name)
    assert now.finished_at is not None
    late = now.deadline is not None and now.finished_at >= now.deadline
    decided = now.status in {_SUCCEEDED, StepRunStatus.REJECTED} or bool(now.conclusion)
    overdue = now.status in {StepRunStatus.TIMED_OUT, StepRunStatus.EXPIRED}
    hold(not (decided and late), "deadlines are kept", "{} ended {} too late", name, now.status)
    hold(late or not overdue, "deadlines are kept", "{} ended {} too early", name, now.status)
    if not isinstance(action, DispatchAgent):
        hold(not now.conclusion, "legal moves", "{} was reported", name)
    elif now.status is _SUCCEEDED:
        hold(now.conclusion == "success", "success is reported", "{}: {}", name, now.conclusion)
    if isinstance(action, RequireApproval) and decided:
        hold(now.decided_by not in {"", run.initiator}, "four eyes", "{}: {}", name, now.decided_by)
    if isinstance(action, Notify) and now.status is _SUCCEEDED:
        hold(now.call is Call.ACCEPTED, "success is reported", "{}: {}", name, now.call)


def judge_shape(run: Run) -> None:
    """Judge that a run's steps and status belong together."""
    rule = "a run is as its steps are"
    hold("own rules" not in run.detail, "no run is set aside", "{}: {}", run.id, run.detail)
    after = [each for each in run.steps if each.status is not _SUCCEEDED]
    if not after:
        hold(run.status is RunStatus.SUCCEEDED, rule, "{} is {}", run.id, run.status)
        return
    current, *rest = after
    hold(run.steps[-len(after)] is current, rule, "{} has a gap", run.id)
    hold((run.finished_at is not None) == (run.status in FINAL), rule, "{}'s end", run.id)
    idle = _SKIPPED if run.status in FINAL else _PENDING
    hold(all(each.status is idle for each in rest), rule, "{}: rest not {}", run.id, idle)
    hold(not any(each.claimed_by for each in rest), rule, "{}: rest is claimed", run.id)
    if current.status is _PENDING:
        hold(run.status is RunStatus.RUNNING, rule, "{} is {}", run.id, run.status)
        return
    hold(RUN_OF_STEP.get(current.status) is run.status, rule, "{} is {}", run.id, run.status)
    if run.status not in FINAL:
        kind = _OPEN[type(current.step.action)]
        hold(current.status is kind, rule, "{}: {}", run.id, current.status)
