"""On a terminal an answer fits and no id is folded; in a pipe it is whole and the same for ever."""

from collections.abc import Callable

import pytest
from click.testing import Result
from google.protobuf.timestamp_pb2 import Timestamp
from rich.cells import cell_len
from runink.core.atlas.v1 import governance_pb2
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.common_pb2 import Figure

from core_console.cli.times import near
from core_console.clock import SystemClock
from tests.cli.conftest import LaidDownConsole

Cli = Callable[..., Result]
Terminal = Callable[[int], None]

RUN_ID = "PBR-0123456789abcdef"
PLAYBOOK_ID = "PB-0123456789abcdef"
DIGEST = "22f6d5a3f9d80a7fbe407bd407de21087d340b1d11092a65b084503f6c8a1a4a"


def ago(seconds: int) -> Timestamp:
    found = Timestamp()
    found.FromSeconds(int(SystemClock().now().timestamp()) - seconds)
    return found


RUN = pb.Run(
    id=RUN_ID,
    playbook_id=PLAYBOOK_ID,
    playbook_name="A name of a playbook that goes on for as long as it may, which is 120 letters",
    status=pb.RUN_STATUS_WAITING_APPROVAL,
    trigger=pb.TRIGGER_KIND_MANUAL,
    initiator="somebody-with-a-long-name@example.com",
    started_at=ago(11_000),
    detail="the detail of a run that says a lot about what came of it and why that was so",
    steps=[
        pb.StepRun(
            step=pb.Step(id="approve", require_approval=pb.RequireApproval(prompt="May it? " * 20)),
            status=pb.STEP_RUN_STATUS_WAITING_APPROVAL,
            deadline=ago(-10_000),
        )
    ],
)
PLAYBOOK = pb.Playbook(
    id=PLAYBOOK_ID,
    name=RUN.playbook_name,
    status=pb.PLAYBOOK_STATUS_DRAFT,
    revision=3,
    updated_at=ago(90_000),
    updated_by=RUN.initiator,
    success_rate=Figure(absent_reason="no run has finished"),
)
EVENT = pb.Event(
    id="PBE-0123456789abcdef",
    at=ago(3_700),
    agent="schedule",
    event="slot",
    subject="nightly",
    count=3,
    started=[pb.StartedRun(playbook_id=PLAYBOOK_ID, trigger_id="nightly", run_id=RUN_ID)],
    skipped=[
        pb.SkippedTrigger(
            playbook_id=PLAYBOOK_ID, trigger_id="hourly", reason=f"a run is in flight: {RUN_ID}"
        )
    ],
)
DECISION = governance_pb2.Decision(
    audit_seq=12,
    at=ago(3_700),
    actor=RUN.initiator,
    decision="run started",
    playbook_id=PLAYBOOK_ID,
    run_id=RUN_ID,
    sentence=f"{RUN.initiator} started run {RUN_ID} of playbook {PLAYBOOK_ID} (sha256 {DIGEST})",
)

LISTS = [
    (("run", "list"), "ListRuns", pb.ListRunsResponse(runs=[RUN]), (RUN_ID, "3 h ago")),
    (("run", "get", RUN_ID), "GetRun", pb.GetRunResponse(run=RUN), (RUN_ID, "approve")),
    (("approval", "list"), "ListRuns", pb.ListRunsResponse(runs=[RUN]), (RUN_ID, "in 2 h")),
    (
        ("playbook", "list"),
        "ListPlaybooks",
        pb.ListPlaybooksResponse(playbooks=[PLAYBOOK]),
        (PLAYBOOK_ID, "1 d ago", "— no run has finished"),
    ),
    (
        ("events",),
        "ListEvents",
        pb.ListEventsResponse(events=[EVENT]),
        (RUN_ID, PLAYBOOK_ID, "1 h ago"),
    ),
    (
        ("decisions",),
        "ListDecisions",
        governance_pb2.ListDecisionsResponse(decisions=[DECISION]),
        (RUN_ID, PLAYBOOK_ID, DIGEST[:12] + "…"),
    ),
]


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
@pytest.mark.parametrize(
    ("args", "method", "response", "whole"), LISTS, ids=[" ".join(case[0]) for case in LISTS]
)
def test_an_answer_fits_a_terminal_and_folds_no_id(
    console: LaidDownConsole,
    ask: Cli,
    on_a_terminal: Terminal,
    columns: int,
    args: tuple[str, ...],
    method: str,
    response: pb.ListRunsResponse,
    whole: tuple[str, ...],
) -> None:
    on_a_terminal(columns)
    console.lay_down(method, response)
    shown = ask(*args).stdout
    assert max(map(cell_len, shown.splitlines())) <= columns
    for text in whole:
        assert any(text in line for line in shown.splitlines()), text


def test_in_a_pipe_every_column_is_there_whole(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("ListDecisions", governance_pb2.ListDecisionsResponse(decisions=[DECISION]))
    header, row = ask("decisions").stdout.splitlines()
    assert header.split() == [
        *("SEQ", "AT", "ACTOR", "DECISION", "OUTCOME", "PLAYBOOK", "RUN", "WHAT", "HAPPENED"),
    ]
    assert row.endswith(f"(sha256 {DIGEST})")
    assert " UTC  " in row
    assert f"  —        {PLAYBOOK_ID}" in row


def test_in_a_pipe_an_absent_figure_has_its_reason_in_its_place(
    console: LaidDownConsole, ask: Cli
) -> None:
    console.lay_down("ListPlaybooks", pb.ListPlaybooksResponse(playbooks=[PLAYBOOK]))
    header, row = ask("playbook", "list").stdout.splitlines()
    assert row.index("no run has finished") == header.index("SUCCESS")


@pytest.mark.parametrize(
    ("args", "method", "response", "said"),
    [
        (("run", "list"), "ListRuns", pb.ListRunsResponse(), "no runs"),
        (("approval", "list"), "ListRuns", pb.ListRunsResponse(), "nothing waits for a decision"),
        (("playbook", "list"), "ListPlaybooks", pb.ListPlaybooksResponse(), "no playbooks"),
        (("events",), "ListEvents", pb.ListEventsResponse(), "no events"),
        (
            ("decisions",),
            "ListDecisions",
            governance_pb2.ListDecisionsResponse(),
            "no decisions",
        ),
    ],
    ids=lambda case: " ".join(case) if isinstance(case, tuple) else "",
)
def test_an_empty_list_says_so_in_one_sentence(
    console: LaidDownConsole,
    ask: Cli,
    args: tuple[str, ...],
    method: str,
    response: pb.ListRunsResponse,
    said: str,
) -> None:
    console.lay_down(method, response)
    assert ask(*args).stdout == f"{said}\n"


def test_an_event_tells_what_it_started_and_how_often_it_skipped(
    console: LaidDownConsole, ask: Cli
) -> None:
    console.lay_down("ListEvents", pb.ListEventsResponse(events=[EVENT]))
    shown = ask("events").stdout
    assert f"started {RUN_ID} of {PLAYBOOK_ID} nightly; " in shown
    assert f"skipped {PLAYBOOK_ID} hourly: a run is in flight: {RUN_ID} (3 times)" in shown


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3_600, "1 h ago"),
        (86_400, "1 d ago"),
        (-120, "in 2 min"),
        (-6 * 86_400, "in 6 d"),
        (7 * 86_400, "2026-11-23"),
        (-7 * 86_400, "2026-12-07"),
    ],
)
def test_a_near_time_is_said_as_people_say_it(seconds: int, said: str) -> None:
    then = Timestamp()
    then.FromJsonString("2026-11-30T12:00:00Z")
    now = then.ToDatetime(tzinfo=SystemClock().now().tzinfo)
    then.FromSeconds(then.seconds - seconds)
    assert near(then, now) == said
