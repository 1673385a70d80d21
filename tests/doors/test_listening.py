"""The doors' listening socket on both kinds of event loop: it counts whatever the loop does."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from core_console.doors import listening
from core_console.doors.listening import Listening
from tests.doors.site import dialled, until

LOOPS = (asyncio.new_event_loop, uvloop.new_event_loop)


class Mute(asyncio.Protocol):
    """Says nothing."""

    lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.lost = True


class Site:
    """Doors behind which nobody speaks, and those who came; all of it ends with the story.

    `making` is called when a protocol is to be made. `is_troubled` says that something of ours
    goes wrong in the story.
    """

    is_troubled = False

    def __init__(self, ends: AsyncExitStack) -> None:
        self.made: list[Mute] = []
        self.making: Callable[[], None] = lambda: None
        self._ends = ends

    def open(
        self,
        *,
        connections_max: int = 8,
        peer_max: int = 8,
        bound: socket.socket | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Take connections from now on."""
        bound = bound or socket.create_server(("127.0.0.1", 0))
        self.doors = Listening(bound, connections_max=connections_max, peer_max=peer_max)
        self.doors.start(self._mute, tls)
        self._ends.callback(self.doors.close)

    def _mute(self) -> Mute:
        self.making()
        self.made.append(Mute())
        return self.made[-1]

    async def dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect."""
        return await self._ends.enter_async_context(dialled(self.doors.port))

    async def count(self, number: int) -> None:
        """Wait until so many connections count."""
        await until(lambda: self.doors.open.total() == number)


Story = Callable[[Site], Awaitable[None]]
Play = Callable[[Story], None]


@pytest.fixture(params=LOOPS, ids=["asyncio", "uvloop"])
def play(request: pytest.FixtureRequest) -> Play:
    """Return what plays a story on a kind of loop, on which nothing may go wrong unseen."""

    def played(story: Story) -> None:
        async def told() -> None:
            troubles: list[Any] = []
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, trouble: troubles.append(trouble["message"]))
            async with AsyncExitStack() as ends:
                await story(site := Site(ends))
            await site.count(0)
            assert set(troubles) <= {"accept", "connect"}
            assert ("connect" in troubles) is site.is_troubled

        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(told(), 20))

    return played


@pytest.mark.parametrize("who_ends", ["caller", "server"])
def test_a_connection_counts_until_either_side_ends_it(play: Play, who_ends: str) -> None:
    async def story(site: Site) -> None:
        site.open()
        callers = [await site.dial() for _ in range(3)]
        await until(lambda: len(site.made) == 3)
        assert site.doors.open == {"127.0.0.1": 3}
        if who_ends == "caller":
            callers[0][1].close()
        else:
            site.made[0].transport.close()
        await site.count(2)

    play(story)


@pytest.mark.parametrize("bounds", [(2, 8), (8, 2)], ids=["in all", "of one peer"])
def test_who_comes_beyond_a_bound_is_hung_up_on_and_finds_room_later(
    play: Play, bounds: tuple[int, int]
) -> None:
    async def story(site: Site) -> None:
        site.open(connections_max=bounds[0], peer_max=bounds[1])
        _, first = await site.dial()
        await site.dial()
        await site.count(2)
        beyond, _ = await site.dial()
        assert await beyond.read() == b""
        assert len(site.made) == 2
        first.close()
        await site.count(1)
        await site.dial()
        await until(lambda: len(site.made) == 3)

    play(story)


def test_who_speaks_no_tls_counts_while_it_is_there_and_is_no_trouble(
    play: Play, tls_pair: tuple[Path, Path]
) -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*tls_pair)

    async def story(site: Site) -> None:
        site.open(tls=tls)
        silent, _ = await site.dial()
        reader, writer = await site.dial()
        await site.count(2)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await reader.read()
        await site.count(1)
        site.doors.close()
        with suppress(ConnectionResetError):
            assert await silent.read() == b""
        await site.count(0)

    play(story)


def test_who_never_speaks_tls_loses_the_connection(
    play: Play, tls_pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "HANDSHAKE_S", 0.05)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*tls_pair)

    async def story(site: Site) -> None:
        site.open(tls=tls)
        silent, _ = await site.dial()
        with suppress(ConnectionResetError):
            assert await silent.read() == b""
        await site.count(0)

    play(story)


def test_whoever_is_being_connected_at_the_end_is_told_so_and_loses_it(play: Play) -> None:
    async def story(site: Site) -> None:
        def end_soon() -> None:
            asyncio.get_running_loop().call_soon(site.doors.close)

        site.open()
        site.making = end_soon
        reader, _ = await site.dial()
        assert await reader.read() == b""
        await site.count(0)
        assert [mute.lost for mute in site.made] == [True]

    play(story)


def test_a_protocol_that_cannot_be_made_leaves_nothing_behind(play: Play) -> None:
    def fail() -> None:
        raise ValueError("a bug of ours")

    async def story(site: Site) -> None:
        site.open()
        site.making, site.is_troubled = fail, True
        for _ in range(3):
            reader, _ = await site.dial()
            assert await reader.read() == b""
        await site.count(0)

    play(story)


class Exhausted(socket.socket):
    """A listening socket that no file is left for, once."""

    tried = 0

    def accept(self) -> tuple[socket.socket, Any]:
        self.tried += 1
        if self.tried == 1:
            raise OSError(errno.EMFILE, "too many open files")
        return super().accept()


def test_when_files_are_used_up_it_waits_and_goes_on(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listening, "_EXHAUSTED_S", 0.05)

    async def story(site: Site) -> None:
        plain = socket.create_server(("127.0.0.1", 0))
        bound = Exhausted(plain.family, plain.type, plain.proto, fileno=plain.detach())
        site.open(bound=bound)
        await site.dial()
        await until(lambda: len(site.made) == 1)
        assert bound.tried < 5, "it does not try without a pause"

    play(story)
