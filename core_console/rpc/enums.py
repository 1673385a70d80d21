"""The enums of the model and of the contract, one table each way.

Owns the tables. They are made by name, so an enum that grows on one side alone fails at import.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

from runink.core.atlas.v1 import audit_pb2, capex_pb2, playbook_pb2

from core_console.decide.commands import Decision
from core_console.model import audit, capex, capex_document, playbook, run

_Member = TypeVar("_Member", bound=StrEnum)
_Number = TypeVar("_Number", bound=int)


def _numbers(
    members: type[_Member], prefix: str, number_of: Callable[[str], _Number]
) -> dict[_Member, _Number]:
    return {member: number_of(f"{prefix}_{member.value.upper()}") for member in members}


def _members(numbers: dict[_Member, _Number]) -> dict[int, _Member]:
    return {int(number): member for member, number in numbers.items()}


PLAYBOOK_STATUS = _numbers(
    playbook.PlaybookStatus, "PLAYBOOK_STATUS", playbook_pb2.PlaybookStatus.Value
)
STEP_KIND = _numbers(playbook.StepKind, "STEP_KIND", playbook_pb2.StepKind.Value)
CONDITION_OP = _numbers(playbook.ConditionOp, "CONDITION_OP", playbook_pb2.ConditionOp.Value)
RUN_STATUS = _numbers(run.RunStatus, "RUN_STATUS", playbook_pb2.RunStatus.Value)
STEP_RUN_STATUS = _numbers(run.StepRunStatus, "STEP_RUN_STATUS", playbook_pb2.StepRunStatus.Value)
CALL = _numbers(run.Call, "CALL", playbook_pb2.Call.Value)
TRIGGER_KIND = _numbers(run.TriggerKind, "TRIGGER_KIND", playbook_pb2.TriggerKind.Value)
CAUSE = _numbers(run.Cause, "CAUSE", playbook_pb2.Cause.Value)
AUDIT_OUTCOME = _numbers(audit.Outcome, "AUDIT_OUTCOME", audit_pb2.AuditOutcome.Value)
FEED = _numbers(capex.Feed, "FEED", capex_pb2.Feed.Value)
SEVERITY = _numbers(capex.Severity, "SEVERITY", capex_pb2.Severity.Value)
RULE_EFFECT = _numbers(capex.Effect, "RULE_EFFECT", capex_pb2.RuleEffect.Value)
SCAN_TRIGGER = _numbers(capex_document.ScanTrigger, "SCAN_TRIGGER", capex_pb2.ScanTrigger.Value)
SOURCE = _numbers(capex.Source, "SOURCE", capex_pb2.Source.Value)

PLAYBOOK_STATUS_OF = _members(PLAYBOOK_STATUS)
STEP_KIND_OF = _members(STEP_KIND)
CONDITION_OP_OF = _members(CONDITION_OP)
RUN_STATUS_OF = _members(RUN_STATUS)
AUDIT_OUTCOME_OF = _members(AUDIT_OUTCOME)
FEED_OF = _members(FEED)
SEVERITY_OF = _members(SEVERITY)
DECISION_OF = _members(_numbers(Decision, "APPROVAL_DECISION", playbook_pb2.ApprovalDecision.Value))
