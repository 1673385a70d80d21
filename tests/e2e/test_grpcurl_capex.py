"""The whole CapEx chain by the real grpcurl alone: feeds, a draft, two scans and an approval."""

import base64
import json
import subprocess
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tests.builders import AUTHOR, SECOND
from tests.e2e.conftest import Site
from tests.e2e.processes import environment, eventually

pytestmark = pytest.mark.slow

GRPCURL = str(Path(sys.executable).with_name("grpcurl"))
FEEDS = resources.files("core_console.demo") / "feeds"
PACKAGE = "runink.core.atlas.v1"
CAPEX = f"{PACKAGE}.CapexService"
PLAYBOOKS = f"{PACKAGE}.PlaybookService"


class Grpcurl:
    """grpcurl on one console; what is sent goes through standard input, for a feed is long."""

    def __init__(self, site: Site) -> None:
        self._console = site.console

    def ask(self, method: str, email: str, **request: object) -> Any:  # noqa: ANN401 -- JSON
        done = self._call(method, email, request)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refused(self, method: str, email: str, **request: object) -> str:
        done = self._call(method, email, request)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def _call(
        self, method: str, email: str, request: dict[str, object]
    ) -> subprocess.CompletedProcess[str]:
        header = f"authorization: Bearer {self._console.token(email)}"
        flags = ("-plaintext", "-max-time", "60", "-H", header, "-d", "@")
        return subprocess.run(
            (GRPCURL, *flags, self._console.grpc, method),
            env=environment(),
            input=json.dumps(request),
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    def run(self, run_id: str) -> Any:  # noqa: ANN401 -- the run's JSON
        return self.ask(f"{PLAYBOOKS}/GetRun", AUTHOR, id=run_id)["run"]

    def commit(self, **files: str) -> Any:  # noqa: ANN401 -- the summary's JSON
        """Stage, preview and commit a file per feed; return the summary, which is as seen."""
        stages = [self._staged(feed, file) for feed, file in files.items()]
        seen = self.ask(f"{CAPEX}/PreviewIngest", AUTHOR, stageIds=stages)["after"]
        scan = self.ask(f"{CAPEX}/CommitIngest", AUTHOR, stageIds=stages, note="month end")
        summary = self.ask(f"{CAPEX}/GetSummary", AUTHOR)["summary"]
        for told in (scan["scanRun"]["summary"], summary):
            assert told["findings"] == seen["findings"]
            assert told["byRule"] == seen["byRule"]
        return summary

    def _staged(self, feed: str, file: str) -> str:
        csv = FEEDS.joinpath(f"{file}.csv").read_bytes()
        staged = self.ask(
            f"{CAPEX}/StageFeed",
            AUTHOR,
            feed=f"FEED_{feed.upper()}",
            filename=f"{file}.csv",
            csv=base64.b64encode(csv).decode(),
        )
        assert "errors" not in staged
        assert staged["stage"]["rows"] == len(csv.splitlines()) - 1
        return str(staged["stageId"])


def test_the_capex_chain_is_told_by_grpcurl_alone(shipped: Site) -> None:
    grpcurl = Grpcurl(shipped)
    before = grpcurl.commit(
        capital_plan="capital_plan", capital_request="capital_request", spend="spend"
    )
    assert int(before["findings"]) > 0

    drafted = grpcurl.ask(f"{PLAYBOOKS}/DraftFromFindings", AUTHOR, repo="core", issue=2)
    draft = drafted["playbook"]
    assert draft["status"] == "PLAYBOOK_STATUS_DRAFT"
    facts = {"id": draft["id"], "revision": draft["revision"]}
    assert "four eyes: " in grpcurl.refused(f"{PLAYBOOKS}/ActivatePlaybook", AUTHOR, **facts)
    active = grpcurl.ask(f"{PLAYBOOKS}/ActivatePlaybook", SECOND, **facts)["playbook"]
    assert active["status"] == "PLAYBOOK_STATUS_ACTIVE"

    started = grpcurl.ask(f"{PLAYBOOKS}/RunNow", AUTHOR, playbookId=draft["id"])["run"]
    run_id = started["id"]

    def is_past_the_agents() -> Any:  # noqa: ANN401 -- the run's JSON
        run = grpcurl.run(run_id)
        waits = run["status"] == "RUN_STATUS_WAITING_APPROVAL"
        return run if waits or "finishedAt" in run else None

    waiting = eventually(is_past_the_agents)
    assert waiting["status"] == "RUN_STATUS_WAITING_APPROVAL", waiting.get("detail")
    first = waiting["steps"][0]["scan"]["findings"]

    after = grpcurl.commit(capital_plan="capital_plan_corrected")
    assert int(after["findings"]) < int(before["findings"])
    decide = {"runId": run_id, "stepId": "approve", "decision": "APPROVAL_DECISION_APPROVE"}
    assert "four eyes: " in grpcurl.refused(f"{PLAYBOOKS}/DecideApproval", AUTHOR, **decide)
    grpcurl.ask(f"{PLAYBOOKS}/DecideApproval", SECOND, **decide)

    def is_ended() -> Any:  # noqa: ANN401 -- the run's JSON
        run = grpcurl.run(run_id)
        return run if "finishedAt" in run else None

    done = eventually(is_ended)
    assert done["status"] == "RUN_STATUS_SUCCEEDED", done.get("detail")
    verify = next(each for each in done["steps"] if each["step"]["id"] == "verify")
    rules = verify["step"]["capexScan"]["ruleIds"]
    was, now = (sum(int(counts[rule]) for rule in rules) for counts in (first, after["byRule"]))
    assert now < was
    told = f"the findings of {', '.join(rules)} did not rise: {was} before, {now} now"
    assert verify["detail"] == told
    assert verify["scan"]["baseline"] == first
    assert verify["scan"]["findings"] == after["byRule"]
    assert shipped.github.comments(run_id) == 1
