"""The reads of CapexService: every figure says where it comes from, and none is invented."""

import base64
import json
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from runink.core.atlas.v1 import capex_pb2 as pb

from core_console.capex.rules.book import RULE_BOOK
from core_console.ports import Fault
from tests.builders import AUTHOR, STRANGER
from tests.capex.house import plans
from tests.rpc.feeds import CLEAN, PLAN, committed, faulty_plan, staged, upload
from tests.rpc.site import Site, refused

READS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "GetFeeds": lambda capex: capex.GetFeeds(pb.GetFeedsRequest()),
    "GetSummary": lambda capex: capex.GetSummary(pb.GetSummaryRequest()),
    "ListFindings": lambda capex: capex.ListFindings(pb.ListFindingsRequest()),
    "TraceFinding": lambda capex: capex.TraceFinding(pb.TraceFindingRequest(finding_id="x")),
    "ListScanRuns": lambda capex: capex.ListScanRuns(pb.ListScanRunsRequest()),
    "GetDashboard": lambda capex: capex.GetDashboard(pb.GetDashboardRequest()),
    "GetConfig": lambda capex: capex.GetConfig(pb.GetConfigRequest()),
    "GetRuleBook": lambda capex: capex.GetRuleBook(pb.GetRuleBookRequest()),
}


async def all_findings(console: Site, **filters: Any) -> list[pb.Finding]:  # noqa: ANN401 -- any filter
    """Return every page's findings, which are as many as each page says in all."""
    found: list[pb.Finding] = []
    token = ""
    while True:
        request = pb.ListFindingsRequest(page_size=2, page_token=token, **filters)
        answer = await console.capex.ListFindings(request)
        found += answer.findings
        token = answer.next_page_token
        if not token:
            assert len(found) == answer.total
            return found


@pytest.mark.parametrize("name", READS)
async def test_a_store_that_is_away_is_a_normal_answer_with_the_reason(
    console: Site, name: str
) -> None:
    await committed(console)

    async def away() -> str:
        raise Fault("the disk is away")

    console.engines.feeds_store.version = away  # type: ignore[method-assign]  # from now on
    answer = await READS[name](console.named(STRANGER).capex)
    assert answer.provenance.source == pb.SOURCE_UNAVAILABLE
    assert list(answer.provenance.unmeasured) == ["could not look: the disk is away"]
    shown = {field.name for field, _ in answer.ListFields()} - {"provenance"}
    expected = {"GetDashboard": {"overall"}, "GetRuleBook": {"rules"}}.get(name, set())
    assert shown == expected, "nothing that could be taken for a figure"


@pytest.mark.parametrize("name", ["GetSummary", "ListFindings", "GetDashboard"])
async def test_a_blob_that_is_gone_is_a_normal_answer_too(console: Site, name: str) -> None:
    await committed(console)
    console.engines.blobs.held.clear()
    console.engines.feeds.evaluator._evaluations.clear()
    answer = await READS[name](console.capex)
    assert answer.provenance.source == pb.SOURCE_UNAVAILABLE
    assert "gone" in answer.provenance.unmeasured[0]
    feeds = await console.capex.GetFeeds(pb.GetFeedsRequest())
    assert [each.loaded for each in feeds.feeds] == [True] * 3


async def test_a_console_without_feeds_says_empty_and_no_zero(console: Site) -> None:
    answer = await console.capex.GetSummary(pb.GetSummaryRequest())
    assert answer.provenance.source == pb.SOURCE_EMPTY
    assert (answer.summary.dq.HasField("value"), answer.summary.dq.absent_reason) == (
        False,
        "no feed is loaded",
    )
    assert dict(answer.summary.by_rule) == {}
    assert len(answer.provenance.unmeasured) == len(RULE_BOOK)
    dashboard = await console.capex.GetDashboard(pb.GetDashboardRequest())
    assert not dashboard.overall.HasField("value")
    assert dashboard.overall.absent_reason


async def test_the_header_contract_is_told_before_anything_is_loaded(console: Site) -> None:
    plan, request, spend = (await console.capex.GetFeeds(pb.GetFeedsRequest())).feeds
    assert list(plan.contract.columns)[:3] == ["ItemId", "Description", "Type"]
    assert list(request.contract.must_not_be_blank) == ["ID", "Amount"]
    assert list(spend.contract.columns) == [
        "PoNo",
        "PODate",
        "Amount",
        "ApprovalId",
        "ItemId",
        "Type",
    ]
    assert [plan.loaded, request.loaded, spend.loaded] == [False] * 3


async def test_a_summary_has_the_figures_and_who_committed_each_feed(console: Site) -> None:
    await committed(console, faulty_plan())
    answer = await console.capex.GetSummary(pb.GetSummaryRequest())
    assert answer.provenance.source == pb.SOURCE_DEFAULT
    summary = answer.summary
    assert summary.findings == sum(summary.by_severity.values()) == sum(summary.by_rule.values())
    assert set(summary.by_severity) == {"CRITICAL", "HIGH", "MEDIUM"}
    plan = summary.feeds[0]
    assert (plan.filename, plan.committed_by, plan.rows) == ("capital_plan.csv", AUTHOR, 1)
    assert plan.committed_at.seconds == int(console.clock.now().timestamp())
    assert 0 < summary.dq.value < 1


async def test_findings_come_by_rule_then_row_and_every_one_of_them_once(console: Site) -> None:
    await committed(console, faulty_plan(5))
    found = await all_findings(console)
    book = [rule.id for rule in RULE_BOOK]
    places = [(book.index(each.rule_id), each.row_number) for each in found]
    assert places == sorted(places)
    assert len({each.id for each in found}) == len(found) > 5
    ours = await all_findings(console, rule_id="CP-001")
    assert [each.row_number for each in ours] == [1, 2, 3, 4, 5]
    severe = await all_findings(console, severity=pb.SEVERITY_CRITICAL)
    assert severe == [each for each in found if each.severity == pb.SEVERITY_CRITICAL]
    asked = await all_findings(console, feed=pb.FEED_CAPITAL_REQUEST)
    assert asked == [each for each in found if each.sheet == pb.FEED_CAPITAL_REQUEST]


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"rule_id": "CP-01"}, "rule_id"),
        ({"feed": 9}, "feed"),
        ({"severity": 9}, "severity"),
        ({"page_size": 201}, "page_size"),
        ({"page_size": -1}, "page_size"),
        ({"page_token": "nonsense"}, "page_token"),
    ],
)
async def test_a_filter_that_takes_nothing_is_refused_rather_than_counted_as_none(
    console: Site, filters: dict[str, Any], field: str
) -> None:
    answer = await refused(console.capex.ListFindings(pb.ListFindingsRequest(**filters)))
    assert (answer.code, list(answer.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])


async def a_token(console: Site) -> str:
    await committed(console, faulty_plan(5))
    first = await console.capex.ListFindings(pb.ListFindingsRequest(page_size=2))
    assert first.next_page_token
    return first.next_page_token


async def test_a_page_token_dies_with_a_commit_and_says_why(console: Site) -> None:
    token = await a_token(console)
    stage = await staged(console, faulty_plan(4))
    again = pb.ListFindingsRequest(page_size=2, page_token=token)
    await console.capex.ListFindings(again)
    await console.capex.CommitIngest(pb.CommitIngestRequest(stage_ids=[stage]))
    answer = await refused(console.capex.ListFindings(again))
    assert (answer.code, list(answer.fields)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        ["page_token"],
    )
    assert "from before the feeds changed" in answer.sentence


async def test_a_page_token_dies_with_the_go_live_date_and_says_so(console: Site) -> None:
    token = await a_token(console)
    await console.capex.UpdateConfig(pb.UpdateConfigRequest(go_live_date="2028-01-01"))
    await console.capex.ClearFeed(pb.ClearFeedRequest(feed=pb.FEED_SPEND))
    answer = await refused(console.capex.ListFindings(pb.ListFindingsRequest(page_token=token)))
    assert "from before the feeds and the Go-Live date changed" in answer.sentence


async def test_a_page_token_is_good_for_its_own_filters_only(console: Site) -> None:
    token = await a_token(console)
    other = pb.ListFindingsRequest(rule_id="CP-001", page_token=token)
    answer = await refused(console.capex.ListFindings(other))
    assert "no token of this list" in answer.sentence


async def test_a_page_token_that_tells_of_no_feeds_is_none(console: Site) -> None:
    token = json.loads(base64.urlsafe_b64decode(await a_token(console)))
    del token["b"]
    forged = base64.urlsafe_b64encode(json.dumps(token).encode()).decode()
    answer = await refused(console.capex.ListFindings(pb.ListFindingsRequest(page_token=forged)))
    assert "no token of this list" in answer.sentence


async def test_a_page_token_that_points_outside_of_the_list_shows_nothing_of_it(
    console: Site,
) -> None:
    token = json.loads(base64.urlsafe_b64decode(await a_token(console)))
    for place, shown in ((-3, 2), (10**9, 0)):
        token["p"][0] = place
        forged = base64.urlsafe_b64encode(json.dumps(token).encode()).decode()
        request = pb.ListFindingsRequest(page_size=2, page_token=forged)
        assert len((await console.capex.ListFindings(request)).findings) == shown


async def test_a_finding_is_traced_to_the_rows_that_its_verdict_read(console: Site) -> None:
    await committed(console, plans("IT-1", "IT-1"))
    (first, _) = await all_findings(console, rule_id="CP-002")
    answer = await console.capex.TraceFinding(pb.TraceFindingRequest(finding_id=first.id))
    assert answer.finding == first
    assert "no other row has it" in answer.condition
    assert answer.remediation
    assert [(each.row_number, each.line) for each in answer.rows] == [(1, 2), (2, 3)]
    assert (answer.rows[0].cells[0].column, answer.rows[0].cells[0].value) == ("ItemId", "IT-1")


async def test_a_long_list_of_rows_says_how_many_it_leaves_out(console: Site) -> None:
    await committed(console, plans(*["IT-1"] * 502))
    first = (await console.capex.ListFindings(pb.ListFindingsRequest(rule_id="CP-002"))).findings
    request = pb.TraceFindingRequest(finding_id=first[0].id)
    answer = await console.capex.TraceFinding(request)
    assert len(answer.rows) == 500
    assert any("2 more rows" in reason for reason in answer.provenance.unmeasured)
    stage = await staged(console, faulty_plan(501))
    preview = await console.capex.PreviewIngest(pb.PreviewIngestRequest(stage_ids=[stage]))
    assert len(preview.findings) == 500
    assert any("more findings are not listed" in each for each in preview.provenance.unmeasured)


@pytest.mark.parametrize("finding_id", ["", "CP-001.abc-1", "gh" + "p_" + "a" * 30, "x" * 5_000])
async def test_a_finding_that_is_none_now_is_not_found(console: Site, finding_id: str) -> None:
    await committed(console)
    request = pb.TraceFindingRequest(finding_id=finding_id)
    answer = await refused(console.capex.TraceFinding(request))
    assert answer.code is grpc.StatusCode.NOT_FOUND
    assert (finding_id in answer.sentence) == (finding_id in {"", "CP-001.abc-1"})


async def test_the_rule_book_has_its_24_rules_with_the_thresholds_in_force(console: Site) -> None:
    answer = await console.capex.GetRuleBook(pb.GetRuleBookRequest())
    assert [each.id for each in answer.rules] == [rule.id for rule in RULE_BOOK]
    found = {each.id: each for each in answer.rules}
    assert "14 days" in found["CP-007"].condition
    assert found["SP-003"].dimension == "Accuracy"
    assert found["CP-001"].severity == pb.SEVERITY_CRITICAL
    assert {each.effect for each in answer.rules} == {pb.RULE_EFFECT_SCORED}
    assert all(each.remediation for each in answer.rules)


async def test_scan_runs_come_newest_first_and_the_newest_fifty_are_kept(console: Site) -> None:
    stage_ids = []
    for number in range(52):
        stage_ids.append(await staged(console, plans(f"IT-{number}")))
        request = pb.CommitIngestRequest(stage_ids=stage_ids[-1:], note=str(number))
        await console.capex.CommitIngest(request)
    first = await console.capex.ListScanRuns(pb.ListScanRunsRequest(page_size=30))
    rest = await console.capex.ListScanRuns(
        pb.ListScanRunsRequest(page_size=30, page_token=first.next_page_token)
    )
    notes = [each.note for each in (*first.scan_runs, *rest.scan_runs)]
    assert notes == [str(number) for number in range(51, 1, -1)]
    assert rest.next_page_token == ""


async def test_the_dashboard_has_every_dimension_and_what_none_maps_is_absent(
    console: Site,
) -> None:
    await committed(console, faulty_plan())
    answer = await console.capex.GetDashboard(pb.GetDashboardRequest())
    found = {each.dimension: each for each in answer.dimensions}
    assert list(found) == [
        "Completeness",
        "Validity",
        "Consistency",
        "Accuracy",
        "Timeliness",
        "Uniqueness",
    ]
    complete = found["Completeness"]
    assert list(complete.rule_ids) == ["CP-001", "CR-003", "CR-005", "SP-001"]
    assert complete.effectiveness.value == complete.held / complete.judged
    assert found["Uniqueness"].effectiveness.absent_reason == "no rule is mapped to this dimension"
    judged = sum(each.judged for each in answer.dimensions)
    assert answer.overall.value == sum(each.held for each in answer.dimensions) / judged


async def test_a_preview_shows_before_and_after_and_records_nothing(console: Site) -> None:
    await committed(console)
    stage = await staged(console, faulty_plan())
    before = await console.records()
    request = pb.PreviewIngestRequest(stage_ids=[stage])
    answer = await console.named(STRANGER).capex.PreviewIngest(request)
    assert (answer.before.findings, answer.after.by_rule["CP-001"]) == (0, 1)
    assert answer.findings[0].rule_id == "CP-001"
    assert answer.provenance.source == pb.SOURCE_DEFAULT
    assert await console.records() == before
    shown = await console.capex.GetFeeds(pb.GetFeedsRequest())
    assert [each.id for each in shown.stages] == [stage]


async def test_a_preview_over_a_feed_that_cannot_be_read_says_so(console: Site) -> None:
    await committed(console)
    console.engines.blobs.held.clear()
    console.engines.feeds.evaluator._evaluations.clear()
    stage = await staged(console, CLEAN[PLAN].replace(b"IT-1", b"IT-2"))
    request = pb.PreviewIngestRequest(stage_ids=[stage])
    answer = await console.capex.PreviewIngest(request)
    assert [answer.HasField(name) for name in ("before", "after")] == [False, False]
    assert answer.provenance.source == pb.SOURCE_UNAVAILABLE
    assert [each.partition(":")[0] for each in answer.provenance.unmeasured] == [
        "could not look",
        "before",
    ]


async def test_a_preview_of_the_file_that_mends_a_feed_shows_what_it_would_be(
    console: Site,
) -> None:
    run = await committed(console)
    del console.engines.blobs.held[run.summary.feeds[0].digest]
    console.engines.feeds.evaluator._evaluations.clear()
    stage = await staged(console, faulty_plan())
    answer = await console.capex.PreviewIngest(pb.PreviewIngestRequest(stage_ids=[stage]))
    assert (answer.HasField("before"), answer.after.by_rule["CP-001"]) == (False, 1)
    assert answer.provenance.source == pb.SOURCE_DEFAULT
    assert answer.provenance.unmeasured[-1].startswith("before: could not look")


async def test_a_formula_is_text_and_what_steers_a_screen_is_shown_as_its_code(
    console: Site,
) -> None:
    csv = plans("=1+1", "\u202eIT").replace(b"Tools", "T\u202eools".encode())
    stage = await console.capex.StageFeed(upload(csv))
    await console.capex.CommitIngest(pb.CommitIngestRequest(stage_ids=[stage.stage_id]))
    found = await all_findings(console, rule_id="CP-002")
    assert [each.row_key for each in found] == ["=1+1", "\\u202eIT"]
    assert not any("\u202e" in each.message for each in await all_findings(console))
