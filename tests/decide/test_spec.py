"""A spec is stored only inside the contract's bounds; every fault carries its proto path."""

from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide import spec as specs
from core_console.decide.identity import Admission
from core_console.decide.outcome import Violation
from core_console.model.playbook import (
    AGENTS,
    AgentEventTrigger,
    CapexEventTrigger,
    CapexScan,
    Condition,
    ConditionOp,
    DispatchAgent,
    ManualTrigger,
    Notify,
    RequireApproval,
    ScheduleTrigger,
    Spec,
    Step,
    Trigger,
    TriggerSource,
)
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    STRANGER,
    a_spec,
    a_step,
    a_trigger,
    admission,
    approve,
    detect,
    notify,
    scan,
)

NOT_AN_ID = "is not 1 to 64 of A-Z a-z 0-9 . _ - (and not . or ..)"
NOT_AN_AGENT = "is not one of the six agents: datagov, compliance, risk, judge, recon, curator"
NOT_A_REPO = "is not a repository NAME (1 to 100 of A-Z a-z 0-9 . _ -): no owner, no URL"
CREDENTIAL = "holds what looks like a credential; remove it"
CONTROL = "holds a control character; remove it"
NOBODY = "leaves nobody able to decide: the only Atlas admin would also start the runs"

ANY_ADMIN = admission()


def faults(spec: Spec, lists: Admission = ANY_ADMIN) -> list[tuple[str, str]]:
    """Return every fault as (path below `playbook`, description)."""
    found = specs.violations(spec, admission=lists, now=NOW)
    assert all(each.field.startswith("playbook.") for each in found)
    return [(each.field.removeprefix("playbook."), each.description) for each in found]


def with_trigger(source: TriggerSource, cooldown_minutes: int = 60) -> Spec:
    return a_spec(triggers=(Trigger("t", source, cooldown_minutes),))


def with_conditions(*conditions: Condition) -> Spec:
    return with_trigger(CapexEventTrigger(conditions))


def test_a_plain_spec_has_no_fault() -> None:
    assert faults(a_spec()) == []


def test_every_kind_of_step_and_trigger_may_stand_in_one_spec() -> None:
    condition = Condition("fail_count", ConditionOp.GT, "0")
    spec = a_spec(
        detect(),
        scan(rule_ids=("CP-001",)),
        approve(approver=SECOND),
        notify(),
        scan("verify", compare_to_first_scan=True),
        triggers=(
            a_trigger(),
            Trigger("nightly", ScheduleTrigger("5 2 * * *"), 60),
            Trigger("findings", AgentEventTrigger("datagov", "findings.reported"), 5),
            Trigger("ingest", CapexEventTrigger((condition,)), 43_200),
        ),
        description="Line one\n\tline two",
    )
    assert faults(spec) == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": ""}, [("name", "is required")]),
        ({"name": "   "}, [("name", "is required")]),
        ({"name": "n"}, []),
        ({"name": "é" * 120}, []),
        ({"name": "n" * 121}, [("name", "has 121 characters; at most 120")]),
        ({"name": "a\nb"}, [("name", CONTROL)]),
        ({"name": "ghp_x"}, [("name", CREDENTIAL)]),
        ({"description": "é" * 2000}, []),
        ({"description": "d" * 2001}, [("description", "has 2,001 characters; at most 2,000")]),
        ({"description": "a\0"}, [("description", CONTROL)]),
        ({"description": "AKIA"}, [("description", CREDENTIAL)]),
    ],
)
def test_name_and_description_are_bounded(
    changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert faults(a_spec(**changes)) == expected


@pytest.mark.parametrize(("count", "fits"), [(0, False), (1, True), (10, True), (11, False)])
def test_a_playbook_has_one_to_ten_steps(count: int, *, fits: bool) -> None:
    spec = a_spec(steps=tuple(notify(f"n{number}") for number in range(count)))
    expected = [] if fits else [("steps", f"has {count} items; it takes 1 to 10")]
    assert faults(spec) == expected


@pytest.mark.parametrize(("count", "fits"), [(0, True), (4, True), (5, False)])
def test_a_playbook_has_at_most_four_triggers(count: int, *, fits: bool) -> None:
    spec = a_spec(triggers=tuple(a_trigger(f"t{number}") for number in range(count)))
    expected = [] if fits else [("triggers", f"has {count} items; it takes 0 to 4")]
    assert faults(spec) == expected


def test_ids_are_unique_each_in_its_own_list() -> None:
    spec = a_spec(notify("a"), notify("b"), notify("a"), triggers=(a_trigger("a"), a_trigger("a")))
    repeats = "repeats an earlier id; ids are unique"
    assert faults(spec) == [("steps[2].id", repeats), ("triggers[1].id", repeats)]


def test_ids_that_differ_in_case_differ() -> None:
    assert faults(a_spec(notify("a"), notify("A"))) == []


IDS = [
    ("a", []),
    ("A-z.0_9", []),
    ("...", []),
    ("a" * 64, []),
    ("a" * 65, [NOT_AN_ID]),
    ("", [NOT_AN_ID]),
    (".", [NOT_AN_ID]),
    ("..", [NOT_AN_ID]),
    ("a b", [NOT_AN_ID]),
    ("a/b", [NOT_AN_ID]),
    ("a\n", [NOT_AN_ID]),
    ("é", [NOT_AN_ID]),
    ("ghp_x", [CREDENTIAL]),
]


@pytest.mark.parametrize(("name", "expected"), IDS)
def test_an_id_is_short_and_plain(name: str, expected: list[str]) -> None:
    step_faults = faults(a_spec(notify(name)))
    assert step_faults == [("steps[0].id", each) for each in expected]
    trigger_faults = faults(a_spec(triggers=(a_trigger(name),)))
    assert trigger_faults == [("triggers[0].id", each) for each in expected]


@pytest.mark.parametrize(
    ("value", "shown"),
    [("PBR-1", "run PBR-1"), ("ghp_secret", "a run of that id"), ("a b", "a run of that id")],
)
def test_a_sentence_names_an_id_only_when_it_is_plain(value: str, shown: str) -> None:
    assert specs.named("run", value) == shown


STEPS: list[tuple[Step, list[tuple[str, str]]]] = [
    (a_step("s", Notify("core", 1), title="é" * 120), []),
    (
        a_step("s", Notify("core", 1), title="t" * 121),
        [("title", "has 121 characters; at most 120")],
    ),
    (a_step("s", Notify("core", 1), title="a\tb"), [("title", CONTROL)]),
    *((detect(agent=agent), []) for agent in AGENTS),
    (detect(agent="capex"), [("dispatch_agent.agent", NOT_AN_AGENT)]),
    (detect(agent="Datagov"), [("dispatch_agent.agent", NOT_AN_AGENT)]),
    (detect(agent=""), [("dispatch_agent.agent", NOT_AN_AGENT)]),
    (detect(minutes=5), []),
    (detect(minutes=240), []),
    (detect(minutes=4), [("dispatch_agent.timeout_minutes", "is 4; it takes 5 to 240")]),
    (detect(minutes=241), [("dispatch_agent.timeout_minutes", "is 241; it takes 5 to 240")]),
    (detect(minutes=0), [("dispatch_agent.timeout_minutes", "is 0; it takes 5 to 240")]),
    (detect(minutes=-5), [("dispatch_agent.timeout_minutes", "is -5; it takes 5 to 240")]),
    (
        a_step("s", DispatchAgent("x", 0)),
        [
            ("dispatch_agent.agent", NOT_AN_AGENT),
            ("dispatch_agent.timeout_minutes", "is 0; it takes 5 to 240"),
        ],
    ),
    (approve(hours=1), []),
    (approve(hours=168), []),
    (approve(hours=0), [("require_approval.timeout_hours", "is 0; it takes 1 to 168")]),
    (approve(hours=169), [("require_approval.timeout_hours", "is 169; it takes 1 to 168")]),
    (a_step("s", RequireApproval(72, prompt="Go?\nReally?" + "é" * 494)), []),
    (
        a_step("s", RequireApproval(72, prompt="é" * 500 + "e")),
        [("require_approval.prompt", "has 1,001 bytes; at most 1,000")],
    ),
    (
        a_step("s", RequireApproval(72, prompt="\u202e")),
        [("require_approval.prompt", "holds a bidi control character; remove it")],
    ),
    (approve(approver="Second@Example.com "), []),
    (approve(approver="x" * 242 + "@example.com"), []),
    (
        approve(approver="x" * 243 + "@example.com"),
        [
            ("require_approval.approver", "has 255 bytes; at most 254"),
            ("require_approval.approver", "is not an e-mail address in ASCII"),
        ],
    ),
    (
        approve(approver="second"),
        [("require_approval.approver", "is not an e-mail address in ASCII")],
    ),
    (approve(approver=" "), [("require_approval.approver", "is not an e-mail address in ASCII")]),
    (
        approve(approver="s\u00e9cond@example.com"),
        [("require_approval.approver", "is not an e-mail address in ASCII")],
    ),
    (approve(approver="ghp_x@example.com"), [("require_approval.approver", CREDENTIAL)]),
    (notify(repo="a"), []),
    (notify(repo="A-z.0_9" + "r" * 93), []),
    (notify(repo="..."), []),
    (notify(repo="r" * 101), [("notify.repo", NOT_A_REPO)]),
    (notify(repo=""), [("notify.repo", NOT_A_REPO)]),
    (notify(repo="."), [("notify.repo", NOT_A_REPO)]),
    (notify(repo=".."), [("notify.repo", NOT_A_REPO)]),
    (notify(repo="example/core"), [("notify.repo", NOT_A_REPO)]),
    (notify(repo="https://github.com/example/core"), [("notify.repo", NOT_A_REPO)]),
    (notify(repo="core\n"), [("notify.repo", NOT_A_REPO)]),
    (notify(repo="github_pat_x"), [("notify.repo", CREDENTIAL)]),
    (notify(issue=1), []),
    (notify(issue=2**31 - 1), []),
    (notify(issue=0), [("notify.issue", "is not an issue number above 0")]),
    (notify(issue=-1), [("notify.issue", "is not an issue number above 0")]),
    (notify(issue=2**31), [("notify.issue", "is not an issue number above 0")]),
    (scan(rule_ids=tuple(f"CP-{number:03}" for number in range(24))), []),
    (
        scan(rule_ids=tuple(f"CP-{number:03}" for number in range(25))),
        [("capex_scan.rule_ids", "has 25 items; it takes 0 to 24")],
    ),
    (
        scan(rule_ids=("CP-001", "cp-001", "CP-1", "CP-001\n")),
        [
            (f"capex_scan.rule_ids[{index}]", "is not a rule id such as CP-001")
            for index in (1, 2, 3)
        ],
    ),
    (scan(rule_ids=("CP-001", "CP-001")), [("capex_scan.rule_ids", "names a rule twice")]),
]


@pytest.mark.parametrize(("step", "expected"), STEPS)
def test_every_field_of_a_step_is_bounded(step: Step, expected: list[tuple[str, str]]) -> None:
    assert faults(a_spec(step)) == [(f"steps[0].{field}", fault) for field, fault in expected]


def test_a_path_counts_from_zero() -> None:
    assert faults(a_spec(notify("a"), notify("b"), detect(minutes=4))) == [
        ("steps[2].dispatch_agent.timeout_minutes", "is 4; it takes 5 to 240")
    ]


@pytest.mark.parametrize(
    ("steps", "fits"),
    [
        ((scan("a"), scan("b", compare_to_first_scan=True)), True),
        ((scan("a"), notify(), scan("b", compare_to_first_scan=True)), True),
        ((scan("b", compare_to_first_scan=True),), False),
        ((notify(), scan("b", compare_to_first_scan=True)), False),
        ((scan("b", compare_to_first_scan=True), scan("a")), False),
    ],
)
def test_a_comparing_scan_needs_an_earlier_scan(steps: tuple[Step, ...], *, fits: bool) -> None:
    index = next(
        number
        for number, step in enumerate(steps)
        if isinstance(step.action, CapexScan) and step.action.compare_to_first_scan
    )
    fault = "compares with the run's first scan, and no earlier step is a capex_scan"
    path = f"steps[{index}].capex_scan.compare_to_first_scan"
    assert faults(a_spec(*steps)) == ([] if fits else [(path, fault)])


@pytest.mark.parametrize(
    ("lists", "approver", "fits"),
    [
        (admission(), "", True),
        (admission(), AUTHOR, True),
        (admission(admins={AUTHOR, SECOND}), "", True),
        (admission(admins={AUTHOR, SECOND}), AUTHOR, True),
        (admission(admins={AUTHOR}), SECOND, True),
        (admission(admins={AUTHOR}), "", False),
        (admission(admins={AUTHOR}), AUTHOR, False),
        (admission(admins={AUTHOR}), " AUTHOR@example.COM", False),
        (admission(admins={AUTHOR}), "\uff21uthor@example.com", False),
        (admission(admins=()), SECOND, False),
        (Admission(frozenset({AUTHOR, SECOND}), None, frozenset({AUTHOR})), SECOND, True),
        (Admission(frozenset({AUTHOR}), None, frozenset({AUTHOR})), SECOND, False),
        (Admission(frozenset({AUTHOR}), None, frozenset({AUTHOR, SECOND})), "", False),
        (Admission(None, "example.com", frozenset({AUTHOR})), SECOND, True),
        (Admission(None, "example.com", frozenset({AUTHOR})), "x@elsewhere.example", False),
    ],
)
def test_a_naming_that_leaves_nobody_to_decide_is_refused(
    lists: Admission, approver: str, *, fits: bool
) -> None:
    expected = [] if fits else [("steps[0].require_approval.approver", NOBODY)]
    assert faults(a_spec(approve(approver=approver)), lists) == expected


@pytest.mark.parametrize(
    ("source", "minutes", "expected"),
    [
        (ManualTrigger(), 0, ""),
        (ManualTrigger(), 60, "is refused on a manual trigger: RunNow ignores cooldowns"),
        (CapexEventTrigger(), 5, ""),
        (CapexEventTrigger(), 43_200, ""),
        (CapexEventTrigger(), 4, "is 4; it takes 5 to 43200"),
        (CapexEventTrigger(), 43_201, "is 43201; it takes 5 to 43200"),
        (ScheduleTrigger("0 * * * *"), 0, "is 0; it takes 5 to 43200"),
        (AgentEventTrigger("risk", "x"), -1, "is -1; it takes 5 to 43200"),
    ],
)
def test_a_cooldown_is_bounded_and_never_manual(
    source: TriggerSource, minutes: int, expected: str
) -> None:
    wanted = [("triggers[0].cooldown_minutes", expected)] if expected else []
    assert faults(with_trigger(source, minutes)) == wanted


def test_a_bad_cron_is_told_at_its_field() -> None:
    assert faults(with_trigger(ScheduleTrigger("* * * * *"))) == [
        (
            "triggers[0].schedule.cron",
            "the minute field must be ONE number 0-59 — a schedule fires at most once an hour",
        )
    ]


NOT_AN_EVENT = "is not 1 to 64 of a-z 0-9 . _ -"


@pytest.mark.parametrize(
    ("agent", "event", "expected"),
    [
        ("judge", "judgements.reported", []),
        ("judge", "a" * 64, []),
        ("judge", "a" * 65, [("event", NOT_AN_EVENT)]),
        ("judge", "", [("event", NOT_AN_EVENT)]),
        ("judge", "A", [("event", NOT_AN_EVENT)]),
        ("judge", "a b", [("event", NOT_AN_EVENT)]),
        ("judge", "ghp_x", [("event", CREDENTIAL)]),
        ("schedule", "slot", [("agent", NOT_AN_AGENT)]),
        ("", "", [("agent", NOT_AN_AGENT), ("event", NOT_AN_EVENT)]),
    ],
)
def test_an_agent_event_names_one_of_the_six_and_an_event(
    agent: str, event: str, expected: list[tuple[str, str]]
) -> None:
    found = faults(with_trigger(AgentEventTrigger(agent, event)))
    assert found == [(f"triggers[0].agent_event.{field}", fault) for field, fault in expected]


@pytest.mark.parametrize(
    ("attribute", "value", "expected"),
    [
        ("a", "", []),
        ("é" * 128, "é" * 128, []),
        ("a" * 257, "", [("attribute", "has 257 bytes; at most 256")]),
        ("", "", [("attribute", "is required")]),
        ("a\n", "", [("attribute", CONTROL)]),
        ("a", "v" * 257, [("value", "has 257 bytes; at most 256")]),
        ("a", "xoxb-1", [("value", CREDENTIAL)]),
    ],
)
def test_a_condition_is_bounded_in_bytes(
    attribute: str, value: str, expected: list[tuple[str, str]]
) -> None:
    found = faults(with_conditions(Condition(attribute, ConditionOp.EQ, value)))
    path = "triggers[0].capex_event.conditions[0]"
    assert found == [(f"{path}.{field}", fault) for field, fault in expected]


@pytest.mark.parametrize(("count", "fits"), [(8, True), (9, False)])
def test_a_trigger_has_at_most_eight_conditions(count: int, *, fits: bool) -> None:
    conditions = (Condition("a", ConditionOp.NEQ, ""),) * count
    for source, path in (
        (CapexEventTrigger(conditions), "capex_event"),
        (AgentEventTrigger("risk", "x", conditions), "agent_event"),
    ):
        fault = (f"triggers[0].{path}.conditions", "has 9 items; it takes 0 to 8")
        assert faults(with_trigger(source)) == ([] if fits else [fault])


def test_more_items_than_may_be_are_not_looked_at() -> None:
    """An attacker's list of thousands costs one sentence, not thousands."""
    bad = Condition("", ConditionOp.EQ, "")
    spec = a_spec(
        steps=(
            *(notify(f"n{number}") for number in range(10)),
            *(notify("", repo="") for _ in "ab"),
        ),
        triggers=(*(a_trigger(f"t{number}") for number in range(4)), a_trigger("")),
    )
    assert faults(spec) == [
        ("steps", "has 12 items; it takes 1 to 10"),
        ("triggers", "has 5 items; it takes 0 to 4"),
    ]
    assert len(faults(with_conditions(*[bad] * 1000))) == 1 + 8
    assert len(faults(a_spec(scan(rule_ids=("x",) * 1000)))) == 1 + 24 + 1


def test_every_fault_is_told_at_once() -> None:
    spec = a_spec(detect("", minutes=1), triggers=(a_trigger(""),), name="")
    assert [field for field, _ in faults(spec)] == [
        "name",
        "steps[0].id",
        "steps[0].dispatch_agent.timeout_minutes",
        "triggers[0].id",
    ]


def test_a_secret_is_never_in_a_violation() -> None:
    secret = "ghp_0123456789"
    step = Step(secret, notify().kind, Notify(secret, 1), secret)
    dispatch = replace(detect(agent=secret), title=secret)
    spec = a_spec(
        step,
        dispatch,
        scan(rule_ids=(secret,)),
        a_step("a", RequireApproval(1, secret, secret)),
        name=secret,
        description=secret,
        triggers=(
            Trigger(secret, ScheduleTrigger(f"5 {secret} * * *"), 60),
            Trigger(
                "b",
                AgentEventTrigger(secret, secret, (Condition(secret, ConditionOp.EQ, secret),)),
                60,
            ),
        ),
    )
    found = specs.violations(spec, admission=admission(admins={STRANGER}), now=NOW)
    assert {each.field for each in found} >= {
        "playbook.name",
        "playbook.description",
        "playbook.steps[0].id",
        "playbook.steps[0].title",
        "playbook.steps[0].notify.repo",
        "playbook.steps[1].dispatch_agent.agent",
        "playbook.steps[2].capex_scan.rule_ids[0]",
        "playbook.steps[3].require_approval.prompt",
        "playbook.steps[3].require_approval.approver",
        "playbook.triggers[0].id",
        "playbook.triggers[0].schedule.cron",
        "playbook.triggers[1].agent_event.agent",
        "playbook.triggers[1].agent_event.event",
        "playbook.triggers[1].agent_event.conditions[0].attribute",
        "playbook.triggers[1].agent_event.conditions[0].value",
    }
    assert secret not in repr(found)


def test_the_agents_and_event_of_a_door_are_checked_by_the_same_rules() -> None:
    assert list(specs.agent_violations("agent", "risk")) == []
    assert list(specs.agent_violations("agent", "x")) == [Violation("agent", NOT_AN_AGENT)]
    assert list(specs.event_violations("event", "a.b")) == []
    assert list(specs.event_violations("event", "a b")) == [Violation("event", NOT_AN_EVENT)]
