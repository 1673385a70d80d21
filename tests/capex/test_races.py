"""Two at once on one document: one wins, and figures and feeds are never a mix."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from core_console.app.feeds import FeedParts
from core_console.capex.looking import Eyes, Seen
from core_console.capex.service import ATTEMPTS_MAX, Recorded
from core_console.decide.outcome import Code, Refused
from core_console.model.capex import Feed
from core_console.model.capex_document import CapexDocument
from core_console.ports import Fault
from tests.builders import AUTHOR, SECOND
from tests.capex.house import (
    CLEAN,
    PLAN,
    SPEND,
    House,
    committed,
    counts,
    faulty_plan,
    plans,
    staged,
)


class OnceEvaluated(Eyes):
    """Does something between an evaluation and the swap that keeps it, so many times."""

    def __init__(self, eyes: Eyes, then: Callable[[], Awaitable[object]], times: int = 1) -> None:
        super().__init__(writer=eyes._writer, evaluator=eyes._evaluator, scope=eyes.scope)
        self._then, self._left = then, times

    async def see(self, document: CapexDocument, digests: dict[Feed, str]) -> Seen:  # type: ignore[override]  # a plain dict will do
        seen = await super().see(document, digests)
        if self._left:
            self._left -= 1
            await self._then()
        return seen


def honest(document: CapexDocument) -> None:
    """Prove that the newest scan run has the figures of the very feeds beside it."""
    named = {feed: each.digest for feed, each in document.scans[-1].summary.feeds.items()}
    assert named == {feed: each.digest for feed, each in document.feeds.items()}


async def test_a_commit_that_was_overtaken_evaluates_the_winners_feeds(house: House) -> None:
    async with house.replica() as one, house.replica() as other:
        plan = await staged(one.capex, PLAN, CLEAN[PLAN])
        one.capex.eyes = OnceEvaluated(
            one.capex.eyes, lambda: committed(other.capex, {SPEND: CLEAN[SPEND]})
        )
        found = await one.capex.commit(actor=AUTHOR, stage_ids=[plan.id], note="")
        assert isinstance(found, Recorded)
        assert set(found.scan.summary.feeds) == {PLAN, SPEND}
        honest(await house.stored())


async def test_of_two_commits_of_one_stage_one_wins_and_the_other_is_told(house: House) -> None:
    async with house.replica() as one, house.replica() as other:
        stage = await staged(one.capex, PLAN, CLEAN[PLAN])
        found = await asyncio.gather(
            one.capex.commit(actor=AUTHOR, stage_ids=[stage.id], note="one"),
            other.capex.commit(actor=SECOND, stage_ids=[stage.id], note="other"),
        )
        (lost,) = (each for each in found if isinstance(each, Refused))
        assert lost.code is Code.INVALID_ARGUMENT
        document = await house.stored()
        assert (len(document.scans), len(document.raising)) == (1, 1)
        honest(document)


async def test_commits_clears_and_scans_at_once_leave_only_honest_figures(house: House) -> None:
    async with house.replica() as one, house.replica() as other:
        await committed(one.capex, CLEAN)
        stages = [
            await staged(each.capex, PLAN, plans(f"IT-{number}"))
            for number, each in enumerate((one, other, one))
        ]
        await asyncio.gather(
            *(
                each.capex.commit(actor=AUTHOR, stage_ids=[stage.id], note="")
                for each, stage in zip((one, other, one), stages, strict=True)
            ),
            one.capex.clear(actor=AUTHOR, feed=SPEND, note=""),
            other.capex.record_scan("PBR-1"),
            one.capex.record_scan("PBR-2"),
        )
        document = await house.stored()
        honest(document)
        assert set(document.feeds) == set(Feed) - {SPEND}
        assert [each.number for each in document.scans] == list(range(1, len(document.scans) + 1))
        assert len(document.raising) == 4


async def test_a_scan_that_a_commit_overtook_sees_the_winners_feeds(house: House) -> None:
    async with house.replica() as one, house.replica() as other:
        await committed(one.capex, CLEAN)
        one.capex.eyes = OnceEvaluated(
            one.capex.eyes, lambda: committed(other.capex, {PLAN: faulty_plan()})
        )
        found = await one.capex.record_scan("PBR-1")
        assert isinstance(found, Recorded)
        assert found.scan.summary.by_rule["CP-001"] == 1
        honest(await house.stored())


@pytest.mark.parametrize(("overtaken", "wins"), [(ATTEMPTS_MAX - 1, True), (ATTEMPTS_MAX, False)])
async def test_who_is_overtaken_again_and_again_is_told_in_the_end(
    house: House, feeds: FeedParts, overtaken: int, *, wins: bool
) -> None:
    await committed(feeds.capex, CLEAN)
    async with house.replica() as other:
        numbers = iter(range(100))

        async def another() -> None:
            await committed(other.capex, {PLAN: plans(f"IT-{next(numbers)}")})

        feeds.capex.eyes = OnceEvaluated(feeds.capex.eyes, another, overtaken)
        found = await feeds.capex.clear(actor=AUTHOR, feed=SPEND, note="")
        if wins:
            assert isinstance(found, Recorded)
        else:
            assert isinstance(found, Refused)
            assert found.code is Code.ABORTED
        honest(await house.stored())


# Crashes: between the blob, the swap and the event.


async def test_a_crash_between_blob_and_swap_leaves_a_blob_and_no_stage(house: House) -> None:
    async with house.replica() as feeds:
        house.document.troubles.before.append(Fault("the disk is full"))
        with pytest.raises(Fault, match="full"):
            await staged(feeds.capex, PLAN, CLEAN[PLAN])
    assert len(house.blobs.held) == 1
    assert await house.document.version() == ""
    async with house.replica() as feeds:
        await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
        assert len(house.blobs.held) == 1, "the same bytes are the same blob"


async def test_a_swap_that_failed_leaves_the_old_feed_and_the_stage(house: House) -> None:
    async with house.replica() as feeds:
        await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
        before = await house.stored()
        stage = await staged(feeds.capex, PLAN, faulty_plan())
        house.document.troubles.before.append(Fault("the disk is full"))
        with pytest.raises(Fault, match="full"):
            await feeds.capex.commit(actor=AUTHOR, stage_ids=[stage.id], note="")
        after = await house.stored()
        assert (after.feeds, after.raising) == (before.feeds, before.raising)
        assert await counts(feeds.capex) == {}
        found = await feeds.capex.commit(actor=AUTHOR, stage_ids=[stage.id], note="")
        assert isinstance(found, Recorded)


async def test_a_commit_whose_reply_was_lost_counts_once(house: House, feeds: FeedParts) -> None:
    stage = await staged(feeds.capex, PLAN, CLEAN[PLAN])
    house.document.troubles.after.append(Fault("the reply was lost"))
    found = await feeds.capex.commit(actor=AUTHOR, stage_ids=[stage.id], note="")
    assert isinstance(found, Recorded)
    document = await house.stored()
    assert (len(document.scans), len(document.raising)) == (1, 1)
    actions = [each.action for each in await house.records(feeds)]
    assert actions == ["atlas.capex.stage", "atlas.capex.commit"]
