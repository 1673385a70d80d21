"""The verifier: whatever is done to a log, the first record that does not hold is named."""

import io
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.governance.verify import Verification, verify
from core_console.model.audit import OutboxEntry
from core_console.store.memory import MemoryLog
from tests.governance.records import METADOC, chain_on, entry, exported, filled_log, outbox

RECORDS = 12
FIELDS = ["seq", "at", "actor", "action", "target", "outcome", "detail", "subject", "document",
          "number", "prev_hash", "hash"]  # fmt: skip


def canonical(record: dict[str, Any]) -> bytes:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def sealed(record: dict[str, Any]) -> bytes:
    """Return the line of a record whose hash was worked out anew, as a forger does."""
    record.pop("hash", None)
    return canonical({**record, "hash": sha256(canonical(record)).hexdigest()})


def judge(lines: list[bytes]) -> Verification:
    return verify(io.BytesIO(exported(lines)))


async def lines_of(records: int = RECORDS) -> list[bytes]:
    return list((await filled_log(records)).lines)


@pytest.mark.parametrize("records", [0, 1, 2, RECORDS])
async def test_what_the_console_wrote_is_intact(records: int) -> None:
    lines = await lines_of(records)
    last_hash = json.loads(lines[-1])["hash"] if lines else "0" * 64
    assert judge(lines) == Verification(intact=True, records=records, last_hash=last_hash)


async def test_a_log_of_many_pieces_is_intact() -> None:
    lines = await lines_of(2_000)
    assert judge(lines).records == 2_000


@given(at=st.integers(0, RECORDS - 1), name=st.sampled_from(FIELDS), data=st.data())
async def test_every_edited_field_is_found_at_its_record(
    at: int, name: str, data: st.DataObject
) -> None:
    lines = await lines_of()
    record = json.loads(lines[at])
    values = st.integers(0, 2**40) if isinstance(record[name], int) else st.text(max_size=70)
    record[name] = data.draw(values.filter(lambda value: value != record[name]))
    lines[at] = canonical(record)
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, at + 1, at)
    assert "edited" in found.fault
    assert found.last_hash == record_hash(lines, at)


def record_hash(lines: list[bytes], count: int) -> str:
    """Return the hash of the last of the first `count` records."""
    return json.loads(lines[count - 1])["hash"] if count else "0" * 64


@given(at=st.integers(0, RECORDS - 1), data=st.data())
async def test_every_changed_byte_is_found_at_its_record(at: int, data: st.DataObject) -> None:
    lines = await lines_of()
    place = data.draw(st.integers(0, len(lines[at]) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte not in (10, lines[at][place])))
    lines[at] = lines[at][:place] + bytes([byte]) + lines[at][place + 1 :]
    found = judge(lines)
    assert (found.intact, found.first_bad_seq) == (False, at + 1)


@given(
    at=st.integers(0, RECORDS - 2),
    name=st.sampled_from(["at", "actor", "action", "target", "detail", "subject"]),
)
async def test_an_edit_with_a_new_hash_is_found_at_its_record(at: int, name: str) -> None:
    lines = await lines_of()
    record = json.loads(lines[at])
    record[name] = "2020-01-01T00:00:00.000Z" if name == "at" else "forged"
    lines[at] = sealed(record)
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, at + 1, at)
    assert f"record {at + 1} was edited and given a new hash" in found.fault
    assert found.last_hash == record_hash(lines, at)


@given(at=st.integers(1, RECORDS - 2))
async def test_a_forged_prev_hash_with_a_new_hash_is_found_at_its_record(at: int) -> None:
    lines = await lines_of()
    lines[at] = sealed({**json.loads(lines[at]), "prev_hash": "a" * 64})
    found = judge(lines)
    assert (found.intact, found.first_bad_seq) == (False, at + 1)
    assert "prev_hash" in found.fault


@given(first=st.integers(0, RECORDS - 2), data=st.data())
async def test_every_removal_but_of_the_end_is_found_at_the_first_missing_record(
    first: int, data: st.DataObject
) -> None:
    lines = await lines_of()
    count = data.draw(st.integers(1, RECORDS - 1 - first))
    del lines[first : first + count]
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, first + 1, first)
    what = (
        f"record {first + 1} was" if count == 1 else f"records {first + 1} to {first + count} were"
    )
    assert found.fault == f"{what} removed"


async def test_a_removed_end_shows_in_the_last_hash() -> None:
    lines = await lines_of()
    assert judge(lines[:-1]).last_hash == json.loads(lines[-1])["prev_hash"]


@given(source=st.integers(0, RECORDS - 1), data=st.data())
async def test_every_inserted_copy_is_found_where_it_stands(
    source: int, data: st.DataObject
) -> None:
    lines = await lines_of()
    at = data.draw(st.integers(0, RECORDS).filter(lambda at: at not in (source, source + 1)))
    lines.insert(at, lines[source])
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, at + 1, at)
    assert "inserted" in found.fault


@given(at=st.integers(0, RECORDS - 1))
async def test_a_record_that_stands_twice_is_named(at: int) -> None:
    lines = await lines_of()
    lines.insert(at, lines[at])
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, at + 2, at + 1)
    assert "inserted" in found.fault


@given(at=st.integers(0, RECORDS - 1))
async def test_a_forged_record_that_links_to_the_one_before_is_found(at: int) -> None:
    lines = await lines_of()
    forged = json.loads(lines[at]) | {"detail": "forged"}
    lines.insert(at, sealed(forged))
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, at + 1, at)
    assert "inserted" in found.fault


@pytest.mark.parametrize("text", [b"", b"nonsense", b"{}", b"\xff\xfe"])
@given(at=st.integers(0, RECORDS - 1))
async def test_an_inserted_line_that_is_no_record_is_found(at: int, text: bytes) -> None:
    lines = await lines_of()
    lines.insert(at, text)
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, at + 1, at)
    assert "inserted" in found.fault


@given(first=st.integers(0, RECORDS - 2), data=st.data())
async def test_every_swap_of_two_records_is_found_at_the_first(
    first: int, data: st.DataObject
) -> None:
    lines = await lines_of()
    second = data.draw(st.integers(first + 1, RECORDS - 1))
    lines[first], lines[second] = lines[second], lines[first]
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, first + 1, first)
    assert "reordered" in found.fault


@pytest.mark.parametrize("kept", [1, 100, -1])
async def test_a_torn_last_line_is_named(kept: int) -> None:
    lines = await lines_of()
    found = verify(io.BytesIO(exported(lines[:-1]) + lines[-1][:kept]))
    assert (found.intact, found.first_bad_seq, found.records) == (False, RECORDS, RECORDS - 1)
    assert "torn" in found.fault


async def test_a_last_line_without_its_newline_is_torn() -> None:
    lines = await lines_of()
    assert "torn" in verify(io.BytesIO(exported(lines)[:-1])).fault


def test_a_line_without_end_is_not_read_into_memory() -> None:
    class Endless:
        taken = 0

        def read(self, size: int = -1) -> bytes:
            self.taken += size
            assert self.taken < 2_000_000
            return b"x" * size

    found = verify(Endless())
    assert (found.intact, found.first_bad_seq) == (False, 1)


def edit(**changes: object) -> Callable[[dict[str, Any]], bytes]:
    return lambda record: sealed(record | changes)


def without_subject(record: dict[str, Any]) -> bytes:
    return sealed({name: value for name, value in record.items() if name != "subject"})


FORMS: dict[str, tuple[Callable[[dict[str, Any]], bytes], str]] = {
    "not JSON": (lambda _: b"{", "not JSON"),
    "too deep": (lambda _: b"[" * 50_000, "not JSON"),
    "a list": (lambda _: b"[1]", "not an object"),
    "an unknown field": (edit(colour="red"), "1 unknown"),
    "a missing field": (without_subject, "subject is missing"),
    "a wrong type": (edit(number="1"), "number has the wrong type"),
    "a fraction": (edit(number=1.5), "number has the wrong type"),
    "a truth value": (edit(number=True), "number has the wrong type"),
    "an unknown outcome": (edit(outcome="perhaps"), "not written the way"),
    "a time with an offset": (edit(at="2026-11-30T12:00:00+00:00"), "not written the way"),
    "white space": (lambda record: json.dumps(record, sort_keys=True).encode(), "not written"),
    "escaped text": (
        lambda record: sealed(record).replace(b"record 2", rb"r\u0065cord 2"),
        "not written the way",
    ),
    "fields in another order": (
        lambda record: json.dumps(record, separators=(",", ":")).encode(),
        "not written the way",
    ),
    "a double field": (
        lambda record: sealed(record)[:-1] + b',"target":"PB-9"}',
        "a field stands twice",
    ),
    "a carriage return": (lambda record: sealed(record) + b"\r", "not written the way"),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
async def test_a_record_in_another_form_is_named_with_what_is_wrong(form: str) -> None:
    lines = await lines_of()
    change, fault = FORMS[form]
    lines[1] = change(dict(sorted(json.loads(lines[1]).items(), reverse=True)))
    found = judge(lines)
    assert (found.intact, found.first_bad_seq, found.records) == (False, 2, 1)
    assert fault in found.fault


async def renumbered(*numbers: tuple[str, int], action: str = "") -> list[bytes]:
    """Return a chain that links, whose records hold these documents' numbers."""
    lines: list[bytes] = []
    prev_hash = "0" * 64
    log = MemoryLog()
    await chain_on(log).add([entry()])
    for seq, (document, number) in enumerate(numbers, 1):
        record = json.loads(log.lines[0])
        record |= {"seq": seq, "document": document, "number": number, "prev_hash": prev_hash}
        lines.append(sealed(record | ({"action": action} if action else {})))
        prev_hash = json.loads(lines[-1])["hash"]
    return lines


@pytest.mark.parametrize(
    ("numbers", "bad", "fault"),
    [
        ([("a", 1), ("a", 2), ("a", 2)], 3, "twice or out of order"),
        ([("a", 1), ("a", 2), ("a", 1)], 3, "twice or out of order"),
        ([("a", 1), ("b", 1), ("a", 3)], 3, "the last one before is 1"),
        ([("a", 2)], 1, "the last one before is 0"),
        ([("a", 0)], 1, "twice or out of order"),
        ([("", 1)], 1, "a number and no document"),
    ],
)
async def test_a_whole_rewrite_shows_in_a_documents_numbers(
    numbers: list[tuple[str, int]], bad: int, fault: str
) -> None:
    found = judge(await renumbered(*numbers))
    assert (found.intact, found.first_bad_seq, found.records) == (False, bad, bad - 1)
    assert fault in found.fault


async def test_documents_may_be_interleaved() -> None:
    assert judge(await renumbered(("a", 1), ("b", 1), ("", 0), ("a", 2), ("b", 2))).intact


async def test_a_restore_may_go_on_with_a_higher_number_only() -> None:
    assert judge(await renumbered(("a", 1), ("a", 50), ("a", 99), action="state.restore")).intact
    back = await renumbered(("a", 1), ("a", 2), ("a", 1), action="state.restore")
    assert judge(back).first_bad_seq == 3


async def test_text_that_looks_like_a_hash_field_changes_nothing() -> None:
    log = MemoryLog()
    trick = '","hash":"' + "f" * 64 + '","number":7'
    await chain_on(log).drain(METADOC, [OutboxEntry(1, entry(trick)), *outbox(2, 3)])
    assert judge(log.lines).intact


async def test_too_many_documents_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core_console.governance.verify._DOCUMENTS_MAX", 2)
    found = judge(await renumbered(("a", 1), ("b", 1), ("c", 1)))
    assert (found.first_bad_seq, "more than 2 documents" in found.fault) == (3, True)
