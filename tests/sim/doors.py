"""The agents' doors of a process: real bodies into the real application, without a socket.

Owns how an agent's command becomes a request, and that a door says what was decided.
"""

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from core_console.decide.commands import Command, RaiseEvent, ReportStep
from core_console.decide.outcome import Accepted, Code, Outcome, Refused
from core_console.doors import errors, events, step_report
from core_console.doors.events import Events
from core_console.doors.gate import Gate
from core_console.doors.step_report import Console, StepReports
from core_console.ports import Fault
from tests.sim.agents import RUN_URL
from tests.sim.broken import hold

Said = Outcome | Fault

_HEARD: ContextVar[list[Said]] = ContextVar("HEARD")

_STATUS = {
    Code.INVALID_ARGUMENT: 400,
    Code.PERMISSION_DENIED: 403,
    Code.NOT_FOUND: 404,
    Code.FAILED_PRECONDITION: 409,
    Code.ABORTED: 503,
    Code.RESOURCE_EXHAUSTED: 503,
    Code.UNAVAILABLE: 503,
}
"""The contract's, section 7, and not the product's table."""

_AGAIN = frozenset({429, 503})
"""On these the agents' script sends again (contract, section 7)."""


class Heard:
    """A console that notes what it answered to the call that is under way."""

    def __init__(self, ask: Callable[[Command], Awaitable[Said]]) -> None:
        self._ask = ask

    async def submit(self, command: Command) -> Outcome:
        """Decide one command."""
        said = await self._ask(command)
        _HEARD.get().append(said)
        if isinstance(said, Fault):
            raise said
        return said


class Doors:
    """The two doors whose bodies are commands."""

    def __init__(
        self, *, console: Console, gate: Gate, raised: Callable[[], Awaitable[None]]
    ) -> None:
        reports = StepReports(
            console=console, gate=gate, run_url_prefix=lambda: RUN_URL, raised=raised
        )
        self._app = Starlette(
            routes=[
                Route(step_report.PATH, reports.door()),
                Route(events.PATH, Events(console=console, gate=gate).door()),
            ],
            middleware=[Middleware(errors.SecurityHeaders), Middleware(errors.LastResort)],
            exception_handlers={HTTPException: errors.answer},
        )

    async def send(self, command: ReportStep | RaiseEvent) -> Said:
        """Return what came of the agent's request.

        Raises:
            BrokenError: the door's status is not what was decided.
        """
        heard: list[Said] = []
        _HEARD.set(heard)
        status, sentence = await self._post(_path(command), _body(command))
        if not heard:
            again = status in _AGAIN
            return Fault(sentence) if again else Refused(Code.INVALID_ARGUMENT, sentence)
        rule = "a door says what was decided"
        hold(status == _status(heard[0]), rule, "{}: {} {}", heard[0], status, sentence)
        return heard[0]

    async def _post(self, path: str, body: bytes) -> tuple[int, str]:
        request = [{"type": "http.request", "body": body, "more_body": False}]
        answer: list[Any] = []

        async def receive() -> Any:  # noqa: ANN401 -- ASGI's messages
            return request.pop()

        async def send(message: Any) -> None:  # noqa: ANN401 -- ASGI's messages
            answer.append(message)

        await self._app(_scope(path, len(body)), receive, send)
        return answer[0]["status"], answer[1]["body"].decode()


def _scope(path: str, length: int) -> dict[str, Any]:
    headers = {
        b"authorization": b"Bearer simulated",
        b"content-type": b"application/json",
        b"content-length": b"%d" % length,
    }
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": list(headers.items()),
        "client": ("192.0.2.1", 443),
    }


def _path(command: ReportStep | RaiseEvent) -> str:
    return step_report.PATH if isinstance(command, ReportStep) else events.PATH


def _body(command: ReportStep | RaiseEvent) -> bytes:
    if isinstance(command, ReportStep):
        found: dict[str, Any] = {
            "runId": command.run_id,
            "stepId": command.step_id,
            "agent": command.agent,
            "conclusion": command.conclusion,
            "detail": command.detail,
            "githubRunUrl": command.github_run_url,
        }
        return msgspec.json.encode(found)
    found = {
        "agent": command.agent,
        "event": command.event,
        "subject": command.subject,
        "detail": command.detail,
        "attributes": command.attributes,
        "causedByRunId": command.caused_by_run_id,
        "eventId": command.external_id,
    }
    return msgspec.json.encode({name: value for name, value in found.items() if value})


def _status(said: Said) -> int:
    match said:
        case Fault():
            return 503
        case Refused(code=code) | Accepted(refused=Refused(code=code)):
            return _STATUS[code]
        case Accepted():
            return 200
