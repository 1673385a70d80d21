"""The writes of CapexService: what each answers, refuses and records."""

import grpc
import pytest
from runink.core.atlas.v1 import capex_pb2 as pb

from core_console.ports import Fault
from core_console.rpc.handlers import MESSAGE_BYTES
from tests.builders import AUTHOR, STRANGER
from tests.rpc.feeds import CLEAN, PLAN, committed, faulty_plan, staged, upload
from tests.rpc.site import Refusal, Site, refused

MIB = 1024 * 1024


async def denied(console: Site) -> list[Refusal]:
    """Try every write as somebody who is no Atlas admin."""
    stranger = console.named(STRANGER).capex
    return [
        await refused(stranger.StageFeed(upload())),
        await refused(stranger.CommitIngest(pb.CommitIngestRequest(stage_ids=["STG-1"]))),
        await refused(stranger.ClearFeed(pb.ClearFeedRequest(feed=pb.FEED_SPEND))),
        await refused(stranger.UpdateConfig(pb.UpdateConfigRequest())),
    ]


async def test_only_an_atlas_admin_writes_and_every_attempt_is_recorded(console: Site) -> None:
    assert {each.code for each in await denied(console)} == {grpc.StatusCode.PERMISSION_DENIED}
    found = [(each.actor, each.action, each.outcome) for each in await console.records()]
    assert found == [
        (STRANGER, f"atlas.capex.{word}", "denied")
        for word in ("stage", "commit", "clear", "config.update")
    ]
    assert console.engines.blobs.held == {}


async def test_an_open_console_refuses_every_write_and_shows_every_read(
    open_console: Site,
) -> None:
    capex = open_console.caller().capex
    answer = await refused(capex.StageFeed(upload()))
    assert answer.code is grpc.StatusCode.UNAUTHENTICATED
    assert (await capex.GetSummary(pb.GetSummaryRequest())).provenance.source == pb.SOURCE_EMPTY
    preview = await refused(capex.PreviewIngest(pb.PreviewIngestRequest()))
    assert preview.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_staged_file_is_shown_until_it_expires(console: Site) -> None:
    csv = CLEAN[PLAN].replace(b"ItemId", b"ItemId,Extra").replace(b"IT-1", b"IT-1,x")
    answer = await console.capex.StageFeed(upload(csv))
    (shown,) = (await console.capex.GetFeeds(pb.GetFeedsRequest())).stages
    assert (shown, answer.stage_id, list(answer.errors)) == (answer.stage, shown.id, [])
    assert (shown.feed, shown.filename, shown.rows) == (pb.FEED_CAPITAL_PLAN, "plan.csv", 1)
    assert (shown.staged_by, len(shown.digest)) == (AUTHOR, 64)
    assert shown.expires_at.seconds - shown.staged_at.seconds == 1_800
    assert "Extra" in shown.notes[0]
    console.clock.jump(1_800)
    assert not (await console.capex.GetFeeds(pb.GetFeedsRequest())).stages
    gone = await refused(console.capex.CommitIngest(pb.CommitIngestRequest(stage_ids=[shown.id])))
    assert (gone.code, list(gone.fields)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        ["stage_ids[0]"],
    )


async def test_a_files_own_faults_are_an_answer_and_recorded_as_a_failure(console: Site) -> None:
    csv = b"".join([CLEAN[PLAN], b"IT-2,,Tools,Capital,10,2027-01-20,2,500,many\n"])
    answer = await console.capex.StageFeed(upload(csv))
    assert (answer.stage_id, answer.HasField("stage")) == ("", False)
    assert [(each.code, each.line, each.column) for each in answer.errors] == [
        ("blank", 3, 2),
        ("not_a_number", 3, 9),
    ]
    (record,) = await console.records()
    assert (record.action, record.outcome) == ("atlas.capex.stage", "failure")
    assert record.detail == "the file was not staged: it has 2 issues (blank, not_a_number)"


async def test_a_file_over_8_mib_is_a_fault_of_the_file_up_to_the_largest_message(
    console: Site,
) -> None:
    for size in (8 * MIB + 1, 9 * MIB, 16 * MIB):
        answer = await console.capex.StageFeed(upload(b"x" * size))
        assert [each.code for each in answer.errors] == ["too_large"]
    beyond = await refused(console.capex.StageFeed(upload(b"x" * (17 * MIB))))
    assert beyond.code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_no_other_method_takes_a_message_of_that_size(console: Site) -> None:
    large = pb.CommitIngestRequest(note="x" * MESSAGE_BYTES)
    answer = await refused(console.capex.CommitIngest(large))
    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "at most 4,194,304" in answer.sentence
    (record,) = await console.records()
    assert (record.action, record.outcome, record.target) == ("atlas.capex.commit", "failure", "")


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (upload(feed=pb.FEED_UNSPECIFIED), "feed"),
        (upload(filename=""), "filename"),
        (upload(filename="a/b.csv"), "filename"),
        (upload(filename="x" * 121), "filename"),
    ],
)
async def test_every_bad_field_of_an_upload_is_named(
    console: Site, request_: pb.StageFeedRequest, field: str
) -> None:
    answer = await refused(console.capex.StageFeed(request_))
    assert (answer.code, list(answer.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
    unknown = pb.StageFeedRequest(filename="x", csv=b"x")
    unknown.feed = 9  # type: ignore[assignment]  # a number that no member has
    answer = await refused(console.capex.StageFeed(unknown))
    assert list(answer.fields) == ["feed"]


async def test_the_thirteenth_stage_says_when_the_oldest_expires(console: Site) -> None:
    for number in range(12):
        await staged(console, CLEAN[PLAN].replace(b"IT-1", f"IT-{number}".encode()))
    answer = await refused(console.capex.StageFeed(upload()))
    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "expires at 2026-11-30T12:30:00Z" in answer.sentence


async def test_a_commit_answers_its_scan_run_and_is_recorded(console: Site) -> None:
    run = await committed(console, faulty_plan(), "first load")
    assert (run.trigger, run.actor, run.note) == (pb.SCAN_TRIGGER_UPLOAD, AUTHOR, "first load")
    assert run.summary.by_rule["CP-001"] == 1
    assert run.summary.by_severity["CRITICAL"] >= 1
    assert run.summary.feeds[0].rows_flagged == 1
    assert (await console.capex.ListScanRuns(pb.ListScanRunsRequest())).scan_runs == [run]
    records = {each.action: each for each in await console.records()}
    record = records["atlas.capex.commit"]
    assert (record.actor, record.outcome, record.document) == (AUTHOR, "success", "capex")
    assert record.target.startswith(run.id)
    assert "atlas.events.raise" in records, "a commit is told to the triggers at once"


async def test_a_commit_takes_at_most_one_stage_a_feed(console: Site) -> None:
    ids = [await staged(console), await staged(console, faulty_plan())]
    answer = await refused(console.capex.CommitIngest(pb.CommitIngestRequest(stage_ids=ids)))
    assert (answer.code, list(answer.fields)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        ["stage_ids[1]"],
    )
    none = await refused(console.capex.CommitIngest(pb.CommitIngestRequest()))
    assert list(none.fields) == ["stage_ids"]


@pytest.mark.parametrize("note", ["x" * 1_001, "gh" + "p_" + "a" * 36, "\x07"])
async def test_a_note_is_bounded_and_screened(console: Site, note: str) -> None:
    stage = await staged(console)
    for call in (
        console.capex.CommitIngest(pb.CommitIngestRequest(stage_ids=[stage], note=note)),
        console.capex.ClearFeed(pb.ClearFeedRequest(feed=pb.FEED_SPEND, note=note)),
    ):
        answer = await refused(call)
        assert (answer.code, list(answer.fields)) == (
            grpc.StatusCode.INVALID_ARGUMENT,
            ["note"],
        )
        assert note not in answer.sentence


async def test_a_feed_is_cleared_once(console: Site) -> None:
    await committed(console)
    request = pb.ClearFeedRequest(feed=pb.FEED_SPEND, note="wrong month")
    answer = await console.capex.ClearFeed(request)
    assert (answer.scan_run.trigger, answer.scan_run.note) == (
        pb.SCAN_TRIGGER_CLEAR,
        "wrong month",
    )
    assert [each.loaded for each in answer.scan_run.summary.feeds] == [True, True, False]
    again = await refused(console.capex.ClearFeed(request))
    assert again.code is grpc.StatusCode.FAILED_PRECONDITION
    unnamed = await refused(console.capex.ClearFeed(pb.ClearFeedRequest()))
    assert list(unnamed.fields) == ["feed"]


async def test_the_go_live_date_is_set_and_taken_back(console: Site) -> None:
    config = await console.capex.GetConfig(pb.GetConfigRequest())
    assert (config.config.go_live_date, config.provenance.source) == (
        "2027-03-31",
        pb.SOURCE_DEFAULT,
    )
    request = pb.UpdateConfigRequest(go_live_date="2027-06-01")
    for _ in range(2):
        answer = await console.capex.UpdateConfig(request)
        assert (answer.config.go_live_date, answer.provenance.source) == (
            "2027-06-01",
            pb.SOURCE_LIVE,
        )
    back = await console.capex.UpdateConfig(pb.UpdateConfigRequest())
    assert (back.config, back.provenance) == (config.config, config.provenance)
    details = [each.detail for each in await console.records()]
    assert details == [
        f"{AUTHOR} set Go-Live to 2027-06-01; it was 2027-03-31",
        "the same again; nothing changed",
        f"{AUTHOR} set Go-Live to 2027-03-31 (the default); it was 2027-06-01",
    ]


@pytest.mark.parametrize("date", ["2027-02-29", "31.3.2027", "soon", "2027-3-1", "20270331"])
async def test_a_go_live_date_is_one_of_the_calendar(console: Site, date: str) -> None:
    request = pb.UpdateConfigRequest(go_live_date=date)
    answer = await refused(console.capex.UpdateConfig(request))
    assert (answer.code, list(answer.fields)) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        ["go_live_date"],
    )


async def test_a_write_that_cannot_be_written_is_unavailable(console: Site) -> None:
    stage = await staged(console)
    console.engines.feeds_store.troubles.before.append(Fault("the disk is full"))
    answer = await refused(console.capex.CommitIngest(pb.CommitIngestRequest(stage_ids=[stage])))
    assert (answer.code, answer.sentence) == (grpc.StatusCode.UNAVAILABLE, "the disk is full")
    assert (await console.capex.GetFeeds(pb.GetFeedsRequest())).stages[0].id == stage
