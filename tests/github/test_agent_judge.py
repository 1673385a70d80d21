"""The judge under its own interpreter: the gates, one after the other."""

from datetime import date, timedelta
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from types import ModuleType
from typing import Any

import pytest

from core_console.clock import SystemClock
from tests.github.conftest import SCRIPTS, Agents, Ended, briefly
from tests.github.taken import told

EVIDENCE = "evidence/review.json"
CLAIM: dict[str, Any] = {
    "id": "reviewed",
    "claim": "The plan was reviewed.",
    "evidence": EVIDENCE,
    "subject": "the plan",
}
FACTS: dict[str, Any] = {"subject": "the plan", "as_of": "2026-11-30", "done": 2, "all": 3}
RATIO = {"value": "0.67", "of": "done", "to": "all"}


def judge(agents: Agents, *claims: object, evidence: object = FACTS) -> Ended:
    agents.write("agents/judge/claims.json", {"claims": list(claims)})
    if evidence is not None:
        agents.write(EVIDENCE, evidence)
    return agents.run("judge")


def outcome(ended: Ended) -> tuple[str, str]:
    told("judge", ended)
    (only,) = ended.json()["judgements"]
    return only["outcome"], only["reason"]


def test_the_shipped_claims_are_judged(agents: Agents) -> None:
    ended = agents.run("judge")
    assert ended.code == 0, ended.text
    assert ended.detail == "3 claims: 2 concur, 1 dissent, 0 unable to judge"
    said = told("judge", ended)
    assert (said.event, said.attributes) == (
        "judgements.reported",
        {"dissent": "1", "unable": "0"},
    )


@pytest.mark.parametrize(
    ("change", "wanted", "says"),
    [
        ({}, "concur", ""),
        ({"subject": "another plan"}, "dissent", "not on its subject"),
        ({"ratio": RATIO}, "concur", ""),
        ({"ratio": RATIO | {"value": "0.667"}}, "concur", ""),
        ({"ratio": RATIO | {"value": "0.66"}}, "dissent", "the ratio is 0.67, not 0.66"),
        ({"ratio": RATIO | {"value": "1"}}, "concur", ""),
        ({"ratio": RATIO | {"of": "none"}}, "unable-to-judge", "two counts"),
        ({"ratio": RATIO | {"to": "as_of"}}, "unable-to-judge", "two counts"),
        ({"ratio": RATIO | {"value": "2/3"}}, "unable-to-judge", "no decimal"),
        ({"ratio": RATIO | {"value": "٣"}}, "unable-to-judge", "no decimal"),
        ({"ratio": RATIO | {"value": 0.67}}, "unable-to-judge", "texts"),
        ({"ratio": {"value": "1"}}, "unable-to-judge", "of and to"),
        ({"ratio": None}, "unable-to-judge", "of and to"),
        ({"evidence": "none.json"}, "unable-to-judge", "no file of this repository"),
        ({"evidence": "../output"}, "unable-to-judge", "no file of this repository"),
        ({"evidence": "/etc/passwd"}, "unable-to-judge", "no file of this repository"),
        ({"evidence": "agents"}, "unable-to-judge", "no file of this repository"),
        ({"evidence": "a\u0000b"}, "unable-to-judge", "no file of this repository"),
        ({"evidence": "x" * 5_000}, "unable-to-judge", "no file of this repository"),
        ({"evidence": "\ud800"}, "unable-to-judge", "no file of this repository"),
        ({"evidence": None}, "unable-to-judge", "no file of this repository"),
        ({"evidence": "agents/judge/claims.json"}, "unable-to-judge", "no evidence of itself"),
        ({"subject": ""}, "unable-to-judge", "no id or no subject"),
        ({"max_age_days": "90"}, "unable-to-judge", "no whole number"),
        ({"max_age_days": True}, "unable-to-judge", "no whole number"),
        ({"weight": 3}, "unable-to-judge", "other fields"),
    ],
)
def test_a_claim_ends_at_the_gate_that_it_does_not_pass(
    agents: Agents, change: dict[str, object], wanted: str, says: str
) -> None:
    ended = judge(agents, CLAIM | change)
    found, reason = outcome(ended)
    assert found == wanted
    assert says in reason
    assert bool(says) == bool(reason)
    assert ended.code == int(wanted == "unable-to-judge"), "unable is a verdict, not a success"


@pytest.mark.parametrize(
    ("evidence", "wanted"),
    [
        (b"the plan \xff", "unable-to-judge"),
        ("the plan" + "x" * 1_048_576, "unable-to-judge"),
        ("the plan" + "x" * (1_048_576 - 8), "concur"),
        ("", "dissent"),
        ("[" * 100_000 + "the plan", "concur"),
    ],
    ids=briefly,
)
def test_evidence_must_be_readable(agents: Agents, evidence: object, wanted: str) -> None:
    assert outcome(judge(agents, CLAIM, evidence=evidence))[0] == wanted


@pytest.mark.parametrize(
    ("facts", "wanted"),
    [
        ({"done": 0}, "dissent"),
        ({"all": 0}, "unable-to-judge"),
        ({"done": True}, "unable-to-judge"),
        ({"done": -2}, "unable-to-judge"),
        ({"done": 2.0}, "unable-to-judge"),
        ({"done": 10**16}, "unable-to-judge"),
        ({"done": 10**15, "all": 1}, "dissent"),
    ],
)
def test_the_ratio_is_computed_from_whole_counts_alone(
    agents: Agents, facts: dict[str, object], wanted: str
) -> None:
    assert outcome(judge(agents, CLAIM | {"ratio": RATIO}, evidence=FACTS | facts))[0] == wanted


def test_of_two_equal_keys_in_evidence_neither_is_believed(agents: Agents) -> None:
    evidence = '{"subject": "the plan", "done": 1, "all": 3, "done": 2}'
    assert outcome(judge(agents, CLAIM | {"ratio": RATIO}, evidence=evidence)) == (
        "unable-to-judge",
        "its evidence does not hold the two counts of the ratio",
    )


def test_a_link_out_of_the_repository_is_no_evidence(agents: Agents) -> None:
    (agents.repository.parent / "outside").write_text("the plan")
    (agents.repository / "link").symlink_to("../outside")
    (agents.repository / "circle").symlink_to("circle")
    for name in ("link", "circle"):
        assert outcome(judge(agents, CLAIM | {"evidence": name}))[0] == "unable-to-judge"


@pytest.mark.parametrize(
    ("days_ago", "wanted"), [(80, "concur"), (0, "concur"), (100, "dissent"), (-3, "dissent")]
)
def test_evidence_must_be_fresh_by_the_runners_own_day(
    agents: Agents, days_ago: int, wanted: str
) -> None:
    as_of = (SystemClock().now().date() - timedelta(days=days_ago)).isoformat()
    ended = judge(agents, CLAIM | {"max_age_days": 90}, evidence=FACTS | {"as_of": as_of})
    assert outcome(ended)[0] == wanted


@pytest.fixture(scope="module")
def judges() -> ModuleType:
    """The command as a module, to judge on a day of the test's own."""
    loader = SourceFileLoader("the_judge", str(SCRIPTS.parent / "agents" / "judge" / "run"))
    spec = spec_from_loader("the_judge", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("as_of", "wanted"),
    [
        ("2026-12-01", "concur"),
        ("2026-12-02", "dissent"),
        ("2026-09-01", "concur"),
        ("2026-08-31", "dissent"),
        ("2026-02-30", "unable-to-judge"),
        ("20261130", "unable-to-judge"),
        ("2026-W48-1", "unable-to-judge"),
        (5, "unable-to-judge"),
        (None, "unable-to-judge"),
    ],
)
def test_90_days_are_fresh_and_91_are_not(judges: ModuleType, as_of: object, wanted: str) -> None:
    found, _ = judges.fresh({"max_age_days": 90}, {"as_of": as_of}, date(2026, 11, 30))
    assert found == wanted


def test_an_id_that_is_used_again_names_no_claim(agents: Agents) -> None:
    ended = judge(agents, CLAIM, CLAIM, CLAIM | {"id": "other"}, 5, CLAIM | {"id": "ghp_x"})
    assert ended.code == 1
    assert [(each["id"], each["outcome"]) for each in ended.json()["judgements"]] == [
        ("claim 1", "unable-to-judge"),
        ("claim 2", "unable-to-judge"),
        ("other", "concur"),
        ("claim 4", "unable-to-judge"),
        ("claim 5", "concur"),
    ]
    told("judge", ended)


def test_2000_claims_are_one_report_and_one_more_is_none(agents: Agents) -> None:
    claims = [CLAIM | {"id": f"{'é' * 60}{number:04}"} for number in range(2_001)]
    ended = judge(agents, *claims[:2_000])
    assert ended.code == 0
    assert told("judge", ended).items == 2_000
    ended = judge(agents, *claims)
    assert (ended.code, ended.report) == (1, None)
