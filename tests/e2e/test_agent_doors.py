"""What agents tell a real console: events, reports, and the rule book that one of them is given."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from runink.core.atlas.v1 import playbook_pb2 as pb

from tests.builders import AUTHOR
from tests.e2e.conftest import Site, _site
from tests.e2e.site import Caller, activated, approval, detect, ended, silent_tree, until

pytestmark = pytest.mark.slow

FINDINGS = "/api/data-governance-findings"
EVENTS = "/api/playbook-events"
INPUTS = "/api/rules-recon/inputs"
REPORT: dict[str, Any] = {
    "agent": "datagov",
    "connectionsAssessed": 1,
    "findings": [
        {"control": "owner", "verdict": "fail", "domain": "sales", "connection": "warehouse"}
    ],
}


@pytest.fixture(scope="module")
def mine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Give a site of this module's own, which may kill its console."""
    folder = tmp_path_factory.mktemp("mine")
    yield from _site(folder, tree=silent_tree(folder / "tree"), time=None)


def call(site: Site, path: str, body: object = None, *, token: str = "") -> httpx.Response:
    """POST as a job of the App, or GET when there is no body."""
    return httpx.request(
        "GET" if body is None else "POST",
        f"http://{site.console.http}{path}",
        json=body,
        headers={"Authorization": f"Bearer {token or site.github.token()}"},
        timeout=60,
        trust_env=False,
    )


def events(caller: Caller) -> list[pb.Event]:
    return list(caller.ask(pb.ListEventsRequest(agent="datagov")).events)


def waits_for_findings(site: Site) -> str:
    """Return the id of an ACTIVE playbook that datagov's findings start."""
    playbook = pb.Playbook(name="On findings", steps=[approval()])
    condition = pb.Condition(attribute="control", op=pb.CONDITION_OP_EQ, value="owner")
    event = pb.AgentEventTrigger(agent="datagov", event="findings.reported", conditions=[condition])
    playbook.triggers.add(id="on-findings", agent_event=event)
    draft = site.author.ask(pb.CreatePlaybookRequest(playbook=playbook)).playbook
    site.second.ask(pb.ActivatePlaybookRequest(id=draft.id, revision=draft.revision))
    return str(draft.id)


def test_a_report_starts_a_playbook_once_and_outlives_kill_minus_nine(mine: Site) -> None:
    playbook_id = waits_for_findings(mine)
    assert call(mine, FINDINGS, REPORT).json() == {"accepted": True}
    (event,) = events(mine.author)
    assert [each.playbook_id for each in event.started] == [playbook_id]

    mine.console.kill()
    mine.console.start()
    assert call(mine, FINDINGS, REPORT).json() == {"accepted": True, "duplicate": True}
    author = mine.console.caller(AUTHOR)
    assert [each.id for each in events(author)] == [event.id]
    shown = call(mine, FINDINGS, token=mine.console.token(AUTHOR))
    assert (shown.status_code, shown.json()["report"]) == (200, REPORT)

    run_id = event.started[0].run_id
    author.ask(pb.CancelRunRequest(run_id=run_id, note="it was a test"))
    records = mine.console.records()
    assert [each["document"] for each in records if each["action"] == "atlas.reports.datagov"] == [
        "atlas-reports",
        "",
    ], "one by the swap that stored it, one by the door for the report that repeats"


def test_an_agents_own_event_is_kept_and_known_again(mine: Site) -> None:
    body = {"agent": "risk", "event": "advisories.found", "eventId": "nightly-1"}
    first = call(mine, EVENTS, body)
    again = call(mine, EVENTS, body)

    assert first.json() == {"eventId": first.json()["eventId"], "started": [], "skipped": []}
    assert again.json() == first.json() | {"duplicate": True}
    assert call(mine, EVENTS, body, token="ghs_" + "x" * 36).status_code == 401


def test_recon_is_given_the_rule_book_and_its_step_succeeds(shipped: Site) -> None:
    run = shipped.author.start(activated(shipped.author, shipped.second, detect(agent="recon")))
    done = until(shipped.author, run.id, ended)

    assert done.status == pb.RUN_STATUS_SUCCEEDED, done
    assert done.steps[0].detail.startswith("24 rules reconciled")
    assert len(call(shipped, INPUTS).json()["rules"]) == 24
