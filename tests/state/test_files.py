"""The files under a backup and a restore: whole or not at all, and never over another."""

import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from core_console.ports import Fault
from core_console.store import archive, replacing, serving
from core_console.store.faults import CorruptStore
from core_console.store.file import FileDocument

PIECES = {"manifest.json": b"{}", "documents/x": b"\x00\xff" * 999, "blobs/y": b""}


def names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def write(path: Path) -> None:
    with archive.writing(path, 1_800_000_000) as writer:
        for name, data in PIECES.items():
            writer.add(name, data)


def test_an_archive_gives_back_what_was_put_into_it(tmp_path: Path) -> None:
    write(tmp_path / "b")
    with archive.reading(tmp_path / "b") as reader:
        assert {name: reader.get(name) for name in PIECES} == PIECES
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == {"b"}


def test_any_tool_can_look_into_an_archive(tmp_path: Path) -> None:
    write(tmp_path / "b")
    with tarfile.open(tmp_path / "b") as found:
        assert found.getnames() == list(PIECES)


def test_an_archive_is_never_written_over_a_file(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("mine")
    with pytest.raises(Fault, match="is there already"):
        write(tmp_path / "b")
    assert (tmp_path / "b").read_text() == "mine"


def test_a_file_that_came_meanwhile_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="is there already"), archive.writing(tmp_path / "b", 0):
        (tmp_path / "b").write_text("mine")
    assert (tmp_path / "b").read_text() == "mine"
    assert names(tmp_path) == {"b"}


def test_what_fails_half_way_leaves_no_file(tmp_path: Path) -> None:
    def fail() -> None:
        with archive.writing(tmp_path / "b", 0) as writer:
            writer.add("x", b"1")
            raise Fault("the store is away")

    with pytest.raises(Fault, match="away"):
        fail()
    assert names(tmp_path) == set()


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(Fault, match="is gone"):
        write(tmp_path / "no" / "b")


@pytest.mark.parametrize("data", [b"", b"{}", b"\x1f\x8b" * 999, os.urandom(4_096)])
def test_what_is_no_archive_is_told(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "b").write_bytes(data)
    with (
        pytest.raises(Fault, match="no backup of a console"),
        archive.reading(tmp_path / "b") as found,
    ):
        found.get("manifest.json")


def test_an_archive_that_was_cut_off_is_told(tmp_path: Path) -> None:
    write(tmp_path / "b")
    whole = (tmp_path / "b").read_bytes()
    (tmp_path / "b").write_bytes(whole[: 512 * 3 + 100])
    with pytest.raises(Fault, match="no backup"), archive.reading(tmp_path / "b") as found:
        found.get("documents/x")


def test_a_piece_that_is_missing_too_large_or_a_link_is_told(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "b", "w") as made:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        made.addfile(link)
        folder = tarfile.TarInfo("folder")
        folder.type = tarfile.DIRTYPE
        made.addfile(folder)
        piece = tarfile.TarInfo("piece")
        piece.size = 9
        made.addfile(piece, BytesIO(b"x" * 9))
    with archive.reading(tmp_path / "b") as reader:
        assert reader.get("piece", bytes_max=9)
        for name, most in (("gone", 9), ("link", 9), ("folder", 9), ("piece", 8)):
            with pytest.raises(Fault, match="no backup"):
                reader.get(name, bytes_max=most)


async def stored(path: Path) -> bytes:
    document = FileDocument(path)
    try:
        return (await document.load()).data
    finally:
        document.close()


async def swap(path: Path, data: bytes) -> None:
    document = FileDocument(path)
    try:
        await document.swap(await document.version(), data)
    finally:
        document.close()


async def test_another_document_takes_the_place_and_the_old_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "atlas"
    await swap(path, b"old")
    before = path.read_bytes()
    await replacing.put_in_place(path, b"new", "atlas.replaced")
    assert await stored(path) == b"new"
    assert (tmp_path / "atlas.replaced").read_bytes() == before
    assert names(tmp_path) == {"atlas", "atlas.lock", "atlas.turn", "atlas.replaced"}


async def test_a_damaged_file_gives_way_and_stays_too(tmp_path: Path) -> None:
    path = tmp_path / "atlas"
    path.write_bytes(b"damaged")
    await replacing.put_in_place(path, b"new", "atlas.replaced")
    assert await stored(path) == b"new"
    assert (tmp_path / "atlas.replaced").read_bytes() == b"damaged"


async def test_where_nothing_stood_nothing_is_kept(tmp_path: Path) -> None:
    await replacing.put_in_place(tmp_path / "atlas", b"new", "atlas.replaced")
    assert await stored(tmp_path / "atlas") == b"new"
    assert not (tmp_path / "atlas.replaced").exists()


async def test_what_a_restore_left_half_way_is_cleared(tmp_path: Path) -> None:
    (tmp_path / "atlas.restoring").write_bytes(b"half")
    (tmp_path / "atlas.restoring.tmp").write_bytes(b"half")
    await replacing.put_in_place(tmp_path / "atlas", b"new", "atlas.replaced")
    assert await stored(tmp_path / "atlas") == b"new"
    assert names(tmp_path) == {"atlas", "atlas.lock"}


async def test_a_pipe_in_the_place_of_a_document_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "atlas")
    with pytest.raises(CorruptStore, match="no file"):
        await replacing.put_in_place(tmp_path / "atlas", b"new", "atlas.replaced")


def test_replicas_share_a_root_and_a_restore_has_it_alone(tmp_path: Path) -> None:
    assert not serving.is_served(tmp_path)
    assert list(tmp_path.iterdir()) == [], "looking makes nothing"
    with serving.shared(tmp_path), serving.shared(tmp_path):
        assert serving.is_served(tmp_path)
        with pytest.raises(Fault, match="stop every replica first"), serving.alone(tmp_path):
            pass
    assert not serving.is_served(tmp_path)
    with serving.alone(tmp_path):
        with pytest.raises(Fault, match="a restore of this"), serving.shared(tmp_path):
            pass
        with pytest.raises(Fault, match="stop every replica"), serving.alone(tmp_path):
            pass
    with serving.shared(tmp_path):
        assert serving.is_served(tmp_path)
