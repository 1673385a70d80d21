"""The metadoc: the whole state of the playbooks in one compare-and-swap document."""

from msgspec import Struct

from core_console.model.audit import OutboxEntry
from core_console.model.event import Event
from core_console.model.moment import Moment
from core_console.model.playbook import Playbook
from core_console.model.run import Run


class Versioned(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """What every document of the store has, whatever else it holds.

    `revision` grows by one a swap. `swap_id` names the process and attempt that wrote it, so that
    a writer whose reply was lost can tell whether its swap landed. `outbox` holds the entries
    that wait for the chain, `outbox_number` the number of the last one that was ever put there.
    """

    format: int
    revision: int
    swap_id: str
    outbox: tuple[OutboxEntry, ...]
    outbox_number: int


FORMAT = 1
"""The format that this code writes; a document of a newer one is refused, never guessed at."""


class Mark(Struct, frozen=True, gc=False, omit_defaults=True):
    """That a step of a run dispatched an agent, at which chain depth.

    It outlives its run, so that a late event can still be told from a first cause. The dispatch
    is outstanding until a report for the step arrives, accepted or refused, or 6 hours pass.
    """

    run_id: str
    step_id: str
    agent: str
    depth: int
    claimed_at: Moment
    reported: bool = False


class Deletion(Struct, frozen=True, gc=False):
    """That a playbook was deleted, by which revision of the document."""

    playbook_id: str
    revision: int


class Document(Versioned, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """The metadoc.

    `running` holds the runs in flight by *playbook* id, so that two runs in flight of one
    playbook cannot even be written down; `finished` holds final runs by run id, first finished
    first. `marks` holds the newest dispatches, oldest first. `taken` is the number of the last
    harness event that was taken from each other document; `trimmed` the revision of the newest
    item of history that is gone; `deleted` the newest deletions of playbooks, oldest first.
    Mappings are never changed in place.
    """

    playbooks: dict[str, Playbook]
    running: dict[str, Run]
    finished: dict[str, Run]
    events: dict[str, Event]
    marks: tuple[Mark, ...] = ()
    taken: dict[str, int] = {}
    trimmed: int = 0
    deleted: tuple[Deletion, ...] = ()


EMPTY = Document(
    format=FORMAT,
    revision=0,
    swap_id="",
    playbooks={},
    running={},
    finished={},
    events={},
    outbox=(),
    outbox_number=0,
)
"""A console that nobody has written to."""
