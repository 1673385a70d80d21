"""A comment tells ids, statuses and counts, and nothing that somebody wrote or found."""

from msgspec.structs import replace

from core_console.decide.notice import comment
from core_console.model.playbook import RequireApproval
from core_console.model.run import ScanResult
from tests.builders import a_playbook, a_run_at, a_spec, a_step, detect, notify, scan

STEPS = (
    replace(detect(), title="A title"),
    scan(),
    a_step("approve", RequireApproval(72, "second@example.com", "A prompt"), title="Ask"),
    notify(repo="private-repo"),
    scan("verify", compare_to_first_scan=True),
)
PLAYBOOK = a_playbook(spec=a_spec(*STEPS, name="A name", description="A description"))
RUN = a_run_at(PLAYBOOK, "notify", note="A note", detail="A detail")
SCANNED = replace(
    RUN,
    steps=(
        replace(RUN.steps[0], detail="A step's detail"),
        replace(RUN.steps[1], scan=ScanResult("SCAN-1", {"CP-001": 3, "CP-002": 4})),
        replace(RUN.steps[2], decision_note="A decision's note"),
        *RUN.steps[3:],
    ),
)


def test_a_comment_says_where_each_step_stands() -> None:
    assert comment(SCANNED) == (
        "Playbook `PB-1`, run `PBR-1`: 3 of 5 steps SUCCEEDED so far.\n"
        "\n"
        "| step | status | findings |\n"
        "| --- | --- | --- |\n"
        "| `detect` | SUCCEEDED | none |\n"
        "| `scan` | SUCCEEDED | 7 |\n"
        "| `approve` | SUCCEEDED | none |\n"
        "| `notify` | RUNNING | none |\n"
        "| `verify` | PENDING | none |\n"
    )


def test_a_scan_that_found_nothing_counts_zero_and_a_missing_one_is_no_number() -> None:
    clean = replace(RUN.steps[1], scan=ScanResult("SCAN-1", {}))
    found = comment(replace(RUN, steps=(RUN.steps[0], clean, *RUN.steps[2:])))
    assert "| `scan` | SUCCEEDED | 0 |" in found
    assert "| `scan` | SUCCEEDED | none |" in comment(RUN)
