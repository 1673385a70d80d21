"""The audit trail: newest first, exact filters, tokens that only fit their list, bounded work."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.decide.outcome import Code, Refused
from core_console.governance import trail as trail_module
from core_console.governance.trail import Filters, RecordPage, Trail
from core_console.model.audit import AuditRecord, Outcome
from core_console.ports import Fault
from core_console.store.filelog import FileLog
from core_console.store.memory import MemoryLog
from tests.fakes import NOON
from tests.governance.records import chain_on, entry, exported, filled_log

ANY = Filters()


async def page(
    trail: Trail, filters: Filters = ANY, *, size: int = 0, token: str = ""
) -> RecordPage:
    found = await trail.page(filters, page_size=size, page_token=token)
    assert isinstance(found, RecordPage)
    return found


async def all_pages(trail: Trail, filters: Filters, size: int) -> list[AuditRecord]:
    records: list[AuditRecord] = []
    token = ""
    while True:
        found = await page(trail, filters, size=size, token=token)
        records += found.records
        token = found.next_page_token
        if not token:
            return records


async def refusal(trail: Trail, *, size: int = 0, token: str = "", filters: Filters = ANY) -> str:
    found = await trail.page(filters, page_size=size, page_token=token)
    assert isinstance(found, Refused)
    assert found.code is Code.INVALID_ARGUMENT
    return found.violations[0].field


async def mixed_log() -> MemoryLog:
    log = MemoryLog()
    chain = chain_on(log)
    for seq in range(1, 601):
        said = entry(
            at=NOON + timedelta(seconds=seq),
            actor=f"operator-{seq % 7}@example.com",
            action=f"atlas.playbooks.{('create', 'update')[seq % 2]}",
            outcome=list(Outcome)[seq % 3],
            subject=("playbook", "identity")[seq % 5 == 0],
        )
        await chain.add([said])
    return log


async def test_records_come_newest_first_fifty_a_page() -> None:
    trail = Trail(await filled_log(120))
    found = await page(trail)
    assert [record.seq for record in found.records] == list(range(120, 70, -1))
    rest = await page(trail, token=found.next_page_token)
    assert [record.seq for record in rest.records] == list(range(70, 20, -1))


@pytest.mark.parametrize("size", [1, 7, 50, 120, 200])
async def test_the_pages_together_are_the_whole_log_once(size: int) -> None:
    records = await all_pages(Trail(await filled_log(120)), ANY, size)
    assert [record.seq for record in records] == list(range(120, 0, -1))


async def test_an_empty_log_is_one_empty_page() -> None:
    assert await page(Trail(MemoryLog())) == RecordPage((), "")


async def test_what_is_appended_between_two_pages_moves_neither() -> None:
    log = await filled_log(20)
    trail = Trail(log)
    first = await page(trail, size=10)
    await chain_on(log).add([entry() for _ in range(5)])
    second = await page(trail, size=10, token=first.next_page_token)
    assert [record.seq for record in second.records] == list(range(10, 0, -1))


@given(
    actor=st.sampled_from(["", "operator-3@example.com", "nobody@example.com"]),
    action=st.sampled_from(["", "atlas.playbooks.create", "atlas.playbooks"]),
    outcome=st.sampled_from([None, *Outcome]),
    subject=st.sampled_from(["", "playbook", "identity"]),
    since_s=st.none() | st.integers(0, 601),
    before_s=st.none() | st.integers(0, 601),
    size=st.sampled_from([3, 50, 200]),
)
async def test_the_filters_give_exactly_what_they_name(
    actor: str,
    action: str,
    outcome: Outcome | None,
    subject: str,
    since_s: int | None,
    before_s: int | None,
    size: int,
) -> None:
    since = None if since_s is None else NOON + timedelta(seconds=since_s)
    before = None if before_s is None else NOON + timedelta(seconds=before_s)
    filters = Filters(actor, action, outcome, subject, since, before)
    log = await mixed_log()
    expected = [
        record["seq"]
        for record in map(json.loads, reversed(log.lines))
        if actor in ("", record["actor"])
        and action in ("", record["action"])
        and (outcome is None or outcome.value == record["outcome"])
        and subject in ("", record["subject"])
        and (since_s is None or record["seq"] >= since_s)
        and (before_s is None or record["seq"] < before_s)
    ]
    found = await all_pages(Trail(log), filters, size)
    assert [record.seq for record in found] == expected


async def test_since_is_inclusive_and_before_is_not_down_to_the_microsecond() -> None:
    log = MemoryLog()
    await chain_on(log).add([entry(at=NOON)])
    trail = Trail(log)
    later = NOON + timedelta(microseconds=1)
    assert len((await page(trail, Filters(since=NOON))).records) == 1
    assert len((await page(trail, Filters(since=later))).records) == 0
    assert len((await page(trail, Filters(before=NOON))).records) == 0
    assert len((await page(trail, Filters(before=later))).records) == 1


@pytest.mark.parametrize("size", [-1, 201, 2**31])
async def test_a_page_size_out_of_range_is_refused(size: int) -> None:
    assert await refusal(Trail(await filled_log(3)), size=size) == "page_size"


@pytest.mark.parametrize(
    "token", ["x", "é", "AAAA", "A" * 24, "A" * 100_000, "=", " ", "../../etc/passwd"]
)
async def test_a_made_up_token_is_refused(token: str) -> None:
    assert await refusal(Trail(await filled_log(3)), token=token) == "page_token"


async def test_a_changed_token_is_refused() -> None:
    trail = Trail(await filled_log(100))
    token = (await page(trail)).next_page_token
    for at in range(len(token)):
        changed = token[:at] + ("A" if token[at] != "A" else "B") + token[at + 1 :]
        assert await refusal(trail, token=changed) == "page_token"
    assert await refusal(trail, token=token + "\n") == "page_token"


@pytest.mark.parametrize(
    "other", [Filters(actor="author@example.com"), Filters(since=NOON), Filters(view="decisions")]
)
async def test_a_token_belongs_to_its_filters(other: Filters) -> None:
    trail = Trail(await filled_log(100))
    token = (await page(trail)).next_page_token
    assert await refusal(trail, token=token, filters=other) == "page_token"


async def test_a_token_beyond_the_log_is_refused() -> None:
    token = (await page(Trail(await filled_log(100)))).next_page_token
    assert await refusal(Trail(await filled_log(10)), token=token) == "page_token"


async def test_a_search_that_finds_nothing_is_bounded_and_can_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trail_module, "_SCAN_MAX", 300)
    log = MemoryLog()
    await chain_on(log).add([entry("the one", actor="rare@example.com")])
    await chain_on(log).add([entry() for _ in range(700)])
    trail, rare = Trail(log), Filters(actor="rare@example.com")
    first = await page(trail, rare)
    assert first.records == ()
    assert first.next_page_token
    assert [record.seq for record in await all_pages(trail, rare, 50)] == [1]


async def test_a_record_is_read_by_its_number() -> None:
    trail = Trail(await filled_log(10))
    record = await trail.get(7)
    assert isinstance(record, AuditRecord)
    assert (record.seq, record.detail) == (7, "record 7")


@pytest.mark.parametrize(
    ("seq", "code"), [(0, Code.INVALID_ARGUMENT), (-5, Code.INVALID_ARGUMENT), (11, Code.NOT_FOUND)]
)
async def test_a_number_that_is_not_there_is_refused(seq: int, code: Code) -> None:
    refused = await Trail(await filled_log(10)).get(seq)
    assert isinstance(refused, Refused)
    assert refused.code is code


async def test_a_gap_in_the_log_is_a_fault_and_not_a_wrong_page() -> None:
    log = await filled_log(10)
    del log.lines[4]
    with pytest.raises(Fault, match="without a gap"):
        await Trail(log).page(ANY)


async def test_a_running_console_verifies_its_own_log(tmp_path: Path) -> None:
    log = FileLog(tmp_path / "audit")
    chain = chain_on(log)
    for _ in range(6):
        await chain.add([entry() for _ in range(100)])
    found = await Trail(log).verify()
    assert (found.intact, found.records) == (True, 600)


@pytest.mark.parametrize("at", [0, 300, 598])
async def test_a_running_console_finds_what_was_removed_or_edited(tmp_path: Path, at: int) -> None:
    lines = list((await filled_log(600)).lines)
    (tmp_path / "removed").write_bytes(exported([*lines[:at], *lines[at + 1 :]]))
    (tmp_path / "edited").write_bytes(exported([*lines[:at], b"nonsense", *lines[at + 1 :]]))
    for name in ("removed", "edited"):
        found = await Trail(FileLog(tmp_path / name)).verify()
        assert (found.intact, found.first_bad_seq, found.records) == (False, at + 1, at)


async def test_a_log_that_cannot_be_read_to_its_end_is_never_called_intact() -> None:
    class Refusing(MemoryLog):
        fault = Fault("damaged", retryable=False)

        async def read(self, first_seq: int, count: int) -> list[bytes]:
            if first_seq > 256:
                raise self.fault
            return await super().read(first_seq, count)

    log = Refusing()
    log.lines = (await filled_log(600)).lines
    found = await Trail(log).verify()
    assert (found.intact, found.first_bad_seq, found.fault) == (False, 257, "damaged")
    log.fault = Fault("away for a moment")
    with pytest.raises(Fault, match="away"):
        await Trail(log).verify()


async def test_a_store_that_does_not_answer_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trail_module, "_READ_S", 0.01)

    class Silent(MemoryLog):
        async def read(self, first_seq: int, count: int) -> list[bytes]:
            await asyncio.Event().wait()
            return await super().read(first_seq, count)

    log = Silent()
    log.lines = (await filled_log(3)).lines
    with pytest.raises(Fault, match="does not answer"):
        await Trail(log).verify()


async def test_a_log_that_loses_its_end_while_it_is_verified_is_not_called_intact() -> None:
    class Shrinking(MemoryLog):
        async def last_seq(self) -> int:
            return len(self.lines) + 5

    log = Shrinking()
    log.lines = (await filled_log(3)).lines
    found = await Trail(log).verify()
    assert (found.intact, found.records, found.first_bad_seq) == (False, 3, 4)
