"""What is stored before a simulation's first step: little, a long history, or a full budget.

Owns the first document of a plan. It is valid, and it leaves room for little when it is full.
"""

from random import Random

from msgspec.structs import replace

from core_console.model import codec
from core_console.model.document import EMPTY, Document
from core_console.model.event import Event
from core_console.model.playbook import Playbook, PlaybookStatus
from core_console.model.run import Run, RunStatus, StepRunStatus
from tests.builders import NOW, a_playbook, a_run, a_spec, approve
from tests.sim.operators import a_random_spec
from tests.sim.plan import Begin, Plan

_FULL_BYTES = 700_000
"""Of 786,432, of which 65,536 are kept free: about 20 KB are left for new work."""

_EVENTS = 299


def first_document(plan: Plan) -> Document:
    """Return what is stored before anybody does anything."""
    dice = Random(f"{plan.seed}/document")
    playbooks = {}
    for number in range(1, plan.playbooks + 1):
        status = dice.choice([*[PlaybookStatus.ACTIVE] * 5, *PlaybookStatus])
        made = a_playbook(id=f"PB-0{number}", spec=a_random_spec(dice), status=status)
        playbooks[made.id] = made
    document = replace(EMPTY, revision=1, playbooks=playbooks)
    match plan.begin:
        case Begin.LITTLE:
            return document
        case Begin.HISTORY:
            return _with_history(document, dice.choice([120, 199]), note="")
        case Begin.OLD_RUNS:
            return _with_history(document, 190, note="n" * 950)
        case Begin.PLAYBOOKS:
            return _with_playbooks(document)


def _with_history(document: Document, count: int, *, note: str) -> Document:
    """Add finished runs and events, so that what comes next makes the oldest go."""
    old = _large(0) if note else a_playbook(approve(hours=1), id="PB-old")
    runs = [_cancelled(a_run(old, id=f"PBR-old{number}", note=note)) for number in range(count)]
    events = [
        Event(f"PBE-old{number}", NOW, "risk", "told", "agent:risk", 1) for number in range(_EVENTS)
    ]
    if note:
        runs = runs[: _FULL_BYTES // len(codec.canonical_json(runs[0]))]
    return replace(
        document,
        finished={run.id: run for run in runs},
        events={event.id: event for event in events},
    )


def _cancelled(run: Run) -> Run:
    """Return the run as it was cancelled at its first step."""
    first, *rest = run.steps
    cancelled = replace(first, status=StepRunStatus.CANCELLED, finished_at=NOW)
    skipped = (replace(each, status=StepRunStatus.SKIPPED) for each in rest)
    return replace(run, status=RunStatus.CANCELLED, finished_at=NOW, steps=(cancelled, *skipped))


def _with_playbooks(document: Document) -> Document:
    """Add playbooks that nothing can trim, as many as fit."""
    count = _FULL_BYTES // len(codec.canonical_json(_large(0)))
    large = {made.id: made for made in (_large(number) for number in range(count))}
    return replace(document, playbooks=document.playbooks | large)


def _large(number: int) -> Playbook:
    """Return a playbook whose texts are as long as they may be."""
    steps = [
        replace(step, action=replace(step.action, prompt="p" * 1_000))
        for step in (approve(f"a{place}", hours=1) for place in range(10))
    ]
    spec = a_spec(*steps, description="d" * 2_000)
    return a_playbook(id=f"PB-large{number}", spec=spec, status=PlaybookStatus.PAUSED)
