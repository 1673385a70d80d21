"""The rules of runs, jobs and steps, on small workflows without any network."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from textwrap import dedent, indent

import pytest

from core_console.standin import runner_shell
from core_console.standin.actions import KNOWN, ActionName
from core_console.standin.runner import HAPPENINGS_MAX, Runner
from core_console.standin.runner_records import JOB_LOG_MAX_BYTES, Outcome, WorkflowRun
from core_console.standin.state import DispatchEvent
from core_console.standin.workflow import WorkflowFault

SECRET = "s3cret-of-one-line"
LINES = "first line of it\nsecond line of it"
EVENT = DispatchEvent("acme/core", "go", {"who": "me"}, "console[bot]", 1)

Start = Callable[..., Awaitable[Runner]]


def workflow(jobs: str) -> str:
    head = "name: x\non:\n  repository_dispatch:\n    types: [go]\npermissions: {}\njobs:\n"
    return head + indent(dedent(jobs).strip("\n"), "  ") + "\n"


def job(name: str, *steps: str, **keys: str) -> str:
    """One job whose steps are given as YAML, or as a script of one line."""
    head = [f"{name}:", "  runs-on: ubuntu-24.04"]
    head += [f"  {key.replace('_', '-').rstrip('-')}: {value}" for key, value in keys.items()]
    body = [
        indent(step if step.startswith(("- ", "-\n")) else f"- run: {step}", "    ")
        for step in steps
    ]
    return "\n".join([*head, "  steps:", *body]) + "\n"


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Make a runner of a repository that holds these jobs, as one workflow."""
    made: list[Runner] = []

    async def make(*jobs: str, minute_s: float = 60.0) -> Runner:
        folder = tmp_path / "tree/.github/workflows"
        folder.mkdir(parents=True)
        (folder / "x.yml").write_text(workflow("".join(jobs)))
        runner = Runner(
            tmp_path / "tree",
            api_url="http://127.0.0.1:1",
            graphql_url="http://127.0.0.1:1/graphql",
            server_url="https://github.com",
            repository="acme/core",
            variables={"V": "variable"},
            secrets={"ONE": SECRET, "TWO": LINES},
            work_dir=tmp_path / "work",
            minute_s=minute_s,
        )
        made.append(runner)
        return runner

    yield make
    for runner in made:
        await runner.close()
    assert not list((tmp_path / "work").glob("*")), "a run left files"


async def run(runner: Runner) -> WorkflowRun:
    await runner.dispatch(EVENT)
    await runner.settle()
    return runner.runs[-1]


def ended(ran: WorkflowRun) -> dict[str, str]:
    return {one.name: str(one.conclusion) for one in ran.jobs}


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 -- another process's deed, which sets no event here
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("condition", "after_success", "after_failure", "after_skip"),
    [
        (None, "success", "skipped", "skipped"),
        ("true", "success", "skipped", "skipped"),
        ("always()", "success", "success", "success"),
        ("success()", "success", "skipped", "skipped"),
        ("failure()", "skipped", "success", "skipped"),
        ("cancelled()", "skipped", "skipped", "skipped"),
        ("always() && needs.a.result == 'skipped'", "skipped", "skipped", "success"),
    ],
)
async def test_a_job_runs_after_others_as_its_condition_says(
    start: Start, condition: str | None, after_success: str, after_failure: str, after_skip: str
) -> None:
    jobs = []
    for name, script, if_ in (
        ("a", "'true'", "true"),
        ("b", "'false'", "true"),
        ("c", "x", "false"),
    ):
        jobs.append(job(name, script, if_=if_))
        keys = {"if_": condition.replace("needs.a", f"needs.{name}")} if condition else {}
        jobs.append(job(f"after-{name}", "'true'", needs=name, **keys))
    found = ended(await run(await start(*jobs)))
    assert (found["after-a"], found["after-b"], found["after-c"]) == (
        after_success,
        after_failure,
        after_skip,
    )


async def test_success_asks_the_whole_chain(start: Start) -> None:
    """B succeeds after A failed; C needs B only and is skipped all the same, as at GitHub."""
    ran = await run(
        await start(
            job("a", "'false'"),
            job("b", "'true'", needs="a", if_="always()"),
            job("c", "'true'", needs="b"),
            job("d", "'true'", needs="b", if_="failure()"),
        )
    )
    assert ended(ran) == {"a": "failure", "b": "success", "c": "skipped", "d": "success"}
    assert ran.conclusion is Outcome.FAILURE


async def test_steps_after_a_failure_run_only_when_they_ask_for_it(start: Start) -> None:
    ran = await run(
        await start(
            job(
                "a",
                "- id: bad\n  run: exit 3",
                "echo never-$((1+1))",
                "- if: always()\n  run: echo always-$((1+1)) $OUTCOME $STATUS\n"
                "  env:\n    OUTCOME: ${{ steps.bad.outcome }}\n    STATUS: ${{ job.status }}",
                "- if: failure()\n  run: echo failed-$((1+1))",
            )
        )
    )
    log = ran.jobs[0].log
    assert "never-2" not in log
    assert "always-2 failure failure" in log
    assert "failed-2" in log
    assert "exit code 3" in log


async def test_bash_stops_at_the_first_error_and_in_pipes(start: Start) -> None:
    ran = await run(
        await start(
            job("a", "- run: |\n    false\n    echo on-$((1+1))"),
            job("b", "- run: |\n    false | cat\n    echo on-$((1+1))"),
        )
    )
    assert ended(ran) == {"a": "failure", "b": "failure"}
    assert "on-2" not in ran.jobs[0].log + ran.jobs[1].log


async def test_env_path_and_outputs_reach_the_next_steps_and_jobs(start: Start) -> None:
    ran = await run(
        await start(
            job(
                "a",
                '- run: echo "A=one" >>"$GITHUB_ENV"',
                '- run: mkdir bin && echo "$PWD/bin" >>"$GITHUB_PATH"',
                "- run: printf '#!/bin/sh\\necho own-tool\\n' >bin/tool && chmod +x bin/tool",
                "- id: out\n  run: |\n"
                "    printf 'X=first\\nX=x y\\nM<<END\\n1\\n2=3\\nEND\\n' >>\"$GITHUB_OUTPUT\"\n"
                '    tool; echo "$A $B"\n  env:\n    B: ${{ vars.V }}-${{ env.A }}',
                '- run: echo "B is <$B>"',
                outputs="{x: '${{ steps.out.outputs.X }}', m: '${{ steps.out.outputs.m }}'}",
            ),
            job(
                "b",
                '- run: echo "<$X><$M>"\n  env:\n    X: ${{ needs.a.outputs.x }}\n'
                "    M: ${{ needs.a.outputs.m }}",
                needs="a",
            ),
        )
    )
    assert ended(ran) == {"a": "success", "b": "success"}, ran.jobs[0].log
    assert "own-tool\none variable-one" in ran.jobs[0].log
    assert "B is <>" in ran.jobs[0].log
    assert "<x y><1\n2=3>" in ran.jobs[1].log


@pytest.mark.parametrize("line", ["no equals sign", "=x", "M<<END", "<<E", "M<<"])
@pytest.mark.parametrize("file", ["GITHUB_ENV", "GITHUB_OUTPUT"])
async def test_a_line_that_is_no_value_fails_the_step(start: Start, line: str, file: str) -> None:
    ran = await run(await start(job("a", f'- run: echo "{line}" >>"${file}"')))
    assert ended(ran) == {"a": "failure"}


async def test_no_step_can_change_what_github_says(start: Start) -> None:
    steps = (
        "- run: printf 'GITHUB_RUN_ID=1\\nGITHUB_REPOSITORY=x/y\\n' >>\"$GITHUB_ENV\"",
        '- run: echo "$GITHUB_REPOSITORY $GITHUB_RUN_ID"',
    )
    ran = await run(await start(job("a", *steps)))
    assert f"acme/core {ran.run_id}" in ran.jobs[0].log


async def test_secrets_are_masked_and_do_not_cross_jobs(start: Start) -> None:
    ran = await run(
        await start(
            job(
                "a",
                '- id: leak\n  run: |\n    echo "a $ONE b"; echo "$TWO"\n'
                '    echo "it=$ONE" >>"$GITHUB_OUTPUT"\n'
                "  env:\n    ONE: ${{ secrets.ONE }}\n    TWO: ${{ secrets.TWO }}",
                outputs="{it: '${{ steps.leak.outputs.it }}'}",
            ),
            job("b", '- run: echo "<$IT>"\n  env:\n    IT: ${{ needs.a.outputs.it }}', needs="a"),
        )
    )
    log = ran.jobs[0].log
    assert "a *** b\n***\n" in log
    assert not any(part in log for part in (SECRET, *LINES.splitlines()))
    assert "<>" in ran.jobs[1].log


async def test_a_log_is_bounded(start: Start) -> None:
    ran = await run(await start(job("a", "- run: head -c 3000000 /dev/zero | tr '\\0' y")))
    assert ended(ran) == {"a": "success"}
    assert len(ran.jobs[0].log) < JOB_LOG_MAX_BYTES + 100
    assert "the log is full" in ran.jobs[0].log


async def test_a_step_that_takes_too_long_fails_and_the_rest_may_report_it(start: Start) -> None:
    runner = await start(
        job(
            "a",
            "- id: slow\n  timeout-minutes: 1\n  run: sleep 600",
            "- if: always()\n  run: echo was-$W\n  env:\n    W: ${{ steps.slow.outcome }}",
            timeout_minutes="300",
        ),
        minute_s=0.5,
    )
    ran = await run(runner)
    assert ended(ran) == {"a": "failure"}
    assert "was-failure" in ran.jobs[0].log


async def test_a_job_that_takes_too_long_is_cancelled_and_may_still_report(start: Start) -> None:
    runner = await start(
        job(
            "a",
            "- id: slow\n  run: sleep 600",
            "echo never-$((1+1))",
            "- if: always()\n  run: echo was-$W\n  env:\n    W: ${{ steps.slow.outcome }}",
            timeout_minutes="1",
        ),
        job("b", "'true'", needs="a", if_="always() && needs.a.result == 'cancelled'"),
        minute_s=1.0,
    )
    ran = await run(runner)
    assert ended(ran) == {"a": "cancelled", "b": "success"}
    assert "was-cancelled" in ran.jobs[0].log
    assert "never-2" not in ran.jobs[0].log


def stop_quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = tuple((signal_, 0.1) for signal_, _ in runner_shell._STOPPING)
    monkeypatch.setattr(runner_shell, "_STOPPING", quick)


async def test_a_process_that_will_not_stop_is_killed(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_quickly(monkeypatch)
    stubborn = "- timeout-minutes: 1\n  run: trap '' INT TERM; while true; do sleep 1; done"
    ran = await run(await start(job("a", stubborn), minute_s=0.3))
    assert ended(ran) == {"a": "failure"}


async def test_a_cancelled_run_stops_its_step_and_runs_what_asks_for_it(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_quickly(monkeypatch)  # bash may be between two commands, and then the first signal is lost
    flag = tmp_path / "started"
    runner = await start(
        job(
            "a",
            f"- run: touch {flag}; sleep 600",
            "- if: cancelled()\n  run: echo tidy-$((1+1))",
            "echo never-$((1+1))",
        ),
        job("b", "'true'", needs="a"),
        job("c", "'true'", needs="a", if_="always()"),
    )
    await runner.dispatch(EVENT)
    await until(flag.exists)
    await runner.cancel(runner.runs[0].run_id)
    await runner.settle()
    (ran,) = runner.runs
    assert ended(ran) == {"a": "cancelled", "b": "skipped", "c": "cancelled"}
    assert "tidy-2" in ran.jobs[0].log
    assert "never-2" not in ran.jobs[0].log


def alive(pid: int) -> bool:
    """Tell whether a process still runs; one that only waits to be collected does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def test_close_ends_every_process_that_it_started(start: Start, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    runner = await start(job("a", f"- run: sleep 600 & echo $$ $! >{pids}; wait"))
    await runner.dispatch(EVENT)
    await until(lambda: pids.exists() and len(pids.read_text().split()) == 2)
    await runner.close()
    await until(lambda: not any(alive(int(pid)) for pid in pids.read_text().split()))
    assert ended(runner.runs[0]) == {"a": "cancelled"}


async def test_a_child_left_behind_does_not_outlive_its_step(start: Start, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    ran = await run(await start(job("a", f"- run: sleep 600 & echo $! >{pid}")))
    assert ended(ran) == {"a": "success"}
    await until(lambda: not alive(int(pid.read_text())))


async def test_a_child_that_left_the_group_does_not_hold_the_run(
    start: Start, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    ran = await run(await start(job("a", f"- run: setsid sleep 30 & echo $! >{pid}; echo out")))
    assert ended(ran) == {"a": "success"}
    assert "out" in ran.jobs[0].log
    if alive(int(pid.read_text())):
        os.kill(int(pid.read_text()), 9)


async def test_jobs_of_one_group_never_run_together_and_a_newer_one_replaces_the_waiting(
    start: Start, tmp_path: Path
) -> None:
    order, go = tmp_path / "order", tmp_path / "go"
    runner = await start(
        job(
            "a",
            f"- run: echo start >>{order}; while [ ! -e {go} ]; do sleep 0.02; done; "
            f"echo end >>{order}",
            concurrency="{group: '${{ github.event.client_payload.who }}'}",
        ),
    )
    for number in range(1, 4):
        await runner.dispatch(EVENT)
        await until(lambda n=number: len(runner.runs) == n)  # type: ignore[misc] # bound now
        await until(order.exists)
    await until(lambda: runner.runs[1].conclusion is not None)
    go.touch()
    await runner.settle()
    assert [str(one.conclusion) for one in runner.runs] == ["success", "cancelled", "success"]
    assert order.read_text().split() == ["start", "end", "start", "end"]


def uses(action: ActionName, **inputs: str) -> str:
    with_ = "".join(f"    {k.replace('_', '-')}: {v}\n" for k, v in inputs.items())
    return f"- uses: {action}@{KNOWN[action].commit}\n" + (f"  with:\n{with_}" if with_ else "")


async def test_an_artifact_is_handed_on_and_a_missing_one_is_told_apart(start: Start) -> None:
    put = uses(ActionName.UPLOAD, name="it", path="it.txt")
    strict = uses(ActionName.UPLOAD, name="it", path="it.txt", if_no_files_found="error")
    got = uses(ActionName.DOWNLOAD, name="it", path="in")
    id_ = "- id: put\n  " + put[2:]
    out = "{id: '${{ steps.put.outputs.artifact-id }}'}"
    ran = await run(
        await start(
            job("a", "echo text >it.txt", id_, outputs=out),
            job("b", got, "cat in/it.txt", needs="a", if_="needs.a.outputs.id != ''"),
            job("none", id_, outputs=out),
            job("after", "'true'", needs="none", if_="needs.none.outputs.id != ''"),
            job("strict", strict),
            job("twice", "echo 1 >it.txt", put.replace("name: it", "name: t"), needs="a"),
            job("again", "echo 1 >it.txt", put, needs="a"),
            job("nothing", got.replace("name: it", "name: other"), needs="a"),
        )
    )
    assert ended(ran) == {
        "a": "success",
        "b": "success",
        "none": "success",
        "after": "skipped",
        "strict": "failure",
        "twice": "success",
        "again": "failure",
        "nothing": "failure",
    }
    assert "text" in ran.jobs[1].log


async def test_a_checkout_is_a_commit_of_the_tree_and_leaves_the_tree_alone(
    start: Start, tmp_path: Path
) -> None:
    steps = (
        uses(ActionName.CHECKOUT),
        '- run: git rev-parse HEAD; echo "$GITHUB_SHA"; rm -rf .github',
    )
    ran = await run(await start(job("a", *steps, permissions="{contents: read}")))
    lines = [line for line in ran.jobs[0].log.splitlines() if len(line) == 40]
    assert len(lines) == 2
    assert lines[0] == lines[1]
    assert (tmp_path / "tree/.github/workflows/x.yml").exists()
    assert not (tmp_path / "tree/.git").exists()


async def test_the_head_at_the_dispatch_counts(start: Start, tmp_path: Path) -> None:
    runner = await start(job("a", "echo before"))
    file = tmp_path / "tree/.github/workflows/x.yml"
    file.write_text(file.read_text().replace("before", "after"))
    assert "after" in (await run(runner)).jobs[0].log


async def test_a_file_that_broke_since_is_a_run_without_jobs(start: Start, tmp_path: Path) -> None:
    runner = await start(job("a", "'true'"))
    file = tmp_path / "tree/.github/workflows/x.yml"
    file.write_text(file.read_text().replace("types:", "type:"))
    ran = await run(runner)
    assert (ran.conclusion, ran.jobs) == (Outcome.FAILURE, ())
    assert "x.yml: on.repository_dispatch" in ran.fault


async def test_a_broken_file_stops_the_runner_at_its_start(start: Start) -> None:
    with pytest.raises(WorkflowFault, match=r"x\.yml: jobs\.a\.strategy"):
        await start(job("a", "'true'", strategy="{}"))


async def test_a_value_that_no_process_takes_fails_its_step_only(start: Start) -> None:
    runner = await start(
        job(
            "a",
            "- run: echo x\n  env:\n    W: ${{ github.event.client_payload.who }}",
            "- if: always()\n  run: echo on-$((1+1))",
        )
    )
    await runner.dispatch(DispatchEvent("acme/core", "go", {"who": "a\0b"}, "x", 1))
    await runner.settle()
    assert ended(runner.runs[0]) == {"a": "failure"}
    assert "on-2" in runner.runs[0].jobs[0].log


async def test_a_flood_of_events_is_bounded_and_said_so(start: Start) -> None:
    runner = await start(job("a", "'true'", if_="false"))
    for _ in range(HAPPENINGS_MAX + 3):
        await runner.dispatch(EVENT)
    assert [bool(one.fault) for one in runner.runs] == [True] * 3
    await runner.close()
