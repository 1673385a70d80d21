"""The tables of moves: final is final, and nothing becomes ACTIVE past four eyes."""

from core_console.decide.status import FINAL, OPEN_STEPS, PLAYBOOK_MOVES, RUN_MOVES, RUN_OF_STEP
from core_console.model.playbook import PlaybookStatus
from core_console.model.run import RunStatus, StepRunStatus


def test_every_run_status_has_its_moves() -> None:
    assert set(RUN_MOVES) == set(RunStatus)


def test_a_final_status_never_changes() -> None:
    assert {status for status, moves in RUN_MOVES.items() if not moves} == FINAL


def test_each_ending_has_its_own_origin() -> None:
    origins = {
        status: {before for before, moves in RUN_MOVES.items() if status in moves}
        for status in FINAL
    }
    waiting = {RunStatus.WAITING_AGENT, RunStatus.WAITING_APPROVAL}
    assert origins == {
        RunStatus.SUCCEEDED: {RunStatus.RUNNING, *waiting},
        RunStatus.FAILED: {RunStatus.RUNNING, RunStatus.WAITING_AGENT},
        RunStatus.CANCELLED: {RunStatus.RUNNING, *waiting},
        RunStatus.TIMED_OUT: {RunStatus.WAITING_AGENT},
        RunStatus.REJECTED: {RunStatus.WAITING_APPROVAL},
        RunStatus.EXPIRED: {RunStatus.WAITING_APPROVAL},
    }


def test_a_playbook_becomes_active_only_by_activating_a_draft_or_resuming() -> None:
    ways = {move for move, after in PLAYBOOK_MOVES.items() if after is PlaybookStatus.ACTIVE}
    assert ways == {(PlaybookStatus.DRAFT, "activate"), (PlaybookStatus.PAUSED, "resume")}


def test_every_edit_returns_to_draft() -> None:
    edits = {before: after for (before, move), after in PLAYBOOK_MOVES.items() if move == "edit"}
    assert edits == dict.fromkeys(PlaybookStatus, PlaybookStatus.DRAFT)


def test_only_an_active_playbook_is_paused() -> None:
    ways = {move for move, after in PLAYBOOK_MOVES.items() if after is PlaybookStatus.PAUSED}
    assert ways == {(PlaybookStatus.ACTIVE, "pause")}


def test_a_run_is_called_what_its_current_step_is() -> None:
    assert all(step.name == run.name for step, run in RUN_OF_STEP.items())
    going_on = {StepRunStatus.PENDING, StepRunStatus.SUCCEEDED, StepRunStatus.SKIPPED}
    assert set(RUN_OF_STEP) == set(StepRunStatus) - going_on


def test_an_open_step_is_claimed_and_has_not_ended() -> None:
    assert {RUN_OF_STEP[status] for status in OPEN_STEPS} == set(RunStatus) - FINAL
