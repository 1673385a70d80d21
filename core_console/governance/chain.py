"""The audit chain: every entry becomes one record, bound to the record before it by its hash.

Owns how a record is written and numbered, and that what waits in a document's outbox gets into
the chain exactly once and in order, whoever appends. Never changes a record, and never judges
one: that is `governance.verify`, which shares nothing with this module but the record type.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from core_console.model.audit import AuditRecord, Entry, OutboxEntry
from core_console.model.faults import InvariantError
from core_console.ports import Clock, Conflict, Fault, Log

FIRST_PREV_HASH = "0" * 64

ENTRY_BYTES_MAX = 64 * 1024
"""As encoded. A document's outbox may hold no more than this, so nothing that got into one can
get stuck on its way into the chain."""

_ATTEMPTS_MAX = 50
"""Each lost race is another replica's append; losing 50 in a row is not chance."""

_PATIENCE_S = 5.0
"""A caller waits for its answer meanwhile."""

_PIECE = 256
"""Records a read: about 100 KiB at a time."""

_canonical = msgspec.json.Encoder(order="sorted")
_decoder = msgspec.json.Decoder(AuditRecord)


class _Numbered(Struct, frozen=True, gc=False):
    """An entry and where it comes from; `document` is empty for a refusal that changed none."""

    document: str
    number: int
    entry: Entry


_Pick = Callable[[], Awaitable[Sequence[_Numbered]]]


class _Waiting:
    """Refusals of one caller that wait for the next append."""

    def __init__(self, entries: Sequence[_Numbered]) -> None:
        self.entries = entries
        self.settled = False
        self.fault: Fault | None = None


def check(entry: Entry) -> None:
    """Raise InvariantError for an entry that the chain cannot take; call it before the swap.

    Entries are made by our own code, so an unfit one is a bug, and nothing is cut to fit.
    """
    try:
        size = len(_canonical.encode(entry))
    except UnicodeEncodeError:
        raise InvariantError("an audit entry holds text that is not Unicode") from None
    if size > ENTRY_BYTES_MAX:
        raise InvariantError(f"an audit entry has {size} bytes and {ENTRY_BYTES_MAX} is the most")
    if entry.at.tzinfo is None:
        raise InvariantError("an audit entry has a time without a zone")


def decode(line: bytes) -> AuditRecord:
    """Return the record on a line of the log; raise Fault when it is not one."""
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise Fault(
            "a line of the audit log is not a record: verify the log, and keep it as it is",
            retryable=False,
        ) from None


def rfc3339(at: datetime) -> str:
    """Return the time as the chain writes it: UTC, milliseconds, `Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _record(seq: int, prev_hash: str, numbered: _Numbered) -> AuditRecord:
    entry = numbered.entry
    check(entry)
    fields: dict[str, Any] = {
        "seq": seq,
        "at": rfc3339(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "outcome": entry.outcome.value,
        "detail": entry.detail,
        "subject": entry.subject,
        "document": numbered.document,
        "number": numbered.number,
        "prev_hash": prev_hash,
    }
    digest = sha256(_canonical.encode(fields)).hexdigest()
    return AuditRecord(**fields, hash=digest)


class Chain:
    """The chain in one log, as one process writes it; other replicas may append at any time."""

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._lock = asyncio.Lock()
        self._seq: int | None = None
        self._hash = FIRST_PREV_HASH
        self._numbers: dict[str, int] = {}
        self._waiting: list[_Waiting] = []

    async def drain(self, document: str, outbox: Sequence[OutboxEntry]) -> int:
        """Append what the chain does not hold yet of the outbox, and return the last number held.

        The outbox is in the order of its numbers. Entries up to the returned number may leave
        the document. Calling it again with the same outbox adds nothing.

        Raises:
            Fault: it failed. Some entries may have been appended: call again.
        """
        numbers = [waiting.number for waiting in outbox]
        if not document or numbers != sorted(set(numbers)) or (numbers and numbers[0] < 1):
            raise InvariantError(f"the outbox of '{document}' is not numbered in order from 1")

        async def missing() -> Sequence[_Numbered]:
            last = await self._last_number(document)
            return [
                _Numbered(document, waiting.number, waiting.entry)
                for waiting in outbox
                if waiting.number > last
            ]

        async with self._lock:
            await self._append(missing)
            return self._numbers[document]

    async def add(self, entries: Sequence[Entry]) -> None:
        """Append entries that no document holds; those of concurrent callers share one append.

        Raises:
            Fault: it failed. The entries may have been appended all the same.
        """
        for entry in entries:
            check(entry)
        waiting = _Waiting([_Numbered("", 0, entry) for entry in entries])
        self._waiting.append(waiting)
        async with self._lock:
            if not waiting.settled:
                await self._append_waiting()
        if waiting.fault is not None:
            raise waiting.fault

    async def last_number(self, document: str) -> int:
        """Return the number of the document's last entry in the chain, 0 when it has none."""
        async with self._lock:
            await self._catch_up()
            return await self._last_number(document)

    async def _append_waiting(self) -> None:
        group, self._waiting = self._waiting, []
        entries = [numbered for waiting in group for numbered in waiting.entries]

        async def all_of_them() -> Sequence[_Numbered]:
            return entries

        fault: Fault | None = Fault("it is not known whether the audit record was written")
        try:
            await self._append(all_of_them)
            fault = None
        except Fault as error:
            fault = error
        finally:
            # Also when this caller is cancelled: the others must not append the same again.
            for waiting in group:
                waiting.settled, waiting.fault = True, fault

    async def _append(self, pick: _Pick) -> None:
        """Append what `pick` answers against the newest tail, until no other replica is first."""
        give_up_at = self._clock.monotonic() + _PATIENCE_S
        for _ in range(_ATTEMPTS_MAX):
            seq = await self._catch_up()
            records = self._linked(seq, await pick())
            if not records:
                return
            try:
                await self._log.append(seq, [_canonical.encode(record) for record in records])
            except Conflict:
                if self._clock.monotonic() >= give_up_at:
                    break
            else:
                for record in records:
                    self._follow(record)
                return
        raise Fault("other replicas keep the audit log busy: try again in a moment")

    def _linked(self, seq: int, chosen: Sequence[_Numbered]) -> list[AuditRecord]:
        records: list[AuditRecord] = []
        prev_hash = self._hash
        for place, numbered in enumerate(chosen, seq + 1):
            records.append(_record(place, prev_hash, numbered))
            prev_hash = records[-1].hash
        return records

    async def _catch_up(self) -> int:
        """Read what other replicas appended, nothing when they did not; return the last seq."""
        last = await self._log.last_seq()
        if self._seq is None:
            if last:
                self._hash = (await self._read(last, 1))[0].hash
            self._seq = last
        if last < self._seq:
            raise Fault("the audit log is shorter than it was: restore it", retryable=False)
        while self._seq < last:
            for record in await self._read(self._seq + 1, min(_PIECE, last - self._seq)):
                if record.prev_hash != self._hash:
                    raise Fault(
                        f"record {record.seq} of the audit log does not follow the one before: "
                        "verify the log, and keep it as it is",
                        retryable=False,
                    )
                self._follow(record)
        return self._seq

    async def _read(self, first_seq: int, count: int) -> list[AuditRecord]:
        records = [decode(line) for line in await self._log.read(first_seq, count)]
        if not records or records[0].seq != first_seq:
            raise Fault(f"record {first_seq} of the audit log cannot be read", retryable=False)
        return records

    def _follow(self, record: AuditRecord) -> None:
        self._seq, self._hash = record.seq, record.hash
        if record.document:
            self._numbers[record.document] = record.number

    async def _last_number(self, document: str) -> int:
        """Return the document's last number as of the last record that was read.

        Once a process and document it looks back for it, most often not far.
        """
        if document not in self._numbers:
            self._numbers[document] = await self._look_back(document)
        return self._numbers[document]

    async def _look_back(self, document: str) -> int:
        high = self._seq or 0
        while high > 0:
            low = max(1, high - _PIECE + 1)
            for record in reversed(await self._read(low, high - low + 1)):
                if record.document == document:
                    return record.number
            high = low - 1
        return 0
