"""How stored things are shown: everything that is stored, and nothing that is invented."""

from datetime import timedelta

import pytest
from google.protobuf.message import Message
from msgspec.structs import replace
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.model.run import Cause, Run, RunStatus, ScanResult, StepRun
from core_console.rpc import to_proto
from core_console.rpc.run_views import RUNS_SHOWN_MAX, RunViews
from tests.builders import NOW, a_playbook, a_run, a_run_at, notify, scan


def a_full_run() -> Run:
    """Return a run with every field set, and a step run with every field set."""
    playbook = a_playbook(scan(), notify())
    run = a_run_at(playbook, "notify")
    full = StepRun(
        step=run.steps[1].step,
        status=run.steps[1].status,
        call=run.steps[1].call,
        claimed_by="CON-1",
        claimed_at=NOW,
        deadline=NOW,
        finished_at=NOW,
        conclusion="success",
        detail="3 findings",
        github_run_url="https://github.com/example/core/actions/runs/17",
        decided_by="second@example.com",
        decision_note="fine",
        scan=ScanResult("SR-1", {"CP-001": 3}, {"CP-001": 4}),
    )
    return replace(
        run,
        steps=(run.steps[0], full),
        finished_at=NOW,
        trigger_id="hourly",
        event_id="PBE-1",
        slot=NOW,
        request_id="once",
        chain_depth=2,
        caused_by_run_id="PBR-0",
        cause=Cause.INFERRED,
        note="now",
        detail="it ended",
    )


def unset(message: Message) -> list[str]:
    set_now = {field.name for field, _ in message.ListFields()}
    return [field.name for field in message.DESCRIPTOR.fields if field.name not in set_now]


def test_nothing_that_is_stored_of_a_run_is_left_out() -> None:
    shown = to_proto.run(a_full_run())
    assert unset(shown) == []
    assert unset(shown.steps[1]) == []
    found = shown.steps[1].scan
    assert (found.scan_run_id, dict(found.findings), dict(found.baseline)) == (
        "SR-1",
        {"CP-001": 3},
        {"CP-001": 4},
    )
    assert shown.cause == pb.CAUSE_INFERRED


@pytest.mark.parametrize("milliseconds", [0, 1, 999, -1, 86_400_000 * 400 + 7])
def test_an_instant_is_shown_to_the_millisecond(milliseconds: int) -> None:
    at = NOW + timedelta(milliseconds=milliseconds)
    shown = to_proto.timestamp(at)
    assert shown is not None
    assert shown.ToDatetime(NOW.tzinfo) == at


def test_an_unchanged_run_is_converted_once_and_a_changed_one_again() -> None:
    views, run = RunViews(), a_run(a_playbook())
    first = views.of(run)
    assert views.of(run) is first
    changed = replace(run, status=RunStatus.CANCELLED)
    assert views.of(changed).status == pb.RUN_STATUS_CANCELLED
    assert views.of(run).status == pb.RUN_STATUS_RUNNING


def test_runs_that_were_shown_are_kept_within_a_bound() -> None:
    views, run = RunViews(), a_run(a_playbook())
    for number in range(RUNS_SHOWN_MAX + 50):
        views.of(replace(run, id=f"PBR-{number}"))
    assert len(views._shown) == RUNS_SHOWN_MAX
