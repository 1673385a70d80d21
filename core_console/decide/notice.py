"""The text of a notify step's comment.

Owns what leaves the console for an issue that many may read: ids, statuses and counts. Never a
name, a title, a prompt, a detail or a feed's row (contract, section 4).
"""

from core_console.model.run import Run, StepRun, StepRunStatus


def comment(run: Run) -> str:
    """Return the comment on a run, as Markdown; ids are safe to show, by their alphabet."""
    done = sum(step_run.status is StepRunStatus.SUCCEEDED for step_run in run.steps)
    head = (
        f"Playbook `{run.playbook_id}`, run `{run.id}`: "
        f"{done} of {len(run.steps)} steps SUCCEEDED so far."
    )
    rows = "\n".join(_row(step_run) for step_run in run.steps)
    return f"{head}\n\n| step | status | findings |\n| --- | --- | --- |\n{rows}\n"


def _row(step_run: StepRun) -> str:
    findings = "none" if step_run.scan is None else str(sum(step_run.scan.findings.values()))
    return f"| `{step_run.step.id}` | {step_run.status} | {findings} |"
