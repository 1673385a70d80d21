"""The CapEx commands: against a real console with the feeds of the demo, and what each sends."""

import io
import json
import re
from pathlib import Path

import pytest
from google.protobuf.json_format import MessageToJson
from rich.console import Console
from runink.core.atlas.v1 import capex_pb2 as pb
from runink.core.atlas.v1.common_pb2 import Figure

from core_console.cli import upload
from core_console.cli.failure import Exit
from core_console.cli.upload import FILE_BYTES_MAX
from tests.cli.conftest import LaidDownConsole
from tests.cli.site import Cli, Site

FEEDS = Path(__file__).resolve().parents[2] / "core_console" / "demo" / "feeds"
PLAN = "ItemId,Description,Type,Category,Lead_time_in_weeks,PurchaseDate,Units,PricePerUnit,Amount"


def staged(site: Site, feed: str, file: Path) -> str:
    answer = site.json("author", "capex", "stage", feed, str(file))
    assert isinstance(answer["stageId"], str)
    return answer["stageId"]


def loaded(site: Site) -> None:
    stages = [
        staged(site, feed, FEEDS / f"{feed}.csv")
        for feed in ("capital_plan", "capital_request", "spend")
    ]
    preview = site.as_("author", "capex", "preview", *stages)
    assert preview.exit_code == Exit.OK, preview.stderr
    assert re.search(r"^scored findings +0 +[1-9]", preview.stdout, re.MULTILINE)
    committed = site.as_("author", "capex", "commit", *stages, "--note", "November")
    assert committed.exit_code == Exit.OK, committed.stderr
    assert re.match(r"SCAN-\w+: [1-9][0-9]* scored findings, dq [0-9.]+%\n", committed.stdout)


def test_feeds_are_staged_previewed_committed_and_read(site: Site) -> None:
    assert "not loaded" in site.as_("author", "capex", "feeds").stdout
    loaded(site)
    assert "capital_plan.csv" in site.as_("author", "capex", "feeds").stdout
    summary = site.as_("stranger", "capex", "summary").stdout
    assert re.search(r"^critical +[1-9]", summary, re.MULTILINE)
    assert re.search(r"^CP-006 +[1-9]", summary, re.MULTILINE)

    listed = site.json("author", "capex", "findings", "--rule", "CP-006")["findings"]
    assert isinstance(listed, list)
    traced = site.as_("author", "capex", "trace", listed[0]["id"]).stdout
    assert "must hold" in traced
    assert re.search(r"^PricePerUnit +\S", traced, re.MULTILINE)

    assert len(site.as_("author", "capex", "rules").stdout.splitlines()) >= 25
    assert "UPLOAD" in site.as_("author", "capex", "scans").stdout
    assert "overall: " in site.as_("author", "capex", "dashboard").stdout


def test_findings_are_grouped_by_rule_with_the_count_over_all_pages(site: Site) -> None:
    loaded(site)
    page = ("capex", "findings", "--feed", "capital_plan", "--page-size")
    whole = site.as_("author", *page, "200").stdout
    counts = dict(re.findall(r"^(C[PR]-\d+) \w+ \w+: (\d+) finding", whole, re.MULTILINE))
    assert sum(map(int, counts.values())) == int(whole.split(" of ")[1].split()[0])
    cut = site.as_("author", *page, "3").stdout
    for rule, count in re.findall(r"^(C[PR]-\d+) \w+ \w+: (\d+) finding", cut, re.MULTILINE):
        assert counts[rule] == count
    assert " shown" in cut
    assert "there is more: --page-token " in cut


def test_a_draft_is_made_from_the_findings(site: Site) -> None:
    loaded(site)
    drafted = site.as_("author", "playbook", "draft", "--repo", "core", "--issue", "1")
    assert drafted.exit_code == Exit.OK, drafted.stderr
    assert "is DRAFT at revision 1" in drafted.stdout


def test_a_feed_is_cleared_and_the_date_is_set_and_unset(site: Site) -> None:
    loaded(site)
    cleared = site.as_("author", "capex", "clear", "spend", "--note", "wrong company")
    assert cleared.exit_code == Exit.OK, cleared.stderr
    assert "not measured: " in cleared.stdout
    config = ("capex", "config")
    assert site.as_("author", *config, "get").stdout.endswith("2027-03-31 (the default)\n")
    assert site.as_("author", *config, "set", "--go-live", "2027-06-30").exit_code == Exit.OK
    assert site.as_("author", *config, "get").stdout == "the Go-Live date is 2027-06-30\n"
    assert "(the default)" in site.as_("author", *config, "set", "--default").stdout
    assert site.as_("author", *config, "set").exit_code == Exit.USAGE
    refused = site.as_("author", *config, "set", "--go-live", "2027-02-30")
    assert (refused.exit_code, refused.stdout) == (Exit.REFUSED, "")


def test_the_faults_of_a_file_are_told_as_compilers_tell_theirs(site: Site, tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(f"{PLAN}\nA-1,Torque wrench,Tools,Capital,1,2027-01-06,1,12,x\nA-2,,,,,,,,1\n")
    result = site.as_("author", "capex", "stage", "capital_plan", str(file))
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    lines = result.stderr.splitlines()
    assert lines[0].startswith(f"{file}:2:9: not_a_number: ")
    assert lines[1].startswith(f"{file}:3:2: blank: ")
    answer = site.as_("author", "capex", "stage", "capital_plan", str(file), "-o", "json")
    assert answer.exit_code == Exit.REFUSED
    assert [issue["line"] for issue in json.loads(answer.stdout)["errors"]] == [2, 3]


def test_a_file_that_is_too_large_is_not_sent(
    console: LaidDownConsole, ask: Cli, tmp_path: Path
) -> None:
    file = tmp_path / "spend.csv"
    file.write_bytes(b"x" * (FILE_BYTES_MAX + 1))
    result = ask("capex", "stage", "spend", str(file))
    assert result.exit_code == Exit.REFUSED
    assert result.stderr == f"{file}: too_large: the file has more than 8,388,608 bytes\n"
    assert console.requests == []


def test_a_file_that_is_not_there_is_a_usage_fault(
    console: LaidDownConsole, ask: Cli, tmp_path: Path
) -> None:
    result = ask("capex", "stage", "spend", str(tmp_path / "absent.csv"))
    assert result.exit_code == Exit.USAGE
    assert "cannot be read: No such file" in result.stderr
    assert console.requests == []


def test_a_large_file_has_a_bar_on_a_terminal_alone(
    console: LaidDownConsole, ask: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = pb.StageFeedResponse(
        stage_id="STG-1", stage=pb.Stage(id="STG-1", feed=pb.FEED_SPEND, rows=3)
    )
    console.lay_down("StageFeed", answer)
    file = tmp_path / "spend.csv"
    file.write_bytes(b"x" * upload.LARGE_BYTES)
    piped = ask("capex", "stage", "spend", str(file))
    assert "reads spend.csv" not in piped.output
    screen = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(upload, "terminal", lambda **_: screen)
    shown = ask("capex", "stage", "spend", str(file))
    assert shown.exit_code == Exit.OK
    assert "the console reads spend.csv" in screen.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO above
    file.write_bytes(b"x")
    small = Console(file=io.StringIO(), force_terminal=True, width=80)
    monkeypatch.setattr(upload, "terminal", lambda **_: small)
    assert ask("capex", "stage", "spend", str(file)).exit_code == Exit.OK
    assert "reads" not in small.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO above


FINDING = pb.Finding(id="F-1", rule_id="CP-001", sheet=pb.FEED_CAPITAL_PLAN, dry_run=True)
UNSEEN = pb.Provenance(source=pb.SOURCE_UNAVAILABLE, unmeasured=["the disk is full"])

COMMANDS = [
    (("feeds",), "GetFeeds", pb.GetFeedsRequest(), pb.GetFeedsResponse()),
    (
        ("preview", "S-1", "S-2"),
        "PreviewIngest",
        pb.PreviewIngestRequest(stage_ids=["S-1", "S-2"]),
        pb.PreviewIngestResponse(findings=[FINDING], provenance=UNSEEN),
    ),
    (
        ("commit", "S-1", "--note", "why"),
        "CommitIngest",
        pb.CommitIngestRequest(stage_ids=["S-1"], note="why"),
        pb.CommitIngestResponse(scan_run=pb.ScanRun(id="SCAN-1")),
    ),
    (
        ("clear", "SPEND", "--note", "why"),
        "ClearFeed",
        pb.ClearFeedRequest(feed=pb.FEED_SPEND, note="why"),
        pb.ClearFeedResponse(scan_run=pb.ScanRun(id="SCAN-1")),
    ),
    (("summary",), "GetSummary", pb.GetSummaryRequest(), pb.GetSummaryResponse(provenance=UNSEEN)),
    (
        ("findings", "--rule", "cp-001", "--feed", "spend", "--severity", "high"),
        "ListFindings",
        pb.ListFindingsRequest(rule_id="CP-001", feed=pb.FEED_SPEND, severity=pb.SEVERITY_HIGH),
        pb.ListFindingsResponse(findings=[FINDING], total=1),
    ),
    (
        ("trace", "F-1"),
        "TraceFinding",
        pb.TraceFindingRequest(finding_id="F-1"),
        pb.TraceFindingResponse(finding=FINDING, rows=[pb.TracedRow(row_number=3)]),
    ),
    (("rules",), "GetRuleBook", pb.GetRuleBookRequest(), pb.GetRuleBookResponse()),
    (
        ("scans", "--page-size", "2"),
        "ListScanRuns",
        pb.ListScanRunsRequest(page_size=2),
        pb.ListScanRunsResponse(scan_runs=[pb.ScanRun(id="SCAN-1")]),
    ),
    (
        ("dashboard",),
        "GetDashboard",
        pb.GetDashboardRequest(),
        pb.GetDashboardResponse(overall=Figure(absent_reason="no feed is loaded")),
    ),
    (("config", "get"), "GetConfig", pb.GetConfigRequest(), pb.GetConfigResponse()),
    (
        ("config", "set", "--go-live", "2027-06-30"),
        "UpdateConfig",
        pb.UpdateConfigRequest(go_live_date="2027-06-30"),
        pb.UpdateConfigResponse(config=pb.CapexConfig(go_live_date="2027-06-30")),
    ),
]


@pytest.mark.parametrize(
    ("args", "method", "request_", "response"), COMMANDS, ids=[case[1] for case in COMMANDS]
)
def test_each_command_sends_its_request_and_prints_the_answer_in_both_forms(
    console: LaidDownConsole,
    ask: Cli,
    run: Cli,
    args: tuple[str, ...],
    method: str,
    request_: pb.GetFeedsRequest,
    response: pb.GetFeedsResponse,
) -> None:
    console.lay_down(method, response)
    result = ask("capex", *args, "-o", "json")
    assert (result.exit_code, result.stdout) == (Exit.OK, MessageToJson(response) + "\n")
    assert console.the_request() == request_
    people = ask("capex", *args)
    assert (people.exit_code, people.stderr) == (Exit.OK, "")
    assert people.stdout
    words = [word for word in args[:2] if word in {"config", "get", "set"}] or [args[0]]
    assert f"Example: core-console capex {' '.join(words)}" in " ".join(
        run("capex", *words, "--help").stdout.split()
    )


def test_what_could_not_be_looked_at_is_no_figure(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("GetSummary", pb.GetSummaryResponse(provenance=UNSEEN))
    shown = ask("capex", "summary").stdout
    assert shown == (
        "it could not be looked, so there is no figure\nnot measured: the disk is full\n"
    )


def test_a_finding_that_counts_in_no_figure_says_so(console: LaidDownConsole, ask: Cli) -> None:
    console.lay_down("ListFindings", pb.ListFindingsResponse(findings=[FINDING], total=1))
    assert "1 finding, dry run: counts in no figure" in ask("capex", "findings").stdout


@pytest.mark.parametrize(
    "args",
    [("stage", "plan", "f"), ("preview",), ("clear", "spend"), ("findings", "--severity", "LOW")],
    ids=" ".join,
)
def test_bad_usage_sends_nothing(console: LaidDownConsole, ask: Cli, args: tuple[str, ...]) -> None:
    assert ask("capex", *args).exit_code == Exit.USAGE
    assert console.requests == []
