"""The record of the audit chain, and the entry that a decision leaves for it.

Owns the types alone: writing (`governance.chain`) and verifying (`governance.verify`) each work
out the hash by themselves, so that a fault of the one does not hide in the other.
"""

from enum import StrEnum

from msgspec import Struct

from core_console.model.moment import Moment


class Outcome(StrEnum):
    """How an attempt to write ended."""

    SUCCESS = "success"
    DENIED = "denied"
    FAILURE = "failure"


class Entry(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a decision or a refusal says of itself.

    `target` holds the ids that it was about, from the outside in, joined by `/`; `detail` is one
    sentence; `subject` is the kind of thing, such as `playbook`.
    """

    at: Moment
    actor: str
    action: str
    target: str
    outcome: Outcome
    detail: str
    subject: str


class OutboxEntry(Struct, frozen=True, gc=False):
    """An entry that waits in a document for the chain; `number` never repeats in that document."""

    number: int
    entry: Entry


class AuditRecord(Struct, frozen=True, gc=False):
    """One record of the chain, as it is written on one line of the log.

    `at` is RFC 3339 in UTC with milliseconds. `document` and `number` are the outbox's, empty and
    0 for a refusal that changed no document. `hash` is SHA-256 as lower-case hex over the
    canonical bytes of all the other fields.
    """

    seq: int
    at: str
    actor: str
    action: str
    target: str
    outcome: str
    detail: str
    subject: str
    document: str
    number: int
    prev_hash: str
    hash: str
