"""How large a run in flight can still become, by the limits of its fields.

Owns the worst case of every step that has not ended. The reserve of a run is what encoding the
worst case takes beyond the run as it is, so a field that grows grows here too or a test fails.
"""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import msgspec
from msgspec.structs import replace

from core_console.decide.operators import NOTE_BYTES
from core_console.decide.reports import DETAIL_BYTES, URL_BYTES
from core_console.decide.spec import APPROVER_BYTES
from core_console.model.capex import Basis, Feed, RuleStatus, Thresholds
from core_console.model.playbook import Action, CapexScan, DispatchAgent, Notify, RequireApproval
from core_console.model.run import Call, Run, RunStatus, ScanResult, StepRun, StepRunStatus

_WIDEST = '"'
"""JSON writes a quotation mark as two bytes, and no screened character takes more for one."""

_TIME = datetime(2026, 12, 31, 23, 59, 59, 999_999, UTC)
_NUMBER = 10**9
_REVISION = 2**62

REPLICA_CHARACTERS = 32
"""A process's own id has 20; claims of later versions may name it at more length."""

RUN_DETAIL_BYTES = DETAIL_BYTES + 128
"""`step <id>: <detail>`."""

_COUNTS = {f"XX-{number:03}": _NUMBER for number in range(24)}

_SCAN = ScanResult(
    scan_run_id="x" * 64,
    findings=_COUNTS,
    baseline=_COUNTS,
    basis=Basis(
        go_live=date(2026, 12, 31),
        thresholds=Thresholds(
            tolerance_days=_NUMBER,
            unit_price_capital_threshold=Decimal("9" * 28),
            approval_lag_min_days=_NUMBER,
            request_plan_tolerance_pct=Decimal("9" * 28),
            overspend_factor=Decimal("9" * 28),
        ),
        feeds=tuple(Feed),
        statuses=dict.fromkeys(_COUNTS, RuleStatus.APPROVED),
    ),
)

_CLAIMED: dict[str, Any] = {
    "status": StepRunStatus.WAITING_APPROVAL,
    "call": Call.ACCEPTED,
    "claimed_by": "x" * REPLICA_CHARACTERS,
    "claimed_at": _TIME,
    "deadline": _TIME,
    "finished_at": _TIME,
}
_DETAIL: dict[str, Any] = {"detail": _WIDEST * DETAIL_BYTES}
_DECIDED: dict[str, Any] = {
    "decided_by": "x" * APPROVER_BYTES,
    "decision_note": _WIDEST * NOTE_BYTES,
}

_ENDED: dict[type[Action], dict[str, Any]] = {
    DispatchAgent: _DETAIL | {"conclusion": "cancelled", "github_run_url": "x" * URL_BYTES},
    RequireApproval: _DECIDED,
    Notify: _DETAIL,
    CapexScan: _DETAIL | {"scan": _SCAN},
}
"""What a step that ends by itself holds at its largest."""

MARK_BYTES = 256
"""A mark of a dispatch with the longest ids, the number of an event that was taken, or the
deletion of a playbook."""


def size_at_most(run: Run) -> int:
    """Return the bytes that the run and the marks of its dispatches can still come to.

    A cancelled step holds a note beside its detail, but only one step of a run is ever cancelled.
    """
    ended = [_ended(step_run) for step_run in run.steps]
    cancelled = max(
        len(msgspec.json.encode(_cancelled(step_run))) - len(msgspec.json.encode(most))
        for step_run, most in zip(run.steps, ended, strict=True)
    )
    largest = replace(
        run,
        status=RunStatus.WAITING_APPROVAL,
        finished_at=_TIME,
        detail=_WIDEST * RUN_DETAIL_BYTES,
        revision=_REVISION,
        steps=tuple(ended),
    )
    return len(msgspec.json.encode(largest)) + max(cancelled, 0) + _marks_ahead(run)


def _ended(step_run: StepRun) -> StepRun:
    if step_run.finished_at is not None:
        return step_run
    return replace(step_run, **_CLAIMED, **_ENDED[type(step_run.step.action)])


def _cancelled(step_run: StepRun) -> StepRun:
    if step_run.finished_at is not None:
        return step_run
    return replace(step_run, **_CLAIMED, **_DETAIL, **_DECIDED)


def _marks_ahead(run: Run) -> int:
    return MARK_BYTES * sum(
        step_run.status is StepRunStatus.PENDING and isinstance(step_run.step.action, DispatchAgent)
        for step_run in run.steps
    )
