"""How far the past is gone: what a follower of the document can no longer be told.

Owns `trimmed` wherever history goes because of its count, and the memory of deletions. The budget
trims by size and keeps the same account.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from core_console.model.document import Deletion, Document
from core_console.model.event import Event
from core_console.model.run import Run

DELETIONS_MAX = 100
"""As many as there can be playbooks: who missed more of them is better off reading all anew."""


def trimmed(document: Document, gone: Iterable[Run | Event | Deletion]) -> int:
    """Return the revision of the newest item of history that is gone, once these are too."""
    return max((document.trimmed, *(each.revision for each in gone)))


def with_deletion(document: Document, playbook_id: str) -> Document:
    """Return the document that remembers that its next revision has that playbook no more."""
    deleted = (*document.deleted, Deletion(playbook_id, document.revision + 1))
    return replace(
        document,
        deleted=deleted[-DELETIONS_MAX:],
        trimmed=trimmed(document, deleted[:-DELETIONS_MAX]),
    )
