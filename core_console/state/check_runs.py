"""Does a stored run agree with itself: its status with its steps, its times with its status?

Owns the judgement of one run. It shares the model's types and nothing else: which status a step
gives its run is written here a second time.
"""

from collections.abc import Iterator
from datetime import timedelta

from core_console.model.playbook import DispatchAgent, RequireApproval
from core_console.model.run import Run, RunStatus, StepRun, StepRunStatus
from core_console.state.check_playbooks import STEPS, step_faults
from core_console.state.check_words import backwards, is_id, longer

_FINAL = frozenset(
    {
        RunStatus.SUCCEEDED,
        RunStatus.FAILED,
        RunStatus.REJECTED,
        RunStatus.CANCELLED,
        RunStatus.TIMED_OUT,
        RunStatus.EXPIRED,
    }
)
_OPEN = frozenset(
    {StepRunStatus.RUNNING, StepRunStatus.WAITING_AGENT, StepRunStatus.WAITING_APPROVAL}
)
_UNENDED = _OPEN | {StepRunStatus.PENDING, StepRunStatus.SKIPPED}
_DECIDED = frozenset({StepRunStatus.SUCCEEDED, StepRunStatus.REJECTED})

_SET_ASIDE = "set aside, "
"""How the detail of a run begins that broke the console's own rules and was ended for it."""

_DEPTHS = range(4)


def in_flight(run: Run) -> Iterator[str]:
    """Yield every promise that a run in flight breaks."""
    name = f"run {run.id}"
    yield from _any(name, run)
    if run.status in _FINAL or run.finished_at is not None:
        yield f"{name} is in flight and yet {run.status}, or has a time at which it finished"
        return
    rest = [each for each in run.steps if each.status is not StepRunStatus.SUCCEEDED]
    passed = len(run.steps) - len(rest)
    if not rest or any(each.status is StepRunStatus.SUCCEEDED for each in run.steps[passed:]):
        yield f"{name} is in flight, and its steps did not succeed one after another"
        return
    current, *ahead = rest
    waits = current.status is StepRunStatus.PENDING and run.status is RunStatus.RUNNING
    if not waits and (current.status not in _OPEN or current.status.value != run.status.value):
        yield f"{name} is {run.status}, and its step {current.step.id} is {current.status}"
    if any(each.status is not StepRunStatus.PENDING for each in ahead):
        yield f"{name} has a step that began before its turn"


def finished(run: Run) -> Iterator[str]:
    """Yield every promise that a final run breaks."""
    name = f"run {run.id}"
    yield from _any(name, run)
    if run.status not in _FINAL or run.finished_at is None:
        yield f"{name} is kept as finished, and is {run.status} or has no time of that"
    yield from backwards(name, run.started_at, run.finished_at)
    statuses = [each.status for each in run.steps]
    while statuses and statuses[0] is StepRunStatus.SUCCEEDED:
        statuses.pop(0)
    if run.status is RunStatus.SUCCEEDED:
        holds = not statuses
    elif run.detail.startswith(_SET_ASIDE):
        holds = not _UNENDED.intersection(statuses)
    else:
        last, *ahead = statuses or [StepRunStatus.SUCCEEDED]
        skipped = all(each is StepRunStatus.SKIPPED for each in ahead)
        holds = skipped and last.value == run.status.value
    if not holds:
        yield f"{name} is {run.status}, and its steps say otherwise"


def _any(name: str, run: Run) -> Iterator[str]:
    ids = [each.step.id for each in run.steps]
    if len(run.steps) not in STEPS or len(set(ids)) < len(ids) or not all(map(is_id, ids)):
        yield f"{name} has {len(ids)} steps, or a step id that is none or is there twice"
    if run.chain_depth not in _DEPTHS:
        yield f"{name} has the chain depth {run.chain_depth}"
    yield from longer(name, (("note", run.note, 1_000), ("request_id", run.request_id, 64)))
    for step_run in run.steps:
        yield from _step(f"{name}, step {step_run.step.id},", step_run, run)


def _step(name: str, step_run: StepRun, run: Run) -> Iterator[str]:
    yield from step_faults(name, step_run.step)
    if (step_run.finished_at is None) is not (step_run.status in _UNENDED):
        yield f"{name} is {step_run.status}, and the time at which it finished says otherwise"
    if step_run.status in _OPEN and (step_run.claimed_at is None or not step_run.claimed_by):
        yield f"{name} is {step_run.status}, and nobody claimed it"
    yield from backwards(name, step_run.claimed_at, step_run.finished_at)
    yield from _deadline(name, step_run)
    if step_run.status in _DECIDED and isinstance(step_run.step.action, RequireApproval):
        if not step_run.decided_by:
            yield f"{name} is {step_run.status}, and nobody decided it"
        elif step_run.decided_by == run.initiator:
            yield f"{name} was decided by who started the run: four eyes"
    texts = (
        ("detail", step_run.detail, 500),
        ("note", step_run.decision_note, 1_000),
        ("GitHub run URL", step_run.github_run_url, 300),
    )
    yield from longer(name, texts)


def _deadline(name: str, step_run: StepRun) -> Iterator[str]:
    """Yield that a claimed step does not wait for exactly as long as it was asked to."""
    match step_run.step.action:
        case DispatchAgent(timeout_minutes=minutes):
            waits: timedelta | None = timedelta(minutes=minutes)
        case RequireApproval(timeout_hours=hours):
            waits = timedelta(hours=hours)
        case _:
            waits = None
    due = None
    if waits is not None and step_run.claimed_at is not None:
        due = step_run.claimed_at + waits
    if step_run.deadline != due:
        yield f"{name} has another deadline than its claim and its time-out give"
