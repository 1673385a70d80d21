"""compliance under its own interpreter: citations against the index, and its event."""

import pytest

from tests.github.conftest import Agents, Ended, briefly
from tests.github.taken import raised

INDEX = "agents/compliance/controls.json"
PAGE = "docs/page.md"


def check(agents: Agents, *controls: object, page: object = "see [CTL-1]") -> Ended:
    (agents.repository / "agents/compliance/handbook.md").unlink(missing_ok=True)
    agents.write(INDEX, {"controls": list(controls)})
    agents.write(PAGE, page)
    return agents.run("compliance")


def attributes(ended: Ended) -> dict[str, str]:
    return raised("compliance", ended).attributes


def test_every_shipped_citation_exists(agents: Agents) -> None:
    ended = agents.run("compliance", GITHUB_RUN_ID="77", GITHUB_RUN_ATTEMPT="2")
    assert ended.code == 0, ended.text
    event = raised("compliance", ended)
    assert (event.event, event.external_id) == ("citations.checked", "compliance-77-2")
    assert event.detail == ended.detail
    assert event.attributes == {
        "verdict": "pass",
        "controls": "3",
        "citations": "3",
        "pages": "2",
        "pages_unreadable": "0",
        "unknown": "0",
        "unknown_ids": "",
        "uncited": "0",
        "evidence_missing": "0",
    }


@pytest.mark.parametrize(
    ("page", "unknown"),
    [
        ("[CTL-1] [CTL-2]", "CTL-2"),
        ("[CTL-1](x) and [CTL-3], [CTL-02]", "CTL-02 CTL-3"),
        ("[CTL-1] CTL-2 [ctl-2] [CTL-2 ] [CTL-1234567] [CTL-]", ""),
    ],
)
def test_a_citation_of_no_control_fails_and_the_agent_does_not(
    agents: Agents, page: str, unknown: str
) -> None:
    ended = check(agents, {"id": "CTL-1"}, page=page)
    found = attributes(ended)
    assert ended.code == 0
    assert (found["verdict"], found["unknown_ids"]) == ("fail" if unknown else "pass", unknown)
    assert found["unknown"] == str(len(unknown.split()))


def test_a_control_that_nobody_cites_is_counted(agents: Agents) -> None:
    found = attributes(check(agents, {"id": "CTL-1"}, {"id": "CTL-2"}))
    assert (found["verdict"], found["uncited"]) == ("pass", "1")


@pytest.mark.parametrize("evidence", ["none.md", "../output", "/etc/passwd", "", 5, "agents", None])
def test_evidence_that_is_not_here_fails(agents: Agents, evidence: object) -> None:
    ended = check(agents, {"id": "CTL-1", "evidence": evidence})
    assert (ended.code, attributes(ended)["verdict"]) == (0, "fail")
    assert attributes(ended)["evidence_missing"] == "1"


@pytest.mark.parametrize("page", [b"[CTL-1] \xff", "x" * 1_048_577], ids=briefly)
def test_a_page_that_cannot_be_read_is_no_success(agents: Agents, page: object) -> None:
    agents.write("docs/good.md", "[CTL-1]")
    ended = check(agents, {"id": "CTL-1"}, page=page)
    found = attributes(ended)
    assert (ended.code, found["verdict"], found["pages_unreadable"]) == (1, "unable", "1")


@pytest.mark.parametrize(
    "controls",
    [
        [],
        [5],
        [{"id": "CTL-x"}],
        [{"id": "CTL-1\n"}],
        [{"id": "CTL-٣"}],
        [{"id": "CTL-1"}, {"id": "CTL-1"}],
        [{"title": "x"}],
        [{"id": f"CTL-{number}"} for number in range(2_001)],
    ],
)
def test_an_index_that_is_none_is_told_as_unable(agents: Agents, controls: list[object]) -> None:
    ended = check(agents, *controls)
    assert ended.code == 1
    assert attributes(ended) == {"verdict": "unable"}
    assert raised("compliance", ended).detail == ended.detail


def test_pages_without_a_citation_are_told_as_unable(agents: Agents) -> None:
    ended = check(agents, {"id": "CTL-1"}, page="nothing")
    assert (ended.code, attributes(ended)) == (1, {"verdict": "unable"})


def test_links_and_what_git_keeps_are_not_read(agents: Agents) -> None:
    (agents.repository.parent / "outside.md").write_text("[CTL-9]")
    (agents.repository / "link.md").symlink_to("../outside.md")
    (agents.repository / "circle").symlink_to(".")
    agents.write(".git/x.md", "[CTL-9]")
    agents.write("node_modules/x.md", "[CTL-9]")
    assert attributes(check(agents, {"id": "CTL-1"}))["unknown"] == "0"


def test_thousands_of_unknown_controls_are_counted_and_twenty_named(agents: Agents) -> None:
    page = " ".join(f"[CTL-{number:06}]" for number in range(70_000))
    found = attributes(check(agents, {"id": "CTL-1"}, page=page))
    assert found["unknown"] == "70000"
    assert len(found["unknown_ids"].split()) == 20
