"""The server: health, reflection, limits, TLS, and how it stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from core_console.decide.commands import Command
from core_console.decide.outcome import Accepted, Outcome
from core_console.model.document import EMPTY
from core_console.ports import Fault
from core_console.rpc import server
from core_console.rpc.server import Certificate, Listener
from tests import builders
from tests.certificates import certificate
from tests.rpc.messages import creation
from tests.rpc.site import Site, refused

SERVING = health_pb2.HealthCheckResponse.SERVING


async def test_health_is_public_and_names_every_service(console: Site) -> None:
    health: Any = health_pb2_grpc.HealthStub(console.caller().channel)  # untyped
    for service in ("", *server.SERVICES):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == SERVING
    listed = await health.List(health_pb2.HealthListRequest())  # type: ignore[attr-defined]  # newer than its types
    assert set(listed.statuses) == {"", *server.SERVICES}
    request = health_pb2.HealthCheckRequest(service="no.Service")
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await health.Check(request)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_reflection_is_public_and_tells_the_contract(console: Site) -> None:
    channel: Any = console.caller().channel  # its types know no aio
    stub: Any = reflection_pb2_grpc.ServerReflectionStub(channel)
    stream = stub.ServerReflectionInfo()
    await stream.write(reflection_pb2.ServerReflectionRequest(list_services=""))
    listed = (await stream.read()).list_services_response
    assert {each.name for each in listed.service} == {
        *server.SERVICES,
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    }
    symbol = "runink.core.atlas.v1.PlaybookService"
    await stream.write(reflection_pb2.ServerReflectionRequest(file_containing_symbol=symbol))
    assert (await stream.read()).file_descriptor_response.file_descriptor_proto
    await stream.done_writing()


async def test_a_second_server_on_one_port_fails(console: Site) -> None:
    with pytest.raises(Fault, match="cannot be bound"):
        await listening(console, port=console.port)


async def test_an_address_of_ipv6_is_bound(console: Site) -> None:
    listener = await listening(console, host="::1")
    assert listener.port > 0
    await listener.stop(0)


async def test_a_message_beyond_the_bound_is_refused(console: Site) -> None:
    playbook = pb.Playbook(name="x", description="y" * server.RECEIVE_BYTES)
    answer = await refused(console.author.CreatePlaybook(creation(playbook)))
    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_more_calls_than_the_bound_are_told_so_at_once(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "RPCS_MAX", 2)
    listener = await listening(console)
    await listener.start()
    console.port = listener.port
    going = hold(console, monkeypatch)
    waiting = [asyncio.ensure_future(create(console)) for _ in range(2)]
    await going.begun.wait()
    answer = await refused(console.author.CreatePlaybook(creation()))
    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED
    going.go_on.set()
    await asyncio.gather(*waiting)
    await listener.stop(0)


class Going:
    """Commands that wait until they are told to go on; `begun` is set by the second."""

    def __init__(self) -> None:
        self.begun, self.go_on, self.count = asyncio.Event(), asyncio.Event(), 0

    async def submit(self, _command: Command) -> Outcome:
        self.count += 1
        if self.count == 2:
            self.begun.set()
        await self.go_on.wait()
        return Accepted(EMPTY, builders.a_playbook())


def hold(console: Site, monkeypatch: pytest.MonkeyPatch) -> Going:
    going = Going()
    monkeypatch.setattr(console.engine, "submit", going.submit)
    return going


async def create(console: Site) -> pb.CreatePlaybookResponse:
    return await console.author.CreatePlaybook(creation())


async def test_a_stop_lets_calls_finish_and_takes_no_new_ones(
    console: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    going = hold(console, monkeypatch)
    waiting = [asyncio.ensure_future(create(console)) for _ in range(2)]
    await going.begun.wait()
    stopping = asyncio.ensure_future(console.listener.stop(30))
    await asyncio.sleep(0)
    while True:  # the listening socket is closed a few turns later
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", console.port)
        except ConnectionRefusedError:
            break
        writer.close()
        await asyncio.sleep(0.001)
    assert not stopping.done()
    going.go_on.set()
    answers = await asyncio.gather(*waiting)
    assert [answer.playbook.id for answer in answers] == ["PB-1", "PB-1"]
    async with asyncio.timeout(5):
        await stopping


async def test_health_says_not_serving_while_it_stops(console: Site) -> None:
    health: Any = health_pb2_grpc.HealthStub(console.caller().channel)  # untyped
    watch = health.Watch(health_pb2.HealthCheckRequest())
    assert (await watch.read()).status == SERVING
    stopping = asyncio.ensure_future(console.listener.stop(0.2))
    assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
    await stopping


async def listening(
    console: Site, *, host: str = "127.0.0.1", port: int = 0, pair: Certificate | None = None
) -> Listener:
    return server.build(console.parts, host=host, port=port, certificate=pair)


@asynccontextmanager
async def over_tls(console: Site, pair: Certificate) -> AsyncIterator[int]:
    listener = await listening(console, pair=pair)
    await listener.start()
    try:
        yield listener.port
    finally:
        await listener.stop(0)


async def test_with_a_certificate_only_tls_is_spoken(open_console: Site) -> None:
    pair = Certificate(*certificate())
    async with over_tls(open_console, pair) as port:
        trust = grpc.ssl_channel_credentials(pair.chain)
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", trust) as channel:
            assert not (await PlaybookServiceStub(channel).ListRuns(pb.ListRunsRequest())).runs
        open_console.port = port
        answer = await refused(open_console.caller().playbooks.ListRuns(pb.ListRunsRequest()))
        assert answer.code is grpc.StatusCode.UNAVAILABLE


async def test_a_key_of_another_certificate_fails_at_the_start(open_console: Site) -> None:
    pair = replace(Certificate(*certificate()), key=Certificate(*certificate()).key)
    with pytest.raises(Fault, match="the certificate does not fit"):
        await listening(open_console, pair=pair)
