"""POST /api/playbook-runs/step-report: an agent tells how its step ended.

Owns the body of this door and how the outcome reads (contract, section 7). Whether the step
awaits the report is the decision's business alone.
"""

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from msgspec import Struct
from starlette.responses import JSONResponse, Response

from core_console.decide import screen, spec
from core_console.decide.commands import Command, ReportStep
from core_console.decide.outcome import Accepted, Outcome, Refused
from core_console.decide.reports import DETAIL_BYTES, URL_BYTES
from core_console.doors import errors, strict
from core_console.doors.gate import Attempt, Door, Gate
from core_console.doors.strict import BadBody
from core_console.model import audit
from core_console.model.playbook import AGENTS
from core_console.model.run import Conclusion
from core_console.ports import Fault

PATH = "/api/playbook-runs/step-report"
ACTION = "atlas.playbooks.run.report"
SUBJECT = "playbook"

# The contract's (section 7).
BODY_BYTES = 16 * 1024

_DIGITS = re.compile(r"[0-9]{1,20}")
_CONCLUSIONS = tuple(str(conclusion) for conclusion in Conclusion)


class Console(Protocol):
    """The engine, as far as a door needs it."""

    async def submit(self, command: Command) -> Outcome:
        """Decide one command and return once its swap is durable; may raise Fault."""
        ...


class Body(Struct, frozen=True, gc=False, rename="camel"):
    """The six fields, as they arrive."""

    run_id: str
    step_id: str
    agent: str
    conclusion: str
    detail: str
    github_run_url: str


class StepReports:
    """Takes step reports that passed the gate.

    `run_url_prefix` returns `<server>/<org>/<agents repo>/actions/runs/`; it is asked per call,
    for the organisation may be known only after GitHub was asked. `raised` moves the harness
    events that wait into the metadoc, as far as that can be done now: a step report ends its
    dispatch, and the events of that dispatch must be judged while it still counts.
    """

    def __init__(
        self,
        *,
        console: Console,
        gate: Gate,
        run_url_prefix: Callable[[], str],
        raised: Callable[[], Awaitable[None]],
    ) -> None:
        self._console = console
        self._gate = gate
        self._run_url_prefix = run_url_prefix
        self._raised = raised

    def door(self) -> Door:
        """Return the door that hands its bodies to `take`."""
        return Door(
            gate=self._gate, action=ACTION, subject=SUBJECT, bytes_max=BODY_BYTES, take=self.take
        )

    async def take(self, body: bytes, attempt: Attempt) -> Response:
        """Answer one report; raise BadBody, Fault or the rejection that the decision asks for."""
        found = strict.read(body, Body)
        _name(found, attempt)
        _check(found, self._run_url_prefix())
        with suppress(Fault):  # whatever is in flight can be reported all the same
            await self._raised()
        outcome = await self._console.submit(_command(found))
        match outcome:
            case Refused():
                raise errors.refused(outcome)
            case Accepted(refused=Refused() as refusal):
                # The report ended its dispatch, so the swap carries this record.
                said = errors.refused(refusal)
                return JSONResponse({"error": said.detail}, said.status_code)
            case Accepted(duplicate=True):
                # Nothing changed, so no swap carries this record.
                await self._gate.record(
                    attempt, audit.Outcome.SUCCESS, "the same report again; nothing changed"
                )
                return JSONResponse({"accepted": True, "duplicate": True})
            case Accepted():
                return JSONResponse({"accepted": True})


def _name(found: Body, attempt: Attempt) -> None:
    """Let the record name who calls and about what, as far as these are words we know."""
    if found.agent in AGENTS:
        attempt.actor = f"agent:{found.agent}"
    if spec.is_id(found.run_id) and spec.is_id(found.step_id):
        attempt.target = f"{found.run_id}/{found.step_id}"


def _check(found: Body, run_url_prefix: str) -> None:
    for name, value in (("runId", found.run_id), ("stepId", found.step_id)):
        if not spec.is_id(value) or screen.flaws(name, value):
            raise BadBody(f"{name}: {spec.ID_RULE}")
    if found.agent not in AGENTS:
        raise BadBody(f"agent: is not one of {', '.join(AGENTS)}")
    if found.conclusion not in _CONCLUSIONS:
        raise BadBody(f"conclusion: is not one of {', '.join(_CONCLUSIONS)}")
    for fault in screen.text("detail", found.detail, bytes_max=DETAIL_BYTES):
        raise BadBody(f"{fault.field}: {fault.description}")
    _check_url(found.github_run_url, run_url_prefix)


def _check_url(url: str, prefix: str) -> None:
    if screen.size_bytes(url) > URL_BYTES:
        raise BadBody(f"githubRunUrl: has {screen.size_bytes(url)} bytes; at most {URL_BYTES}")
    if not url.startswith(prefix) or not _DIGITS.fullmatch(url.removeprefix(prefix)):
        raise BadBody(f"githubRunUrl: is not {prefix}<digits>")


def _command(found: Body) -> ReportStep:
    return ReportStep(
        agent=found.agent,
        run_id=found.run_id,
        step_id=found.step_id,
        conclusion=found.conclusion,
        detail=found.detail,
        github_run_url=found.github_run_url,
    )
