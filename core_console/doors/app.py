"""The HTTP application: which path leads where, and what stands around all of them.

Owns the list of routes and nothing that they do.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from core_console.doors import errors, events, health, metrics, step_report
from core_console.doors.agent_reports import AgentReports
from core_console.doors.audit import AuditDoors
from core_console.doors.events import Events
from core_console.doors.gate import Gate
from core_console.doors.inputs import Inputs
from core_console.doors.step_report import Console, StepReports


@dataclass(frozen=True, slots=True)
class Replica:
    """What anybody may see of this process.

    `serving` says cheaply whether it takes work now, `figures` returns its metrics.
    """

    serving: Callable[[], bool]
    figures: Callable[[], bytes]


def build(
    *,
    console: Console,
    gate: Gate,
    audit: AuditDoors,
    agent_reports: AgentReports,
    inputs: Inputs,
    raised: Callable[[], Awaitable[None]],
    run_url_prefix: Callable[[], str],
    replica: Replica,
) -> Starlette:
    """Return the application.

    `raised` moves the harness events that wait into the metadoc; it may raise Fault.
    `run_url_prefix` returns `<server>/<org>/<agents repo>/actions/runs/`; a Fault of it, while
    the organisation is not known yet, is answered as 503.
    """
    reports = StepReports(console=console, gate=gate, run_url_prefix=run_url_prefix, raised=raised)
    app = Starlette(
        routes=[
            health.route(replica.serving),
            metrics.route(replica.figures),
            Route(step_report.PATH, reports.door()),
            Route(events.PATH, Events(console=console, gate=gate).door()),
            *agent_reports.routes(),
            inputs.route(),
            *audit.routes(),
        ],
        middleware=[Middleware(errors.SecurityHeaders), Middleware(errors.LastResort)],
        exception_handlers={HTTPException: errors.answer},
    )
    # A redirect to a path with or without its last slash would drop the body of a POST.
    app.router.redirect_slashes = False
    return app
