"""DraftFromFindings: the same findings give the same draft, which people then review."""

from typing import Any

import grpc
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.ports import Fault
from tests.builders import AUTHOR, SECOND
from tests.rpc.feeds import committed, faulty_plan
from tests.rpc.site import Site, refused


def wanted(**changes: Any) -> pb.DraftFromFindingsRequest:  # noqa: ANN401 -- any field
    fields: dict[str, Any] = {"repo": "core", "issue": 7, **changes}
    return pb.DraftFromFindingsRequest(**fields)


async def test_the_worst_rules_become_a_draft_of_four_steps(console: Site) -> None:
    await committed(console, faulty_plan(2).replace(b"Tools,Capital", b"Tooling,Capex"))
    draft = (await console.author.DraftFromFindings(wanted(approver=SECOND))).playbook
    assert (draft.status, draft.created_by) == (pb.PLAYBOOK_STATUS_DRAFT, AUTHOR)
    rules = draft.name.removeprefix("CapEx: ").split(", ")
    assert rules == ["CP-001", "CP-004", "CP-005"]
    assert [(each.id, each.kind) for each in draft.steps] == [
        ("scan", pb.STEP_KIND_DETECT),
        ("approve", pb.STEP_KIND_VALIDATE),
        ("notify", pb.STEP_KIND_NOTIFY),
        ("verify", pb.STEP_KIND_VERIFY),
    ]
    scan, approve, notify, verify = draft.steps
    assert not scan.capex_scan.compare_to_first_scan
    assert approve.require_approval.approver == SECOND
    assert (notify.notify.repo, notify.notify.issue) == ("core", 7)
    assert verify.capex_scan.compare_to_first_scan
    assert list(verify.capex_scan.rule_ids) == rules
    record = (await console.records())[-1]
    assert (record.actor, record.action, record.target) == (
        AUTHOR,
        "atlas.playbooks.draft",
        draft.id,
    )


async def test_the_same_findings_give_the_same_draft(console: Site) -> None:
    await committed(console, faulty_plan(2))
    one, other = [(await console.author.DraftFromFindings(wanted())).playbook for _ in range(2)]
    assert (one.spec_digest, list(one.steps)) == (other.spec_digest, list(other.steps))
    assert one.id != other.id


@pytest.mark.parametrize("most", [1, 2, 10])
async def test_at_most_so_many_rules_are_taken(console: Site, most: int) -> None:
    await committed(console, faulty_plan(2))
    draft = (await console.author.DraftFromFindings(wanted(max_rules=most))).playbook
    assert 1 <= len(draft.steps[3].capex_scan.rule_ids) <= most


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"max_rules": 0}, "max_rules"),
        ({"max_rules": 11}, "max_rules"),
        ({"max_rules": -1}, "max_rules"),
        ({"repo": ""}, "repo"),
        ({"repo": "org/core"}, "repo"),
        ({"repo": ".."}, "repo"),
        ({"issue": 0}, "issue"),
        ({"issue": -1}, "issue"),
        ({"approver": "nobody"}, "approver"),
    ],
)
async def test_every_bad_field_of_the_request_is_named_as_the_request_names_it(
    console: Site, changes: dict[str, Any], field: str
) -> None:
    await committed(console, faulty_plan())
    answer = await refused(console.author.DraftFromFindings(wanted(**changes)))
    assert (answer.code, list(answer.fields)) == (grpc.StatusCode.INVALID_ARGUMENT, [field])
    assert answer.sentence.startswith(f"{field}: ")
    assert not (await console.author.ListPlaybooks(pb.ListPlaybooksRequest())).playbooks


@pytest.mark.parametrize("loaded", [False, True])
async def test_without_a_finding_there_is_nothing_to_draft(console: Site, *, loaded: bool) -> None:
    if loaded:
        await committed(console)
    answer = await refused(console.author.DraftFromFindings(wanted()))
    assert answer.code is grpc.StatusCode.FAILED_PRECONDITION
    why = "no scored rule has a finding" if loaded else "no feed is loaded"
    assert answer.sentence == f"there is nothing to draft: {why}"
    record = (await console.records())[-1]
    assert (record.action, record.outcome) == ("atlas.playbooks.draft", "failure")


async def test_findings_that_cannot_be_looked_at_draft_nothing(console: Site) -> None:
    async def away() -> str:
        raise Fault("the disk is away")

    console.engines.feeds_store.version = away  # type: ignore[method-assign]  # from now on
    answer = await refused(console.author.DraftFromFindings(wanted()))
    assert answer.code is grpc.StatusCode.UNAVAILABLE


async def test_another_refusal_of_the_draft_is_told_as_it_is(console: Site) -> None:
    await committed(console, faulty_plan())
    for _ in range(100):
        await console.author.DraftFromFindings(wanted())
    answer = await refused(console.author.DraftFromFindings(wanted()))
    assert answer.code is grpc.StatusCode.RESOURCE_EXHAUSTED
