"""Turns between replicas: who lost goes next, and nobody is held up by who does not go."""

import asyncio
import fcntl
import time
from pathlib import Path

import pytest

from core_console.ports import Conflict
from core_console.store import file, turn
from core_console.store.file import FileDocument
from core_console.store.turn import IDLE_S, KEPT_S, Turn


async def a_lost_race(folder: Path) -> tuple[FileDocument, FileDocument, str]:
    """Return who lost a race for the document, who won it, and the version that was stored."""
    ours, theirs = FileDocument(folder / "document"), FileDocument(folder / "document")
    first = await ours.swap("", b"first")
    newer = await theirs.swap(first, b"newer")
    with pytest.raises(Conflict):
        await ours.swap(first, b"too late")
    return ours, theirs, newer


async def test_who_lost_a_race_wins_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Longer than a busy machine takes for what is meant to happen meanwhile.
    monkeypatch.setattr(file, "KEPT_S", 1.0)
    monkeypatch.setattr(turn, "_PATIENCE_S", 5.0)
    ours, theirs, newer = await a_lost_race(tmp_path)
    # They have all in memory and try at once; we must read first, and go first all the same.
    hurrying = asyncio.create_task(theirs.swap(newer, b"another"))
    stored = await ours.load()
    await ours.swap(stored.version, b"ours")
    with pytest.raises(Conflict):
        await hurrying
    assert (await ours.load()).data == b"ours"


async def test_who_lost_and_does_not_come_back_holds_nobody_up_for_long(tmp_path: Path) -> None:
    ours, theirs, newer = await a_lost_race(tmp_path)
    await theirs.swap(newer, b"another")
    await asyncio.sleep(2 * KEPT_S)
    assert ours._turn._descriptor is None


async def test_who_lost_and_has_nothing_more_to_swap_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file, "KEPT_S", 60.0)
    ours, _, newer = await a_lost_race(tmp_path)
    await asyncio.sleep(2 * IDLE_S)
    assert ours._turn._descriptor is not None, "it is still reading what the other stored"
    await ours.swap(newer, b"ours")
    assert ours._turn._descriptor is not None
    await asyncio.sleep(2 * IDLE_S)
    assert ours._turn._descriptor is None


def test_a_turn_that_is_never_given_back_is_waited_for_once_and_gone_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turn, "_PATIENCE_S", 0.01)
    path = tmp_path / "document"
    with (tmp_path / "document.turn").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        ours = Turn(path)
        began_s = time.monotonic()
        ours.take()
        assert 0.005 < time.monotonic() - began_s < 5
        ours.give()
    ours.take()
    assert ours._descriptor is not None
    ours.give()


def test_a_turn_that_cannot_be_had_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "document.turn").mkdir()
    ours = Turn(tmp_path / "document")
    ours.take()
    assert ours._descriptor is None
    ours.give()
