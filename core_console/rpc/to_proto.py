"""From the model to the contract's messages.

Owns how stored things are shown. Never invents a figure: one that cannot be computed is absent
and says why.
"""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import assert_never

from google.protobuf.timestamp_pb2 import Timestamp
from runink.core.atlas.v1 import audit_pb2, common_pb2, playbook_pb2

from core_console.decide.foureyes import FourEyes
from core_console.model.audit import Outcome
from core_console.model.event import Event
from core_console.model.playbook import (
    AgentEventTrigger,
    CapexEventTrigger,
    CapexScan,
    Condition,
    DispatchAgent,
    ManualTrigger,
    Notify,
    Playbook,
    RequireApproval,
    ScheduleTrigger,
    Step,
    Trigger,
)
from core_console.model.run import Run, ScanResult, StepRun
from core_console.rpc import enums

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECONDS_A_DAY = 86_400

_NO_RUN_FINISHED = "no run has finished"
_NO_LIFT = "nothing measures what a playbook changes, so a lift would be invented"


def timestamp(at: datetime | None) -> Timestamp | None:
    """Return an instant as the contract's type, None for one that has not come."""
    return None if at is None else instant(at)


def instant(at: datetime) -> Timestamp:
    """Return an instant as the contract's type."""
    since = at - _EPOCH
    return Timestamp(
        seconds=since.days * _SECONDS_A_DAY + since.seconds, nanos=since.microseconds * 1_000
    )


def written_instant(at: str) -> Timestamp | None:
    """Return an instant that the chain wrote as RFC 3339, None for what is no instant.

    A record that somebody edited is shown as far as it can be; verifying names it.
    """
    try:
        return timestamp(datetime.fromisoformat(at).astimezone(UTC))
    except (ValueError, OverflowError):
        return None


def audit_outcome(outcome: str) -> audit_pb2.AuditOutcome.ValueType:
    """Return the outcome of a record, UNSPECIFIED for what no record of ours holds."""
    try:
        return enums.AUDIT_OUTCOME[Outcome(outcome)]
    except ValueError:
        return audit_pb2.AUDIT_OUTCOME_UNSPECIFIED


def playbook(
    stored: Playbook, four_eyes: FourEyes, next_slots: Iterable[datetime]
) -> playbook_pb2.Playbook:
    """Return the playbook with its counters, figures, slots and who may activate it."""
    spec = stored.spec
    return playbook_pb2.Playbook(
        id=stored.id,
        name=spec.name,
        description=spec.description,
        status=enums.PLAYBOOK_STATUS[stored.status],
        steps=map(_step, spec.steps),
        triggers=map(_trigger, spec.triggers),
        created_by=stored.created_by,
        created_at=timestamp(stored.created_at),
        updated_by=stored.updated_by,
        updated_at=timestamp(stored.updated_at),
        activated_by=stored.activated_by,
        activated_at=timestamp(stored.activated_at),
        activated_revision=stored.activated_revision,
        revision=stored.revision,
        spec_digest=stored.spec_digest,
        editors=stored.editors,
        runs_finished=stored.runs_finished,
        runs_succeeded=stored.runs_succeeded,
        success_rate=_success_rate(stored),
        expected_lift=common_pb2.Figure(absent_reason=_NO_LIFT),
        next_slots=map(instant, next_slots),
        four_eyes=_four_eyes(four_eyes),
    )


def _success_rate(stored: Playbook) -> common_pb2.Figure:
    if not stored.runs_finished:
        return common_pb2.Figure(absent_reason=_NO_RUN_FINISHED)
    return common_pb2.Figure(value=stored.runs_succeeded / stored.runs_finished)


def _four_eyes(rule: FourEyes) -> playbook_pb2.FourEyes:
    barred = (playbook_pb2.Barred(operator=it.operator, reason=it.reason) for it in rule.barred)
    return playbook_pb2.FourEyes(needed=rule.needed, eligible=rule.eligible, barred=barred)


def _step(step: Step) -> playbook_pb2.Step:
    shown = playbook_pb2.Step(id=step.id, title=step.title, kind=enums.STEP_KIND[step.kind])
    match step.action:
        case DispatchAgent(agent=agent, timeout_minutes=minutes):
            shown.dispatch_agent.agent = agent
            shown.dispatch_agent.timeout_minutes = minutes
        case CapexScan(compare_to_first_scan=compare, rule_ids=rule_ids):
            shown.capex_scan.SetInParent()
            shown.capex_scan.compare_to_first_scan = compare
            shown.capex_scan.rule_ids.extend(rule_ids)
        case RequireApproval(timeout_hours=hours, approver=approver, prompt=prompt):
            shown.require_approval.timeout_hours = hours
            shown.require_approval.approver = approver
            shown.require_approval.prompt = prompt
        case Notify(repo=repo, issue=issue):
            shown.notify.repo = repo
            shown.notify.issue = issue
        case _ as never:
            assert_never(never)
    return shown


def _trigger(trigger: Trigger) -> playbook_pb2.Trigger:
    shown = playbook_pb2.Trigger(id=trigger.id)
    match trigger.source:
        case ManualTrigger():
            shown.manual.SetInParent()
            return shown
        case ScheduleTrigger(cron=cron):
            shown.schedule.cron = cron
        case AgentEventTrigger(agent=agent, event=event, conditions=conditions):
            shown.agent_event.agent = agent
            shown.agent_event.event = event
            shown.agent_event.conditions.extend(_conditions(conditions))
        case CapexEventTrigger(conditions=conditions):
            shown.capex_event.SetInParent()
            shown.capex_event.conditions.extend(_conditions(conditions))
        case _ as never:
            assert_never(never)
    shown.cooldown_minutes = trigger.cooldown_minutes
    return shown


def _conditions(conditions: Iterable[Condition]) -> Iterable[playbook_pb2.Condition]:
    for each in conditions:
        yield playbook_pb2.Condition(
            attribute=each.attribute, op=enums.CONDITION_OP[each.op], value=each.value
        )


def run(stored: Run) -> playbook_pb2.Run:
    """Return the run with its step runs."""
    return playbook_pb2.Run(
        id=stored.id,
        playbook_id=stored.playbook_id,
        playbook_name=stored.playbook_name,
        playbook_revision=stored.playbook_revision,
        spec_digest=stored.spec_digest,
        status=enums.RUN_STATUS[stored.status],
        trigger=enums.TRIGGER_KIND[stored.trigger],
        trigger_id=stored.trigger_id,
        event_id=stored.event_id,
        slot=timestamp(stored.slot),
        initiator=stored.initiator,
        request_id=stored.request_id,
        started_at=timestamp(stored.started_at),
        finished_at=timestamp(stored.finished_at),
        chain_depth=stored.chain_depth,
        caused_by_run_id=stored.caused_by_run_id,
        cause=enums.CAUSE[stored.cause] if stored.cause else playbook_pb2.CAUSE_UNSPECIFIED,
        steps=map(_step_run, stored.steps),
        note=stored.note,
        detail=stored.detail,
        revision=stored.revision,
    )


def _step_run(stored: StepRun) -> playbook_pb2.StepRun:
    return playbook_pb2.StepRun(
        step=_step(stored.step),
        status=enums.STEP_RUN_STATUS[stored.status],
        call=enums.CALL[stored.call],
        claimed_by=stored.claimed_by,
        claimed_at=timestamp(stored.claimed_at),
        deadline=timestamp(stored.deadline),
        finished_at=timestamp(stored.finished_at),
        conclusion=stored.conclusion,
        detail=stored.detail,
        github_run_url=stored.github_run_url,
        decided_by=stored.decided_by,
        decision_note=stored.decision_note,
        scan=_scan(stored.scan),
    )


def _scan(scan: ScanResult | None) -> playbook_pb2.ScanResult | None:
    if scan is None:
        return None
    return playbook_pb2.ScanResult(
        scan_run_id=scan.scan_run_id, findings=scan.findings, baseline=scan.baseline
    )


def event(stored: Event) -> playbook_pb2.Event:
    """Return the event with what it started and what it skipped."""
    return playbook_pb2.Event(
        id=stored.id,
        external_id=stored.external_id,
        at=timestamp(stored.at),
        agent=stored.agent,
        event=stored.event,
        subject=stored.subject,
        detail=stored.detail,
        attributes=stored.attributes,
        caused_by_run_id=stored.caused_by_run_id,
        chain_depth=stored.chain_depth,
        raised_by=stored.raised_by,
        count=stored.count,
        started=(
            playbook_pb2.StartedRun(
                playbook_id=it.playbook_id, trigger_id=it.trigger_id, run_id=it.run_id
            )
            for it in stored.started
        ),
        skipped=(
            playbook_pb2.SkippedTrigger(
                playbook_id=it.playbook_id, trigger_id=it.trigger_id, reason=it.reason
            )
            for it in stored.skipped
        ),
    )
