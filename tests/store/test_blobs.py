"""One suite for every blob store."""

import os
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path

import pytest

from core_console.ports import Blobs, Fault
from core_console.store.blobs import BLOB_BYTES_MAX, FileBlobs
from core_console.store.faults import CorruptStore
from core_console.store.memory import MemoryBlobs
from tests.fakes import ManualClock


@pytest.fixture(params=["memory", "file"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Blobs]:
    if request.param == "memory":
        yield MemoryBlobs(ManualClock())
        return
    made = FileBlobs(tmp_path / "blobs")
    yield made
    made.close()


async def test_what_was_put_is_found_by_its_digest(blobs: Blobs) -> None:
    digest = await blobs.put(b"rows")
    assert digest == sha256(b"rows").hexdigest()
    assert await blobs.get(digest) == b"rows"
    assert [each.digest for each in await blobs.kept()] == [digest]


async def test_the_same_bytes_are_kept_once(blobs: Blobs) -> None:
    assert await blobs.put(b"rows") == await blobs.put(b"rows")
    assert len(await blobs.kept()) == 1


async def test_a_blob_that_is_gone_is_a_fault_and_deleting_it_again_is_not(blobs: Blobs) -> None:
    digest = await blobs.put(b"rows")
    await blobs.delete(digest)
    await blobs.delete(digest)
    assert await blobs.kept() == []
    with pytest.raises(Fault, match="gone"):
        await blobs.get(digest)


async def test_a_blob_that_was_put_again_meanwhile_is_not_forgotten(blobs: Blobs) -> None:
    digest = await blobs.put(b"rows")
    (kept,) = await blobs.kept()
    await blobs.delete(digest, put_before=kept.put_at)
    assert await blobs.get(digest) == b"rows"
    await blobs.delete("0" * 64, put_before=kept.put_at)
    await blobs.delete(digest, put_before=kept.put_at + timedelta(milliseconds=1))
    assert await blobs.kept() == []


async def test_nothing_is_listed_before_the_first_put(blobs: Blobs) -> None:
    assert await blobs.kept() == []


async def test_a_file_that_is_not_what_its_name_says_is_not_handed_out(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    digest = await blobs.put(b"rows")
    (tmp_path / "blobs" / digest).write_bytes(b"other rows")
    with pytest.raises(CorruptStore, match="digest"):
        await blobs.get(digest)
    assert await blobs.put(b"rows") == digest
    assert await blobs.get(digest) == b"rows", "putting it again mends it"
    blobs.close()


@pytest.mark.parametrize("name", ["", "../operator-key.pem", "A" * 64, "0" * 63])
async def test_only_a_digest_is_a_name(tmp_path: Path, name: str) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    for ask in (blobs.get(name), blobs.delete(name)):
        with pytest.raises(Fault, match="SHA-256"):
            await ask
    blobs.close()


async def test_a_link_is_not_followed(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    digest = await blobs.put(b"rows")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"rows")
    (tmp_path / "blobs" / digest).unlink()
    (tmp_path / "blobs" / digest).symlink_to(elsewhere)
    with pytest.raises(Fault):
        await blobs.get(digest)
    assert await blobs.kept() == []
    blobs.close()


async def test_a_blob_is_bounded(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    with pytest.raises(Fault, match="at most"):
        await blobs.put(bytes(BLOB_BYTES_MAX + 1))
    assert await blobs.kept() == []
    blobs.close()


async def test_a_put_that_fails_leaves_no_temporary_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    blobs = FileBlobs(tmp_path / "blobs")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Fault, match="full"):
        await blobs.put(b"rows")
    monkeypatch.undo()
    digest = await blobs.put(b"rows")
    assert [each.name for each in (tmp_path / "blobs").iterdir()] == [digest]
    blobs.close()
