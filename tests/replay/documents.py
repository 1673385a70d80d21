"""The document that each released format was asked to keep: everything that it can hold.

Run as a module it writes the file of the present format. A file that is there is never written
again: it is what a released version wrote, and every later one has to read it.
"""

from datetime import timedelta
from pathlib import Path

from msgspec.structs import replace

from core_console.model import codec
from core_console.model.audit import Entry, OutboxEntry, Outcome
from core_console.model.document import FORMAT, Document
from core_console.model.event import Event, SkippedTrigger, StartedRun
from core_console.model.playbook import (
    AgentEventTrigger,
    CapexEventTrigger,
    Condition,
    ConditionOp,
    Playbook,
    PlaybookStatus,
    RequireApproval,
    ScheduleTrigger,
    Trigger,
)
from core_console.model.run import (
    Call,
    Cause,
    Run,
    RunStatus,
    ScanResult,
    StepRun,
    StepRunStatus,
    TriggerKind,
)
from tests.builders import (
    AUTHOR,
    NOW,
    REPLICA,
    RUN_URL,
    SECOND,
    STRANGER,
    a_document,
    a_playbook,
    a_run,
    a_run_at,
    a_spec,
    a_step,
    a_trigger,
    detect,
    notify,
    scan,
)

FOLDER = Path(__file__).parent

_CONDITIONS = tuple(Condition("fail_count", op, "0") for op in ConditionOp)
_FULL_SPEC = a_spec(
    detect(),
    scan(rule_ids=("CP-001", "CP-002")),
    a_step("approve", RequireApproval(72, SECOND, "Go?\nReally?"), title="Ask"),
    notify(),
    scan("verify", compare_to_first_scan=True),
    description="Líne one\nline two",
    triggers=(
        a_trigger(),
        Trigger("nightly", ScheduleTrigger("5 2 * * mon-fri"), 60),
        Trigger("findings", AgentEventTrigger("datagov", "findings.reported", _CONDITIONS), 5),
        Trigger("ingest", CapexEventTrigger(_CONDITIONS), 43_200),
    ),
)
_ACTIVE = a_playbook(spec=_FULL_SPEC, runs_finished=9, runs_succeeded=1)
_DRAFT = a_playbook(id="PB-2", status=PlaybookStatus.DRAFT, editors=(AUTHOR, STRANGER))
_PAUSED = a_playbook(id="PB-3", status=PlaybookStatus.PAUSED)

_WAITING = a_run_at(
    _ACTIVE,
    "approve",
    note="for the audit",
    request_id="req-1",
    trigger=TriggerKind.AGENT_EVENT,
    trigger_id="findings",
    initiator="agent:datagov",
    event_id="PBE-1",
    chain_depth=2,
    caused_by_run_id="PBR-2",
    cause=Cause.NAMED,
)
_SCANNED = replace(_WAITING.steps[1], scan=ScanResult("SCAN-1", {"CP-001": 3}, {"CP-001": 4}))


def _ended(number: int, status: RunStatus, playbook: Playbook) -> Run:
    """Return a finished run in which a step ended so and every kind of field is set."""
    first, *later = a_run(playbook).steps
    ended = replace(
        first,
        status=StepRunStatus(status),
        call=list(Call)[number % len(Call)],
        claimed_by=REPLICA,
        claimed_at=NOW,
        deadline=NOW + timedelta(hours=1),
        finished_at=NOW + timedelta(milliseconds=1),
        conclusion="failure",
        detail="no report came",
        github_run_url=RUN_URL,
        decided_by=SECOND,
        decision_note="not now",
    )
    skipped = (StepRun(each.step, StepRunStatus.SKIPPED) for each in later)
    return a_run(
        playbook,
        id=f"PBR-{number}",
        status=status,
        steps=(ended, *skipped),
        finished_at=NOW + timedelta(milliseconds=1),
        trigger=TriggerKind.SCHEDULE,
        trigger_id="nightly",
        initiator="system:ticker",
        slot=NOW,
        cause=Cause.INFERRED,
        detail=f"ended {status}",
    )


_FINAL = ("SUCCEEDED", "FAILED", "REJECTED", "CANCELLED", "TIMED_OUT", "EXPIRED")

FULL: Document = a_document(
    _ACTIVE,
    _DRAFT,
    _PAUSED,
    replace(_WAITING, steps=(_WAITING.steps[0], _SCANNED, *_WAITING.steps[2:])),
    a_run(_PAUSED, id="PBR-8", trigger=TriggerKind.CAPEX_EVENT, initiator=STRANGER),
    *(_ended(at, RunStatus(status), _ACTIVE) for at, status in enumerate(_FINAL, start=2)),
    swap_id="console-1/7",
    events={
        "PBE-1": Event(
            id="PBE-1",
            at=NOW,
            agent="datagov",
            event="findings.reported",
            raised_by="agent:datagov",
            revision=10,
            external_id="ext-1",
            subject="warehouse",
            detail="3 findings",
            attributes={"fail_count": "3", "empty": ""},
            caused_by_run_id="PBR-2",
            chain_depth=2,
            started=(StartedRun("PB-1", "findings", "PBR-1"),),
            skipped=(SkippedTrigger("PB-3", "findings", "playbook is PAUSED"),),
        )
    },
    outbox=(
        OutboxEntry(
            41,
            Entry(
                NOW,
                AUTHOR,
                "atlas.playbooks.run",
                "PB-1/PBR-1",
                Outcome.SUCCESS,
                "It ran",
                "playbook",
            ),
        ),
    ),
    outbox_number=41,
)


def main() -> None:
    """Write the file of the present format, unless it is there."""
    path = FOLDER / f"format-{FORMAT}.json"
    with path.open("xb") as file:
        file.write(codec.encode(FULL))


if __name__ == "__main__":
    main()
