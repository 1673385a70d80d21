"""Stage, preview, commit, clear: what each keeps, and what it leaves alone."""

from datetime import date

import pytest

from core_console.app.feeds import FeedParts
from core_console.capex.feeds import CSV_BYTES_MAX
from core_console.capex.looking import Seen, Unseen
from core_console.capex.service import STAGING_MAX, Preview, Recorded
from core_console.decide.outcome import CapexAccepted, Code, Refused
from core_console.model.capex import Config, ParseIssue, Source
from core_console.model.capex_document import ScanTrigger
from core_console.ports import Fault
from tests.builders import AUTHOR, SECOND
from tests.capex.house import (
    CLEAN,
    PLAN,
    REQUEST,
    SPEND,
    House,
    committed,
    counts,
    faulty_plan,
    plans,
    staged,
)


async def test_a_staged_file_changes_no_feed_and_is_kept_as_a_blob(
    house: House, feeds: FeedParts
) -> None:
    stage = await staged(feeds.capex, PLAN, CLEAN[PLAN])
    assert await house.blobs.get(stage.digest) == CLEAN[PLAN]
    document = await house.stored()
    assert (document.feeds, document.stages, document.scans) == ({}, (stage,), ())
    assert [each.action for each in await house.records(feeds)] == ["atlas.capex.stage"]


@pytest.mark.parametrize(
    ("csv", "code"),
    [
        (b"", "empty"),
        (b"x" * (CSV_BYTES_MAX + 1), "too_large"),
        (CLEAN[PLAN].replace(b"Torque", b"T\xe9"), "not_utf8"),
        (CLEAN[PLAN].replace(b"Amount", b"Sum"), "missing_column"),
        (CLEAN[PLAN].replace(b"Torque station", b""), "blank"),
        (CLEAN[PLAN].replace(b'"1,000.00"', b"1e3"), "not_a_number"),
        (CLEAN[PLAN].replace(b"Torque", b'Tor"que'), "malformed_csv"),
    ],
)
async def test_a_file_with_a_fault_is_answered_and_nothing_is_kept(
    house: House, feeds: FeedParts, csv: bytes, code: str
) -> None:
    found = await feeds.capex.stage(actor=AUTHOR, feed=PLAN, filename="x.csv", csv=csv)
    assert isinstance(found, tuple)
    assert isinstance(found[0], ParseIssue)
    assert {str(each.code) for each in found} == {code}
    assert (house.blobs.held, house.log.lines) == ({}, [])
    assert await house.document.version() == ""


async def test_fifty_thousand_rows_are_taken_and_one_more_is_not(feeds: FeedParts) -> None:
    head, row = CLEAN[SPEND].splitlines()
    most = b"\n".join([head, *[row] * 50_000])
    assert (await staged(feeds.capex, SPEND, most)).rows == 50_000
    found = await feeds.capex.stage(
        actor=AUTHOR, feed=SPEND, filename="x.csv", csv=most + b"\n" + row
    )
    assert isinstance(found, tuple)
    assert found[0].code == "too_large"


async def test_what_may_not_be_staged_costs_no_blob(house: House, feeds: FeedParts) -> None:
    for number in range(12):
        await staged(feeds.capex, PLAN, plans(f"IT-{number}"))
    for filename in ("more.csv", "a/b.csv"):
        found = await feeds.capex.stage(
            actor=AUTHOR, feed=PLAN, filename=filename, csv=plans("IT-13")
        )
        assert isinstance(found, Refused)
    assert len(house.blobs.held) == 12


async def test_a_burst_of_uploads_is_refused_rather_than_held_in_memory(feeds: FeedParts) -> None:
    feeds.capex._staging = STAGING_MAX
    found = await feeds.capex.stage(actor=AUTHOR, feed=PLAN, filename="p.csv", csv=CLEAN[PLAN])
    assert isinstance(found, Refused)
    assert (found.code, "try again" in found.reason) == (Code.RESOURCE_EXHAUSTED, True)
    feeds.capex._staging = STAGING_MAX - 1
    assert (await staged(feeds.capex, PLAN, CLEAN[PLAN])).rows == 1
    assert feeds.capex._staging == STAGING_MAX - 1


async def test_a_preview_shows_before_and_after_and_writes_nothing(
    house: House, feeds: FeedParts
) -> None:
    await committed(feeds.capex, CLEAN)
    stage = await staged(feeds.capex, PLAN, faulty_plan())
    await feeds.engine.recorded()
    version, lines, blobs = (
        await house.document.version(),
        len(house.log.lines),
        len(house.blobs.held),
    )
    found = await feeds.capex.preview([stage.id])
    assert isinstance(found, Preview)
    assert isinstance(found.before, Seen)
    assert isinstance(found.after, Seen)
    assert (found.before.summary.findings, found.after.summary.by_rule["CP-001"]) == (0, 1)
    assert await counts(feeds.capex) == {}, "the current feeds are what they were"
    await feeds.engine.recorded()
    assert (await house.document.version(), len(house.log.lines)) == (version, lines)
    assert len(house.blobs.held) == blobs


async def test_a_preview_of_no_stage_or_a_wrong_one_is_refused(feeds: FeedParts) -> None:
    for ids in ([], ["STG-9"], ["STG-9"] * 4):
        found = await feeds.capex.preview(ids)
        assert isinstance(found, Refused)
        assert found.code is Code.INVALID_ARGUMENT


async def test_a_commit_replaces_its_feeds_wholesale_and_leaves_the_others(
    house: House, feeds: FeedParts
) -> None:
    first = await committed(feeds.capex, CLEAN, "all of it")
    assert (first.scan.trigger, first.scan.actor, first.scan.note) == (
        ScanTrigger.UPLOAD,
        AUTHOR,
        "all of it",
    )
    assert (first.scan.summary.findings, first.provenance.source) == (0, Source.DEFAULT)
    before = await house.stored()
    second = await committed(feeds.capex, {PLAN: faulty_plan(2)})
    after = await house.stored()
    assert after.feeds[REQUEST] == before.feeds[REQUEST]
    assert after.feeds[SPEND] == before.feeds[SPEND]
    assert (after.feeds[PLAN].rows, after.stages) == (2, ())
    assert second.scan.summary.by_rule["CP-001"] == 2
    assert [each.id for each in after.scans] == [first.scan.id, second.scan.id]
    assert house.raised == 2


async def test_what_is_kept_of_a_scan_is_what_a_read_shows(feeds: FeedParts) -> None:
    recorded = await committed(feeds.capex, {**CLEAN, PLAN: faulty_plan(3)})
    seen = await feeds.capex.eyes.look()
    assert isinstance(seen, Seen)
    assert recorded.scan.summary == seen.summary


async def test_a_clear_empties_one_feed(house: House, feeds: FeedParts) -> None:
    await committed(feeds.capex, CLEAN)
    found = await feeds.capex.clear(actor=SECOND, feed=SPEND, note="wrong month")
    assert isinstance(found, Recorded)
    assert (found.scan.trigger, found.scan.actor) == (ScanTrigger.CLEAR, SECOND)
    assert set((await house.stored()).feeds) == {PLAN, REQUEST}
    assert any("spend" in reason for reason in found.provenance.unmeasured)
    assert house.raised == 1, "a clear raises nothing"
    again = await feeds.capex.clear(actor=SECOND, feed=SPEND, note="")
    assert isinstance(again, Refused)
    assert again.code is Code.FAILED_PRECONDITION


async def test_a_bad_note_is_refused_before_anything_is_evaluated(feeds: FeedParts) -> None:
    for asking in (
        feeds.capex.commit(actor=AUTHOR, stage_ids=["STG-1"], note="x" * 1_001),
        feeds.capex.clear(actor=AUTHOR, feed=PLAN, note="x" * 1_001),
    ):
        found = await asking
        assert isinstance(found, Refused)
        assert [each.field for each in found.violations] == ["note"]
    assert feeds.evaluator._evaluations == {}


async def test_clearing_the_last_feed_leaves_no_figure_of_zero(feeds: FeedParts) -> None:
    await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
    found = await feeds.capex.clear(actor=AUTHOR, feed=PLAN, note="")
    assert isinstance(found, Recorded)
    assert (found.provenance.source, found.scan.summary.dq.value) == (Source.EMPTY, None)
    assert found.scan.summary.by_rule == {}


async def test_the_go_live_date_moves_what_is_found_and_where_it_comes_from(
    feeds: FeedParts,
) -> None:
    await committed(feeds.capex, CLEAN)
    outcome = await feeds.capex.configure(actor=AUTHOR, config=Config(date(2028, 1, 1)))
    assert isinstance(outcome, CapexAccepted)
    seen = await feeds.capex.eyes.look()
    assert isinstance(seen, Seen)
    assert (seen.provenance.source, seen.summary.by_rule["CP-007"]) == (Source.LIVE, 1)


async def test_the_event_of_a_commit_that_could_not_be_raised_takes_the_commit_nothing(
    house: House, feeds: FeedParts
) -> None:
    async def away() -> None:
        raise Fault("the metadoc is away")

    feeds.capex._raise_events = away
    recorded = await committed(feeds.capex, CLEAN)
    (waiting,) = (await house.stored()).raising
    assert waiting.subject == recorded.scan.id


# Could not look.


async def test_a_store_that_cannot_be_asked_is_an_answer_to_a_read_and_a_fault_to_a_write(
    house: House, feeds: FeedParts
) -> None:
    await committed(feeds.capex, CLEAN)

    async def away() -> str:
        raise Fault("the disk is away")

    house.document.version = away  # type: ignore[method-assign]  # the store fails from now on
    for found in (await feeds.capex.eyes.stored(), await feeds.capex.eyes.look()):
        assert isinstance(found, Unseen)
        assert found.provenance.source is Source.UNAVAILABLE
        assert found.provenance.unmeasured == ("could not look: the disk is away",)
    with pytest.raises(Fault, match="away"):
        await feeds.capex.clear(actor=AUTHOR, feed=PLAN, note="")


async def test_a_blob_that_is_gone_is_told_until_its_feed_is_replaced(house: House) -> None:
    async with house.replica() as feeds:
        await committed(feeds.capex, CLEAN)
    digest = (await house.stored()).feeds[PLAN].digest
    await house.blobs.delete(digest)
    async with house.replica() as feeds:  # with nothing in memory
        found = await feeds.capex.eyes.look()
        assert isinstance(found, Unseen)
        assert "gone" in found.provenance.unmeasured[0]
        stage = await staged(feeds.capex, PLAN, faulty_plan())
        preview = await feeds.capex.preview([stage.id])
        assert isinstance(preview, Preview)
        assert isinstance(preview.before, Unseen)
        assert isinstance(preview.after, Seen)
        await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
        assert await counts(feeds.capex) == {}


async def test_a_blob_that_does_not_parse_any_more_is_told(house: House) -> None:
    async with house.replica() as feeds:
        await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
    digest = (await house.stored()).feeds[PLAN].digest
    house.blobs.held[digest] = (b"not what it was", house.clock.now())
    async with house.replica() as feeds:
        found = await feeds.capex.eyes.look()
        assert isinstance(found, Unseen)
        assert "does not parse any more" in found.provenance.unmeasured[0]
