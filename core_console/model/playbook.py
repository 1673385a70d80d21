"""A playbook as it is stored: its spec (what people write) and what the console adds.

Never holds a value that the contract would refuse: `decide.spec` checks before it is made.
"""

from enum import StrEnum

from msgspec import Struct

from core_console.model.moment import Moment

AGENTS = ("datagov", "compliance", "risk", "judge", "recon", "curator")
"""The six agents, in the order in which people name them."""


class PlaybookStatus(StrEnum):
    """Where a playbook stands (contract, section 3)."""

    DRAFT = "DRAFT"
    ACTIVE = "ACTIVE"
    PAUSED = "PAUSED"


class StepKind(StrEnum):
    """The stage label of a step; it tells people what the step is for."""

    DETECT = "DETECT"
    VALIDATE = "VALIDATE"
    REMEDIATE = "REMEDIATE"
    NOTIFY = "NOTIFY"
    VERIFY = "VERIFY"


class ConditionOp(StrEnum):
    """How a condition compares an attribute with its value."""

    EQ = "EQ"
    NEQ = "NEQ"
    GT = "GT"
    GTE = "GTE"
    CONTAINS = "CONTAINS"


class DispatchAgent(Struct, frozen=True, gc=False, omit_defaults=True, tag="dispatch_agent"):
    """Start one agent and wait for its report."""

    agent: str
    timeout_minutes: int


class CapexScan(Struct, frozen=True, gc=False, omit_defaults=True, tag="capex_scan"):
    """Re-evaluate the current feeds; `rule_ids` narrows the comparison, empty means all rules."""

    compare_to_first_scan: bool = False
    rule_ids: tuple[str, ...] = ()


class RequireApproval(Struct, frozen=True, gc=False, omit_defaults=True, tag="require_approval"):
    """Wait for an operator's decision; an empty approver means any Atlas admin."""

    timeout_hours: int
    approver: str = ""
    prompt: str = ""


class Notify(Struct, frozen=True, gc=False, omit_defaults=True, tag="notify"):
    """Comment once on an issue of the organisation; `repo` is a name without owner."""

    repo: str
    issue: int


Action = DispatchAgent | CapexScan | RequireApproval | Notify


class Step(Struct, frozen=True, gc=False, omit_defaults=True):
    """One step of a playbook."""

    id: str
    kind: StepKind
    action: Action
    title: str = ""


class Condition(Struct, frozen=True, gc=False):
    """One comparison with an event's attribute."""

    attribute: str
    op: ConditionOp
    value: str


class ManualTrigger(Struct, frozen=True, gc=False, tag="manual"):
    """Only RunNow."""


class ScheduleTrigger(Struct, frozen=True, gc=False, tag="schedule"):
    """A cron slot: five fields in UTC."""

    cron: str


class AgentEventTrigger(Struct, frozen=True, gc=False, omit_defaults=True, tag="agent_event"):
    """An event of one agent that meets every condition."""

    agent: str
    event: str
    conditions: tuple[Condition, ...] = ()


class CapexEventTrigger(Struct, frozen=True, gc=False, omit_defaults=True, tag="capex_event"):
    """A committed CapEx ingest that meets every condition."""

    conditions: tuple[Condition, ...] = ()


TriggerSource = ManualTrigger | ScheduleTrigger | AgentEventTrigger | CapexEventTrigger


class Trigger(Struct, frozen=True, gc=False, omit_defaults=True):
    """What may start a playbook; `cooldown_minutes` is 0 exactly on a manual trigger."""

    id: str
    source: TriggerSource
    cooldown_minutes: int = 0


class Spec(Struct, frozen=True, gc=False):
    """What people write and review: the part of a playbook that its digest covers."""

    name: str
    description: str
    steps: tuple[Step, ...]
    triggers: tuple[Trigger, ...]


class TriggerState(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a trigger remembers, for as long as its id exists.

    `slot_done` is the newest slot of a schedule that was fired or skipped; it never moves back.
    `fired_at` is when the trigger last started a run (for a schedule that run's slot): the
    cooldown counts from it.
    """

    slot_done: Moment | None = None
    fired_at: Moment | None = None


class Playbook(Struct, frozen=True, gc=False, omit_defaults=True):
    """A playbook.

    `changed` is the document's revision when anything of it last changed. `switched_by` and
    `switched_at` say who last activated, paused or resumed it. `trigger_states` is by trigger id.
    """

    id: str
    spec: Spec
    spec_digest: str
    status: PlaybookStatus
    revision: int
    created_by: str
    created_at: Moment
    updated_by: str
    updated_at: Moment
    changed: int
    activated_by: str = ""
    activated_at: Moment | None = None
    activated_revision: int = 0
    switched_by: str = ""
    switched_at: Moment | None = None
    editors: tuple[str, ...] = ()
    runs_finished: int = 0
    runs_succeeded: int = 0
    trigger_states: dict[str, TriggerState] = {}
