"""Each command sends what was asked, prints what came back, and ends with the right exit code."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import Result
from google.protobuf.json_format import MessageToJson, Parse
from google.protobuf.message import Message
from runink.core.atlas.v1 import audit_pb2, governance_pb2
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import target_of
from core_console.cli.failure import Exit, Failed
from core_console.cli.specfile import parse_spec
from tests.cli.conftest import LaidDownConsole

Cli = Callable[..., Result]

DRAFT = pb.Playbook(
    id="PB-1",
    name="Quality",
    status=pb.PLAYBOOK_STATUS_DRAFT,
    revision=3,
    created_by="author@example.com",
    updated_by="author@example.com",
    success_rate=pb.Playbook().success_rate.__class__(absent_reason="no run has finished"),
    four_eyes=pb.FourEyes(
        needed="an Atlas admin who neither wrote nor last edited it",
        barred=[pb.Barred(operator="author@example.com", reason="wrote it")],
    ),
    steps=[
        pb.Step(
            id="detect",
            kind=pb.STEP_KIND_DETECT,
            dispatch_agent=pb.DispatchAgent(agent="datagov", timeout_minutes=60),
        ),
        pb.Step(
            id="approve",
            kind=pb.STEP_KIND_VALIDATE,
            require_approval=pb.RequireApproval(timeout_hours=72),
        ),
    ],
    triggers=[pb.Trigger(id="by-hand", manual=pb.ManualTrigger())],
)
DRAFT.created_at.FromJsonString("2026-11-30T12:00:00.250Z")
ACTIVE = pb.Playbook()
ACTIVE.CopyFrom(DRAFT)
ACTIVE.status, ACTIVE.revision, ACTIVE.activated_revision = pb.PLAYBOOK_STATUS_ACTIVE, 4, 3
WAITING = pb.Run(
    id="PBR-1",
    playbook_id="PB-1",
    playbook_name="Quality",
    status=pb.RUN_STATUS_WAITING_APPROVAL,
    trigger=pb.TRIGGER_KIND_MANUAL,
    initiator="author@example.com",
    steps=[
        pb.StepRun(step=DRAFT.steps[0], status=pb.STEP_RUN_STATUS_SUCCEEDED),
        pb.StepRun(step=DRAFT.steps[1], status=pb.STEP_RUN_STATUS_WAITING_APPROVAL),
    ],
)
WAITING.steps[1].deadline.FromJsonString("2026-12-03T12:00:00Z")

FILE = "name: Quality\nsteps:\n- id: detect\n  kind: DETECT\n  dispatchAgent: {agent: datagov}\n"
SPEC = pb.Playbook(
    name="Quality",
    steps=[
        pb.Step(
            id="detect", kind=pb.STEP_KIND_DETECT, dispatch_agent=pb.DispatchAgent(agent="datagov")
        )
    ],
)
PAGE = ("--page-size", "2", "--page-token", "t")

COMMANDS: list[tuple[tuple[str, ...], str, Message, Message, str]] = [
    (
        ("playbook", "list", "--status", "active", "--status", "PAUSED", *PAGE),
        "ListPlaybooks",
        pb.ListPlaybooksRequest(
            statuses=[pb.PLAYBOOK_STATUS_ACTIVE, pb.PLAYBOOK_STATUS_PAUSED],
            page_size=2,
            page_token="t",
        ),
        pb.ListPlaybooksResponse(playbooks=[DRAFT], next_page_token="more"),
        "there is more: --page-token more",
    ),
    (
        ("playbook", "get", "PB-1"),
        "GetPlaybook",
        pb.GetPlaybookRequest(id="PB-1"),
        pb.GetPlaybookResponse(playbook=DRAFT),
        "author@example.com: wrote it",
    ),
    (
        ("playbook", "create", "-f", "-"),
        "CreatePlaybook",
        pb.CreatePlaybookRequest(playbook=SPEC),
        pb.CreatePlaybookResponse(playbook=DRAFT),
        "PB-1 'Quality' is DRAFT at revision 3",
    ),
    (
        ("playbook", "update", "PB-1", "--revision", "2", "-f", "-"),
        "UpdatePlaybook",
        pb.UpdatePlaybookRequest(id="PB-1", revision=2, playbook=SPEC),
        pb.UpdatePlaybookResponse(playbook=DRAFT),
        "PB-1 'Quality' is DRAFT at revision 3",
    ),
    (
        ("playbook", "delete", "PB-1"),
        "DeletePlaybook",
        pb.DeletePlaybookRequest(id="PB-1"),
        pb.DeletePlaybookResponse(),
        "PB-1 is deleted",
    ),
    (
        ("playbook", "activate", "PB-1", "--revision", "3"),
        "ActivatePlaybook",
        pb.ActivatePlaybookRequest(id="PB-1", revision=3),
        pb.ActivatePlaybookResponse(playbook=ACTIVE),
        "PB-1 'Quality' is ACTIVE: revision 3 as reviewed (the playbook is now at revision 4)",
    ),
    (
        ("playbook", "pause", "PB-1"),
        "PausePlaybook",
        pb.PausePlaybookRequest(id="PB-1"),
        pb.PausePlaybookResponse(playbook=DRAFT),
        "PB-1",
    ),
    (
        ("playbook", "resume", "PB-1"),
        "ResumePlaybook",
        pb.ResumePlaybookRequest(id="PB-1"),
        pb.ResumePlaybookResponse(playbook=DRAFT),
        "PB-1",
    ),
    (
        ("run", "now", "PB-1", "--request-id", "r1", "--note", "why"),
        "RunNow",
        pb.RunNowRequest(playbook_id="PB-1", request_id="r1", note="why"),
        pb.RunNowResponse(run=WAITING),
        "PBR-1 is WAITING_APPROVAL at step approve",
    ),
    (
        ("run", "list", "--playbook", "PB-1", "--status", "FAILED", *PAGE),
        "ListRuns",
        pb.ListRunsRequest(
            playbook_id="PB-1", statuses=[pb.RUN_STATUS_FAILED], page_size=2, page_token="t"
        ),
        pb.ListRunsResponse(runs=[WAITING]),
        "author@example.com",
    ),
    (
        ("run", "get", "PBR-1"),
        "GetRun",
        pb.GetRunRequest(id="PBR-1"),
        pb.GetRunResponse(run=WAITING),
        "approval by any admin, 72 h",
    ),
    (
        ("run", "cancel", "PBR-1", "--note", "wrong month"),
        "CancelRun",
        pb.CancelRunRequest(run_id="PBR-1", note="wrong month"),
        pb.CancelRunResponse(run=WAITING),
        "PBR-1",
    ),
    (
        ("approval", "list", *PAGE),
        "ListRuns",
        pb.ListRunsRequest(statuses=[pb.RUN_STATUS_WAITING_APPROVAL], page_size=2, page_token="t"),
        pb.ListRunsResponse(runs=[WAITING]),
        "2026-12-03 12:00:00 UTC",
    ),
    (
        ("approval", "decide", "PBR-1", "approve", "--approve"),
        "DecideApproval",
        pb.DecideApprovalRequest(
            run_id="PBR-1", step_id="approve", decision=pb.APPROVAL_DECISION_APPROVE
        ),
        pb.DecideApprovalResponse(run=WAITING),
        "PBR-1",
    ),
    (
        ("approval", "decide", "PBR-1", "approve", "--reject", "--note", "no"),
        "DecideApproval",
        pb.DecideApprovalRequest(
            run_id="PBR-1", step_id="approve", decision=pb.APPROVAL_DECISION_REJECT, note="no"
        ),
        pb.DecideApprovalResponse(run=WAITING),
        "PBR-1",
    ),
    (
        ("agents",),
        "ListDispatchableAgents",
        pb.ListDispatchableAgentsRequest(),
        pb.ListDispatchableAgentsResponse(agents=["datagov"], reasons=["no App is configured"]),
        "why not: no App is configured",
    ),
    (
        ("events", "--agent", "datagov", "--playbook", "PB-1", *PAGE),
        "ListEvents",
        pb.ListEventsRequest(agent="datagov", playbook_id="PB-1", page_size=2, page_token="t"),
        pb.ListEventsResponse(
            events=[
                pb.Event(
                    id="PBE-1",
                    skipped=[pb.SkippedTrigger(playbook_id="PB-1", reason="playbook is PAUSED")],
                )
            ]
        ),
        "PB-1: playbook is PAUSED",
    ),
    (
        ("decisions", "--subject", "playbook", "--actor", "a@example.com", *PAGE),
        "ListDecisions",
        governance_pb2.ListDecisionsRequest(
            subject="playbook", actor="a@example.com", page_size=2, page_token="t"
        ),
        governance_pb2.ListDecisionsResponse(
            decisions=[governance_pb2.Decision(audit_seq=4, decision="activated", sentence="Yes.")]
        ),
        "activated",
    ),
    (
        ("audit", "list", "--actor", "a", "--action", "b", "--outcome", "denied", *PAGE),
        "ListAuditRecords",
        audit_pb2.ListAuditRecordsRequest(
            actor="a",
            action="b",
            outcome=audit_pb2.AUDIT_OUTCOME_DENIED,
            page_size=2,
            page_token="t",
        ),
        audit_pb2.ListAuditRecordsResponse(
            records=[audit_pb2.AuditRecord(seq=9, outcome=audit_pb2.AUDIT_OUTCOME_DENIED)]
        ),
        "DENIED",
    ),
    (
        ("audit", "verify"),
        "VerifyAuditChain",
        audit_pb2.VerifyAuditChainRequest(),
        audit_pb2.VerifyAuditChainResponse(intact=True, records=5, last_hash="abc"),
        "intact: 5 records, last hash abc",
    ),
]
EVERY_COMMAND = pytest.mark.parametrize(
    ("args", "method", "request_", "response", "shown"),
    COMMANDS,
    ids=[" ".join(command[0][:2]) for command in COMMANDS],
)


@EVERY_COMMAND
def test_a_command_sends_its_request_and_shows_the_answer(
    console: LaidDownConsole,
    ask: Cli,
    args: tuple[str, ...],
    method: str,
    request_: Message,
    response: Message,
    shown: str,
) -> None:
    console.lay_down(method, response)
    result = ask(*args, stdin=FILE)
    assert result.exit_code == Exit.OK, result.stderr
    assert console.the_request() == request_
    assert console.authorization == ["Bearer the-token"]
    assert shown in result.stdout


@EVERY_COMMAND
def test_json_is_the_canonical_form_of_the_response(
    console: LaidDownConsole,
    ask: Cli,
    args: tuple[str, ...],
    method: str,
    request_: Message,
    response: Message,
    shown: str,
) -> None:
    console.lay_down(method, response)
    result = ask(*args, "-o", "json", stdin=FILE)
    assert (result.exit_code, result.stderr) == (Exit.OK, "")
    assert result.stdout == MessageToJson(response) + "\n"
    assert Parse(result.stdout, type(response)()) == response
    assert (request_, shown) == (console.the_request(), shown)


def test_every_command_has_an_example(run: Cli) -> None:
    for args in {command[0][:2] for command in COMMANDS} | {("run", "watch")}:
        words = [word for word in args if not word.startswith("-")]
        text = run(*words, "--help").stdout
        assert f"Example: core-console {' '.join(words)}" in " ".join(text.split())
    for name in ("init", "serve", "token", "demo"):
        assert "Example: " in run(name, "--help").stdout


def test_times_are_shown_in_utc_and_names_in_short(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("GetPlaybook", pb.GetPlaybookResponse(playbook=DRAFT))
    shown = ask("playbook", "get", "PB-1").stdout
    assert "2026-11-30 12:00:00 UTC by author@example.com" in shown
    assert "dispatch datagov, 60 min" in shown
    assert "no run has finished" in shown
    assert "PLAYBOOK_STATUS" not in shown


def test_every_action_and_trigger_is_told_in_words(console: LaidDownConsole, ask: Cli) -> None:
    found = parse_spec(
        """
        steps:
        - {id: a, capex_scan: {}}
        - {id: b, capex_scan: {compare_to_first_scan: true}}
        - {id: c, notify: {repo: governance, issue: 7}}
        - {id: d, require_approval: {approver: second@example.com, timeout_hours: 1}}
        - {id: e}
        triggers:
        - {id: f, manual: {}}
        - {id: g, schedule: {cron: "5 2 * * *"}, cooldown_minutes: 90}
        - {id: h, agent_event: {agent: recon, event: recon.reported}}
        - {id: i, capex_event: {conditions: [{attribute: high, op: GT, value: 3}]}}
        - {id: j}
        """,
        source="here",
    ).playbook
    found.activated_by, found.activated_revision = "second@example.com", 3
    found.success_rate.value = 0.25
    console.lay_down("GetPlaybook", pb.GetPlaybookResponse(playbook=found))
    shown = ask("playbook", "get", "PB-1").stdout
    for words in (
        "scan and compare",
        "comment on governance#7",
        "approval by second@example.com, 1 h",
        "by hand",
        "at 5 2 * * * UTC",
        "90 min",
        "on recon recon.reported",
        "on a CapEx ingest where high GT 3",
        "revision 3, by second@example.com",
        "25%",
    ):
        assert words in shown


def test_a_value_that_this_version_does_not_know_is_shown_by_number(
    console: LaidDownConsole, ask: Cli
) -> None:
    run = pb.Run(id="PBR-1", status=99)  # type: ignore[arg-type]  # a newer console's status
    run.started_at.seconds = 10**15
    console.lay_down("ListRuns", pb.ListRunsResponse(runs=[run]))
    shown = ask("run", "list").stdout
    assert "99" in shown
    assert "no time of this calendar" in shown


def test_what_a_server_sends_cannot_drive_the_terminal(console: LaidDownConsole, ask: Cli) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202egnp.exe\n[bold]x[/bold] :smile:\x9b"
    run = pb.Run(id="PBR-1", playbook_name=evil, detail=evil, status=pb.RUN_STATUS_FAILED)
    console.lay_down("ListRuns", pb.ListRunsResponse(runs=[run]))
    console.lay_down("CancelRun", pb.CancelRunResponse(run=run))
    for args in (("run", "list"), ("run", "cancel", "PBR-1", "--note", "x")):
        shown = ask(*args).stdout
        assert not {"\x1b", "\x07", "\u202e", "\x9b"} & set(shown)
        assert "[bold]x[/bold] :smile:" in shown


def test_nothing_is_folded_or_cut_in_a_pipe(console: LaidDownConsole, ask: Cli) -> None:
    run = pb.Run(id="PBR-1", detail="word " * 200 + "end", status=pb.RUN_STATUS_FAILED)
    console.lay_down("ListRuns", pb.ListRunsResponse(runs=[run]))
    lines = ask("run", "list").stdout.splitlines()
    assert len(lines) == 2
    assert lines[1].endswith("end")


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("playbook", "activate", "PB-1"),
        ("playbook", "activate", "PB-1", "--revision", "0"),
        ("playbook", "create"),
        ("run", "cancel", "PBR-1"),
        ("run", "list", "--status", "DONE"),
        ("run", "watch", "PBR-1", "--for", "ever"),
        ("approval", "decide", "PBR-1", "approve"),
        ("decisions", "--since", "yesterday"),
        ("agents", "-o", "yaml"),
        ("agents", "--url", "nowhere"),
    ],
    ids=" ".join,
)
def test_bad_usage_sends_nothing(console: LaidDownConsole, ask: Cli, args: tuple[str, ...]) -> None:
    assert ask(*args).exit_code == Exit.USAGE
    assert console.requests == []


def test_a_bad_file_sends_nothing_and_names_its_line(console: LaidDownConsole, ask: Cli) -> None:
    result = ask("playbook", "create", "-f", "-", stdin="name: x\ncolour: red\n")
    assert result.exit_code == Exit.USAGE
    assert result.stderr == "standard input, line 2: unknown field 'colour' in playbook\n"
    assert console.requests == []


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("2026-11-30T12:00:00+01:00", "2026-11-30T11:00:00Z"),
        ("2026-11-30", "2026-11-30T00:00:00Z"),
        ("90m", "2026-11-30T10:30:00Z"),
        ("7d", "2026-11-23T12:00:00Z"),
    ],
)
def test_a_time_is_given_whole_as_a_date_or_as_a_span(
    console: LaidDownConsole, ask: Cli, monkeypatch: pytest.MonkeyPatch, given: str, sent: str
) -> None:
    now = datetime(2026, 11, 30, 12, tzinfo=UTC)
    monkeypatch.setattr("core_console.clock.SystemClock.now", lambda _: now)
    console.lay_down("ListDecisions", governance_pb2.ListDecisionsResponse())
    ask("decisions", "--since", given)
    request = console.the_request()
    assert isinstance(request, governance_pb2.ListDecisionsRequest)
    assert request.since.ToJsonString() == sent


def test_without_a_token_none_is_sent(console: LaidDownConsole, run: Cli) -> None:
    console.lay_down("GetRun", pb.GetRunResponse(run=WAITING))
    assert run("run", "get", "PBR-1", CORE_CONSOLE_URL=console.address).exit_code == Exit.OK
    assert console.authorization == [""]


def test_a_token_that_cannot_be_one_is_never_sent_or_shown(
    console: LaidDownConsole, run: Cli
) -> None:
    result = run("agents", CORE_CONSOLE_URL=console.address, CORE_CONSOLE_TOKEN="sec\nret")
    assert result.exit_code == Exit.USAGE
    assert "sec" not in result.stderr.replace("CORE_CONSOLE_TOKEN", "")
    assert console.requests == []


@pytest.mark.parametrize(
    ("url", "has_ca", "expected"),
    [
        ("127.0.0.1:7443", False, ("127.0.0.1:7443", False)),
        ("[::1]:7443", False, ("[::1]:7443", False)),
        ("http://localhost:7443/", False, ("localhost:7443", False)),
        ("https://localhost:7443", False, ("localhost:7443", True)),
        ("https://console.example.com:443", False, ("console.example.com:443", True)),
        ("console.example.com:443", True, ("console.example.com:443", True)),
    ],
)
def test_an_address_says_whether_tls_is_used(
    url: str,
    *,
    has_ca: bool,
    expected: tuple[str, bool],
) -> None:
    target = target_of(url, has_ca=has_ca)
    assert (str(target.address), target.is_secure) == expected


@pytest.mark.parametrize(
    "url",
    ["console.example.com:443", "http://10.0.0.1:7443", "0.0.0.0:7443", "ftp://a:1", "a", "a:0"],
)
def test_a_token_never_leaves_the_machine_in_clear(url: str) -> None:
    with pytest.raises(Failed) as caught:
        target_of(url, has_ca=False)
    assert caught.value.exit_code == Exit.USAGE


def test_an_authority_that_is_not_there_is_a_usage_fault(run: Cli, tmp_path: Path) -> None:
    result = run("agents", "--ca", str(tmp_path / "absent.pem"))
    assert result.exit_code == Exit.USAGE
    assert "CORE_CONSOLE_CA cannot be read" in result.stderr


def test_a_chain_that_is_not_intact_is_told_and_exits_1(console: LaidDownConsole, ask: Cli) -> None:
    answer = audit_pb2.VerifyAuditChainResponse(first_bad_seq=3, fault="record 3 was edited")
    console.lay_down("VerifyAuditChain", answer)
    result = ask("audit", "verify")
    assert result.exit_code == Exit.REFUSED
    assert result.stdout == "record 3 does not hold: record 3 was edited\n"
    assert result.stderr == "the chain is NOT intact\n"
    assert json.loads(ask("audit", "verify", "-o", "json").stdout)["firstBadSeq"] == "3"
