"""One door takes every command, and the same four arguments give the same answer."""

from typing import get_args

import pytest

from core_console.decide.commands import (
    ActivatePlaybook,
    CancelRun,
    Command,
    CreatePlaybook,
    DecideApproval,
    Decision,
    DeletePlaybook,
    DraftPlaybook,
    PausePlaybook,
    RaiseEvent,
    RecordCall,
    RecordScan,
    ReportStep,
    ResumePlaybook,
    RunNow,
    Tick,
    UpdatePlaybook,
)
from core_console.decide.decide import decide
from core_console.model.document import Document
from core_console.model.playbook import PlaybookStatus
from core_console.model.run import Call
from tests.builders import (
    AUTHOR,
    REPLICA,
    RUN_URL,
    SECOND,
    a_document,
    a_playbook,
    a_run_at,
    a_spec,
    approve,
    context,
    detect,
    later,
    notify,
    scan,
)
from tests.decide.verdicts import accepted

STEPS = (detect(), scan(), approve(), notify())


def running(step_id: str) -> Document:
    playbook = a_playbook(spec=a_spec(*STEPS))
    return a_document(playbook, a_run_at(playbook, step_id))


def resting(status: PlaybookStatus) -> Document:
    return a_document(a_playbook(spec=a_spec(*STEPS), status=status))


DRAFT = resting(PlaybookStatus.DRAFT)
ACTIVE = resting(PlaybookStatus.ACTIVE)
PAUSED = resting(PlaybookStatus.PAUSED)

EVERY_COMMAND: list[tuple[Document, Command, str, str]] = [
    (a_document(), CreatePlaybook(AUTHOR, a_spec()), AUTHOR, "playbooks.create"),
    (a_document(), DraftPlaybook(AUTHOR, a_spec()), AUTHOR, "playbooks.draft"),
    (DRAFT, UpdatePlaybook(SECOND, "PB-1", 1, a_spec(notify())), SECOND, "playbooks.update"),
    (DRAFT, DeletePlaybook(AUTHOR, "PB-1"), AUTHOR, "playbooks.delete"),
    (DRAFT, ActivatePlaybook(SECOND, "PB-1", 1), SECOND, "playbooks.activate"),
    (ACTIVE, PausePlaybook(AUTHOR, "PB-1"), AUTHOR, "playbooks.pause"),
    (PAUSED, ResumePlaybook(SECOND, "PB-1"), SECOND, "playbooks.resume"),
    (ACTIVE, RunNow(AUTHOR, "PB-1"), AUTHOR, "playbooks.run"),
    (running("detect"), CancelRun(SECOND, "PBR-1", "stop"), SECOND, "playbooks.run.cancel"),
    (
        running("approve"),
        DecideApproval(SECOND, "PBR-1", "approve", Decision.APPROVE),
        SECOND,
        "playbooks.approval.decide",
    ),
    (
        running("detect"),
        ReportStep("datagov", "PBR-1", "detect", "failure", "", RUN_URL),
        "agent:datagov",
        "playbooks.run.report",
    ),
    (ACTIVE, RaiseEvent(agent="risk", event="found"), "agent:risk", "events.raise"),
    (
        running("notify"),
        RecordCall("PBR-1", "notify", REPLICA, Call.ACCEPTED, ""),
        "system:engine",
        "playbooks.run.notify",
    ),
    (
        running("scan"),
        RecordScan("PBR-1", "scan", REPLICA, "SCAN-1", {}, ""),
        "system:engine",
        "playbooks.run.scan",
    ),
    (running("approve"), Tick(), "system:ticker", "playbooks.run.expire"),
]


def test_the_table_holds_every_command() -> None:
    assert [type(command) for _, command, _, _ in EVERY_COMMAND] == list(get_args(Command))


@pytest.mark.parametrize(("document", "command", "actor", "action"), EVERY_COMMAND)
def test_every_command_is_decided_and_recorded_in_its_own_name(
    document: Document, command: Command, actor: str, action: str
) -> None:
    now = later(days=30) if isinstance(command, Tick) else later()
    entry = accepted(document, command, context(now=now)).entries[0]
    assert (entry.actor, entry.action) == (actor, f"atlas.{action}")
    assert (entry.at, entry.subject) == (now, "playbook")


@pytest.mark.parametrize(("document", "command", "actor", "action"), EVERY_COMMAND)
def test_the_same_four_arguments_give_the_same_answer(
    document: Document, command: Command, actor: str, action: str
) -> None:
    assert actor
    assert action
    for days in (0, 30):
        first, again = (decide(document, command, context(now=later(days=days))) for _ in "ab")
        assert first == again


def test_an_agents_report_is_recorded_under_its_own_name() -> None:
    report = ReportStep("datagov", "PBR-1", "detect", "success", "", RUN_URL)
    assert report.actor == "agent:datagov"
    entries = accepted(running("detect"), report).entries
    assert [entry.actor for entry in entries] == ["agent:datagov"]
