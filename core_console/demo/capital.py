"""The demo's second part: three feeds, a draft from their findings, and two scans that compare.

Owns that part of the story: the playbook succeeds when the plan was corrected between its two
scans, and fails when it got worse.
"""

from pathlib import Path
from typing import Any

from core_console.demo.stage import AUTHOR, SECOND, Stage, at, ended, must

FEEDS = Path(__file__).with_name("feeds")


def tell(stage: Stage) -> None:
    """Tell this part; raise DemoError at the first step that does not happen."""
    _commit(stage, "capital_plan", "capital_request", "spend")
    draft = _draft(stage)
    stage.activate(draft)
    better = _scanned(stage, draft["id"], "capital_plan_corrected")
    must(better["status"] == "RUN_STATUS_SUCCEEDED", f"the run is {better['status']}")
    stage.say(f"{better['id']} is SUCCEEDED: {better['steps'][-1].get('detail', '')}")
    worse = _scanned(stage, draft["id"], "capital_plan_worse")
    must(worse["status"] == "RUN_STATUS_FAILED", f"the run is {worse['status']}")
    stage.say(f"{worse['id']} is FAILED: {worse['steps'][-1].get('detail', '')}")


def _commit(stage: Stage, *files: str) -> None:
    """Stage files, look at what they would change, and commit them."""
    ids = []
    for file in files:
        feed = next(name for name in ("capital_plan", "capital_request", "spend") if name in file)
        path = FEEDS / f"{file}.csv"
        staged = stage.ask(AUTHOR, "capex", "stage", feed, str(path))
        must(bool(staged.get("stageId")), f"{file} was not staged: {staged}")
        ids.append(staged["stageId"])
    after = stage.ask(AUTHOR, "capex", "preview", *ids)["after"]
    stage.ask(AUTHOR, "capex", "commit", *ids, "--note", "the demo")
    summary = stage.ask(AUTHOR, "capex", "summary")["summary"]
    must(summary["findings"] == after["findings"], "the commit is not what the preview showed")
    stage.say(f"{AUTHOR} committed {', '.join(files)}: {summary['findings']} findings")


def _draft(stage: Stage) -> Any:  # noqa: ANN401 -- the playbook's JSON
    draft = stage.ask(AUTHOR, "playbook", "draft", "--repo", "core", "--issue", "2")["playbook"]
    must(draft["status"] == "PLAYBOOK_STATUS_DRAFT", f"the draft is {draft['status']}")
    stage.say(f"{draft['id']} was drafted from the findings, without a model: {draft['name']}")
    return draft


def _scanned(stage: Stage, playbook_id: str, correction: str) -> Any:  # noqa: ANN401 -- the run's JSON
    """Run the playbook, commit another plan between its two scans, and let it go on."""
    run_id = stage.started(playbook_id)
    waiting = stage.run_when(run_id, at("WAITING_APPROVAL"), "the first scan")
    must(not ended(waiting), f"the run ended: {waiting.get('detail')}")
    counts = waiting["steps"][0]["scan"]["findings"]
    stage.say(f"its first scan counted {sum(map(int, counts.values()))} scored findings")
    _commit(stage, correction)
    stage.ask(SECOND, "approval", "decide", run_id, "approve", "--approve", "--note", "go on")
    return stage.run_when(run_id, ended, "the end")
