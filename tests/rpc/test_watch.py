"""WatchActivity on the wire: everything kept, then live; alive when quiet; and how it ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from msgspec.structs import replace
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.clock import RandomIds
from core_console.governance.rootkey import rotate_key
from core_console.model.document import Deletion, Document
from core_console.model.event import Event
from core_console.model.run import Run, RunStatus
from core_console.ports import Fault
from core_console.rpc import caller
from core_console.rpc import watch as watching
from core_console.rpc.run_views import RunViews
from core_console.rpc.watch import HEARTBEAT_S, PACE_S, STREAMS_EACH_MAX, STREAMS_MAX, Watch
from tests import builders
from tests.builders import AUTHOR, SECOND, a_document, a_run
from tests.rpc.messages import a_playbook, approval_only, creation
from tests.rpc.site import LISTS, Refusal, Site, refusal_of, site

PLAYBOOK = builders.a_playbook(builders.approve(), changed=3)
RUN = a_run(PLAYBOOK, id="PBR-9", revision=5, status=RunStatus.CANCELLED, finished_at=builders.NOW)
EVENT = Event("PBE-1", builders.NOW, "datagov", "x", "agent:datagov", 4)
KEPT: Document = a_document(PLAYBOOK, RUN, events={"PBE-1": EVENT})


@pytest.fixture(autouse=True)
def no_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one change be told right behind the other; the pace has a test of its own."""
    monkeypatch.setattr(watching, "PACE_S", 0)


class Stream:
    """A stream that a test reads from."""

    def __init__(self, call: Any) -> None:  # noqa: ANN401 -- gRPC's intercepted call
        self.call = call

    async def read(self) -> pb.WatchActivityResponse:
        message = await asyncio.wait_for(self.call.read(), 10)
        assert isinstance(message, pb.WatchActivityResponse)
        return message

    async def some(self, count: int) -> list[tuple[int, str]]:
        """Return the next messages: the revision that each brings to, and what it tells."""
        return [_named(await self.read()) for _ in range(count)]

    async def ends(self) -> Refusal:
        """Return how the stream ends, which it must do without another message."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await self.read()
        return refusal_of(caught.value)


def _named(message: pb.WatchActivityResponse) -> tuple[int, str]:
    match message.WhichOneof("change"):
        case "playbook":
            what = message.playbook.id
        case "run":
            what = message.run.id
        case "event":
            what = message.event.id
        case "deleted_playbook_id":
            what = f"-{message.deleted_playbook_id}"
        case "gap":
            what = f"gap {message.gap.after_revision}..{message.gap.up_to_revision}"
        case other:
            what = str(other)
    return message.revision, what


def watch(console: Site, after_revision: int = 0, *, email: str = AUTHOR) -> Stream:
    request = pb.WatchActivityRequest(after_revision=after_revision)
    return Stream(console.named(email).playbooks.WatchActivity(request))


async def quiet(console: Site, streams: int = 1) -> None:
    """Return once just so many streams wait for a change."""
    async with asyncio.timeout(10):
        while len(console.engine._subscribers._waiting) != streams:  # noqa: ASYNC110 -- gRPC's own
            await asyncio.sleep(0.001)


async def test_everything_that_is_kept_comes_first_and_then_every_change_as_it_is_made(
    console: Site,
) -> None:
    await console.hold(KEPT)
    stream = watch(console)
    assert await stream.some(3) == [(3, "PB-1"), (4, "PBE-1"), (10, "PBR-9")]
    run = (await console.author.RunNow(pb.RunNowRequest(playbook_id="PB-1"))).run
    assert await stream.some(1) == [(11, run.id)]
    cancel = pb.CancelRunRequest(run_id=run.id, note="enough")
    ended = (await console.author.CancelRun(cancel)).run
    counted, told = await stream.read(), await stream.read()
    assert (counted.revision, counted.playbook.runs_finished) == (11, 1)
    assert (told.revision, told.run) == (12, ended)


async def test_what_is_told_is_what_a_read_shows(console: Site) -> None:
    await console.hold(KEPT)
    stream = watch(console)
    told = [await stream.read() for _ in range(3)]
    shown = await console.author.GetPlaybook(pb.GetPlaybookRequest(id="PB-1"))
    assert told[0].playbook == shown.playbook
    assert [told[1].event] == (await console.author.ListEvents(pb.ListEventsRequest())).events
    assert told[2].run == (await console.author.GetRun(pb.GetRunRequest(id="PBR-9"))).run


async def test_whoever_goes_on_from_the_last_revision_misses_nothing(console: Site) -> None:
    await console.hold(KEPT)
    assert await watch(console, 3).some(2) == [(4, "PBE-1"), (10, "PBR-9")]
    assert await watch(console, 4).some(1) == [(10, "PBR-9")]
    assert await watch(console, 10).some(1) == [(10, "heartbeat")]


async def test_a_deletion_is_told(console: Site) -> None:
    await console.hold(replace(KEPT, deleted=(Deletion("PB-7", 7),)))
    stream = watch(console, 4)
    assert await stream.some(2) == [(5, "PBR-9"), (10, "-PB-7")]
    await console.author.DeletePlaybook(pb.DeletePlaybookRequest(id="PB-1"))
    assert await stream.some(1) == [(11, "-PB-1")]


@pytest.mark.parametrize(
    ("after", "gap"), [(2, "gap 2..3"), (11, "gap 11..10")], ids=["trimmed", "from the future"]
)
async def test_what_cannot_be_told_is_a_gap_and_then_everything_kept(
    console: Site, after: int, gap: str
) -> None:
    await console.hold(replace(KEPT, trimmed=3))
    stream = watch(console, after)
    assert await stream.some(4) == [(0, gap), (3, "PB-1"), (4, "PBE-1"), (10, "PBR-9")]


async def test_a_backup_that_is_restored_meanwhile_is_a_gap(console: Site) -> None:
    await console.hold(replace(KEPT, revision=20))
    stream = watch(console, 20)
    assert await stream.some(1) == [(20, "heartbeat")]
    await console.hold(KEPT)
    await quiet(console)
    await console.clock.advance(1)
    assert await stream.some(2) == [(0, "gap 20..10"), (3, "PB-1")]


async def test_what_another_replica_changes_is_told_within_a_second(console: Site) -> None:
    await console.hold(KEPT)
    stream = watch(console, 10)
    await stream.some(1)
    await quiet(console)
    await console.hold(replace(KEPT, revision=11, events={"PBE-1": replace(EVENT, revision=11)}))
    await console.clock.advance(1)
    assert await stream.some(1) == [(11, "PBE-1")]


async def test_a_quiet_stream_says_every_15_s_that_it_is_alive(console: Site) -> None:
    stream = watch(console)
    first = await stream.read()
    assert (first.revision, first.heartbeat.at.ToDatetime(builders.NOW.tzinfo)) == (0, builders.NOW)
    for number in (1, 2):
        await quiet(console)
        await console.clock.advance(HEARTBEAT_S - 2)
        assert len(console.engine._subscribers._waiting) == 1, "nothing is said before"
        # Not a second further: what follows is counted from the instant at which it was said.
        await console.clock.advance(1)
        beat = (await stream.read()).heartbeat.at.ToDatetime(builders.NOW.tzinfo)
        assert beat <= builders.NOW + timedelta(seconds=HEARTBEAT_S) * number


async def test_the_first_change_is_told_at_once_and_those_right_behind_it_together(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "PACE_S", PACE_S)
    await console.hold(KEPT)
    stream = watch(console, 10)
    await stream.some(1)
    await quiet(console)
    for _ in range(3):
        await console.author.PausePlaybook(pb.PausePlaybookRequest(id="PB-1"))
        await console.author.ResumePlaybook(pb.ResumePlaybookRequest(id="PB-1"))
    assert await stream.some(1) == [(11, "PB-1")]
    await quiet(console, 0)
    await console.clock.advance(PACE_S)
    assert await stream.some(1) == [(16, "PB-1")]


async def test_swaps_that_tell_nothing_put_off_no_heartbeat(console: Site) -> None:
    await console.hold(KEPT)
    stream = watch(console, 10)
    await stream.some(1)
    for number in range(int(HEARTBEAT_S)):
        await quiet(console)
        await console.hold(replace(KEPT, revision=11 + number))
        await console.clock.advance(1)
    revision, what = (await stream.some(1))[0]
    assert what == "heartbeat"
    assert revision >= 24, "and it brings the reader to the newest revision"


async def test_a_negative_revision_is_invalid(console: Site) -> None:
    answer = await watch(console, -1).ends()
    assert answer.code is grpc.StatusCode.INVALID_ARGUMENT
    assert answer.fields == {
        "after_revision": "is -1; it takes 0 for everything that is kept, or the revision of the "
        "last message"
    }


async def test_an_operator_has_so_many_streams_and_gets_the_place_of_one_that_ended_back(
    console: Site,
) -> None:
    streams = [watch(console) for _ in range(STREAMS_EACH_MAX)]
    for each in streams:
        await each.some(1)
    assert (await watch(console).ends()).code is grpc.StatusCode.RESOURCE_EXHAUSTED
    await watch(console, email=SECOND).some(1)
    await quiet(console, STREAMS_EACH_MAX + 1)
    streams[0].call.cancel()
    await quiet(console, STREAMS_EACH_MAX)
    await watch(console).some(1)


async def test_a_console_has_so_many_streams(tmp_path: Path) -> None:
    emails = [f"reader-{number}@example.com" for number in range(STREAMS_MAX // STREAMS_EACH_MAX)]
    lists = LISTS | {"CONSOLE_ALLOWED_EMAILS": ",".join((AUTHOR, *emails))}
    async with site(tmp_path, lists=lists) as console:
        for email in emails:
            for each in [watch(console, email=email) for _ in range(STREAMS_EACH_MAX)]:
                await each.some(1)
        assert (await watch(console).ends()).code is grpc.StatusCode.RESOURCE_EXHAUSTED
        console.engine.release()


async def test_a_reader_who_reads_nothing_holds_little_and_may_leave_at_any_time(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    real = RunViews.of

    def counted(views: RunViews, run: Run) -> pb.Run:
        shown.append(run.id)
        return real(views, run)

    monkeypatch.setattr(RunViews, "of", counted)
    long = [replace(RUN, id=f"PBR-{n}", revision=n, detail="x" * 50_000) for n in range(1, 200)]
    await console.hold(replace(a_document(*long), revision=400))
    stream = watch(console)
    await stream.some(1)
    with structlog.testing.capture_logs() as logs:
        stream.call.cancel()
        await watch(console, 400, email=SECOND).some(1)
        await quiet(console)
    assert logs == []
    assert len(shown) < len(long), "what it does not read is not even made"


async def test_a_console_that_stops_ends_every_stream_and_waits_for_none(console: Site) -> None:
    streams = [watch(console), watch(console, email=SECOND)]
    for each in streams:
        await each.some(1)
    console.engine.release()
    async with asyncio.timeout(5):
        await console.listener.stop()
    for each in streams:
        answer = await each.ends()
        assert (answer.code, answer.sentence) == (
            grpc.StatusCode.UNAVAILABLE,
            "the console is stopping; ask another replica, or try again",
        )


async def test_nothing_is_told_to_a_token_that_has_expired(console: Site) -> None:
    await console.hold(KEPT)
    stream = watch(console, 10)
    await stream.some(1)
    await quiet(console)
    console.clock.jump(3_600)
    token = console.token(SECOND)
    fresh = console.caller(f"Bearer {token}").playbooks
    await fresh.RunNow(pb.RunNowRequest(playbook_id="PB-1"))
    answer = await stream.ends()
    assert answer.code is grpc.StatusCode.UNAUTHENTICATED
    assert "expired at 2026-11-30 13:00:00 UTC" in answer.sentence
    assert answer.sentence.endswith("go on after revision 10")


async def test_a_quiet_stream_of_an_expired_token_ends_too(console: Site) -> None:
    stream = watch(console)
    await stream.some(1)
    await quiet(console)
    console.clock.jump(3_600)
    await console.clock.advance(HEARTBEAT_S)
    assert (await stream.ends()).code is grpc.StatusCode.UNAUTHENTICATED


async def test_a_rotated_key_ends_the_streams_that_are_open(console: Site) -> None:
    stream = watch(console)
    await stream.some(1)
    await quiet(console)
    rotate_key(console.root, RandomIds())
    await console.clock.advance(HEARTBEAT_S)
    answer = await stream.ends()
    assert answer.code is grpc.StatusCode.UNAUTHENTICATED
    assert "not signed by this console's present key" in answer.sentence


async def test_an_open_console_lets_anybody_watch(open_console: Site) -> None:
    stream = Stream(open_console.anonymous.WatchActivity(pb.WatchActivityRequest()))
    assert await stream.some(1) == [(0, "heartbeat")]
    await quiet(open_console)
    open_console.clock.jump(10**6)
    await open_console.hold(KEPT)
    await open_console.clock.advance(1)
    assert await stream.some(1) == [(3, "PB-1")]


async def test_a_store_that_is_away_is_unavailable(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def version() -> str:
        raise Fault("the store is away")

    stream = watch(console)
    await stream.some(1)
    await quiet(console)
    monkeypatch.setattr(console.store, "version", version)
    answer = await watch(console, email=SECOND).ends()
    assert (answer.code, answer.sentence) == (grpc.StatusCode.UNAVAILABLE, "the store is away")
    await console.clock.advance(HEARTBEAT_S)
    assert (await stream.ends()).sentence == "the store is away"


class Reader:
    """A reader who takes a message when the test says so: nothing is pushed to it."""

    def __init__(self, console: Site, after_revision: int) -> None:
        made = Watch(
            console=console.engine,
            show_playbook=lambda playbook: pb.Playbook(id=playbook.id, name=playbook.spec.name),
            run_views=RunViews(),
        )
        caller.enter()
        self._messages = made.follow(after_revision, self)  # type: ignore[arg-type]  # as far as it is one

    def peer(self) -> str:
        return "ipv4:127.0.0.1:1"

    def add_done_callback(self, done: object) -> None:
        del done

    async def next(self) -> pb.WatchActivityResponse:
        return await anext(self._messages)


async def test_what_changed_often_while_the_reader_was_slow_is_told_once_as_it_is_now(
    console: Site,
) -> None:
    playbook = await console.an_active_playbook(approval_only())
    reader = Reader(console, 0)
    assert (await reader.next()).playbook.id == playbook.id
    for _ in range(20):
        await console.author.PausePlaybook(pb.PausePlaybookRequest(id=playbook.id))
        await console.author.ResumePlaybook(pb.ResumePlaybookRequest(id=playbook.id))
    told = await reader.next()
    assert (told.playbook.id, told.revision) == (playbook.id, 42)
    other = (await console.author.CreatePlaybook(approval_only("Another"))).playbook
    told = await reader.next()
    assert (told.playbook.id, told.revision) == (other.id, 43), "and nothing of before"


@asynccontextmanager
async def two(console: Site) -> AsyncIterator[list[Stream]]:
    streams = [watch(console, 10), watch(console, 10, email=SECOND)]
    for each in streams:
        await each.some(1)
    await quiet(console, 2)
    yield streams


async def test_readers_who_are_equally_far_are_told_the_same(console: Site) -> None:
    await console.hold(KEPT)
    async with two(console) as streams:
        await console.author.PausePlaybook(pb.PausePlaybookRequest(id="PB-1"))
        told = [await each.read() for each in streams]
        assert told[0] == told[1]
        assert told[0].playbook.status == pb.PLAYBOOK_STATUS_PAUSED


async def test_a_playbook_shows_its_next_five_slots(console: Site) -> None:
    written = (await console.author.CreatePlaybook(creation())).playbook
    expected = [builders.NOW + timedelta(hours=hour, minutes=5) for hour in range(5)]
    shown = (await console.author.GetPlaybook(pb.GetPlaybookRequest(id=written.id))).playbook
    (listed,) = (await console.author.ListPlaybooks(pb.ListPlaybooksRequest())).playbooks
    for each in (written, shown, listed):
        found = [slot.ToDatetime(builders.NOW.tzinfo) for slot in each.next_slots]
        assert found == expected
    await console.clock.advance(600)
    request = pb.UpdatePlaybookRequest(id=shown.id, revision=shown.revision, playbook=shown)
    updated = (await console.author.UpdatePlaybook(request)).playbook
    assert updated.next_slots[0] == shown.next_slots[1], "what was read may be sent back"


async def test_a_playbook_without_a_schedule_shows_no_slots(console: Site) -> None:
    plain = a_playbook()
    del plain.triggers[1]
    written = (await console.author.CreatePlaybook(creation(plain))).playbook
    assert not written.next_slots
