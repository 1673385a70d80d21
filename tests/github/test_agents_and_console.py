"""The shipped agents against a real console: dispatched, run, reported, and what that starts."""

from collections.abc import Iterator

import httpx
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from tests.builders import AUTHOR
from tests.e2e.conftest import Site, _site
from tests.e2e.site import activated, detect, ended, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site of this module's own, with the agents repository as shipped."""
    yield from _site(tmp_path_factory.mktemp("agents"), tree=None, time=None)


def dispatched(site: Site, agent: str) -> pb.Run:
    """Return the run of a playbook that dispatches the agent, once it has ended."""
    run = site.author.start(activated(site.author, site.second, detect(agent=agent), name=agent))
    return until(site.author, run.id, ended)


def event_of(site: Site, agent: str, run: pb.Run) -> pb.Event:
    """Return the one event of that agent that the run caused."""
    events = site.author.ask(pb.ListEventsRequest(agent=agent)).events
    (caused,) = (each for each in events if each.caused_by_run_id == run.id)
    assert isinstance(caused, pb.Event)
    return caused


def latest(site: Site, path: str) -> dict[str, object]:
    """Return the latest report as an operator reads it."""
    answer = httpx.get(
        f"http://{site.console.http}{path}",
        headers={"Authorization": f"Bearer {site.console.token(AUTHOR)}"},
        timeout=60,
        trust_env=False,
    )
    assert answer.status_code == 200, answer.text
    found: dict[str, object] = answer.json()["report"]
    return found


@pytest.mark.parametrize(
    ("agent", "path", "event", "attributes", "detail"),
    [
        (
            "datagov",
            "/api/data-governance-findings",
            "findings.reported",
            {"fail_count": "1", "warn_count": "2"},
            "3 of 3 connections assessed: 1 fail, 2 warn, 0 unable to assess",
        ),
        (
            "recon",
            "/api/rules-recon/report",
            "recon.reported",
            {"drift": "0", "shadow": "0", "missing": "0", "tenant": "example"},
            "24 rules reconciled: 24 aligned, 0 drift, 0 shadow, 0 missing",
        ),
        (
            "judge",
            "/api/judgements",
            "judgements.reported",
            {"dissent": "1", "unable": "0"},
            "3 claims: 2 concur, 1 dissent, 0 unable to judge",
        ),
    ],
)
def test_a_dispatched_agent_reports_its_findings_and_then_its_step(
    site: Site, agent: str, path: str, event: str, attributes: dict[str, str], detail: str
) -> None:
    run = dispatched(site, agent)
    assert run.status == pb.RUN_STATUS_SUCCEEDED, run
    assert run.steps[0].detail == detail
    raised = event_of(site, agent, run)
    assert (raised.event, dict(raised.attributes)) == (event, attributes)
    assert raised.chain_depth == 1
    assert latest(site, path)["causedByRunId"] == run.id


@pytest.mark.parametrize(
    ("agent", "event", "verdict", "status"),
    [
        ("compliance", "citations.checked", "pass", pb.RUN_STATUS_SUCCEEDED),
        ("risk", "dependencies.audited", "unable", pb.RUN_STATUS_FAILED),
    ],
)
def test_an_agent_without_a_door_of_its_own_raises_its_event(
    site: Site, agent: str, event: str, verdict: str, status: int
) -> None:
    run = dispatched(site, agent)
    assert run.status == status, run
    raised = event_of(site, agent, run)
    assert (raised.event, raised.attributes["verdict"]) == (event, verdict)
    assert raised.external_id.startswith(f"{agent}-")
    assert raised.detail == run.steps[0].detail


def test_a_dry_curator_succeeds_and_raises_nothing(site: Site) -> None:
    run = dispatched(site, "curator")
    assert run.status == pb.RUN_STATUS_SUCCEEDED, run
    assert run.steps[0].detail.startswith("dry run: ")
    assert not site.author.ask(pb.ListEventsRequest(agent="curator")).events


def test_what_datagov_finds_starts_a_playbook_that_dispatches_the_judge(site: Site) -> None:
    found = pb.Condition(attribute="verdict", op=pb.CONDITION_OP_EQ, value="fail")
    trigger = pb.AgentEventTrigger(agent="datagov", event="findings.reported", conditions=[found])
    wanted = pb.Playbook(name="Judge what was found", steps=[detect(agent="judge")])
    wanted.triggers.add(id="on-a-fail", agent_event=trigger)
    draft = site.author.ask(pb.CreatePlaybookRequest(playbook=wanted)).playbook
    site.second.ask(pb.ActivatePlaybookRequest(id=draft.id, revision=draft.revision))

    first = dispatched(site, "datagov")
    assert first.status == pb.RUN_STATUS_SUCCEEDED, first
    (started,) = event_of(site, "datagov", first).started
    assert started.playbook_id == draft.id
    second = until(site.author, started.run_id, ended)
    assert second.status == pb.RUN_STATUS_SUCCEEDED, second
    assert (second.chain_depth, second.caused_by_run_id) == (1, first.id)
    assert event_of(site, "judge", second).chain_depth == 2
