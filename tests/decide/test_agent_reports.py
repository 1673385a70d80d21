"""What each agent's report may hold, and the attributes and rows of the event that it makes."""

import pytest

from core_console.decide import agent_reports
from core_console.decide.agent_reports import CONNECTIONS_MAX, ITEMS_MAX, Told, read_out
from core_console.decide.outcome import Code, Refused
from core_console.model.reports import (
    DatagovReport,
    Finding,
    Judged,
    JudgeReport,
    ReconReport,
    Report,
    RuleVerdict,
)

OWNER = Finding("owner", "fail", "sales", "warehouse", "names no owner")


def datagov(*findings: Finding, agent: str = "datagov", connections: int = 3) -> DatagovReport:
    return DatagovReport(agent=agent, connections_assessed=connections, findings=findings)


def recon(*verdicts: RuleVerdict, tenant: str = "north") -> ReconReport:
    return ReconReport(tenant=tenant, verdicts=verdicts)


def judge(*judgements: Judged, caused_by_run_id: str | None = None) -> JudgeReport:
    return JudgeReport(judgements=judgements, caused_by_run_id=caused_by_run_id)


def told(report: Report) -> Told:
    found = read_out(report)
    assert isinstance(found, Told)
    return found


def fields(report: Report) -> list[str]:
    found = read_out(report)
    assert isinstance(found, Refused)
    assert found.code is Code.INVALID_ARGUMENT
    return [violation.field for violation in found.violations]


def test_datagov_counts_fails_and_warns_and_gives_each_a_row() -> None:
    found = told(
        datagov(
            OWNER,
            Finding("tls", "warn", "", "lake"),
            Finding("tls", "pass", "sales", "warehouse"),
            Finding("tls", "unable-to-assess", "sales", "crm"),
        )
    )

    assert (found.agent, found.event, found.items) == ("datagov", "findings.reported", 4)
    assert found.attributes == {"fail_count": "1", "warn_count": "1"}
    assert found.rows == (
        {"control": "owner", "verdict": "fail", "domain": "sales", "connection": "warehouse"},
        {"control": "tls", "verdict": "warn", "domain": "", "connection": "lake"},
    )


def test_findings_that_match_alike_are_one_row_and_all_counted() -> None:
    other_words = Finding("owner", "fail", "sales", "warehouse", "still no owner")
    found = told(datagov(OWNER, other_words, OWNER))

    assert found.attributes["fail_count"] == "3"
    assert len(found.rows) == 1


def test_recon_counts_what_is_not_aligned_and_names_the_tenant() -> None:
    found = told(
        recon(
            RuleVerdict("CP-001", "aligned"),
            RuleVerdict("CP-002", "drift"),
            RuleVerdict("CP-003", "drift"),
            RuleVerdict("X", "shadow"),
        )
    )

    assert (found.agent, found.event, found.items) == ("recon", "recon.reported", 4)
    assert found.attributes == {"drift": "2", "shadow": "1", "missing": "0", "tenant": "north"}
    assert found.rows == ()


def test_the_judge_counts_dissent_and_what_could_not_be_judged() -> None:
    found = told(
        judge(
            Judged("a", "concur"),
            Judged("b", "dissent", "no evidence"),
            Judged("c", "unable-to-judge"),
            Judged("d", "unable-to-judge"),
        )
    )

    assert (found.agent, found.event, found.items) == ("judge", "judgements.reported", 4)
    assert found.attributes == {"dissent": "1", "unable": "2"}
    assert found.rows == ()


@pytest.mark.parametrize("report", [datagov(), recon(), judge()])
def test_a_report_without_items_is_one_that_found_nothing(report: Report) -> None:
    found = told(report)

    assert found.items == 0
    assert set(found.attributes.values()) <= {"0", "north"}
    assert found.actor == f"agent:{found.agent}"


def test_the_named_run_is_carried() -> None:
    assert told(judge(caused_by_run_id="PBR-1")).caused_by_run_id == "PBR-1"
    assert told(judge()).caused_by_run_id == ""


@pytest.mark.parametrize("run_id", ["", "a b", "..", "a" * 65, "ghp_secret"])
def test_a_named_run_must_be_an_id(run_id: str) -> None:
    assert fields(judge(caused_by_run_id=run_id)) == ["causedByRunId"]


@pytest.mark.parametrize(
    ("report", "field"),
    [
        (datagov(agent="recon"), "agent"),
        (datagov(connections=-1), "connectionsAssessed"),
        (datagov(connections=CONNECTIONS_MAX + 1), "connectionsAssessed"),
        (datagov(OWNER, Finding("", "fail", "d", "c")), "findings[1].control"),
        (datagov(Finding("x", "FAIL", "d", "c")), "findings[0].verdict"),
        (datagov(Finding("x", "fail", "d" * 257, "c")), "findings[0].domain"),
        (datagov(Finding("x", "fail", "d", "c\u202e")), "findings[0].connection"),
        (datagov(Finding("x", "pass", "d", "c", "w" * 501)), "findings[0].detail"),
        (recon(tenant=" "), "tenant"),
        (recon(tenant="t" * 257), "tenant"),
        (recon(RuleVerdict("", "drift")), "verdicts[0].rule"),
        (recon(RuleVerdict("CP-001", "drifted")), "verdicts[0].verdict"),
        (recon(RuleVerdict("CP-001", "drift", "a\nb")), "verdicts[0].detail"),
        (judge(Judged("\t", "concur")), "judgements[0].id"),
        (judge(Judged("a", "concurs")), "judgements[0].outcome"),
        (judge(Judged("a", "concur", "AKIA")), "judgements[0].reason"),
    ],
)
def test_what_does_not_keep_the_bounds_is_refused_by_name(report: Report, field: str) -> None:
    assert fields(report) == [field]


@pytest.mark.parametrize(
    ("report", "field"),
    [
        (datagov(*[OWNER] * (ITEMS_MAX + 1)), "findings"),
        (recon(*[RuleVerdict("CP-001", "drift")] * (ITEMS_MAX + 1)), "verdicts"),
        (judge(*[Judged("a", "concur")] * (ITEMS_MAX + 1)), "judgements"),
    ],
)
def test_one_item_too_many_is_refused_and_nothing_is_cut(report: Report, field: str) -> None:
    assert fields(report) == [field]


def test_everything_at_its_bound_is_taken() -> None:
    longest = Finding("é" * 128, "warn", "d" * 256, "c" * 256, "w" * 500)

    found = told(datagov(*[longest] * ITEMS_MAX, connections=CONNECTIONS_MAX))
    assert found.attributes == {"fail_count": "0", "warn_count": str(ITEMS_MAX)}


def test_an_attribute_is_within_an_events_bounds() -> None:
    found = told(recon(tenant="t" * agent_reports.NAME_BYTES))

    assert all(len(value) <= 256 for value in found.attributes.values())
