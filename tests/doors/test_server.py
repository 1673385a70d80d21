"""The server under the doors: bounds on connections and heads, JSON even for what is no HTTP."""

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import pytest
import uvloop

from core_console.doors import server
from tests.doors.site import (
    PATH,
    Bearers,
    Book,
    Engine,
    answer_of,
    application,
    dialled,
    head,
    listening,
    site,
    until,
)


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nBad Name: y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\x00b\r\n\r\n",
        b"GET /heal\xffthz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip\r\n\r\n",
    ],
)
async def test_what_is_no_http_is_400_in_the_shape_of_every_error(garbage: bytes) -> None:
    async with site() as door:
        answer = await door.raw(garbage)

        assert (answer.status, answer.error) == (400, "invalid http request received")
        assert answer.headers["x-content-type-options"] == "nosniff"


async def test_a_head_beyond_its_bound_is_refused() -> None:
    async with site() as door:
        large = head("GET", "/healthz", 0, {"X-Filler": "a" * server.HEAD_BYTES * 5})

        assert (await door.raw(large)).status == 400


async def test_a_bearer_of_4096_bytes_fits_into_the_head() -> None:
    async with site() as door:
        answer = await door.post(headers={"Authorization": "Bearer ghs_" + "a" * 4092})

        assert answer.status == 401


@pytest.mark.parametrize("start", [b"", b"POST / HTTP/1.1\r\nHost: x\r\n"])
async def test_a_head_that_never_ends_loses_its_connection(start: bytes) -> None:
    async with site(head_s=0.05) as door, dialled(door.port) as (reader, writer):
        writer.write(start)

        async with asyncio.timeout(5):
            assert await reader.read() == b""


async def test_a_second_head_on_a_connection_is_timed_too() -> None:
    async with site(head_s=0.05) as door, dialled(door.port) as (reader, writer):
        writer.write(head("GET", "/healthz", 0))
        assert (await answer_of(reader)).status == 200
        writer.write(b"GET /hea")

        async with asyncio.timeout(2):  # well below the idle time
            assert await reader.read() == b""


async def test_the_time_of_a_head_does_not_run_while_a_call_is_answered() -> None:
    async with site(head_s=0.05) as door, dialled(door.port) as (reader, writer):
        writer.write(head("POST", PATH, 5))
        await asyncio.sleep(0.1)
        writer.write(b"hello")

        assert (await answer_of(reader)).status == 400


async def test_two_calls_sent_at_once_are_answered_in_order() -> None:
    async with site() as door, dialled(door.port) as (reader, writer):
        writer.write(head("GET", "/healthz", 0) + head("GET", "/nothing", 0))

        assert [(await answer_of(reader)).status for _ in range(2)] == [200, 404]


async def test_a_connection_beyond_the_limit_gets_an_honest_503() -> None:
    async with site(connections_max=1) as door, dialled(door.port) as _:
        answer = await door.post(b"", method="GET", path="/healthz", sent_from="127.0.0.2")

        assert (answer.status, answer.headers["retry-after"]) == (503, "5")
        assert "too many connections" in answer.error


async def test_far_beyond_the_limit_nothing_is_answered() -> None:
    async with site(connections_max=2) as door, AsyncExitStack() as held:
        for last in range(1, 5):
            await held.enter_async_context(dialled(door.port, f"127.0.0.{last}"))
        reader, _ = await held.enter_async_context(dialled(door.port, "127.0.0.9"))

        async with asyncio.timeout(5):
            assert await reader.read() == b""


async def test_a_peer_that_takes_all_it_can_leaves_places_to_others() -> None:
    async with site(connections_max=64) as door, AsyncExitStack() as held:
        for _ in range(200):
            _, writer = await held.enter_async_context(dialled(door.port))
            writer.write(b"POST / HTTP/1.1\r\nHost: x\r\n")
        reader, _ = await held.enter_async_context(dialled(door.port))
        async with asyncio.timeout(5):
            assert await reader.read() == b""

        assert (await door.post(sent_from="127.0.0.2")).status == 200


async def test_a_peer_beyond_its_part_gets_an_honest_503() -> None:
    async with site(connections_max=64) as door, AsyncExitStack() as held:
        for _ in range(16):
            await held.enter_async_context(dialled(door.port))
        assert (await door.post()).status == 503
        assert (await door.post(sent_from="127.0.0.2")).status == 200


async def test_whoever_was_hung_up_on_may_come_again_once_others_have_left() -> None:
    async with site(connections_max=4) as door:
        async with AsyncExitStack() as held:
            for _ in range(12):
                await held.enter_async_context(dialled(door.port))
        async with asyncio.timeout(5):
            while True:
                with suppress(asyncio.IncompleteReadError, ConnectionError):
                    if (await door.post()).status == 200:
                        break


@pytest.mark.parametrize("length", ["5", "0"])
@pytest.mark.parametrize("path", [PATH, "/healthz"])
async def test_a_message_of_two_lengths_is_400_and_closes(path: str, length: str) -> None:
    async with site() as door, dialled(door.port) as (reader, writer):
        both = {"Content-Length": length, "Transfer-Encoding": "chunked"}
        writer.write(head("POST", path, 0, both) + b"0\r\n\r\n" + head("GET", "/healthz", 0))
        answer = await answer_of(reader)

        assert (answer.status, answer.headers["connection"]) == (400, "close")
        async with asyncio.timeout(5):
            assert await reader.read() == b""


async def test_a_bad_chunk_in_the_middle_of_a_body_spoils_only_its_own_call() -> None:
    async with site() as door:
        chunks = {"Content-Length": None, "Transfer-Encoding": "chunked"}
        answer = await door.raw(head("POST", PATH, 0, chunks) + b"5\r\nhello\r\nzz\r\n")

        assert answer.status == 400
        assert (await door.post()).status == 200


async def test_garbage_after_an_answer_only_ends_the_connection() -> None:
    async with site() as door, dialled(door.port) as (reader, writer):
        chunks = {"Content-Length": None, "Transfer-Encoding": "chunked"}
        writer.write(head("GET", "/healthz", 0, chunks))
        assert (await answer_of(reader)).status == 200
        writer.write(b"zz\r\n")

        async with asyncio.timeout(5):
            assert await reader.read() == b""


async def test_an_upgrade_is_not_taken() -> None:
    async with site() as door:
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket"}
        answer = await door.post(b"", method="GET", path="/healthz", headers=upgrade)

        assert answer.status == 200


async def test_uvicorn_serves_it_on_our_own_socket_and_stops_cleanly() -> None:
    doors = server.listening(socket.create_server(("127.0.0.1", 0)))
    config = server.config(application(Engine(), Bearers(), Book()), host="127.0.0.1", port=0)
    running = server.DoorServer(config, doors)
    serving = asyncio.create_task(running.serve())
    async with asyncio.timeout(10), dialled(doors.port) as (reader, writer):
        writer.write(head("GET", "/healthz", 0))
        answer = await answer_of(reader)
        running.should_exit = True
        await serving
        assert await reader.read() == b""

    assert answer.status == 200
    assert "server" not in answer.headers
    assert not doors.open
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", doors.port)


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_it_stops_at_once_though_somebody_connects_at_that_moment(
    loop: Callable[[], asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = server.DoorProtocol.connection_made

    def last(protocol: server.DoorProtocol, transport: asyncio.Transport) -> None:
        made(protocol, transport)
        asyncio.get_running_loop().call_soon(doors.close)
        running.should_exit = True

    monkeypatch.setattr(server.DoorProtocol, "connection_made", last)
    doors = server.listening(socket.create_server(("127.0.0.1", 0)))
    config = server.config(application(Engine(), Bearers(), Book()), host="127.0.0.1", port=0)
    running = server.DoorServer(config, doors)

    async def stopped() -> None:
        serving = asyncio.create_task(running.serve())
        async with dialled(doors.port):
            await asyncio.wait_for(serving, 5)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(stopped())
    assert not doors.open
    assert not running.server_state.connections


async def test_a_certificate_makes_it_tls_of_no_version_before_1_2(
    tls_pair: tuple[Path, Path],
) -> None:
    made = server.config(
        application(Engine(), Bearers(), Book()),
        host="127.0.0.1",
        port=0,
        tls_cert=str(tls_pair[0]),
        tls_key=str(tls_pair[1]),
    )
    made.load()

    assert made.ssl is not None
    assert made.ssl.minimum_version is ssl.TLSVersion.TLSv1_2


async def test_nothing_of_a_call_is_left_behind() -> None:
    asgi = application(Engine(), Bearers(), Book())
    async with listening(asgi) as (port, state), dialled(port) as (reader, writer):
        writer.write(head("GET", "/healthz", 0, {"Connection": "close"}))
        await answer_of(reader)
        await until(lambda: not state.connections)

        assert not state.tasks
