"""What steps, triggers and figures are called on the screen.

Owns these few words, which several commands print.
"""

from collections.abc import Iterable

from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.common_pb2 import Figure

from core_console.cli.output import short_name
from core_console.cli.tables import NOTHING, Short


def rate(found: Figure) -> Short:
    """Return a rate as a percentage, or why there is none, which a terminal shows as a dash."""
    if found.HasField("value"):
        shown = f"{found.value:.0%}"
        return Short(shown, shown)
    return Short(found.absent_reason, NOTHING)


def figure(found: Figure) -> str:
    """Return a rate as a percentage, or a dash with the reason why there is none."""
    if found.HasField("value"):
        return f"{found.value:.1%}".replace(".0%", "%")
    return f"{NOTHING} ({found.absent_reason})" if found.absent_reason else ""


def action(step: pb.Step) -> str:
    """Return what a step does, in a few words."""
    match step.WhichOneof("action"):
        case "dispatch_agent":
            inner = step.dispatch_agent
            return f"dispatch {inner.agent}, {inner.timeout_minutes} min"
        case "capex_scan":
            return _scan(step.capex_scan)
        case "require_approval":
            approval = step.require_approval
            return f"approval by {approval.approver or 'any admin'}, {approval.timeout_hours} h"
        case "notify":
            return f"comment on {step.notify.repo}#{step.notify.issue}"
        case None:
            return ""


def _scan(scan: pb.CapexScan) -> str:
    what = "scan and compare" if scan.compare_to_first_scan else "scan"
    return f"{what} {', '.join(scan.rule_ids)}".strip()


def source(trigger: pb.Trigger) -> str:
    """Return what fires a trigger, with its conditions."""
    match trigger.WhichOneof("kind"):
        case "manual":
            return "by hand"
        case "schedule":
            return f"at {trigger.schedule.cron} UTC"
        case "agent_event":
            event = trigger.agent_event
            return f"on {event.agent} {event.event}{_conditions(event.conditions)}"
        case "capex_event":
            return f"on a CapEx ingest{_conditions(trigger.capex_event.conditions)}"
        case None:
            return ""


def _conditions(conditions: Iterable[pb.Condition]) -> str:
    texts = [
        f"{found.attribute} {short_name(pb.ConditionOp.DESCRIPTOR, found.op)} {found.value}"
        for found in conditions
    ]
    return f" where {' and '.join(texts)}" if texts else ""
