"""An event as it is stored: what was raised, and what each matching trigger made of it."""

from msgspec import Struct

from core_console.model.moment import Moment
from core_console.model.run import Cause


class StartedRun(Struct, frozen=True, gc=False):
    """A run that an event started."""

    playbook_id: str
    trigger_id: str
    run_id: str


class SkippedTrigger(Struct, frozen=True, gc=False):
    """A matching trigger that started nothing, and why."""

    playbook_id: str
    trigger_id: str
    reason: str


class Event(Struct, frozen=True, gc=False, omit_defaults=True):
    """Something that an agent or the console itself reported.

    `count` is how often the very same skip of a slot was met; it is one event all the same.
    """

    id: str
    at: Moment
    agent: str
    event: str
    raised_by: str
    revision: int
    external_id: str = ""
    subject: str = ""
    detail: str = ""
    attributes: dict[str, str] = {}
    caused_by_run_id: str = ""
    chain_depth: int = 0
    started: tuple[StartedRun, ...] = ()
    skipped: tuple[SkippedTrigger, ...] = ()
    count: int = 1


class Chain(Struct, frozen=True, gc=False, omit_defaults=True):
    """The depth of what an event starts, and the run that gives it that depth."""

    depth: int = 0
    run_id: str = ""
    cause: Cause | None = None


FIRST_CAUSE = Chain()
"""What no run is known to have led to starts a chain: depth 0, like a run by hand."""


class Raising(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True):
    """A harness event that waits in the document whose swap brought it about.

    It is moved into the metadoc by whichever replica gets there, and then cleared. `number` never
    repeats in its document, and the metadoc keeps the last one that it took: so no crash loses or
    doubles it. `rows` are matched when it is raised and not kept. `chain` is what was known of its
    causes when it was accepted: their dispatches may end while it waits.
    """

    number: int
    id: str
    agent: str
    event: str
    subject: str = ""
    detail: str = ""
    attributes: dict[str, str] = {}
    rows: tuple[dict[str, str], ...] = ()
    caused_by_run_id: str = ""
    committed_by: str = ""
    chain: Chain = FIRST_CAUSE
