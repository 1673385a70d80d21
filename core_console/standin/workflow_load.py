"""Loads workflow files, and refuses whatever would not run at GitHub or is not known here.

Owns the keys of a workflow file. It knows exactly what the shipped files use: a key, an
expression or an action beyond that is a fault that names the file and the key.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from core_console.standin.actions import ActionName, input_fault, known_action
from core_console.standin.expressions import Call, ExpressionFault, Node, walk
from core_console.standin.workflow import (
    Concurrency,
    Job,
    RunsScript,
    Step,
    Template,
    UsesAction,
    Workflow,
    WorkflowFault,
    parse_condition,
    parse_template,
)
from core_console.standin.workflow_check import check_lookups, check_needs, is_payload
from core_console.standin.workflow_yaml import Section, read_yaml

JOBS_MAX = 20  # the shipped files have at most four
STEPS_MAX = 50  # the shipped jobs have at most six
TIMEOUT_MAX_MINUTES = 360  # GitHub's own bound for a job on its machines

RUNNER_LABEL = "ubuntu-24.04"
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED_ENV = ("GITHUB_", "RUNNER_")
_PERMISSIONS = {"contents": ("read", "none")}

# Which contexts exist where is GitHub's table of context availability; a look-up elsewhere stops
# the file there.
_EARLY = frozenset({"github", "vars"})
_JOB = _EARLY | {"needs"}
_STEP_IF = _JOB | {"env", "job", "steps"}
_STEP = _STEP_IF | {"secrets"}


def load_workflows(tree: Path) -> tuple[Workflow, ...]:
    """Load every workflow of a checkout, or of the shipped folder itself, by file name.

    Raises:
        WorkflowFault: a file is not one that the stand-in can run, or there is none.
    """
    folder = tree / ".github" / "workflows"
    if not folder.is_dir():
        folder = tree / "workflows"
    files = sorted(p for p in folder.glob("*") if p.suffix in {".yml", ".yaml"})
    if not files:
        raise WorkflowFault("the repository has no workflow file in .github/workflows")
    return tuple(load_workflow(path.name, path.read_bytes()) for path in files)


def load_workflow(file: str, data: bytes) -> Workflow:
    """Load one workflow from its bytes.

    Raises:
        WorkflowFault: it would not run at GitHub, or uses what the stand-in does not know.
    """
    top = read_yaml(file, data)
    name = top.text("name", file)
    run_name = _template(top, "run-name", _EARLY) if top.has("run-name") else None
    types, by_hand = _triggers(top.section("on"))
    _permissions(top.section("permissions"))
    sections = top.section("jobs")
    jobs = {key: _job(key, sections) for key in _bounded(sections, JOBS_MAX)}
    top.end()
    check_needs(sections, jobs)
    return Workflow(file, name, run_name, types, by_hand, jobs)


def _bounded(section: Section, most: int) -> list[str]:
    keys = section.names()
    if not 1 <= len(keys) <= most:
        raise section.fault("", f"has {len(keys)} entries, not 1 to {most}")
    for key in keys:
        if not _ID.fullmatch(key):
            raise section.fault(key, "is not an id")
    return keys


def _triggers(on: Section) -> tuple[tuple[str, ...], bool]:
    types: tuple[str, ...] = ()
    if on.has("repository_dispatch"):
        dispatch = on.section("repository_dispatch")
        given = dispatch.take("types")  # without it the workflow would run for every event
        dispatch.end()
        types = _texts(dispatch, "types", given)
    if on.has("schedule"):
        entries = on.take("schedule")
        for entry in entries if isinstance(entries, list) and entries else [None]:
            cron = Section(on.file, "on.schedule", entry)
            cron.text("cron")
            cron.end()
    by_hand = on.has("workflow_dispatch")
    if by_hand and on.take("workflow_dispatch") is not None:
        raise on.fault("workflow_dispatch", "has inputs, which the stand-in does not know")
    on.end()
    return types, by_hand


def _texts(section: Section, key: str, value: object) -> tuple[str, ...]:
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not values or not all(isinstance(v, str) for v in values):
        raise section.fault(key, "is not a list of texts")
    return tuple(values)


def _permissions(permissions: Section) -> frozenset[str]:
    granted = set()
    for key in permissions.names():
        if permissions.text(key) not in _PERMISSIONS.get(key, ()):
            raise permissions.fault(key, "is not a permission that the shipped files ask for")
        granted.add(key)
    return frozenset(granted)


def _job(key: str, jobs: Section) -> Job:
    job = jobs.section(key)
    needs = _texts(job, "needs", job.take("needs")) if job.has("needs") else ()
    condition = _condition(job, _JOB)
    if job.text("runs-on") != RUNNER_LABEL:
        raise job.fault("runs-on", f"is not {RUNNER_LABEL}")
    timeout = job.whole("timeout-minutes", default=TIMEOUT_MAX_MINUTES, most=TIMEOUT_MAX_MINUTES)
    granted = _permissions(job.section("permissions")) if job.has("permissions") else frozenset()
    concurrency = _concurrency(job.section("concurrency")) if job.has("concurrency") else None
    steps = _steps(job)
    outputs = _templates(job, "outputs", _STEP, steps)
    job.end()
    if "contents" not in granted and any(_is_checkout(step) for step in steps):
        raise job.fault("permissions", "contents: read is missing, and a step checks out")
    return Job(key, needs, condition, timeout or 1, concurrency, outputs, steps)


def _is_checkout(step: Step) -> bool:
    return isinstance(step.work, UsesAction) and step.work.action == ActionName.CHECKOUT


def _concurrency(section: Section) -> Concurrency:
    group = _template(section, "group", _JOB)
    if section.text("cancel-in-progress", "false") != "false":
        raise section.fault("cancel-in-progress", "can only be false in the stand-in")
    section.end()
    return Concurrency(group)


def _steps(job: Section) -> tuple[Step, ...]:
    given = job.take("steps")
    if not isinstance(given, list) or not 1 <= len(given) <= STEPS_MAX:
        raise job.fault("steps", f"is not a list of 1 to {STEPS_MAX} steps")
    steps: list[Step] = []
    for at, value in enumerate(given):
        steps.append(_step(Section(job.file, f"{job.path}.steps[{at}]", value), steps))
    return tuple(steps)


def _step(step: Section, before: list[Step]) -> Step:
    id_ = step.text("id") if step.has("id") else None
    if id_ is not None and (not _ID.fullmatch(id_) or id_ in {other.id for other in before}):
        raise step.fault("id", "is not an id, or is another step's")
    condition = _condition(step, _STEP_IF, before)
    name = _template(step, "name", _STEP, before) if step.has("name") else Template(("",))
    env = _templates(step, "env", _STEP, before)
    for variable in env:
        if not _ENV_NAME.fullmatch(variable) or variable.startswith(_RESERVED_ENV):
            raise step.fault("env", f"{variable} is not a name that a step may set")
    timeout = step.whole("timeout-minutes", default=None, most=TIMEOUT_MAX_MINUTES)
    work = _action(step, before) if step.has("uses") else _script(step, before)
    step.end()
    return Step(name, id_, condition, env, timeout, work)


def _script(step: Section, before: list[Step]) -> RunsScript:
    script = _template(step, "run", _STEP, before)
    if any(is_payload(node) for node in script.nodes()):
        raise step.fault("run", "puts the event's text into a shell: pass it through env")
    return RunsScript(script)


def _action(step: Section, before: list[Step]) -> UsesAction:
    name = known_action(step.text("uses"))
    if not isinstance(name, ActionName):
        raise step.fault("uses", name)
    plain: dict[str, str] = {}
    inputs: dict[str, Template] = {}
    if step.has("with"):
        section = step.section("with")
        for key in section.names():
            plain[key] = section.text(key)
            inputs[key] = _parsed(section, key, plain[key], _STEP, before)
    if (fault := input_fault(name, plain)) is not None:
        raise step.fault("with", fault)
    return UsesAction(name, inputs)


def _templates(
    section: Section, key: str, contexts: frozenset[str], before: Iterable[Step]
) -> dict[str, Template]:
    if not section.has(key):
        return {}
    inner = section.section(key)
    return {name: _template(inner, name, contexts, before) for name in inner.names()}


def _template(
    section: Section, key: str, contexts: frozenset[str], before: Iterable[Step] = ()
) -> Template:
    return _parsed(section, key, section.text(key), contexts, before)


def _parsed(
    section: Section, key: str, text: str, contexts: frozenset[str], before: Iterable[Step]
) -> Template:
    try:
        template = parse_template(text)
    except ExpressionFault as fault:
        raise section.fault(key, str(fault)) from fault
    for node in template.nodes():
        check_lookups(section, key, node, contexts, before)
        if any(isinstance(part, Call) for part in walk(node)):
            raise section.fault(key, "asks a status function outside an `if`")
    return template


def _condition(
    section: Section, contexts: frozenset[str], before: Iterable[Step] = ()
) -> Node | None:
    if not section.has("if"):
        return None
    try:
        node = parse_condition(section.text("if"))
    except ExpressionFault as fault:
        raise section.fault("if", str(fault)) from fault
    check_lookups(section, "if", node, contexts, before)
    return node
