"""What can be asked of the metadoc: one frozen struct a command.

Owns the commands and nothing of how they are decided. `actor` is who asks: an operator's
normalised e-mail, `agent:<name>`, `system:ticker` or `system:engine`.
"""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from core_console.model.capex import Basis
from core_console.model.event import FIRST_CAUSE, Chain
from core_console.model.playbook import Spec
from core_console.model.run import Call


class Decision(StrEnum):
    """An operator's answer to an approval."""

    APPROVE = "APPROVE"
    REJECT = "REJECT"


class CreatePlaybook(Struct, frozen=True, gc=False):
    """Write a new playbook as DRAFT."""

    actor: str
    spec: Spec


class DraftPlaybook(Struct, frozen=True, gc=False):
    """Write the playbook that the current findings ask for, as DRAFT."""

    actor: str
    spec: Spec


class UpdatePlaybook(Struct, frozen=True, gc=False):
    """Replace the spec of the revision that was read."""

    actor: str
    id: str
    revision: int
    spec: Spec


class DeletePlaybook(Struct, frozen=True, gc=False):
    """Delete a playbook that has no run in flight."""

    actor: str
    id: str


class ActivatePlaybook(Struct, frozen=True, gc=False):
    """Make exactly the reviewed revision ACTIVE."""

    actor: str
    id: str
    revision: int


class PausePlaybook(Struct, frozen=True, gc=False):
    """Stop an ACTIVE playbook from starting runs."""

    actor: str
    id: str


class ResumePlaybook(Struct, frozen=True, gc=False):
    """Make a PAUSED playbook ACTIVE again."""

    actor: str
    id: str


class RunNow(Struct, frozen=True, gc=False):
    """Start a run by hand; the same `request_id` again answers the same run."""

    actor: str
    playbook_id: str
    request_id: str = ""
    note: str = ""


class CancelRun(Struct, frozen=True, gc=False):
    """Cancel a run in flight."""

    actor: str
    run_id: str
    note: str


class DecideApproval(Struct, frozen=True, gc=False):
    """Approve or reject a step that waits for a decision."""

    actor: str
    run_id: str
    step_id: str
    decision: Decision
    note: str = ""


class ReportStep(Struct, frozen=True, gc=False):
    """Take an agent's report of its step; `conclusion` is one of `model.run.Conclusion`."""

    agent: str
    run_id: str
    step_id: str
    conclusion: str
    detail: str
    github_run_url: str

    @property
    def actor(self) -> str:
        """The agent, as far as the bearer of the App vouches for it."""
        return f"agent:{self.agent}"


class RaiseEvent(Struct, frozen=True, gc=False, kw_only=True):
    """Raise an event: an agent's own, or a harness event of the console.

    A harness event has an `id`, derived from what was stored, which is taken once, and `rows`,
    one per finding, which are matched and not kept. `source` is the document that it waited in
    and `number` its number there: only one above the last that was taken from there is taken.
    `known` is what was known of its causes when it began to wait; never what an agent says.
    `committed_by` is the person who committed an ingest. `external_id` is the agent's own id of
    its event: the same again is a duplicate.
    """

    agent: str
    event: str
    subject: str = ""
    detail: str = ""
    attributes: dict[str, str] = {}
    caused_by_run_id: str = ""
    external_id: str = ""
    id: str = ""
    rows: tuple[Mapping[str, str], ...] = ()
    committed_by: str = ""
    source: str = ""
    number: int = 0
    known: Chain = FIRST_CAUSE

    @property
    def actor(self) -> str:
        """The person who committed, else the agent, as far as the App's bearer vouches for it."""
        return self.committed_by or f"agent:{self.agent}"


class RecordCall(Struct, frozen=True, gc=False):
    """Take the outcome of the one call that a claimed step made."""

    run_id: str
    step_id: str
    claimed_by: str
    call: Call
    detail: str
    actor: str = "system:engine"


class RecordScan(Struct, frozen=True, gc=False):
    """Take the outcome of a claimed capex_scan.

    `failure` is empty when it passed, and `detail` then says what was compared, if anything was:
    `baseline` holds the counts of the run's first scan. `basis` is what the counts depend on.
    """

    run_id: str
    step_id: str
    claimed_by: str
    scan_run_id: str
    findings: dict[str, int]
    failure: str
    detail: str = ""
    baseline: dict[str, int] = {}
    basis: Basis | None = None
    actor: str = "system:engine"


class Tick(Struct, frozen=True, gc=False):
    """Do what time made due: deadlines, abandoned claims, steps that wait, slots.

    `starts` is False when there is no room for new runs: slots then wait.
    """

    actor: str = "system:ticker"
    starts: bool = True


Command = (
    CreatePlaybook
    | DraftPlaybook
    | UpdatePlaybook
    | DeletePlaybook
    | ActivatePlaybook
    | PausePlaybook
    | ResumePlaybook
    | RunNow
    | CancelRun
    | DecideApproval
    | ReportStep
    | RaiseEvent
    | RecordCall
    | RecordScan
    | Tick
)
