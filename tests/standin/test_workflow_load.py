from pathlib import Path

import pytest

from core_console.standin.runner_layout import shipped_github
from core_console.standin.workflow import Workflow, WorkflowFault
from core_console.standin.workflow_load import load_workflow, load_workflows

SHIPPED = sorted((shipped_github() / "workflows").glob("*.yml"))
DATAGOV = (shipped_github() / "workflows" / "core-agent-datagov.yml").read_text()
CHECKOUT = "actions/checkout@8e8c483db84b4bee98b60c0593521ed34d9990e8"
SMALL = f"""
name: small
on:
  repository_dispatch:
    types: [core-playbook]
permissions: {{}}
jobs:
  one:
    runs-on: ubuntu-24.04
    permissions:
      contents: read
    outputs:
      said: ${{{{ steps.say.outputs.it }}}}
    steps:
      - uses: {CHECKOUT}
      - id: say
        run: echo hello
  two:
    needs: one
    if: always() && needs.one.result == 'success'
    runs-on: ubuntu-24.04
    steps:
      - run: echo "$SAID"
        env:
          SAID: ${{{{ needs.one.outputs.said }}}}
"""


def load(text: str) -> Workflow:
    return load_workflow("x.yml", text.encode())


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_file_is_loaded(path: Path) -> None:
    workflow = load_workflow(path.name, path.read_bytes())
    assert workflow.dispatch_types == ("core-playbook",)
    assert workflow.by_hand
    assert {"agent", "report", "findings"} <= workflow.jobs.keys()


def test_the_small_file_is_good_before_it_is_broken() -> None:
    assert list(load(SMALL).jobs) == ["one", "two"]


@pytest.mark.parametrize(
    ("good", "bad", "key"),
    [
        # The trigger.
        ("types: [core-playbook]", "type: [core-playbook]", "on.repository_dispatch"),
        ("types: [core-playbook]", "types: []", "on.repository_dispatch.types"),
        ("types: [core-playbook]", "types: [7]", "on.repository_dispatch.types"),
        ("    types: [core-playbook]", "", "on.repository_dispatch"),
        ("repository_dispatch:", "push:", "on.push"),
        ("name: small", "name: small\nenv:\n  A: b", "env"),
        ("name: small", "name: small\nconcurrency: x", "concurrency"),
        ("name: small", "name: small\ndefaults:\n  run:\n    shell: sh", "defaults"),
        ("name: small", "name: small\nname: twice", "stands twice"),
        ("permissions: {}", "", "permissions"),
        ("permissions: {}", "permissions: write-all", "permissions"),
        ("permissions: {}", "permissions:\n  issues: write", "permissions.issues"),
        # Jobs.
        ("runs-on: ubuntu-24.04", "runs-on: windows-2022", "jobs.one.runs-on"),
        ("    runs-on: ubuntu-24.04\n    permissions", "    permissions", "jobs.one.runs-on"),
        ("needs: one", "needs: other", "jobs.two"),
        ("needs: one", "needs: two", "jobs.two"),
        ("needs: one", "", "jobs.two"),
        ("  one:\n", "  one:\n    needs: two\n", "circle"),
        ("  one:\n", "  1one:\n", "jobs.1one"),
        ("needs: one", "needs: one\n    strategy:\n      matrix: {}", "jobs.two.strategy"),
        ("needs: one", "needs: one\n    continue-on-error: true", "jobs.two.continue-on-error"),
        ("needs: one", "needs: one\n    timeout-minutes: 0", "jobs.two.timeout-minutes"),
        ("needs: one", "needs: one\n    timeout-minutes: 361", "jobs.two.timeout-minutes"),
        ("needs: one", "needs: one\n    timeout-minutes: yes", "jobs.two.timeout-minutes"),
        ("needs: one", "needs: one\n    concurrency: x", "jobs.two.concurrency"),
        (
            "needs: one",
            "needs: one\n    concurrency:\n      group: x\n      cancel-in-progress: true",
            "jobs.two.concurrency.cancel-in-progress",
        ),
        ("contents: read", "contents: write", "jobs.one.permissions.contents"),
        ("    permissions:\n      contents: read\n", "", "jobs.one.permissions"),
        ("needs.one.result", "needs.one.outcome", "jobs.two"),
        ("needs.one.result", "needs.three.result", "jobs.two"),
        ("needs.one.outputs.said", "needs.one.outputs.sad", "jobs.two"),
        ("needs.one.result", "steps.say.outcome", "jobs.two.if"),
        ("needs.one.result", "secrets.A", "jobs.two.if"),
        ("needs.one.result == 'success'", "contains(needs.one.result, 'x')", "jobs.two.if"),
        # Steps.
        (CHECKOUT, "actions/checkout@v6", "jobs.one.steps[0].uses"),
        (CHECKOUT, "actions/checkout@main", "jobs.one.steps[0].uses"),
        (CHECKOUT, "actions/checkout", "jobs.one.steps[0].uses"),
        (CHECKOUT, CHECKOUT[:-1], "jobs.one.steps[0].uses"),
        (CHECKOUT, CHECKOUT[:-1] + "1", "jobs.one.steps[0].uses"),
        (CHECKOUT, "./.github/actions/own", "jobs.one.steps[0].uses"),
        (CHECKOUT, "actions/cache@" + "a" * 40, "jobs.one.steps[0].uses"),
        (CHECKOUT, f"{CHECKOUT}\n        with:\n          token: x", "jobs.one.steps[0].with"),
        (CHECKOUT, f"{CHECKOUT}\n        run: x", "jobs.one.steps[0].run"),
        ("run: echo hello", "run: echo ${{ github.event.client_payload.a }}", "steps[1].run"),
        ("run: echo hello", "run: echo ${{ GitHub.Event.x || 'a' }}", "steps[1].run"),
        ("run: echo hello", "run: echo hello\n        shell: sh", "jobs.one.steps[1].shell"),
        ("run: echo hello", "run: echo hello\n        working-directory: x", "working-directory"),
        (
            "run: echo hello",
            "run: echo hello\n        continue-on-error: true",
            "continue-on-error",
        ),
        ("run: echo hello", "run: echo hello\n        if: env.A == secrets.B", "steps[1].if"),
        ("run: echo hello", "run: echo hello\n        if: steps.later.outcome", "steps[1].if"),
        ("run: echo hello", "run: echo ${{ always() }}", "jobs.one.steps[1].run"),
        ("run: echo hello", "run: [a]", "jobs.one.steps[1].run"),
        ("id: say", "id: say it", "jobs.one.steps[1].id"),
        ("steps.say.outputs.it", "steps.sy.outputs.it", "jobs.one.outputs.said"),
        ("steps.say.outputs.it", "steps.say.output.it", "jobs.one.outputs.said"),
        ("steps.say.outputs.it", "runner.temp", "jobs.one.outputs.said"),
        ("SAID: ${{", "GITHUB_SAID: ${{", "jobs.two.steps[0].env"),
        ("SAID: ${{", "A-B: ${{", "jobs.two.steps[0].env"),
        ("SAID: ${{ needs.one.outputs.said }}", "SAID: ${{ needs.one.outputs.said", "env.SAID"),
        ("    steps:\n      - run", "    steps: []\n    x:\n      - run", "jobs.two.steps"),
    ],
)
def test_what_would_not_run_at_github_is_refused_by_file_and_key(
    good: str, bad: str, key: str
) -> None:
    assert good in SMALL
    with pytest.raises(WorkflowFault) as fault:
        load(SMALL.replace(good, bad, 1))
    assert str(fault.value).startswith("x.yml: ")
    assert key in str(fault.value)


@pytest.mark.parametrize("text", ["", "[]", "a: [", "- a", "\x00", "on: &a {b: *a}", "7"])
def test_what_is_no_workflow_at_all_is_refused(text: str) -> None:
    with pytest.raises(WorkflowFault):
        load(text)


def test_a_huge_file_is_refused() -> None:
    with pytest.raises(WorkflowFault, match="over"):
        load(SMALL + "#" * 300_000)


def test_a_file_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(WorkflowFault, match="UTF-8"):
        load_workflow("x.yml", b"name: \xff")


def test_on_is_a_key_and_yes_is_a_text() -> None:
    """YAML 1.1 would read both as true; GitHub reads YAML 1.2."""
    workflow = load_workflow("x.yml", SMALL.replace("name: small", "name: yes").encode())
    assert workflow.name == "yes"


def test_a_tree_without_workflows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WorkflowFault, match="no workflow file"):
        load_workflows(tmp_path)


def test_the_token_action_takes_no_owner() -> None:
    """With an owner and no repositories the token would reach every repository."""
    wide = DATAGOV.replace("permission-metadata: read", "owner: acme")
    assert wide != DATAGOV
    with pytest.raises(WorkflowFault, match="owner"):
        load(wide)
