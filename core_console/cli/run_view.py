"""How runs look on the screen, and what can be done about one next.

Owns these texts; asks nobody anything.
"""

from collections.abc import Iterator

from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.output import Page, more, say, short_name
from core_console.cli.tables import Column, facts, name, prose, table
from core_console.cli.times import instant
from core_console.cli.words import action

STATUS = pb.RunStatus.DESCRIPTOR

_CURRENT = frozenset(
    {
        pb.STEP_RUN_STATUS_RUNNING,
        pb.STEP_RUN_STATUS_WAITING_AGENT,
        pb.STEP_RUN_STATUS_WAITING_APPROVAL,
    }
)
FINAL = frozenset(
    {
        pb.RUN_STATUS_SUCCEEDED,
        pb.RUN_STATUS_FAILED,
        pb.RUN_STATUS_REJECTED,
        pb.RUN_STATUS_CANCELLED,
        pb.RUN_STATUS_TIMED_OUT,
        pb.RUN_STATUS_EXPIRED,
    }
)

_LIST = (
    Column("ID"),
    name("PLAYBOOK"),
    Column("STATUS"),
    Column("TRIGGER", rank=3),
    name("INITIATOR", rank=2),
    Column("STARTED"),
    Column("FINISHED", rank=4),
    prose("DETAIL", rank=1),
)
_STEPS = (
    Column("STEP"),
    prose("ACTION"),
    Column("STATUS"),
    Column("CALL", rank=3),
    Column("UNTIL", rank=2),
    Column("FINISHED", rank=2),
    prose("DETAIL"),
)
_APPROVALS = (
    Column("RUN"),
    Column("STEP"),
    name("PLAYBOOK", rank=3),
    name("APPROVER", rank=1),
    name("STARTED BY", rank=2),
    Column("UNTIL"),
    prose("PROMPT"),
)


def current_step(run: pb.Run) -> pb.StepRun | None:
    """Return the step that the run is at, None when there is none."""
    return next((step for step in run.steps if step.status in _CURRENT), None)


def standing(run: pb.Run) -> str:
    """Return where a run stands, on one line."""
    step = current_step(run)
    where = f" at step {step.step.id}" if step is not None else ""
    detail = f": {run.detail}" if run.detail else ""
    return f"{run.id} is {short_name(STATUS, run.status)}{where}{detail}"


def decided(run: pb.Run, step_id: str) -> str:
    """Return what a decision came to: by whom, and where it left the run."""
    step = next((step for step in run.steps if step.step.id == step_id), None)
    status = short_name(STATUS, run.status)
    if step is None or not step.decided_by:
        return standing(run)
    word = "rejected" if step.status == pb.STEP_RUN_STATUS_REJECTED else "approved"
    after = current_step(run)
    where = f" at step {after.step.id}" if after is not None else ""
    return f"{step_id} is {word} by {step.decided_by}; the run is {status}{where}"


def hint_at_next(page: Page, run: pb.Run) -> None:
    """Tell how to follow a run that goes on, and how to decide one that waits for a decision."""
    if run.status in FINAL:
        return
    step = current_step(run)
    if step is not None and step.status == pb.STEP_RUN_STATUS_WAITING_APPROVAL:
        decide = f"core-console approval decide {run.id} {step.step.id} --approve --note T"
        page.hint(f"another operator: {decide}")
    page.hint(f"follow it: core-console run watch {run.id}")


def show_list(response: pb.ListRunsResponse) -> None:
    """Print a page of runs."""
    table(
        _LIST,
        (
            (
                found.id,
                found.playbook_name,
                short_name(STATUS, found.status),
                short_name(pb.TriggerKind.DESCRIPTOR, found.trigger),
                found.initiator,
                found.started_at,
                found.finished_at,
                found.detail,
            )
            for found in response.runs
        ),
        empty="no runs",
    )
    more(response.next_page_token)


def show_approvals(response: pb.ListRunsResponse) -> None:
    """Print what waits for a decision on a page of runs."""
    waiting = [
        (found, step)
        for found in response.runs
        for step in found.steps
        if step.status == pb.STEP_RUN_STATUS_WAITING_APPROVAL
    ]
    table(
        _APPROVALS,
        (
            (
                found.id,
                step.step.id,
                found.playbook_name,
                step.step.require_approval.approver or "any admin",
                found.initiator,
                step.deadline,
                step.step.require_approval.prompt,
            )
            for found, step in waiting
        ),
        empty="nothing waits for a decision",
    )
    more(response.next_page_token)


def show_run(found: pb.Run) -> None:
    """Print one run whole."""
    facts(_facts(found))
    say("")
    table(
        _STEPS,
        (
            (
                step.step.id,
                action(step.step),
                short_name(pb.StepRunStatus.DESCRIPTOR, step.status),
                short_name(pb.Call.DESCRIPTOR, step.call),
                step.deadline,
                step.finished_at,
                "; ".join(_told(step)),
            )
            for step in found.steps
        ),
        empty="no steps",
    )


def _facts(found: pb.Run) -> Iterator[tuple[str, str]]:
    yield "id", found.id
    yield "playbook", f"{found.playbook_name} ({found.playbook_id})"
    yield "revision", str(found.playbook_revision)
    yield "digest", found.spec_digest
    yield "status", short_name(STATUS, found.status)
    yield (
        "trigger",
        " ".join((short_name(pb.TriggerKind.DESCRIPTOR, found.trigger), found.trigger_id)).strip(),
    )
    yield "event", found.event_id
    yield "slot", instant(found.slot)
    yield "initiator", found.initiator
    yield "started", instant(found.started_at)
    yield "finished", instant(found.finished_at)
    if found.caused_by_run_id:
        cause = short_name(pb.Cause.DESCRIPTOR, found.cause)
        depth = f"{cause}, chain depth {found.chain_depth}"
        yield "caused by", f"{found.caused_by_run_id} ({depth})"
    yield "note", found.note
    yield "detail", found.detail


def _told(step: pb.StepRun) -> Iterator[str]:
    """Yield what a step's end says: by whom, why, where, and what a scan counted."""
    if step.decided_by:
        yield f"by {step.decided_by}"
    yield from filter(None, (step.detail, step.decision_note, step.github_run_url))
    if step.HasField("scan"):
        now = sum(step.scan.findings.values())
        before = f", {sum(step.scan.baseline.values())} before" if step.scan.baseline else ""
        yield f"{now} scored findings{before}"
