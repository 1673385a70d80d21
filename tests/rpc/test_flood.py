"""Callers who hold what they can get: they never shut the door to an operator."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.rpc import arrival, public
from core_console.rpc.places import Places
from core_console.rpc.server import RPCS_MAX, STREAMS_MAX
from tests.builders import AUTHOR
from tests.rpc.messages import creation
from tests.rpc.site import Site, refused

SERVICE = "/runink.core.atlas.v1.PlaybookService"
LIST, CREATE = f"{SERVICE}/ListPlaybooks", f"{SERVICE}/CreatePlaybook"
CHECK = "/grpc.health.v1.Health/Check"
SERVING = health_pb2.HealthCheckResponse.SERVING


@asynccontextmanager
async def channels(console: Site, count: int) -> AsyncIterator[list[grpc.aio.Channel]]:
    """Give connections of their own each."""
    alone = [("grpc.use_local_subchannel_pool", 1)]
    address = f"127.0.0.1:{console.port}"
    opened = [grpc.aio.insecure_channel(address, options=alone) for _ in range(count)]
    try:
        yield opened
    finally:
        await asyncio.gather(*(each.close() for each in opened))


class Never:
    """Requests that do not come until they are told to end."""

    def __init__(self) -> None:
        self._end = asyncio.Event()

    def end(self) -> None:
        self._end.set()

    def __aiter__(self) -> "Never":
        return self

    async def __anext__(self) -> bytes:
        await self._end.wait()
        raise StopAsyncIteration


@pytest.fixture
async def never() -> AsyncIterator[Never]:
    made = Never()
    yield made
    made.end()
    await asyncio.sleep(0)


def half_sent(
    channel: grpc.aio.Channel, method: str, never: Never, *metadata: tuple[str, str]
) -> Any:  # noqa: ANN401 -- an untyped call
    """Begin a call and send no message."""
    call: Any = channel.stream_unary(method)
    return call(never, metadata=metadata)


async def codes_of(calls: Sequence[Awaitable[object]]) -> list[grpc.StatusCode]:
    """Await calls that must all be refused."""
    async with asyncio.timeout(20):
        return [(await refused(call)).code for call in calls]


async def health_of(console: Site) -> int:
    health: Any = health_pb2_grpc.HealthStub(console.caller().channel)  # untyped
    return int((await health.Check(health_pb2.HealthCheckRequest())).status)


async def test_streams_that_are_held_open_leave_room_for_an_operator_and_for_probes(
    console: Site,
) -> None:
    async with channels(console, RPCS_MAX // STREAMS_MAX) as opened:
        stubs: list[Any] = [health_pb2_grpc.HealthStub(each) for each in opened]
        watches = [
            stub.Watch(health_pb2.HealthCheckRequest())
            for stub in stubs
            for _ in range(STREAMS_MAX)
        ]
        told = await asyncio.gather(*(each.read() for each in watches), return_exceptions=True)
        assert sum(not isinstance(each, BaseException) for each in told) == public.STREAMS_EACH_MAX
        turned_away = [each for each in told if isinstance(each, grpc.aio.AioRpcError)]
        assert len(turned_away) == RPCS_MAX - public.STREAMS_EACH_MAX
        codes = Counter(each.code() for each in turned_away)
        # Who still sends is reset as well, and now and then gRPC's reset overtakes its answer.
        assert codes.keys() <= {grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.CANCELLED}
        assert codes[grpc.StatusCode.RESOURCE_EXHAUSTED] > 0.9 * len(turned_away)

        assert (await console.author.CreatePlaybook(creation())).playbook.id
        assert await health_of(console) == SERVING


async def test_a_stream_that_is_turned_away_can_be_opened_once_another_has_ended(
    console: Site,
) -> None:
    health: Any = health_pb2_grpc.HealthStub(console.caller().channel)  # untyped
    request = health_pb2.HealthCheckRequest()
    held = [health.Watch(request) for _ in range(public.STREAMS_EACH_MAX)]
    for each in held:
        assert (await each.read()).status == SERVING
    assert (await refused(health.Watch(request).read())).code is grpc.StatusCode.RESOURCE_EXHAUSTED
    held[0].cancel()
    async with asyncio.timeout(5):
        while True:
            try:
                assert (await health.Watch(request).read()).status == SERVING
            except grpc.aio.AioRpcError:
                continue
            break


async def test_a_stream_that_watches_ends_after_its_time(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public, "WATCH_S", 0.05)
    health: Any = health_pb2_grpc.HealthStub(console.caller().channel)  # untyped
    watch = health.Watch(health_pb2.HealthCheckRequest())
    assert (await watch.read()).status == SERVING
    answer = await refused(watch.read())
    assert (answer.code, "open it again" in answer.sentence) == (grpc.StatusCode.UNAVAILABLE, True)


async def test_a_conversation_with_reflection_ends_after_its_time(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(public, "CONVERSATION_S", 0.2)
    channel: Any = console.caller().channel  # its types know no aio
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    stream = stub.ServerReflectionInfo()
    await stream.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    assert (await stream.read()).list_services_response.service
    async with asyncio.timeout(5):
        assert await stream.read() is grpc.aio.EOF


async def test_nobody_without_a_token_is_waited_for(console: Site, never: Never) -> None:
    async with channels(console, RPCS_MAX // STREAMS_MAX) as opened:
        calls = [half_sent(each, LIST, never) for each in opened for _ in range(STREAMS_MAX)]
        calls.append(half_sent(opened[0], CREATE, never))
        codes = await codes_of(calls)
    # gRPC tells one in a thousand of those who have not sent all that they are cancelled.
    assert set(codes) <= {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.CANCELLED}
    assert codes.count(grpc.StatusCode.UNAUTHENTICATED) > 0.9 * RPCS_MAX
    assert [record.target for record in await console.records()] == [""]


@pytest.mark.parametrize("method", [LIST, CREATE, CHECK])
async def test_a_message_that_never_comes_ends_its_call(
    console: Site, monkeypatch: pytest.MonkeyPatch, never: Never, method: str
) -> None:
    monkeypatch.setattr(arrival, "MESSAGE_S", 0.05)
    operator = ("authorization", f"Bearer {console.token(AUTHOR)}")
    async with channels(console, 1) as (channel,):
        answer = await refused(half_sent(channel, method, never, operator))
        assert (answer.code, "did not come" in answer.sentence) == (
            grpc.StatusCode.UNAVAILABLE,
            True,
        )
    assert (await console.author.CreatePlaybook(creation())).playbook.id


async def test_a_call_that_ends_without_its_message_is_answered(console: Site) -> None:
    operator = ("authorization", f"Bearer {console.token(AUTHOR)}")
    ended = Never()
    ended.end()
    async with channels(console, 1) as (channel,):
        call: Any = channel.stream_unary(LIST)
        assert await codes_of([call(ended, metadata=[operator])]) == [grpc.StatusCode.UNAVAILABLE]


async def test_where_everybody_may_read_one_peer_waits_with_a_part_of_the_places(
    open_console: Site, monkeypatch: pytest.MonkeyPatch, never: Never
) -> None:
    monkeypatch.setattr(arrival, "MESSAGE_S", 2.0)
    async with channels(open_console, RPCS_MAX // STREAMS_MAX) as opened:
        calls = [half_sent(each, LIST, never) for each in opened for _ in range(STREAMS_MAX)]
        codes = await codes_of(calls)
    assert 0 < codes.count(grpc.StatusCode.UNAVAILABLE) <= arrival.WAITING_MAX
    assert codes.count(grpc.StatusCode.RESOURCE_EXHAUSTED) > 0.8 * RPCS_MAX
    assert not (await open_console.anonymous.ListPlaybooks(pb.ListPlaybooksRequest())).playbooks


async def test_callers_who_hang_up_before_their_message_are_no_bug(
    console: Site, caplog: pytest.LogCaptureFixture, never: Never
) -> None:
    caplog.set_level(logging.WARNING)
    operator = ("authorization", f"Bearer {console.token(AUTHOR)}")
    async with channels(console, 1) as (channel,):
        for _ in range(5):
            calls = [half_sent(channel, CREATE, never, operator) for _ in range(50)]
            await asyncio.sleep(0.01)
            for each in calls:
                each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
    assert (await console.author.CreatePlaybook(creation())).playbook.id
    assert [record.getMessage() for record in caplog.records] == []


async def test_places_are_counted_for_each_and_in_all() -> None:
    places = Places(each_max=1, in_all_max=2)
    with places.taken("a"), places.taken("b"):
        for who in ("a", "c"):
            with pytest.raises(Exception, match="too many calls"), places.taken(who):
                pass
    with places.taken("c"), places.taken("a"):
        pass
