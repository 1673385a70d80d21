"""Small documents, playbooks and runs to start a test from.

Owns the shared builders. Each gives something valid that a test changes in the one respect that it
is about. The cast is always the same: the author writes and starts, the second operator activates
and decides, the stranger is neither.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from core_console.decide import runs
from core_console.decide.context import Context
from core_console.decide.identity import Admission
from core_console.decide.status import FINAL, RUN_OF_STEP
from core_console.model.codec import spec_digest
from core_console.model.document import EMPTY, Document
from core_console.model.playbook import (
    Action,
    CapexScan,
    DispatchAgent,
    ManualTrigger,
    Notify,
    Playbook,
    PlaybookStatus,
    RequireApproval,
    Spec,
    Step,
    StepKind,
    Trigger,
)
from core_console.model.run import Call, Run, RunStatus, StepRun, StepRunStatus, TriggerKind
from tests.fakes import NOON, CountingIds

AUTHOR = "author@example.com"
SECOND = "second@example.com"
STRANGER = "stranger@example.com"
CAST = frozenset({AUTHOR, SECOND, STRANGER})

NOW = NOON
REPLICA = "console-1"
"""The console process that decides; `claimed_by` of everything that is claimed here."""
RUN_URL = "https://github.com/example/core/actions/runs/17"

_KINDS = {
    DispatchAgent: StepKind.DETECT,
    CapexScan: StepKind.DETECT,
    RequireApproval: StepKind.VALIDATE,
    Notify: StepKind.NOTIFY,
}


def a_step(step_id: str, action: Action, *, title: str = "") -> Step:
    """Return a step; its kind follows from its action."""
    return Step(step_id, _KINDS[type(action)], action, title)


def detect(step_id: str = "detect", *, agent: str = "datagov", minutes: int = 60) -> Step:
    """Return a step that dispatches an agent."""
    return a_step(step_id, DispatchAgent(agent, minutes))


def scan(step_id: str = "scan", **settings: Any) -> Step:  # noqa: ANN401 -- any field of CapexScan
    """Return a capex_scan step."""
    return a_step(step_id, CapexScan(**settings))


def approve(step_id: str = "approve", *, approver: str = "", hours: int = 72) -> Step:
    """Return a step that waits for an approval."""
    return a_step(step_id, RequireApproval(hours, approver))


def notify(step_id: str = "notify", *, repo: str = "core", issue: int = 7) -> Step:
    """Return a step that comments on an issue."""
    return a_step(step_id, Notify(repo, issue))


def a_trigger(trigger_id: str = "by-hand") -> Trigger:
    """Return a manual trigger."""
    return Trigger(trigger_id, ManualTrigger())


def a_spec(*steps: Step, **changes: Any) -> Spec:  # noqa: ANN401 -- any field of Spec
    """Return a spec with these steps; without any, detect → approve → notify."""
    spec = Spec(
        name="Watch the data",
        description="",
        steps=steps or (detect(), approve(), notify()),
        triggers=(),
    )
    return replace(spec, **changes)


def a_playbook(
    *steps: Step,
    id: str = "PB-1",  # noqa: A002 -- the field's own name
    status: PlaybookStatus = PlaybookStatus.ACTIVE,
    spec: Spec | None = None,
    **changes: Any,  # noqa: ANN401 -- any field of Playbook
) -> Playbook:
    """Return a playbook that the author wrote and, unless DRAFT, the second operator activated."""
    spec = spec or a_spec(*steps)
    yesterday = NOW - timedelta(days=1)
    draft = Playbook(
        id=id,
        spec=spec,
        spec_digest=spec_digest(spec),
        status=PlaybookStatus.DRAFT,
        revision=1,
        created_by=AUTHOR,
        created_at=yesterday,
        updated_by=AUTHOR,
        updated_at=yesterday,
        changed=1,
        editors=(AUTHOR,),
    )
    if status is PlaybookStatus.DRAFT:
        return replace(draft, **changes)
    paused = status is PlaybookStatus.PAUSED
    activated = replace(
        draft,
        status=status,
        revision=3 if paused else 2,
        activated_by=SECOND,
        activated_at=yesterday,
        activated_revision=1,
        switched_by=AUTHOR if paused else SECOND,
        switched_at=yesterday,
        editors=(),
    )
    return replace(activated, **changes)


def a_run(playbook: Playbook, **changes: Any) -> Run:  # noqa: ANN401 -- any field of Run
    """Return a run of the playbook, started by the author now, whose first step is not claimed."""
    run = Run(
        id="PBR-1",
        playbook_id=playbook.id,
        playbook_name=playbook.spec.name,
        playbook_revision=playbook.revision,
        spec_digest=playbook.spec_digest,
        status=RunStatus.RUNNING,
        trigger=TriggerKind.MANUAL,
        initiator=AUTHOR,
        started_at=NOW,
        steps=tuple(StepRun(step=step) for step in playbook.spec.steps),
        revision=1,
    )
    return replace(run, **changes)


def a_run_at(playbook: Playbook, step_id: str, **changes: Any) -> Run:  # noqa: ANN401 -- of Run
    """Return a run whose earlier steps SUCCEEDED and whose step of that id was claimed now."""
    run = a_run(playbook)
    steps = list(run.steps)
    for index, step_run in enumerate(steps):
        claimed = _claimed(step_run)
        if step_run.step.id == step_id:
            steps[index] = claimed
            status = RUN_OF_STEP[claimed.status]
            return replace(run, status=status, steps=tuple(steps), **changes)
        steps[index] = _succeeded(claimed)
    raise KeyError(step_id)


def _claimed(step_run: StepRun) -> StepRun:
    action = step_run.step.action
    claimed = replace(
        step_run,
        status=StepRunStatus.RUNNING,
        claimed_by=REPLICA,
        claimed_at=NOW,
        deadline=runs.deadline_of(action, NOW),
    )
    if isinstance(action, DispatchAgent):
        return replace(claimed, status=StepRunStatus.WAITING_AGENT, call=Call.PENDING)
    if isinstance(action, RequireApproval):
        return replace(claimed, status=StepRunStatus.WAITING_APPROVAL)
    return replace(claimed, call=Call.PENDING) if isinstance(action, Notify) else claimed


def _succeeded(claimed: StepRun) -> StepRun:
    done = replace(claimed, status=StepRunStatus.SUCCEEDED, finished_at=NOW)
    match claimed.step.action:
        case DispatchAgent():
            return replace(done, call=Call.ACCEPTED, conclusion="success", github_run_url=RUN_URL)
        case RequireApproval():
            return replace(done, decided_by=SECOND)
        case Notify():
            return replace(done, call=Call.ACCEPTED)
        case CapexScan():
            return done


def a_document(*things: Playbook | Run, **changes: Any) -> Document:  # noqa: ANN401 -- of Document
    """Return a document at revision 10 that holds these playbooks and runs.

    A run is in flight or finished as its status says; its playbook is not added by itself.
    """
    playbooks = {each.id: each for each in things if isinstance(each, Playbook)}
    kept = [each for each in things if isinstance(each, Run)]
    return replace(
        EMPTY,
        revision=10,
        playbooks=playbooks,
        running={run.playbook_id: run for run in kept if run.status not in FINAL},
        finished={run.id: run for run in kept if run.status in FINAL},
        **changes,
    )


def admission(*, admins: Iterable[str] | None = None) -> Admission:
    """Return the console's lists; without admins every admitted operator is one."""
    return Admission(admins=None if admins is None else frozenset(admins))


def context(
    *,
    now: datetime = NOW,
    ids: CountingIds | None = None,
    replica: str = REPLICA,
    admins: Iterable[str] | None = None,
    sender_room: int = 30,
    bar_all_editors: bool = False,
) -> Context:
    """Return what a decision is given; hand in `ids` when several decisions share a document."""
    return Context(
        now=now,
        ids=ids or CountingIds(),
        replica=replica,
        admission=admission(admins=admins),
        sender_room=sender_room,
        bar_all_editors=bar_all_editors,
    )


def later(**span: float) -> datetime:
    """Return NOW and that much later: `later(minutes=2)`."""
    return NOW + timedelta(**span)
