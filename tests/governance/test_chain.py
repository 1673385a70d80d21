"""The chain: each entry once, in its document's order, whoever appends and whatever fails."""

import asyncio
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.governance.chain import ENTRY_BYTES_MAX, Chain, check, rfc3339
from core_console.governance.verify import verify
from core_console.model.audit import OutboxEntry, Outcome
from core_console.model.faults import InvariantError
from core_console.ports import Conflict, Fault
from core_console.store.filelog import FileLog
from core_console.store.memory import MemoryLog
from tests.fakes import NOON, ManualClock
from tests.governance.records import METADOC, chain_on, entry, exported, outbox


def numbers_in(log: MemoryLog, document: str = METADOC) -> list[int]:
    records = [json.loads(line) for line in log.lines]
    return [record["number"] for record in records if record["document"] == document]


def holds(log: MemoryLog) -> bool:
    return verify(io.BytesIO(exported(log.lines))).intact


async def test_a_record_is_canonical_json_bound_to_the_one_before() -> None:
    log = MemoryLog()
    await chain_on(log).drain(METADOC, outbox(1, 2))
    first, second = (json.loads(line) for line in log.lines)
    assert first == {
        "seq": 1,
        "at": "2026-11-30T12:00:00.000Z",
        "actor": "author@example.com",
        "action": "atlas.playbooks.create",
        "target": "PB-1",
        "outcome": "success",
        "detail": "entry 1",
        "subject": "playbook",
        "document": METADOC,
        "number": 1,
        "prev_hash": "0" * 64,
        "hash": first["hash"],
    }
    assert second["prev_hash"] == first["hash"]
    for line in log.lines:
        record = json.loads(line)
        claimed = record.pop("hash")
        content = json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert claimed == sha256(content.encode()).hexdigest()


@given(text=st.text(max_size=200), actor=st.text(max_size=20))
async def test_any_text_is_recorded_as_it_is_and_verifies(text: str, actor: str) -> None:
    log = MemoryLog()
    await chain_on(log).add([entry(text, actor=actor)])
    assert holds(log)
    record = json.loads(log.lines[0])
    assert (record["detail"], record["actor"]) == (text, actor)


async def test_draining_again_adds_nothing() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    assert await chain.drain(METADOC, outbox(1, 3)) == 3
    assert await chain.drain(METADOC, outbox(1, 3)) == 3
    assert await chain.drain(METADOC, outbox(2, 4)) == 4
    assert await chain.drain(METADOC, []) == 4
    assert numbers_in(log) == [1, 2, 3, 4]


async def test_a_crash_between_append_and_removal_from_the_outbox_doubles_nothing() -> None:
    log = MemoryLog()
    await chain_on(log).drain(METADOC, outbox(1, 3))
    restarted = chain_on(log)
    assert await restarted.last_number(METADOC) == 3
    assert await restarted.drain(METADOC, outbox(1, 4)) == 4
    assert numbers_in(log) == [1, 2, 3, 4]
    assert holds(log)


async def test_a_lost_reply_doubles_nothing() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    log.troubles.after.append(Fault("the connection broke"))
    with pytest.raises(Fault, match="connection broke"):
        await chain.drain(METADOC, outbox(1, 2))
    assert await chain.drain(METADOC, outbox(1, 3)) == 3
    assert numbers_in(log) == [1, 2, 3]
    assert holds(log)


async def test_a_failed_append_loses_nothing() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    log.troubles.before.append(Fault("the disk is full"))
    with pytest.raises(Fault, match="disk is full"):
        await chain.drain(METADOC, outbox(1, 2))
    assert await chain.drain(METADOC, outbox(1, 2)) == 2
    assert numbers_in(log) == [1, 2]


async def test_two_replicas_that_drain_the_same_outbox_append_it_once() -> None:
    log = MemoryLog()
    ours, theirs = chain_on(log), chain_on(log)
    for last in range(1, 20):
        waiting = outbox(max(1, last - 3), last)
        answers = await asyncio.gather(ours.drain(METADOC, waiting), theirs.drain(METADOC, waiting))
        assert set(answers) == {last}
    assert numbers_in(log) == list(range(1, 20))
    assert holds(log)


async def test_replicas_that_race_on_one_file_append_everything_once_and_in_order(
    tmp_path: Path,
) -> None:
    logs = [FileLog(tmp_path / "audit") for _ in range(3)]

    async def work(name: str, log: FileLog) -> None:
        chain = chain_on(log)
        for last in range(1, 16):
            await chain.drain(METADOC, outbox(1, last))
            await chain.drain(name, outbox(last, last))
            await chain.add([entry(f"refused at {name}", outcome=Outcome.DENIED)])

    await asyncio.gather(*(work(f"document-{at}", log) for at, log in enumerate(logs)))
    lines = await logs[0].read(1, 256)
    records = [json.loads(line) for line in lines]
    for document in (METADOC, "document-0", "document-1", "document-2"):
        own = [record["number"] for record in records if record["document"] == document]
        assert own == list(range(1, 16))
    assert len(records) == 4 * 15 + 3 * 15
    assert verify(io.BytesIO(exported(lines))).records == len(records)


async def test_documents_number_their_entries_by_themselves() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    await chain.drain("one", outbox(1, 2))
    await chain.drain("two", outbox(1, 1))
    await chain.drain("one", outbox(3, 3))
    assert await chain.last_number("one") == 3
    assert await chain.last_number("two") == 1
    assert await chain.last_number("three") == 0


async def test_a_restart_finds_the_last_number_however_far_back_it_is() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    await chain.drain(METADOC, outbox(1, 2))
    for _ in range(6):
        await chain.add([entry() for _ in range(100)])
    assert await chain_on(log).last_number(METADOC) == 2


async def test_nothing_is_read_while_nobody_else_appends() -> None:
    class CountingLog(MemoryLog):
        reads = 0

        async def read(self, first_seq: int, count: int) -> list[bytes]:
            self.reads += 1
            return await super().read(first_seq, count)

    log = CountingLog()
    chain = chain_on(log)
    for last in range(1, 10):
        await chain.drain(METADOC, outbox(1, last))
    assert log.reads == 0
    await chain_on(log).add([entry()])
    log.reads = 0
    await chain.drain(METADOC, outbox(1, 10))
    assert log.reads == 1


class BusyLog(MemoryLog):
    """A log to which somebody else is always first."""

    def __init__(self, clock: ManualClock, step_s: float) -> None:
        super().__init__()
        self.attempts = 0
        self._clock = clock
        self._step_s = step_s

    async def append(self, expected_seq: int, lines: Sequence[bytes]) -> None:
        self.attempts += 1
        await self._clock.advance(self._step_s)
        raise Conflict(f"{len(lines)} lines after {expected_seq} came too late")


@pytest.mark.parametrize(("step_s", "attempts"), [(0.0, 50), (2.5, 2)])
async def test_losing_every_race_ends_in_a_fault(step_s: float, attempts: int) -> None:
    clock = ManualClock()
    log = BusyLog(clock, step_s)
    with pytest.raises(Fault, match="busy") as caught:
        await Chain(log, clock).drain(METADOC, outbox(1, 1))
    assert caught.value.retryable
    assert log.attempts == attempts


async def test_refusals_of_concurrent_callers_share_appends() -> None:
    class CountingLog(MemoryLog):
        appends = 0

        async def append(self, expected_seq: int, lines: Sequence[bytes]) -> None:
            self.appends += 1
            await asyncio.sleep(0)
            await super().append(expected_seq, lines)

    log = CountingLog()
    chain = chain_on(log)
    await asyncio.gather(*(chain.add([entry(f"refusal {at}")]) for at in range(40)))
    assert len(log.lines) == 40
    assert log.appends == 2
    assert holds(log)


async def test_a_failed_append_fails_every_caller_that_shared_it() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    log.troubles.before.append(Fault("the disk is full"))
    answers = await asyncio.gather(
        *(chain.add([entry()]) for _ in range(3)), return_exceptions=True
    )
    assert [type(answer) for answer in answers] == [Fault, type(None), type(None)]
    assert len(log.lines) == 2


async def test_a_cancelled_caller_does_not_let_the_others_append_its_entries_again() -> None:
    gate = asyncio.Event()

    class SlowLog(MemoryLog):
        async def append(self, expected_seq: int, lines: Sequence[bytes]) -> None:
            await super().append(expected_seq, lines)
            await gate.wait()

    log = SlowLog()
    chain = chain_on(log)
    first = asyncio.create_task(chain.add([entry("first")]))
    await asyncio.sleep(0)
    second = asyncio.create_task(chain.add([entry("second")]))
    await asyncio.sleep(0)
    first.cancel()
    gate.set()
    await second
    with pytest.raises(asyncio.CancelledError):
        await first
    assert [json.loads(line)["detail"] for line in log.lines] == ["first", "second"]


async def test_an_entry_of_the_outboxs_own_bound_is_recorded_whole() -> None:
    room = ENTRY_BYTES_MAX - len(json.dumps({**dict.fromkeys("abcdefg")})) - 300
    text = "x" * room
    log = MemoryLog()
    await chain_on(log).drain(METADOC, [OutboxEntry(1, entry(text))])
    assert json.loads(log.lines[0])["detail"] == text


@pytest.mark.parametrize(
    "unfit",
    [
        entry("x" * ENTRY_BYTES_MAX),
        entry("\ud800"),
        entry(at=datetime(2026, 1, 1)),  # noqa: DTZ001 -- the missing zone is the point
    ],
)
async def test_an_unfit_entry_is_our_bug_and_never_cut(unfit: object) -> None:
    log = MemoryLog()
    with pytest.raises(InvariantError):
        check(unfit)  # type: ignore[arg-type]  # all three are entries
    with pytest.raises(InvariantError):
        await chain_on(log).add([unfit])  # type: ignore[list-item]  # all three are entries
    assert log.lines == []


@pytest.mark.parametrize(
    ("document", "waiting"),
    [
        (METADOC, [*outbox(2, 2), *outbox(1, 1)]),
        (METADOC, [*outbox(1, 1), *outbox(1, 1)]),
        (METADOC, outbox(0, 1)),
        ("", outbox(1, 1)),
    ],
)
async def test_an_outbox_out_of_order_is_our_bug(document: str, waiting: list[OutboxEntry]) -> None:
    log = MemoryLog()
    with pytest.raises(InvariantError, match="numbered in order"):
        await chain_on(log).drain(document, waiting)
    assert log.lines == []


async def test_a_log_that_became_shorter_is_a_fault() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    await chain.drain(METADOC, outbox(1, 3))
    log.lines.pop()
    with pytest.raises(Fault, match="shorter") as caught:
        await chain.drain(METADOC, outbox(1, 4))
    assert not caught.value.retryable


async def test_a_record_that_does_not_follow_is_a_fault_and_nothing_is_added() -> None:
    log, other = MemoryLog(), MemoryLog()
    chain = chain_on(log)
    await chain.drain(METADOC, outbox(1, 1))
    await chain_on(other).add([entry("one"), entry("two")])
    log.lines.append(other.lines[1])
    with pytest.raises(Fault, match="record 2 of the audit log does not follow"):
        await chain.drain(METADOC, outbox(1, 2))
    assert len(log.lines) == 2


async def test_a_record_with_another_number_than_its_place_is_a_fault() -> None:
    log, other = MemoryLog(), MemoryLog()
    await chain_on(other).add([entry("one"), entry("two")])
    log.lines = [other.lines[1]]
    with pytest.raises(Fault, match="record 1 of the audit log cannot be read"):
        await chain_on(log).add([entry()])


async def test_a_last_line_that_is_no_record_is_a_fault() -> None:
    log = MemoryLog()
    log.lines.append(b'{"seq": 1}')
    with pytest.raises(Fault, match="not a record"):
        await chain_on(log).add([entry()])
    assert len(log.lines) == 1


@pytest.mark.parametrize(
    ("at", "written"),
    [
        (NOON, "2026-11-30T12:00:00.000Z"),
        (NOON.replace(microsecond=7_999), "2026-11-30T12:00:00.007Z"),
        (NOON.astimezone(timezone(timedelta(hours=-3))), "2026-11-30T12:00:00.000Z"),
        (datetime(987, 1, 2, tzinfo=UTC), "0987-01-02T00:00:00.000Z"),
    ],
)
def test_times_are_written_in_utc_with_milliseconds(at: datetime, written: str) -> None:
    assert rfc3339(at) == written
