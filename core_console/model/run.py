"""A run and its step runs as they are stored.

The copy of the steps that a run carries is what it executes: a later edit of the playbook never
reaches a run in flight.
"""

from enum import StrEnum

from msgspec import Struct

from core_console.model.capex import Basis
from core_console.model.moment import Moment
from core_console.model.playbook import Step


class RunStatus(StrEnum):
    """Where a run stands (contract, section 3)."""

    RUNNING = "RUNNING"
    WAITING_AGENT = "WAITING_AGENT"
    WAITING_APPROVAL = "WAITING_APPROVAL"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"
    EXPIRED = "EXPIRED"


class StepRunStatus(StrEnum):
    """Where a step run stands: PENDING, a run's names, or SKIPPED (never reached)."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING_AGENT = "WAITING_AGENT"
    WAITING_APPROVAL = "WAITING_APPROVAL"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"
    CANCELLED = "CANCELLED"
    TIMED_OUT = "TIMED_OUT"
    EXPIRED = "EXPIRED"
    SKIPPED = "SKIPPED"


class Call(StrEnum):
    """What became of the one call to GitHub that a step makes."""

    NONE = "NONE"
    PENDING = "PENDING"
    ACCEPTED = "ACCEPTED"
    REFUSED = "REFUSED"
    UNKNOWN = "UNKNOWN"


class TriggerKind(StrEnum):
    """What started a run."""

    MANUAL = "MANUAL"
    SCHEDULE = "SCHEDULE"
    AGENT_EVENT = "AGENT_EVENT"
    CAPEX_EVENT = "CAPEX_EVENT"


class Cause(StrEnum):
    """How the run that caused this one is known."""

    NAMED = "NAMED"
    INFERRED = "INFERRED"


class Conclusion(StrEnum):
    """What an agent reported of its step."""

    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


class ScanResult(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a capex_scan step found: scored findings per rule, and the first scan's to compare.

    `basis` says what the counts depend on, so that a later scan can tell whether both compare.
    """

    scan_run_id: str
    findings: dict[str, int]
    baseline: dict[str, int] = {}
    basis: Basis | None = None


class StepRun(Struct, frozen=True, gc=False, omit_defaults=True):
    """One step of one run; `claimed_by` is the console process that claimed it."""

    step: Step
    status: StepRunStatus = StepRunStatus.PENDING
    call: Call = Call.NONE
    claimed_by: str = ""
    claimed_at: Moment | None = None
    deadline: Moment | None = None
    finished_at: Moment | None = None
    conclusion: str = ""
    detail: str = ""
    github_run_url: str = ""
    decided_by: str = ""
    decision_note: str = ""
    scan: ScanResult | None = None


class Run(Struct, frozen=True, gc=False, omit_defaults=True):
    """One execution of a playbook; `revision` is the document's when it last changed."""

    id: str
    playbook_id: str
    playbook_name: str
    playbook_revision: int
    spec_digest: str
    status: RunStatus
    trigger: TriggerKind
    initiator: str
    started_at: Moment
    steps: tuple[StepRun, ...]
    revision: int
    finished_at: Moment | None = None
    trigger_id: str = ""
    event_id: str = ""
    slot: Moment | None = None
    request_id: str = ""
    chain_depth: int = 0
    caused_by_run_id: str = ""
    cause: Cause | None = None
    note: str = ""
    detail: str = ""


class DispatchPayload(Struct, frozen=True, gc=False):
    """The `client_payload` of one dispatch."""

    agent: str
    playbook_id: str
    run_id: str
    step_id: str
    chain_depth: int
