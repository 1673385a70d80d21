"""The policy table: every method has its class, and each class admits exactly whom it should."""

from collections.abc import Iterator

import pytest
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from runink.core.atlas.v1 import audit_pb2, capex_pb2, governance_pb2, playbook_pb2

from core_console.decide.identity import Admission
from core_console.decide.outcome import Code
from core_console.governance.policy import TABLE, UNLISTED, MethodClass, authorize, rule_of
from core_console.governance.tokens import Identity

FILES = (
    playbook_pb2.DESCRIPTOR,
    capex_pb2.DESCRIPTOR,
    governance_pb2.DESCRIPTOR,
    audit_pb2.DESCRIPTOR,
    health_pb2.DESCRIPTOR,
    reflection_pb2.DESCRIPTOR,
)
CAPEX = "/runink.core.atlas.v1.CapexService/"
PLAYBOOK = "/runink.core.atlas.v1.PlaybookService/"

# As the contract's table says it, written a second time on purpose: class, action.
EXPECTED = {
    f"{PLAYBOOK}ListPlaybooks": ("read", ""),
    f"{PLAYBOOK}GetPlaybook": ("read", ""),
    f"{PLAYBOOK}CreatePlaybook": ("admin", "atlas.playbooks.create"),
    f"{PLAYBOOK}UpdatePlaybook": ("admin", "atlas.playbooks.update"),
    f"{PLAYBOOK}DeletePlaybook": ("admin", "atlas.playbooks.delete"),
    f"{PLAYBOOK}DraftFromFindings": ("admin", "atlas.playbooks.draft"),
    f"{PLAYBOOK}ActivatePlaybook": ("decider", "atlas.playbooks.activate"),
    f"{PLAYBOOK}PausePlaybook": ("admin", "atlas.playbooks.pause"),
    f"{PLAYBOOK}ResumePlaybook": ("admin", "atlas.playbooks.resume"),
    f"{PLAYBOOK}RunNow": ("admin", "atlas.playbooks.run"),
    f"{PLAYBOOK}CancelRun": ("admin", "atlas.playbooks.run.cancel"),
    f"{PLAYBOOK}ListRuns": ("read", ""),
    f"{PLAYBOOK}GetRun": ("read", ""),
    f"{PLAYBOOK}DecideApproval": ("decider", "atlas.playbooks.approval.decide"),
    f"{PLAYBOOK}ListDispatchableAgents": ("read", ""),
    f"{PLAYBOOK}ListEvents": ("read", ""),
    f"{PLAYBOOK}WatchActivity": ("read", ""),
    f"{CAPEX}GetFeeds": ("read", ""),
    f"{CAPEX}StageFeed": ("admin", "atlas.capex.stage"),
    f"{CAPEX}PreviewIngest": ("read", ""),
    f"{CAPEX}CommitIngest": ("admin", "atlas.capex.commit"),
    f"{CAPEX}ClearFeed": ("admin", "atlas.capex.clear"),
    f"{CAPEX}GetConfig": ("read", ""),
    f"{CAPEX}UpdateConfig": ("admin", "atlas.capex.config.update"),
    f"{CAPEX}GetSummary": ("read", ""),
    f"{CAPEX}ListFindings": ("read", ""),
    f"{CAPEX}TraceFinding": ("read", ""),
    f"{CAPEX}GetRuleBook": ("read", ""),
    f"{CAPEX}ListScanRuns": ("read", ""),
    f"{CAPEX}GetDashboard": ("read", ""),
    "/runink.core.atlas.v1.GovernanceService/ListDecisions": ("read", ""),
    "/runink.core.atlas.v1.AuditService/ListAuditRecords": ("auditor", ""),
    "/runink.core.atlas.v1.AuditService/GetAuditRecord": ("auditor", ""),
    "/runink.core.atlas.v1.AuditService/VerifyAuditChain": ("auditor", ""),
    "/grpc.health.v1.Health/Check": ("public", ""),
    "/grpc.health.v1.Health/List": ("public", ""),
    "/grpc.health.v1.Health/Watch": ("public", ""),
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": ("public", ""),
}

ADMISSION = Admission(
    admins=frozenset({"admin@example.com"}), auditors=frozenset({"auditor@example.com"})
)
ONE_OF_EACH = {
    MethodClass.PUBLIC: "/grpc.health.v1.Health/Check",
    MethodClass.READ: f"{PLAYBOOK}GetRun",
    MethodClass.AUDITOR: "/runink.core.atlas.v1.AuditService/VerifyAuditChain",
    MethodClass.DECIDER: f"{PLAYBOOK}DecideApproval",
    MethodClass.ADMIN: f"{PLAYBOOK}RunNow",
}


def methods() -> Iterator[str]:
    for file in FILES:
        for service in file.services_by_name.values():
            for method in service.methods:
                yield f"/{service.full_name}/{method.name}"


def code(method: str, email: str | None, *, is_open: bool = False) -> Code | None:
    identity = None if email is None else Identity(email)
    refused = authorize(method, identity, admission=ADMISSION, console_is_open=is_open)
    return None if refused is None else refused.code


def test_every_method_of_every_service_has_its_class() -> None:
    found = {
        method: (str(TABLE[method].method_class), TABLE[method].action) for method in methods()
    }
    assert found == EXPECTED


def test_every_write_has_an_action_and_a_subject_and_no_read_has() -> None:
    reads = {MethodClass.PUBLIC, MethodClass.READ, MethodClass.AUDITOR}
    for method, rule in TABLE.items():
        is_write = rule.method_class not in reads
        assert (bool(rule.action), bool(rule.subject)) == (is_write, is_write), method


def test_the_pages_that_auditors_read_are_theirs() -> None:
    for route in ("GET /api/audit", "GET /api/audit/{seq}", "GET /api/audit/verify"):
        assert rule_of(route).method_class is MethodClass.AUDITOR
    for route in ("GET /healthz", "GET /metrics"):
        assert rule_of(route).method_class is MethodClass.PUBLIC


@pytest.mark.parametrize(
    "path",
    [
        "/api/data-governance-findings",
        "/api/rules-recon/report",
        "/api/rules-recon/inputs",
        "/api/judgements",
    ],
)
def test_what_agents_reported_is_read_by_every_operator(path: str) -> None:
    assert rule_of(f"GET {path}").method_class is MethodClass.READ
    assert code(f"GET {path}", "op@example.com") is None
    assert code(f"GET {path}", None) is Code.UNAUTHENTICATED
    assert code(f"GET {path}", None, is_open=True) is None


@pytest.mark.parametrize("method", ["", "/a.B/C", f"{PLAYBOOK}getrun", "GET /nothing", "*"])
def test_a_method_missing_from_the_table_is_admin(method: str) -> None:
    assert rule_of(method) is UNLISTED
    assert code(method, "auditor@example.com") is Code.PERMISSION_DENIED
    assert code(method, None) is Code.UNAUTHENTICATED
    assert code(method, None, is_open=True) is Code.UNAUTHENTICATED
    assert code(method, "admin@example.com") is None


DENIED, UNNAMED = Code.PERMISSION_DENIED, Code.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("method_class", "nobody", "operator", "admin", "auditor", "on_open"),
    [
        (MethodClass.PUBLIC, None, None, None, None, None),
        (MethodClass.READ, UNNAMED, None, None, None, None),
        (MethodClass.AUDITOR, UNNAMED, DENIED, DENIED, None, UNNAMED),
        (MethodClass.DECIDER, UNNAMED, None, None, None, UNNAMED),
        (MethodClass.ADMIN, UNNAMED, DENIED, None, DENIED, UNNAMED),
    ],
)
def test_each_class_admits_exactly_whom_it_should(
    method_class: MethodClass,
    nobody: Code | None,
    operator: Code | None,
    admin: Code | None,
    auditor: Code | None,
    on_open: Code | None,
) -> None:
    method = ONE_OF_EACH[method_class]
    assert code(method, None) is nobody
    assert code(method, "op@example.com") is operator
    assert code(method, "admin@example.com") is admin
    assert code(method, "auditor@example.com") is auditor
    assert code(method, None, is_open=True) is on_open


def test_an_attributable_method_needs_a_name_and_nothing_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rule = UNLISTED.__class__(MethodClass.ATTRIBUTABLE, "rules.propose", "rule")
    monkeypatch.setitem(TABLE, "/x.Y/Propose", rule)
    assert code("/x.Y/Propose", "op@example.com") is None
    assert code("/x.Y/Propose", None) is Code.UNAUTHENTICATED
    assert code("/x.Y/Propose", None, is_open=True) is Code.UNAUTHENTICATED


def test_an_open_console_says_that_it_has_no_sign_in() -> None:
    for method_class in (MethodClass.ADMIN, MethodClass.DECIDER, MethodClass.AUDITOR):
        refused = authorize(
            ONE_OF_EACH[method_class], None, admission=ADMISSION, console_is_open=True
        )
        assert refused is not None
        assert refused.reason.startswith("this console has no sign-in configured")


def test_every_admitted_operator_is_an_admin_until_admins_are_listed() -> None:
    refused = authorize(
        ONE_OF_EACH[MethodClass.ADMIN],
        Identity("op@example.com"),
        admission=Admission(),
        console_is_open=False,
    )
    assert refused is None
