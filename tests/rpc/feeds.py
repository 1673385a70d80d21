"""Feeds on the wire: how a test stages and commits them through a served console."""

from runink.core.atlas.v1 import capex_pb2 as pb

from tests.capex.house import CLEAN, PLAN, REQUEST, SPEND, faulty_plan
from tests.rpc.site import Site

FEEDS = {
    PLAN: pb.FEED_CAPITAL_PLAN,
    REQUEST: pb.FEED_CAPITAL_REQUEST,
    SPEND: pb.FEED_SPEND,
}


def upload(
    csv: bytes = CLEAN[PLAN],
    feed: pb.Feed.ValueType = pb.FEED_CAPITAL_PLAN,
    filename: str = "plan.csv",
) -> pb.StageFeedRequest:
    """Return a request that stages one file."""
    return pb.StageFeedRequest(feed=feed, filename=filename, csv=csv)


async def staged(console: Site, csv: bytes = CLEAN[PLAN]) -> str:
    """Stage a plan and return its stage id."""
    answer = await console.capex.StageFeed(upload(csv))
    assert not answer.errors
    return answer.stage_id


async def committed(console: Site, plan: bytes = CLEAN[PLAN], note: str = "") -> pb.ScanRun:
    """Commit this plan with a clean request and a clean spend."""
    files = {**CLEAN, PLAN: plan}
    ids = []
    for feed, csv in files.items():
        answer = await console.capex.StageFeed(upload(csv, FEEDS[feed], f"{feed}.csv"))
        ids.append(answer.stage_id)
    request = pb.CommitIngestRequest(stage_ids=ids, note=note)
    return (await console.capex.CommitIngest(request)).scan_run


__all__ = ["CLEAN", "FEEDS", "PLAN", "committed", "faulty_plan", "staged", "upload"]
