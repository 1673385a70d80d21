"""Feeds on a real disk: what was committed is there after a restart, and nothing by half."""

from pathlib import Path

import pytest

from core_console.app.console import BLOBS_PATH, FEEDS_PATH
from core_console.capex.looking import Unseen
from core_console.capex.sweeper import names
from core_console.model.codec import CAPEX
from core_console.store.blobs import FileBlobs
from core_console.store.file import FileDocument
from tests.capex.house import CLEAN, PLAN, House, committed, counts, faulty_plan, staged


class OnDisk(House):
    """The same house, on files."""

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.files = FileDocument(root / FEEDS_PATH)
        self.file_blobs = FileBlobs(root / BLOBS_PATH)
        self.store, self.kept = self.files, self.file_blobs

    def close(self) -> None:
        self.files.close()
        self.file_blobs.close()


async def test_feeds_stages_and_history_survive_a_restart(tmp_path: Path) -> None:
    house = OnDisk(tmp_path)
    async with house.replica() as feeds:
        await committed(feeds.capex, {**CLEAN, PLAN: faulty_plan(2)})
        await staged(feeds.capex, PLAN, CLEAN[PLAN])
        before, found = await feeds.engine.snapshot(), await counts(feeds.capex)
    house.close()
    again = OnDisk(tmp_path)
    async with again.replica() as feeds:
        assert await feeds.engine.snapshot() == before
        assert await counts(feeds.capex) == found
        assert found["CP-001"] == 2
    again.close()
    stored = CAPEX.decode((await FileDocument(tmp_path / FEEDS_PATH).load()).data)
    assert {each.name for each in (tmp_path / BLOBS_PATH).iterdir()} == names(stored)


@pytest.mark.parametrize("damage", ["cut", "gone"])
async def test_a_damaged_file_is_told_and_another_one_mends_it(tmp_path: Path, damage: str) -> None:
    house = OnDisk(tmp_path)
    async with house.replica() as feeds:
        await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
        (path,) = (tmp_path / BLOBS_PATH).iterdir()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-9])
    else:
        path.unlink()
    async with house.replica() as feeds:
        found = await feeds.capex.eyes.look()
        assert isinstance(found, Unseen)
        assert str(tmp_path) not in found.provenance.unmeasured[0]
        await committed(feeds.capex, {PLAN: CLEAN[PLAN]})
        assert await counts(feeds.capex) == {}
    house.close()
