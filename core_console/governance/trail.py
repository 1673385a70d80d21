"""Reading the audit chain: newest first, by exact filters, a page at a time.

Owns the pages and their tokens, and handing the whole log to the verifier. Never writes.
"""

import asyncio
import base64
import binascii
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
from msgspec import Struct

from core_console.decide.outcome import Code, Refused, Violation, invalid
from core_console.governance.chain import decode
from core_console.governance.verify import Verification, verify
from core_console.model.audit import AuditRecord, Outcome
from core_console.ports import Fault, Log

PAGE_SIZE_DEFAULT = 50
PAGE_SIZE_MAX = 200

_SCAN_MAX = 10_000
"""Records looked at in one call: some 20 ms of work. A page may then be short, or even empty,
and its token goes on from there."""

_PIECE = 256
"""Records a read; between two reads everybody else gets a turn."""

_READ_S = 30.0
"""A store that takes longer for a piece does not answer; no thread waits for it for ever."""

_TOKEN_BYTES = 18
_SEQ_BYTES = 8

_canonical = msgspec.json.Encoder(order="sorted")

Keep = Callable[[AuditRecord], bool]


class Filters(Struct, frozen=True, gc=False):
    """What a record must be exactly; empty and None mean any.

    `since` is inclusive, `before` is not. `view` names the list that a token belongs to.
    """

    actor: str = ""
    action: str = ""
    outcome: Outcome | None = None
    subject: str = ""
    since: datetime | None = None
    before: datetime | None = None
    view: str = "records"

    def match(self, record: AuditRecord) -> bool:
        """Say whether the record is one that was asked for."""
        return (
            self.actor in ("", record.actor)
            and self.action in ("", record.action)
            and self.outcome in (None, record.outcome)
            and self.subject in ("", record.subject)
            and (self.since is None or _micros(record) >= _text(self.since))
            and (self.before is None or _micros(record) < _text(self.before))
        )


class RecordPage(Struct, frozen=True, gc=False):
    """Records, newest first, and the token of what follows, "" at the end."""

    records: tuple[AuditRecord, ...]
    next_page_token: str


class Trail:
    """The records of one log."""

    def __init__(self, log: Log) -> None:
        self._log = log

    async def page(
        self,
        filters: Filters,
        *,
        page_size: int = 0,
        page_token: str = "",
        keep: Keep | None = None,
    ) -> RecordPage | Refused:
        """Return a page of the records that match; a size of 0 means 50.

        `keep` narrows the list further; it must depend on `filters.view` alone, since tokens do.

        Raises:
            Fault: the log cannot be read.
        """
        if not 0 <= page_size <= PAGE_SIZE_MAX:
            return invalid(Violation("page_size", f"it must be 0 to {PAGE_SIZE_MAX}"))
        last = await self._log.last_seq()
        high = _seq_of(page_token, filters, last) if page_token else last
        if high is None:
            return invalid(Violation("page_token", "it is not one that this list gave out"))
        wanted = page_size or PAGE_SIZE_DEFAULT
        found: list[AuditRecord] = []
        low = max(0, high - _SCAN_MAX)
        while high > low and len(found) < wanted:
            first = max(low, high - _PIECE) + 1
            for record in reversed(await self._read(first, high - first + 1)):
                high = record.seq - 1
                if filters.match(record) and (keep is None or keep(record)):
                    found.append(record)
                    if len(found) == wanted:
                        break
        return RecordPage(tuple(found), _token(filters, high) if high > 0 else "")

    async def get(self, seq: int) -> AuditRecord | Refused:
        """Return the record of that number; raise Fault when the log cannot be read."""
        if seq < 1:
            return invalid(Violation("seq", "it must be 1 or more"))
        last = await self._log.last_seq()
        if seq > last:
            return Refused(
                Code.NOT_FOUND, f"there is no audit record {seq}: the last one is {last}"
            )
        return (await self._read(seq, 1))[0]

    async def verify(self) -> Verification:
        """Verify the whole log as it is now, in a thread of the default pool.

        Raises:
            Fault: the log cannot be read at the moment.
        """
        export = _Export(self._log, await self._log.last_seq(), asyncio.get_running_loop())
        try:
            found = await asyncio.to_thread(verify, export)
        finally:
            export.closed = True
        if export.fault is None or not found.intact:
            return found
        if export.fault.retryable:
            raise export.fault
        return replace(
            found, intact=False, first_bad_seq=found.records + 1, fault=export.fault.message
        )

    async def _read(self, first_seq: int, count: int) -> list[AuditRecord]:
        records = [decode(line) for line in await self._log.read(first_seq, count)]
        if [record.seq for record in records] != list(range(first_seq, first_seq + count)):
            raise Fault(
                "the audit log's records are not numbered without a gap: verify the log",
                retryable=False,
            )
        return records


class _Export:
    """The log as the bytes of an exported file, read from another thread.

    A store may refuse to read on in a damaged log. What could be read is judged all the same,
    and `fault` tells that it was not all.
    """

    def __init__(self, log: Log, last_seq: int, loop: asyncio.AbstractEventLoop) -> None:
        self.fault: Fault | None = None
        self.closed = False
        self._log = log
        self._next_seq = 1
        self._last_seq = last_seq
        self._loop = loop

    def read(self, _size: int, /) -> bytes:
        """Return the next lines, none at the end; called from a thread."""
        count = min(_PIECE, self._last_seq - self._next_seq + 1)
        lines: list[bytes] = []
        while count > 0 and not (lines or self.closed or self._blocked()):
            lines = self._lines(count)
            count //= 2
        self._next_seq += len(lines)
        return b"".join(line + b"\n" for line in lines)

    def _blocked(self) -> bool:
        return self.fault is not None and self.fault.retryable

    def _lines(self, count: int) -> list[bytes]:
        """Return the next lines; when they cannot be read, `fault` says why."""
        reading = asyncio.run_coroutine_threadsafe(
            self._log.read(self._next_seq, count), self._loop
        )
        try:
            lines = reading.result(_READ_S)
        except TimeoutError:
            reading.cancel()
            self.fault = Fault("the audit log does not answer")
            return []
        except Fault as fault:
            self.fault = fault
            return []
        gone = Fault("the log became shorter meanwhile", retryable=False)
        self.fault = None if lines else gone
        return lines


def _micros(record: AuditRecord) -> str:
    """Return the record's time in a form that compares as text with `_text`."""
    return record.at.removesuffix("Z") + "000"


def _text(at: datetime) -> str:
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def _token(filters: Filters, seq: int) -> str:
    """Return the token of the page whose newest record is `seq` or older.

    The digest is no secret: it keeps a token with its filters and finds a mistyped one.
    """
    place = seq.to_bytes(_SEQ_BYTES, "big")
    digest = sha256(_canonical.encode(filters) + place).digest()
    return base64.urlsafe_b64encode((place + digest)[:_TOKEN_BYTES]).decode()


def _seq_of(token: str, filters: Filters, last: int) -> int | None:
    try:
        raw = base64.urlsafe_b64decode(token)
    except (binascii.Error, ValueError):
        return None
    seq = int.from_bytes(raw[:_SEQ_BYTES], "big")
    return seq if 0 < seq <= last and token == _token(filters, seq) else None
