"""recon under its own interpreter, with the rule book as the console's own door shows it."""

from typing import Any

import msgspec
import pytest

from core_console.capex.scope import Scope
from core_console.doors.inputs import inputs
from core_console.model.capex import RuleStatus, Thresholds
from tests.github.conftest import Agents, Ended
from tests.github.taken import told

INPUTS = "handed-on/inputs.json"
DECLARED = "agents/recon/rules.json"


def book(scope: Scope | None = None) -> bytes:
    return msgspec.json.encode(inputs(scope or Scope()))


def reconcile(agents: Agents, *rules: object, **changes: object) -> Ended:
    agents.write(INPUTS, SMALL | changes)
    agents.write(DECLARED, {"tenant": "north", "rules": list(rules)})
    return agents.run("recon")


SMALL: dict[str, Any] = {
    "thresholds": {"days": 14, "factor": "1.10"},
    "rules": [
        {"id": "A-1", "severity": "HIGH", "status": "APPROVED", "thresholds": ["days"]},
        {"id": "B-2", "severity": "LOW", "status": "PENDING", "thresholds": []},
    ],
}
A_1 = {"id": "A-1", "severity": "HIGH", "thresholds": {"days": 14}}
B_2 = {"id": "B-2", "status": "PENDING"}


def verdicts(ended: Ended) -> dict[str, tuple[str, str]]:
    assert ended.code == 0, ended.text
    told("recon", ended)
    return {each["rule"]: (each["verdict"], each["detail"]) for each in ended.json()["verdicts"]}


def test_the_shipped_declaration_is_what_the_console_has(agents: Agents) -> None:
    agents.write(INPUTS, book())
    ended = agents.run("recon")
    assert ended.detail == "24 rules reconciled: 24 aligned, 0 drift, 0 shadow, 0 missing"
    assert set(verdicts(ended).values()) == {("aligned", "")}
    said = told("recon", ended)
    assert said.event == "recon.reported"
    assert said.attributes == {"drift": "0", "shadow": "0", "missing": "0", "tenant": "example"}


def test_a_threshold_or_a_status_that_governance_changed_is_a_drift(agents: Agents) -> None:
    changed = Scope(Thresholds(tolerance_days=21), (("SP-001", RuleStatus.REJECTED),))
    agents.write(INPUTS, book(changed))
    found = verdicts(agents.run("recon"))
    drifted = {rule: detail for rule, (verdict, detail) in found.items() if verdict == "drift"}
    assert drifted.pop("SP-001") == "the status is REJECTED in the book"
    assert set(drifted) >= {"CP-007", "CR-006"}
    assert set(drifted.values()) == {"toleranceDays is 21 in the book, 14 declared"}


@pytest.mark.parametrize(
    ("rule", "detail"),
    [
        (A_1, ""),
        (A_1 | {"thresholds": {"days": "14.0"}}, ""),
        (A_1 | {"thresholds": {"days": 15}}, "days is 14 in the book, 15 declared"),
        (A_1 | {"thresholds": {}}, "declares no number for days, which is 14"),
        (A_1 | {"thresholds": {"days": "x" * 900}}, "declares no number for days, which is 14"),
        (A_1 | {"thresholds": {"days": True}}, "declares no number for days, which is 14"),
        (A_1 | {"thresholds": {"days": "٣"}}, "declares no number for days, which is 14"),
        (A_1 | {"severity": "LOW"}, "the severity is HIGH in the book"),
        (A_1 | {"status": "DRAFT"}, "the status is APPROVED in the book"),
        (
            A_1 | {"severity": "LOW", "thresholds": {"x": 1}},
            "the severity is HIGH in the book (and 2 more)",
        ),
    ],
)
def test_what_is_declared_is_aligned_or_drifts(
    agents: Agents, rule: dict[str, object], detail: str
) -> None:
    found = verdicts(reconcile(agents, rule, B_2))
    assert found == {
        "A-1": ("drift" if detail else "aligned", detail),
        "B-2": ("aligned", ""),
    }


def test_what_only_one_side_has_is_missing_or_shadow(agents: Agents) -> None:
    ended = reconcile(agents, A_1, {"id": "Z-9"})
    assert verdicts(ended) == {
        "A-1": ("aligned", ""),
        "B-2": ("missing", ""),
        "Z-9": ("shadow", ""),
    }
    assert told("recon", ended).attributes == {
        "drift": "0",
        "shadow": "1",
        "missing": "1",
        "tenant": "north",
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"rules": []},
        {"rules": [5]},
        {"rules": [{"id": ""}]},
        {"rules": [{"id": "ghp_x"}]},
        {"rules": [SMALL["rules"][0]] * 2},
        {"rules": [{"id": "A-1"}]},
        {"rules": [SMALL["rules"][0] | {"severity": None}]},
        {"rules": [SMALL["rules"][0] | {"thresholds": ["none"]}]},
        {"thresholds": None},
        {"thresholds": {"days": "soon"}},
    ],
)
def test_a_rule_book_that_is_none_is_not_compared(
    agents: Agents, changes: dict[str, object]
) -> None:
    ended = reconcile(agents, A_1, **changes)
    assert (ended.code, ended.report) == (1, None)
    assert "rule book that the console gave" in ended.detail


@pytest.mark.parametrize(
    "rules", [[], [5], [{"id": "A\nB"}], [A_1, A_1], [A_1 | {"thresholds": 5}], [A_1 | {"x": 1}]]
)
def test_a_declaration_that_is_none_is_not_compared(agents: Agents, rules: list[object]) -> None:
    ended = reconcile(agents, *rules)
    assert (ended.code, ended.report) == (1, None)
    assert "declaration of rules" in ended.detail


@pytest.mark.parametrize("tenant", [None, "", "a\u202eb", "x" * 65])
def test_a_tenant_must_have_a_name_that_may_be_told(agents: Agents, tenant: object) -> None:
    agents.write(INPUTS, SMALL)
    agents.write(DECLARED, {"tenant": tenant, "rules": [A_1]})
    ended = agents.run("recon")
    assert (ended.code, ended.report) == (1, None)


def test_2000_rules_are_one_report_and_one_more_is_none(agents: Agents) -> None:
    rules = [{"id": f"{'é' * 59}{number:04}"} for number in range(1_999)]
    assert told("recon", reconcile(agents, *rules[:1_998])).items == 2_000
    assert reconcile(agents, *rules).report is None
