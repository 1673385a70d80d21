"""Checks the look-ups of a workflow: contexts that exist where they are used, steps, needs.

Owns what GitHub would answer with an empty text and never say: a misspelt step or job is a fault
here, for a workflow that only seems to run is worse than one that does not.
"""

from collections.abc import Iterable

from core_console.standin.expressions import Lookup, Node, walk
from core_console.standin.workflow import Job, RunsScript, Step, UsesAction
from core_console.standin.workflow_yaml import Section


def is_payload(node: Node) -> bool:
    """Tell whether an expression holds text that the sender of the event wrote."""
    lookups = (part for part in walk(node) if isinstance(part, Lookup))
    return any(tuple(n.lower() for n in part.path[:2]) == ("github", "event") for part in lookups)


def check_lookups(
    section: Section, key: str, node: Node, contexts: frozenset[str], before: Iterable[Step]
) -> None:
    """Refuse a look-up in a context that does not exist here, or in a step that does not.

    Raises:
        WorkflowFault: at GitHub it would stop the file, or be an empty text.
    """
    for part in walk(node):
        if not isinstance(part, Lookup):
            continue
        if part.path[0] not in contexts:
            raise section.fault(key, f"the context {part.path[0]} does not exist here")
        if part.path[0] == "steps" and not _is_of_step(part, {step.id for step in before}):
            raise section.fault(key, f"{'.'.join(part.path)} is of no step before this one")


def _is_of_step(part: Lookup, ids: set[str | None]) -> bool:
    match part.path[1:]:
        case (id_, "outcome" | "conclusion"):
            return id_ in ids
        case (id_, "outputs", _):
            return id_ in ids
        case _:
            return False


def check_needs(section: Section, jobs: dict[str, Job]) -> None:
    """Refuse needs that can never be met, and look-ups in jobs that a job does not need.

    Raises:
        WorkflowFault: at GitHub the file would be refused, or an empty text would be used.
    """
    settled: set[str] = set()
    while len(settled) < len(jobs):
        ready = {k for k, job in jobs.items() if k not in settled and settled.issuperset(job.needs)}
        if not ready:
            key = next(k for k in jobs if k not in settled)
            raise section.fault(key, "needs a job that does not exist, or needs itself in a circle")
        settled |= ready
    for job in jobs.values():
        for node in _job_nodes(job):
            for part in walk(node):
                if isinstance(part, Lookup) and part.path[0] == "needs":
                    _check_need(section, job, jobs, part)


def _check_need(section: Section, job: Job, jobs: dict[str, Job], part: Lookup) -> None:
    what = ".".join(part.path)
    match part.path[1:]:
        case (needed, "result") if needed in job.needs:
            return
        case (needed, "outputs", output) if needed in job.needs and output in jobs[needed].outputs:
            return
        case _:
            raise section.fault(job.id, f"{what} is no result or output of a job that it needs")


def _job_nodes(job: Job) -> Iterable[Node]:
    if job.condition is not None:
        yield job.condition
    templates = list(job.outputs.values())
    if job.concurrency is not None:
        templates.append(job.concurrency.group)
    for step in job.steps:
        if step.condition is not None:
            yield step.condition
        templates += [step.name, *step.env.values()]
        match step.work:
            case RunsScript(script):
                templates.append(script)
            case UsesAction(_, inputs):
                templates += inputs.values()
    for template in templates:
        yield from template.nodes()
