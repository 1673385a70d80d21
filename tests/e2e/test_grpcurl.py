"""The real grpcurl, which knows nothing of us but the address: reflection, health, the story."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builders import AUTHOR, SECOND, STRANGER
from tests.e2e.conftest import Site
from tests.e2e.processes import environment, eventually
from tests.e2e.site import Console

pytestmark = pytest.mark.slow

GRPCURL = str(Path(sys.executable).with_name("grpcurl"))
PACKAGE = "runink.core.atlas.v1"
PLAYBOOKS = f"{PACKAGE}.PlaybookService"

DETECT = {"id": "detect", "kind": "STEP_KIND_DETECT", "dispatchAgent": {"agent": "datagov"}}
APPROVE = {"id": "approve", "kind": "STEP_KIND_VALIDATE", "requireApproval": {}}
NOTIFY = {"id": "tell", "kind": "STEP_KIND_NOTIFY", "notify": {"repo": "core", "issue": 2}}
PLAYBOOK = {"name": "By grpcurl", "steps": [DETECT, APPROVE, NOTIFY]}


class Grpcurl:
    """grpcurl on one console; a call is a person's when it has their token."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def run(self, *arguments: str, token: str = "") -> subprocess.CompletedProcess[str]:
        header = ("-H", f"authorization: Bearer {token}") if token else ()
        return subprocess.run(
            (GRPCURL, "-plaintext", "-max-time", "60", *header, *arguments),
            env=environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )

    def list(self, *symbol: str) -> list[str]:
        done = self.run(self._console.grpc, "list", *symbol)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    def ask(self, method: str, email: str = "", **request: object) -> Any:  # noqa: ANN401 -- JSON
        done = self._call(method, email, request)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refused(self, method: str, email: str = "", **request: object) -> str:
        done = self._call(method, email, request)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def _call(
        self, method: str, email: str, request: dict[str, object]
    ) -> subprocess.CompletedProcess[str]:
        name = method if "/" in method else f"{PLAYBOOKS}/{method}"
        token = self._console.token(email) if email else ""
        return self.run("-d", json.dumps(request), self._console.grpc, name, token=token)


@pytest.fixture(scope="session")
def grpcurl(shipped: Site) -> Grpcurl:
    return Grpcurl(shipped.console)


@pytest.fixture(scope="module")
def open_console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grpcurl]:
    """Give a console without an operator key."""
    console = Console(tmp_path_factory.mktemp("open"))
    try:
        console.start()
        yield Grpcurl(console)
    finally:
        console.close()


def test_reflection_lists_and_describes_everything(grpcurl: Grpcurl, shipped: Site) -> None:
    services = grpcurl.list()
    assert {PLAYBOOKS, f"{PACKAGE}.GovernanceService", f"{PACKAGE}.AuditService"} <= set(services)
    assert "grpc.health.v1.Health" in services
    methods = grpcurl.list(PLAYBOOKS)
    assert len(methods) == 17
    for method in methods:
        described = grpcurl.run(shipped.console.grpc, "describe", method)
        assert described.returncode == 0, described.stderr
        assert "rpc " in described.stdout
    request = grpcurl.run(shipped.console.grpc, "describe", f"{PACKAGE}.CreatePlaybookRequest")
    assert "Playbook playbook = 1;" in request.stdout


def test_health_is_told_to_anyone(grpcurl: Grpcurl) -> None:
    assert grpcurl.ask("grpc.health.v1.Health/Check") == {"status": "SERVING"}
    assert grpcurl.ask("grpc.health.v1.Health/Check", service=PLAYBOOKS) == {"status": "SERVING"}


def test_the_main_story_is_told_by_grpcurl_alone(grpcurl: Grpcurl, shipped: Site) -> None:
    draft = grpcurl.ask("CreatePlaybook", AUTHOR, playbook=PLAYBOOK)["playbook"]
    assert draft["status"] == "PLAYBOOK_STATUS_DRAFT"
    facts = {"id": draft["id"], "revision": draft["revision"]}
    assert "four eyes: " in grpcurl.refused("ActivatePlaybook", AUTHOR, **facts)
    denied = grpcurl.refused("ActivatePlaybook", STRANGER, **facts)
    assert "Code: PermissionDenied" in denied
    active = grpcurl.ask("ActivatePlaybook", SECOND, **facts)["playbook"]
    assert active["status"] == "PLAYBOOK_STATUS_ACTIVE"

    started = grpcurl.ask("RunNow", AUTHOR, playbookId=draft["id"], requestId="one")["run"]
    again = grpcurl.ask("RunNow", AUTHOR, playbookId=draft["id"], requestId="one")["run"]
    assert started["id"] == again["id"]
    run_id = started["id"]

    def is_reported() -> Any:  # noqa: ANN401 -- the run's JSON
        run = grpcurl.ask("GetRun", AUTHOR, id=run_id)["run"]
        return None if run["status"] == "RUN_STATUS_WAITING_AGENT" else run

    assert eventually(is_reported)["status"] == "RUN_STATUS_WAITING_APPROVAL"
    decide = {"runId": run_id, "stepId": "approve", "decision": "APPROVAL_DECISION_APPROVE"}
    assert "four eyes: " in grpcurl.refused("DecideApproval", AUTHOR, **decide)
    assert "Code: PermissionDenied" in grpcurl.refused("DecideApproval", STRANGER, **decide)
    grpcurl.ask("DecideApproval", SECOND, **decide)

    def is_ended() -> Any:  # noqa: ANN401 -- the run's JSON
        run = grpcurl.ask("GetRun", AUTHOR, id=run_id)["run"]
        return run if "finishedAt" in run else None

    assert eventually(is_ended)["status"] == "RUN_STATUS_SUCCEEDED"
    assert shipped.github.dispatches(run_id) == 1
    assert shipped.github.comments(run_id) == 1
    decisions = grpcurl.ask(
        f"{PACKAGE}.GovernanceService/ListDecisions", AUTHOR, subject="playbook"
    )["decisions"]
    told = {each["decision"] for each in decisions if run_id in each["sentence"]}
    assert {"run started", "dispatched", "reported", "approved"} <= told
    verified = grpcurl.ask(f"{PACKAGE}.AuditService/VerifyAuditChain", SECOND)
    assert verified["intact"] is True


def test_a_stranger_reads_and_writes_nothing(grpcurl: Grpcurl) -> None:
    grpcurl.ask("ListPlaybooks", STRANGER)
    denied = grpcurl.refused("CreatePlaybook", STRANGER, playbook=PLAYBOOK)
    assert "Code: PermissionDenied" in denied


def test_every_bad_field_is_named_in_the_error_details(grpcurl: Grpcurl) -> None:
    twice = {"name": "", "steps": [APPROVE | {"requireApproval": {"timeoutHours": 169}}, APPROVE]}
    refused = grpcurl.refused("CreatePlaybook", AUTHOR, playbook=twice)
    assert "Code: InvalidArgument" in refused
    assert "google.rpc.BadRequest" in refused
    for field in ("playbook.name", "playbook.steps[0].require_approval.timeout_hours"):
        assert f'"field":"{field}"' in refused


def test_a_stream_refuses_like_any_other_call(grpcurl: Grpcurl) -> None:
    refused = grpcurl.refused("WatchActivity", AUTHOR, afterRevision=-1)
    assert "Code: InvalidArgument" in refused
    assert '"field":"after_revision"' in refused


def test_a_call_without_a_token_is_unauthenticated(grpcurl: Grpcurl) -> None:
    for method in ("ListPlaybooks", "CreatePlaybook"):
        assert "Code: Unauthenticated" in grpcurl.refused(method)


def test_an_open_console_reads_and_refuses_every_write(open_console: Grpcurl) -> None:
    assert open_console.ask("ListPlaybooks") == {}
    refused = open_console.refused("CreatePlaybook", playbook=PLAYBOOK)
    assert "Code: Unauthenticated" in refused
    assert "Message: this console has no sign-in configured" in refused
