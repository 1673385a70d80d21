"""The inbox gathers who comes back together, on a clock of its own, so that waits are exact."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from core_console.inbox import Inbox
from core_console.ports import Fault
from tests.sim.loop import run_virtually

COMMIT_S = 0.005


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

    async def _ask(self, command: str) -> None:
        with suppress(Fault):
            await self.inbox.ask(command)

    async def batch(self, *, wait: bool = True) -> list[str]:
        """Return the next batch's commands, answered."""
        loop = asyncio.get_running_loop()
        if wait:
            await self.inbox.rings()
        began_s = loop.time()
        taken = await self.inbox.take()
        self.waits_s.append(loop.time() - began_s)
        await asyncio.sleep(COMMIT_S)
        self.inbox.answer_batch(taken, [object()] * len(taken))
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
        asyncio.get_running_loop().call_later(COMMIT_S / 2, desk.ask, "c", "d")
        await asyncio.sleep(0)
        assert await desk.batch() == ["a", "b"]
        desk.ask_every(0.001, 2)
        assert await desk.batch(wait=False) == ["c", "d", "late 0", "late 1"]

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
    assert 0.0019 < once_s < 0.0021
    assert again_s == 0


def test_who_comes_back_late_waits_for_nobody() -> None:
    async def story(desk: Desk) -> None:
        desk.ask("a", "b", "c")
        await asyncio.sleep(0)
        await desk.batch()
        await asyncio.sleep(2 * COMMIT_S)
        desk.ask("a")
        assert await desk.batch() == ["a"]

    assert at_a_desk(story).waits_s == [0, 0]


def test_a_wait_ends_while_they_still_come() -> None:
    async def story(desk: Desk) -> None:
        desk.ask(*(f"{number}" for number in range(100)))
        await asyncio.sleep(0)
        assert len(await desk.batch()) == 100
        desk.ask_every(0.001, 90)
        assert len(await desk.batch()) == pytest.approx(10, abs=1)

    assert at_a_desk(story).waits_s[1] == pytest.approx(2 * COMMIT_S, abs=0.001)


def test_those_who_come_on_their_own_are_hardly_waited_for() -> None:
    async def story(desk: Desk) -> None:
        desk.ask_every(COMMIT_S / 2, 200)
        for _ in range(30):
            await desk.batch(wait=not desk.inbox)

    waits_s = sorted(at_a_desk(story).waits_s[5:])
    # One idle poll, and one more when somebody came in it; now and then a longer wait is tried.
    assert waits_s[20] < 0.0025
    assert waits_s[-1] < 2 * COMMIT_S + 0.001


def test_a_refusal_ends_a_wait_and_wakes_the_writer() -> None:
    async def story(desk: Desk) -> None:
        desk.ask("a", "b", "c")
        await asyncio.sleep(0)
        await desk.batch()
        desk.ask("a")
        asyncio.get_running_loop().call_later(0.0005, desk.inbox.refuse, Fault("away"))
        await asyncio.sleep(0)
        assert await desk.batch() == []
        await asyncio.wait_for(desk.inbox.rings(), 1)

    at_a_desk(story)
