"""The file log's own promises: synced lines, a repaired end, any line found without an index."""

import errno
import json
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.ports import Fault
from core_console.store.faults import CorruptStore
from core_console.store.filelog import READ_LINES_MAX, FileLog
from core_console.store.lines import LINE_BYTES_MAX, find_line
from tests.store.faulty import SystemCalls, put_in_place
from tests.store.test_file import fault_while, left_in, places_in, run_victim
from tests.store.victim import line

pytestmark = pytest.mark.usefixtures("system_calls")


async def test_a_writer_killed_at_any_point_leaves_whole_lines_in_order(tmp_path: Path) -> None:
    assert run_victim("append", tmp_path).wait(60) == 0
    lengths, repairs = [], 0
    for place in places_in(tmp_path):
        log = FileLog(place / "log")
        last = await log.last_seq()
        assert await log.read(1, 9) == [line(seq) for seq in range(1, last + 1)]
        await log.append(last, [line(last + 1)])
        assert await FileLog(place / "log").last_seq() == last + 1
        lengths.append(last)
        repairs += log.repairs
    assert set(lengths) == {1, 2, 3}
    assert repairs > 0


async def test_any_failing_call_is_a_fault_that_leaves_whole_lines_in_order(tmp_path: Path) -> None:
    struck, at = True, 0
    while struck:
        at += 1
        log = FileLog(tmp_path / str(at) / "log")
        await log.append(0, [line(1)])

        def fail() -> None:
            raise OSError(errno.ENOSPC, "no space left on device")

        calls = SystemCalls(at, fail, torn=True)
        put_in_place(calls)
        told = await fault_while(log.append(1, [line(2), line(3)]))
        put_in_place(os)
        assert told == "" or told.startswith("the disk is full")
        struck = len(calls.made) >= at
        last = await log.last_seq()
        assert await log.read(1, 9) == [line(seq) for seq in range(1, last + 1)]
        await log.append(last, [line(last + 1)])
    assert at > 5


async def test_processes_that_append_at_once_lose_and_double_nothing(tmp_path: Path) -> None:
    processes = [run_victim("lines", tmp_path, 60) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    log = FileLog(tmp_path / "log")
    assert await log.last_seq() == 180
    records = [json.loads(text) for text in await log.read(1, 256)]
    assert [record["seq"] for record in records] == list(range(1, 181))
    assert len({record["who"] for record in records}) == 3
    assert log.repairs == 0
    assert left_in(tmp_path) == {"log", "log.lock"}


@pytest.mark.parametrize("torn", [b"{", line(3)[:-1], line(3), b"\x00" * 300])
async def test_a_torn_last_line_is_cut_off_and_told(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "log"
    await FileLog(path).append(0, [line(1), line(2)])
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    told: list[int] = []
    log = FileLog(path, told.append)
    assert await log.last_seq() == 2
    assert (log.repairs, told) == (1, [len(torn)])
    assert path.read_bytes() == whole


async def test_a_torn_first_line_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b'{"seq"')
    log = FileLog(tmp_path / "log")
    assert await log.last_seq() == 0
    await log.append(0, [line(1)])
    assert (tmp_path / "log").read_bytes() == line(1) + b"\n"


@pytest.mark.parametrize(
    "end", [b"nonsense\n", b"{}\n", b'{"seq": "3"}\n', b"\n", b"\xff\n", b"\x00" * 50 + b"\n"]
)
async def test_a_last_line_that_is_whole_and_no_record_is_refused_and_left(
    tmp_path: Path, end: bytes
) -> None:
    path = tmp_path / "log"
    await FileLog(path).append(0, [line(1), line(2)])
    path.write_bytes(damaged := path.read_bytes() + end)
    log = FileLog(path)
    for attempt in (log.last_seq(), log.append(2, [line(3)]), log.read(1, 1)):
        with pytest.raises(CorruptStore, match="restore a backup"):
            await attempt
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("size", [LINE_BYTES_MAX + 1, 3 * LINE_BYTES_MAX])
async def test_an_end_without_newline_longer_than_a_line_is_refused_and_left(
    tmp_path: Path, size: int
) -> None:
    path = tmp_path / "log"
    await FileLog(path).append(0, [line(1)])
    path.write_bytes(damaged := path.read_bytes() + b"x" * size)
    with pytest.raises(CorruptStore):
        await FileLog(path).last_seq()
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("lost", [1, 10, 10_000])
async def test_a_log_that_becomes_shorter_while_the_console_runs_is_refused(
    tmp_path: Path, lost: int
) -> None:
    path = tmp_path / "log"
    log = FileLog(path)
    await log.append(0, [line(1), line(2)])
    os.truncate(path, max(0, path.stat().st_size - lost))
    with pytest.raises(CorruptStore, match="shorter"):
        await log.last_seq()


@pytest.mark.parametrize(
    "bad",
    [line(3), b"nonsense", line(2) + b"\n", b'{"seq":2,"x":"' + b"y" * LINE_BYTES_MAX + b'"}'],
)
async def test_a_line_that_does_not_fit_its_place_is_our_bug(tmp_path: Path, bad: bytes) -> None:
    log = FileLog(tmp_path / "log")
    await log.append(0, [line(1)])
    with pytest.raises(ValueError, match="stand at 2"):
        await log.append(1, [bad])
    assert await log.last_seq() == 1


@given(sizes=st.lists(st.integers(0, 40_000), min_size=1, max_size=60), data=st.data())
def test_any_line_is_found(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    texts = [line(seq, "x" * size) for seq, size in enumerate(sizes, 1)]
    path = tmp_path_factory.mktemp("lines") / "log"
    path.write_bytes(b"\n".join(texts) + b"\n")
    seq = data.draw(st.integers(1, len(texts)))
    with path.open("rb") as file:
        offset = find_line(file.fileno(), seq, path.stat().st_size)
    assert offset == sum(len(text) + 1 for text in texts[: seq - 1])
    path.unlink()


async def test_a_gap_in_the_middle_is_found_out_and_not_read_over(tmp_path: Path) -> None:
    path = tmp_path / "log"
    texts = [line(seq) for seq in range(1, 101) if seq != 50]
    path.write_bytes(b"\n".join(texts) + b"\n")
    with pytest.raises(CorruptStore, match="without a gap"):
        await FileLog(path).read(70, 1)


async def test_a_gap_far_from_the_end_is_found_out_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    texts = [line(seq, "x" * 1_000) for seq in range(1, 1_001) if not 300 <= seq < 700]
    path.write_bytes(b"\n".join(texts) + b"\n")
    with pytest.raises(CorruptStore, match="without a gap"):
        await FileLog(path).read(500, 1)


async def test_a_middle_without_line_ends_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(line(1) + b"\n" + b"x" * 10 * LINE_BYTES_MAX + b"\n" + line(3) + b"\n")
    with pytest.raises(CorruptStore, match="longer than any"):
        await FileLog(path).read(2, 1)


async def test_short_writes_and_reads_are_completed(tmp_path: Path) -> None:
    put_in_place(SystemCalls(bytes_max=700))
    texts = [line(seq, "x" * 500) for seq in range(1, 600)]
    await FileLog(tmp_path / "log").append(0, texts)
    log = FileLog(tmp_path / "log")
    assert await log.last_seq() == 599
    assert await log.read(300, 20) == texts[299:319]


async def test_one_read_is_bounded(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "log")
    await log.append(0, [line(seq) for seq in range(1, 1_001)])
    assert await log.read(1, 1_000_000) == [line(seq) for seq in range(1, READ_LINES_MAX + 1)]


async def test_starting_reads_the_end_alone(tmp_path: Path) -> None:
    await FileLog(tmp_path / "log").append(0, [line(seq, "x" * 500) for seq in range(1, 5_001)])
    calls = SystemCalls()
    put_in_place(calls)
    assert await FileLog(tmp_path / "log").last_seq() == 5_000
    assert calls.made.count("pread") <= 2


async def test_asking_for_the_last_number_costs_no_lock_while_nobody_appends(
    tmp_path: Path,
) -> None:
    log = FileLog(tmp_path / "log")
    await log.append(0, [line(1)])
    calls = SystemCalls()
    put_in_place(calls)
    assert await log.last_seq() == 1
    assert calls.made == []


async def test_what_another_replica_appended_is_synced_before_it_is_believed(
    tmp_path: Path,
) -> None:
    ours, theirs = FileLog(tmp_path / "log"), FileLog(tmp_path / "log")
    await ours.append(0, [line(1)])
    await theirs.append(1, [line(2)])
    calls = SystemCalls()
    put_in_place(calls)
    assert await ours.last_seq() == 2
    assert "fdatasync" in calls.made


async def test_the_log_is_the_console_users_alone(tmp_path: Path) -> None:
    await FileLog(tmp_path / "var" / "log" / "audit").append(0, [line(1)])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "var").rglob("*")}
    assert modes == {"log": 0o700, "audit": 0o600, "audit.lock": 0o600}


async def test_a_closed_log_is_a_fault(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "log")
    log.close()
    with pytest.raises(Fault, match="closed"):
        await log.last_seq()
