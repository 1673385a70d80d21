"""What a person is told to do next, where it goes, and how they are asked before a loss."""

from collections.abc import Callable

import pytest
from click.testing import Result
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli import playbook
from core_console.cli.failure import Exit
from tests.cli.conftest import LaidDownConsole

Cli = Callable[..., Result]

FILE = "name: Quality\nsteps:\n- id: detect\n  kind: DETECT\n  dispatchAgent: {agent: datagov}\n"
DRAFT = pb.Playbook(id="PB-1", name="Quality", status=pb.PLAYBOOK_STATUS_DRAFT, revision=3)


def decided_run(status: pb.RunStatus.ValueType, step: pb.StepRunStatus.ValueType) -> pb.Run:
    inner = pb.StepRun(
        step=pb.Step(id="ask"), status=step, decided_by="second@example.com", decision_note="fine"
    )
    return pb.Run(id="PBR-1", status=status, steps=[inner])


def test_advice_is_on_standard_error_and_never_beside_json(
    console: LaidDownConsole, ask: Cli
) -> None:
    console.lay_down("CreatePlaybook", pb.CreatePlaybookResponse(playbook=DRAFT))
    result = ask("playbook", "create", "-f", "-", stdin=FILE)
    assert result.stdout == "PB-1 'Quality' is DRAFT at revision 3\n"
    assert result.stderr == ("another operator: core-console playbook activate PB-1 --revision 3\n")
    assert ask("playbook", "create", "-f", "-", "-o", "json", stdin=FILE).stderr == ""


def test_an_update_that_changes_nothing_says_so(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("UpdatePlaybook", pb.UpdatePlaybookResponse(playbook=DRAFT))
    result = ask("playbook", "update", "PB-1", "--revision", "3", "-f", "-", stdin=FILE)
    assert (result.stdout, result.stderr) == ("unchanged: PB-1 'Quality' is DRAFT\n", "")


def test_a_run_that_waits_tells_how_to_decide_and_to_follow_it(
    console: LaidDownConsole, ask: Cli
) -> None:
    run = decided_run(pb.RUN_STATUS_WAITING_APPROVAL, pb.STEP_RUN_STATUS_WAITING_APPROVAL)
    console.lay_down("RunNow", pb.RunNowResponse(run=run))
    assert ask("run", "now", "PB-1").stderr.splitlines() == [
        "another operator: core-console approval decide PBR-1 ask --approve --note T",
        "follow it: core-console run watch PBR-1",
    ]


@pytest.mark.parametrize(
    ("status", "step", "said"),
    [
        (pb.RUN_STATUS_SUCCEEDED, pb.STEP_RUN_STATUS_SUCCEEDED, "approved"),
        (pb.RUN_STATUS_REJECTED, pb.STEP_RUN_STATUS_REJECTED, "rejected"),
    ],
)
def test_a_decision_says_by_whom_and_where_the_run_stands(
    console: LaidDownConsole,
    ask: Cli,
    status: pb.RunStatus.ValueType,
    step: pb.StepRunStatus.ValueType,
    said: str,
) -> None:
    answer = pb.DecideApprovalResponse(run=decided_run(status, step))
    console.lay_down("DecideApproval", answer)
    result = ask("approval", "decide", "PBR-1", "ask", "--approve")
    word = pb.RunStatus.Name(status).removeprefix("RUN_STATUS_")
    assert result.stdout == f"ask is {said} by second@example.com; the run is {word}\n"
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("typed", "args", "deleted"),
    [("n\n", (), False), ("", (), False), ("y\n", (), True), ("", ("--yes",), True)],
)
def test_on_a_terminal_a_deletion_is_asked_about(
    console: LaidDownConsole,
    ask: Cli,
    monkeypatch: pytest.MonkeyPatch,
    typed: str,
    args: tuple[str, ...],
    *,
    deleted: bool,
) -> None:
    monkeypatch.setattr(playbook, "is_asked_by_a_person", lambda: True)
    console.lay_down("DeletePlaybook", pb.DeletePlaybookResponse())
    result = ask("playbook", "delete", "PB-1", *args, stdin=typed)
    assert bool(console.requests) is deleted
    assert ("PB-1 is deleted" in result.stdout) is deleted
    assert result.exit_code == (Exit.OK if deleted else 130)


def test_a_script_is_never_asked(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("DeletePlaybook", pb.DeletePlaybookResponse())
    result = ask("playbook", "delete", "PB-1", stdin=None)
    assert (result.stdout, result.stderr) == ("PB-1 is deleted\n", "")


def test_ctrl_c_ends_a_command_without_a_word(
    ask: Cli, console: LaidDownConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    console.lay_down("GetRun", pb.GetRunResponse(run=pb.Run(status=pb.RUN_STATUS_RUNNING)))
    monkeypatch.setattr("core_console.clock.SystemClock.pause", interrupted)
    result = ask("run", "watch", "PBR-1")
    assert (result.exit_code, result.stderr.strip()) == (130, "")


def test_a_reviewer_sees_all_that_is_activated(console: LaidDownConsole, ask: Cli) -> None:
    found = pb.Playbook(
        id="PB-1",
        name="Quality",
        description="What it is for.",
        status=pb.PLAYBOOK_STATUS_DRAFT,
        four_eyes=pb.FourEyes(
            needed="another Atlas admin must activate it",
            barred=[pb.Barred(operator="author@example.com", reason="wrote this playbook")],
        ),
        steps=[
            pb.Step(
                id="ask",
                title="Look",
                require_approval=pb.RequireApproval(
                    approver="second@example.com", prompt="May it go?", timeout_hours=1
                ),
            ),
            pb.Step(id="tell", notify=pb.Notify(repo="governance", issue=7)),
        ],
        triggers=[
            pb.Trigger(
                id="on",
                agent_event=pb.AgentEventTrigger(
                    agent="recon",
                    event="recon.reported",
                    conditions=[pb.Condition(attribute="drift", op=pb.CONDITION_OP_GT, value="0")],
                ),
            )
        ],
    )
    found.next_slots.add().FromJsonString("2026-12-01T02:05:00Z")
    found.next_slots.add().FromJsonString("2026-12-02T02:05:00Z")
    console.lay_down("GetPlaybook", pb.GetPlaybookResponse(playbook=found))
    shown = ask("playbook", "get", "PB-1").stdout
    for text in (
        *("What it is for.", "Look", "second@example.com", "prompt of ask: May it go?"),
        *("governance#7", "on recon recon.reported where drift GT 0"),
        *("2026-12-01 02:05:00 UTC", "2026-12-02 02:05:00 UTC"),
        *("another Atlas admin must activate it", "any Atlas admin but author@example.com"),
    ):
        assert text in shown
    found.status = pb.PLAYBOOK_STATUS_ACTIVE
    console.lay_down("GetPlaybook", pb.GetPlaybookResponse(playbook=found))
    active = ask("playbook", "get", "PB-1").stdout
    assert "to activate" not in active
    assert "any Atlas admin but author@example.com" in active
