"""Small entries and chains for the tests of the audit chain."""

from datetime import datetime, timedelta

from core_console.governance.chain import Chain
from core_console.model.audit import Entry, OutboxEntry, Outcome
from core_console.ports import Log
from core_console.store.memory import MemoryLog
from tests.fakes import NOON, ManualClock

METADOC = "atlas-playbooks"


def entry(  # an entry has this many facts, and a test is about one of them
    text: str = "something happened",
    *,
    at: datetime = NOON,
    actor: str = "author@example.com",
    action: str = "atlas.playbooks.create",
    target: str = "PB-1",
    outcome: Outcome = Outcome.SUCCESS,
    subject: str = "playbook",
) -> Entry:
    return Entry(at, actor, action, target, outcome, text, subject)


def outbox(first: int, last: int) -> list[OutboxEntry]:
    return [OutboxEntry(number, entry(f"entry {number}")) for number in range(first, last + 1)]


def chain_on(log: Log) -> Chain:
    return Chain(log, ManualClock())


async def filled_log(records: int) -> MemoryLog:
    """Return a log of so many records: every third is a refusal, the others a document's."""
    log = MemoryLog()
    chain = chain_on(log)
    number = 0
    for seq in range(1, records + 1):
        said = entry(f"record {seq}", at=NOON + timedelta(seconds=seq))
        if seq % 3 == 0:
            await chain.add([said])
        else:
            number += 1
            await chain.drain(METADOC, [OutboxEntry(number, said)])
    return log


def exported(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)
