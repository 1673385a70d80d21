"""Every status move that exists, in tables.

Owns the moves of playbooks and runs; the docs and the pages draw them from here. A move that is
not in its table is a bug of ours and stops before the swap.
"""

from core_console.model.playbook import PlaybookStatus as P
from core_console.model.run import RunStatus as R
from core_console.model.run import StepRunStatus as S

PLAYBOOK_MOVES: dict[tuple[P, str], P] = {
    (P.DRAFT, "edit"): P.DRAFT,
    (P.ACTIVE, "edit"): P.DRAFT,
    (P.PAUSED, "edit"): P.DRAFT,
    (P.DRAFT, "activate"): P.ACTIVE,
    (P.ACTIVE, "pause"): P.PAUSED,
    (P.PAUSED, "resume"): P.ACTIVE,
}
"""What a lifecycle call makes of a playbook (contract, section 3)."""

FINAL = frozenset({R.SUCCEEDED, R.FAILED, R.REJECTED, R.CANCELLED, R.TIMED_OUT, R.EXPIRED})
"""The run statuses that never change."""

RUN_MOVES: dict[R, frozenset[R]] = {
    R.RUNNING: frozenset({R.RUNNING, R.WAITING_AGENT, R.WAITING_APPROVAL, *FINAL})
    - {R.REJECTED, R.TIMED_OUT, R.EXPIRED},
    R.WAITING_AGENT: frozenset(
        {R.RUNNING, R.WAITING_AGENT, R.WAITING_APPROVAL, R.SUCCEEDED, R.FAILED}
        | {R.CANCELLED, R.TIMED_OUT}
    ),
    R.WAITING_APPROVAL: frozenset(
        {R.RUNNING, R.WAITING_AGENT, R.WAITING_APPROVAL, R.SUCCEEDED}
        | {R.REJECTED, R.CANCELLED, R.EXPIRED}
    ),
} | {status: frozenset() for status in FINAL}
"""What each run status may become in one transition."""

RUN_OF_STEP: dict[S, R] = {
    S.RUNNING: R.RUNNING,
    S.WAITING_AGENT: R.WAITING_AGENT,
    S.WAITING_APPROVAL: R.WAITING_APPROVAL,
    S.FAILED: R.FAILED,
    S.REJECTED: R.REJECTED,
    S.CANCELLED: R.CANCELLED,
    S.TIMED_OUT: R.TIMED_OUT,
    S.EXPIRED: R.EXPIRED,
}
"""What the run is when its current step is so."""

OPEN_STEPS = frozenset({S.RUNNING, S.WAITING_AGENT, S.WAITING_APPROVAL})
"""A claimed step that has not ended."""
