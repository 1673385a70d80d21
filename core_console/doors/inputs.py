"""GET /api/rules-recon/inputs: what the recon agent compares a tenant's rules with.

Owns the shape of the rule book as an agent reads it, and who may read it: an operator, or a job
that holds a token of the App. GitHub's prefix tells the two bearers apart; no operator's token
begins with it, for those are JWTs.
"""

import re
from collections.abc import Callable
from string import Formatter
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from core_console.capex.rules.book import RULE_BOOK
from core_console.capex.rules.rule import Rule
from core_console.capex.scope import Scope
from core_console.doors import errors, query
from core_console.doors.errors import Rejection
from core_console.doors.gate import Attempt, Gate, check_bearer, peer_of
from core_console.doors.operators import Operators
from core_console.model.audit import Outcome
from core_console.model.capex import RuleStatus
from core_console.ports import Fault

PATH = "/api/rules-recon/inputs"
ACTION = "atlas.rules.inputs"
SUBJECT = "rule"

_APP_BEARER = re.compile(r"\s*bearer\s+ghs_", re.IGNORECASE)
_WORD = re.compile(r"_([a-z])")


class Inputs:
    """Shows the rule book; `scope` returns what rule governance says now, and may raise Fault."""

    def __init__(self, *, gate: Gate, operators: Operators, scope: Callable[[], Scope]) -> None:
        self._gate = gate
        self._operators = operators
        self._scope = scope

    def route(self) -> Route:
        """Return the route."""
        return Route(PATH, self.show)

    async def show(self, request: Request) -> Response:
        """Answer the rule book and the thresholds, the same to both kinds of caller."""
        if any(map(_APP_BEARER.match, request.headers.getlist("authorization"))):
            await self._admit_agent(request)
        else:
            self._operators.admit(request, f"GET {PATH}")
        query.parameters(request, ())
        try:
            scope = self._scope()
        except Fault as fault:
            raise errors.faulted(fault) from fault
        return Response(msgspec.json.encode(inputs(scope)), media_type="application/json")

    async def _admit_agent(self, request: Request) -> None:
        """Let a job of the App pass, and record whether it did: it is no operator."""
        attempt = Attempt(ACTION, SUBJECT, peer_of(request))
        try:
            await check_bearer(request, self._gate.github, attempt)
        except Rejection as rejection:
            denied = rejection.status_code in {401, 403, 429}
            outcome = Outcome.DENIED if denied else Outcome.FAILURE
            await self._gate.record(attempt, outcome, rejection.detail)
            raise
        attempt.actor = "agent:recon"
        await self._gate.record(attempt, Outcome.SUCCESS, "the rule book was read")


def inputs(scope: Scope) -> dict[str, Any]:
    """Return the rule book in its order, and the thresholds that its conditions stand on.

    Decimals are texts, so that no reader rounds them.
    """
    values = msgspec.structs.asdict(scope.thresholds)
    statuses = dict(scope.statuses)
    return {
        "thresholds": {_camel(name): value for name, value in values.items()},
        "rules": [
            _shown(rule, scope) | {"status": statuses.get(rule.id, RuleStatus.APPROVED)}
            for rule in RULE_BOOK
        ],
    }


def _shown(rule: Rule, scope: Scope) -> dict[str, Any]:
    shown = {
        "id": rule.id,
        "sheet": rule.sheet,
        "severity": rule.severity,
        "condition": rule.words(scope.thresholds),
        "thresholds": _thresholds_of(rule),
        "needs": rule.needs,
        "remediation": rule.remediation,
    }
    return shown | ({} if rule.dimension is None else {"dimension": rule.dimension})


def _thresholds_of(rule: Rule) -> list[str]:
    """Return the names of the thresholds that stand in the rule's condition."""
    fields = (field for _, field, _, _ in Formatter().parse(rule.condition) if field)
    return [_camel(field.removeprefix("limits.")) for field in fields]


def _camel(name: str) -> str:
    return _WORD.sub(lambda found: found[1].upper(), name)
