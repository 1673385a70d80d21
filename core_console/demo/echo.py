"""The demo's third part: an agent's report starts a playbook, and its echo starts nothing.

Owns that part of the story. The playbook waits for datagov's findings and for judge's judgements,
and dispatches judge: without the loop guard its own judge would start it again.
"""

from pathlib import Path
from typing import Any

from core_console.demo.stage import Stage, ended, eventually, must

PLAYBOOK = Path(__file__).with_name("echo.yaml")
DETECT = Path(__file__).with_name("detect.yaml")


def tell(stage: Stage) -> None:
    """Tell this part; raise DemoError at the first step that does not happen."""
    review = stage.activated(PLAYBOOK)
    stage.started(stage.activated(DETECT))
    started = eventually(lambda: _started(stage, review), "a run that datagov's report starts")
    stage.say(
        f"datagov reported findings: event {started['id']} started {started['started'][0]['runId']}"
    )
    run = stage.run_when(started["started"][0]["runId"], ended, "the end")
    must(
        run["status"] == "RUN_STATUS_SUCCEEDED", f"the run is {run['status']}: {run.get('detail')}"
    )
    must(run.get("chainDepth") == 1, f"its chain depth is {run.get('chainDepth')}")
    stage.say(f"{run['id']} dispatched judge at chain depth 1, and is SUCCEEDED")
    echo = eventually(lambda: _skipped(stage, review), "the echo that the guard stops")
    stage.say(f"judge's own report matched the playbook too: {echo}")


def _started(stage: Stage, playbook_id: str) -> Any:  # noqa: ANN401 -- the event's JSON
    for event in stage.events():
        if any(each["playbookId"] == playbook_id for each in event.get("started", [])):
            return event
    return None


def _skipped(stage: Stage, playbook_id: str) -> str | None:
    for event in stage.events():
        for skip in event.get("skipped", []):
            if skip["playbookId"] == playbook_id and event["agent"] == "judge":
                return str(skip["reason"])
    return None
