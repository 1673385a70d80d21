"""The inbox gathers who comes back together, on a clock of its own, so that waits are exact."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from core_console.decide.outcome import Refused
from core_console.inbox import Inbox
from tests.sim.loop import run_virtually

LONGEST_S = 0.012
"""What the page on performance promises."""


class Desk:
    """An inbox, those who ask, and how long the writer waited for its batches."""

    def __init__(self) -> None:
        self.inbox: Inbox[str, Any] = Inbox(answered=lambda _: None)
        self.waits_s: list[float] = []
        self._asking: set[asyncio.Task[object]] = set()

    def ask(self, *commands: str) -> None:
        """Let these ask now."""
        loop = asyncio.get_running_loop()
        self._asking |= {loop.create_task(self._ask(each)) for each in commands}

    def ask_every(self, pause_s: float, times: int) -> None:
        """Let somebody ask again and again."""
        loop = asyncio.get_running_loop()
        for turn in range(times):
            loop.call_later(turn * pause_s, self.ask, f"late {turn}")

    async def _ask(self, command: str) -> Refused | object:
        return await self.inbox.ask(command)

    async def batch(self, *, wait: bool = True) -> list[str]:
        """Return the next batch's commands, answered."""
        loop = asyncio.get_running_loop()
        if wait:
            await self.inbox.rings()
        began_s = loop.time()
        taken = await self.inbox.take()
        self.waits_s.append(loop.time() - began_s)
        self.inbox.answer(taken, [object()] * len(taken))
        await asyncio.sleep(0)
        return [asked.command for asked in taken]


def at_a_desk(story: Callable[[Desk], Awaitable[None]]) -> Desk:
    async def told() -> Desk:
        desk = Desk()
        await story(desk)
        return desk

    return run_virtually(told())


def test_who_comes_alone_is_not_kept_waiting() -> None:
    async def story(desk: Desk) -> None:
        for turn in range(3):
            desk.ask(f"{turn}")
            assert await desk.batch() == [f"{turn}"]

    assert at_a_desk(story).waits_s == [0, 0, 0]


def test_those_who_were_answered_together_are_waited_for() -> None:
    async def story(desk: Desk) -> None:
        desk.ask("a", "b", "c")
        await asyncio.sleep(0)
        assert await desk.batch() == ["a", "b", "c"]
        desk.ask("a again")
        desk.ask_every(0.002, 2)
        assert await desk.batch() == ["a again", "late 0", "late 1"]

    waits_s = at_a_desk(story).waits_s
    assert waits_s[0] == 0
    assert 0.0019 < waits_s[1] < 0.0021, "it goes on the moment that the last of them is there"


def test_two_groups_that_come_in_turn_become_one() -> None:
    async def story(desk: Desk) -> None:
        desk.ask("a", "b")
        await asyncio.sleep(0)
        await desk.inbox.rings()
        first = await desk.inbox.take()
        desk.ask("c", "d")  # while the first two are being stored
        await asyncio.sleep(0)
        desk.inbox.answer(first, [object()] * 2)
        asyncio.get_running_loop().call_later(0.001, desk.ask, "a", "b")
        assert await desk.batch(wait=False) == ["c", "d", "a", "b"]

    at_a_desk(story)


def test_who_does_not_come_back_is_waited_for_once_and_shortly() -> None:
    async def story(desk: Desk) -> None:
        desk.ask("a", "b", "c")
        await asyncio.sleep(0)
        await desk.batch()
        for _ in range(2):
            desk.ask("a")
            assert await desk.batch() == ["a"]

    _, once_s, again_s = at_a_desk(story).waits_s
    assert 0.002 < once_s < 0.005
    assert again_s == 0


def test_who_comes_back_late_waits_for_nobody() -> None:
    async def story(desk: Desk) -> None:
        desk.ask("a", "b", "c")
        await asyncio.sleep(0)
        await desk.batch()
        await asyncio.sleep(LONGEST_S)
        desk.ask("a")
        assert await desk.batch() == ["a"]

    assert at_a_desk(story).waits_s == [0, 0]


def test_a_wait_ends_while_they_still_come() -> None:
    async def story(desk: Desk) -> None:
        desk.ask(*(f"{number}" for number in range(100)))
        await asyncio.sleep(0)
        assert len(await desk.batch()) == 100
        desk.ask_every(0.002, 90)
        assert 5 <= len(await desk.batch()) <= 8

    assert LONGEST_S <= at_a_desk(story).waits_s[1] < LONGEST_S + 0.001
