"""Who may call what: one table, one place (governance, section 2).

Owns the class of every method, and the audit action and subject of every write. A method that is
missing from the table is admin: it fails closed. Never judges four eyes; the decision does.
"""

from enum import StrEnum
from typing import assert_never

from msgspec import Struct

from core_console.decide.identity import Admission, is_admin, is_auditor
from core_console.decide.outcome import Code, Refused
from core_console.governance.tokens import Identity


class MethodClass(StrEnum):
    """Who may call a method."""

    PUBLIC = "public"
    READ = "read"
    AUDITOR = "auditor"
    ATTRIBUTABLE = "attributable"
    DECIDER = "decider"
    ADMIN = "admin"


class Rule(Struct, frozen=True, gc=False):
    """A method's class; `action` and `subject` are what its record says, empty for a read."""

    method_class: MethodClass
    action: str = ""
    subject: str = ""


UNLISTED = Rule(MethodClass.ADMIN, "unlisted.call", "method")
"""What holds for a method that is not in the table."""

_PUBLIC = Rule(MethodClass.PUBLIC)
_READ = Rule(MethodClass.READ)
_AUDITOR = Rule(MethodClass.AUDITOR)


def _playbook_write(method_class: MethodClass, action: str) -> Rule:
    return Rule(method_class, f"atlas.playbooks.{action}", "playbook")


_PLAYBOOKS = {
    "ListPlaybooks": _READ,
    "GetPlaybook": _READ,
    "CreatePlaybook": _playbook_write(MethodClass.ADMIN, "create"),
    "UpdatePlaybook": _playbook_write(MethodClass.ADMIN, "update"),
    "DeletePlaybook": _playbook_write(MethodClass.ADMIN, "delete"),
    "DraftFromFindings": _playbook_write(MethodClass.ADMIN, "draft"),
    "ActivatePlaybook": _playbook_write(MethodClass.DECIDER, "activate"),
    "PausePlaybook": _playbook_write(MethodClass.ADMIN, "pause"),
    "ResumePlaybook": _playbook_write(MethodClass.ADMIN, "resume"),
    "RunNow": _playbook_write(MethodClass.ADMIN, "run"),
    "CancelRun": _playbook_write(MethodClass.ADMIN, "run.cancel"),
    "ListRuns": _READ,
    "GetRun": _READ,
    "DecideApproval": _playbook_write(MethodClass.DECIDER, "approval.decide"),
    "ListDispatchableAgents": _READ,
    "ListEvents": _READ,
    "WatchActivity": _READ,
}


def _capex_write(action: str) -> Rule:
    return Rule(MethodClass.ADMIN, f"atlas.capex.{action}", "capex")


_CAPEX = {
    "GetFeeds": _READ,
    "StageFeed": _capex_write("stage"),
    "PreviewIngest": _READ,  # it writes nothing and records nothing
    "CommitIngest": _capex_write("commit"),
    "ClearFeed": _capex_write("clear"),
    "GetConfig": _READ,
    "UpdateConfig": _capex_write("config.update"),
    "GetSummary": _READ,
    "ListFindings": _READ,
    "TraceFinding": _READ,
    "GetRuleBook": _READ,
    "ListScanRuns": _READ,
    "GetDashboard": _READ,
}
_GOVERNANCE = {"ListDecisions": _READ}
_AUDIT = {
    "ListAuditRecords": _AUDITOR,
    "GetAuditRecord": _AUDITOR,
    "VerifyAuditChain": _AUDITOR,
}
_SERVICES = {
    "runink.core.atlas.v1.PlaybookService": _PLAYBOOKS,
    "runink.core.atlas.v1.CapexService": _CAPEX,
    "runink.core.atlas.v1.GovernanceService": _GOVERNANCE,
    "runink.core.atlas.v1.AuditService": _AUDIT,
    "grpc.health.v1.Health": {"Check": _PUBLIC, "List": _PUBLIC, "Watch": _PUBLIC},
    "grpc.reflection.v1.ServerReflection": {"ServerReflectionInfo": _PUBLIC},
    "grpc.reflection.v1alpha.ServerReflection": {"ServerReflectionInfo": _PUBLIC},
}
# The doors that take reports are not here: their bearer is the App's, not an operator's.
_HTTP = {
    "GET /healthz": _PUBLIC,
    "GET /metrics": _PUBLIC,  # figures alone, for programs that hold no operator's token
    "GET /api/data-governance-findings": _READ,
    "GET /api/rules-recon/report": _READ,
    "GET /api/rules-recon/inputs": _READ,
    "GET /api/judgements": _READ,
    "GET /api/audit": _AUDITOR,
    "GET /api/audit/verify": _AUDITOR,
    "GET /api/audit/{seq}": _AUDITOR,
}

TABLE: dict[str, Rule] = {
    **{
        f"/{service}/{method}": rule
        for service, methods in _SERVICES.items()
        for method, rule in methods.items()
    },
    **_HTTP,
}
"""By full gRPC method (`/package.Service/Method`) or by `GET <route>` for HTTP."""


def rule_of(method: str) -> Rule:
    """Return the rule of a full gRPC method or an HTTP route; an unknown one is admin."""
    return TABLE.get(method, UNLISTED)


def authorize(
    method: str, identity: Identity | None, *, admission: Admission, console_is_open: bool
) -> Refused | None:
    """Return why this caller may not call the method, None when it may.

    `identity` is None for a caller without a token; `console_is_open` says that no sign-in is
    configured.
    """
    method_class = rule_of(method).method_class
    if method_class is MethodClass.PUBLIC:
        return None
    if console_is_open:
        return None if method_class is MethodClass.READ else _open_console(method_class)
    if identity is None:
        return Refused(
            Code.UNAUTHENTICATED,
            "an operator token is needed: send it as authorization: Bearer <token>",
        )
    return _judge(method_class, identity.email, admission)


def _open_console(method_class: MethodClass) -> Refused:
    what = "the audit trail" if method_class is MethodClass.AUDITOR else "a write"
    return Refused(
        Code.UNAUTHENTICATED,
        f"this console has no sign-in configured, so nobody could be named for {what}: "
        "run core-console init and issue operator tokens",
    )


def _judge(method_class: MethodClass, email: str, admission: Admission) -> Refused | None:
    match method_class:
        case MethodClass.PUBLIC | MethodClass.READ | MethodClass.ATTRIBUTABLE | MethodClass.DECIDER:
            return None
        case MethodClass.AUDITOR:
            may = is_auditor(email, admission)
            reason = "may not read the audit trail: CONSOLE_SESSION_ADMINS lists who may"
        case MethodClass.ADMIN:
            may = is_admin(email, admission)
            reason = "is not an Atlas admin: CORE_ATLAS_ADMINS lists who is"
        case _:
            assert_never(method_class)
    return None if may else Refused(Code.PERMISSION_DENIED, f"{email} {reason}")
