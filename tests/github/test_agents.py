import json
import os
import subprocess
from pathlib import Path

import pytest


def run(repository: Path, agent: str, **variables: str) -> tuple[int, str, str]:
    output = repository.parent / "output"
    output.write_text("")
    done = subprocess.run(
        (repository / "agents" / agent / "run",),
        cwd=repository,
        env={"PATH": os.environ["PATH"], "GITHUB_OUTPUT": str(output)} | variables,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr, output.read_text()


def write(repository: Path, name: str, content: object) -> None:
    (repository / "agents" / name).write_text(json.dumps(content))


def git(repository: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "tag.gpgsign=false")
    subprocess.run(("git", *who, *arguments), cwd=repository, check=True, capture_output=True)


@pytest.mark.parametrize("agent", ["datagov", "compliance", "risk", "judge"])
def test_the_shipped_files_pass(agents_repository: Path, agent: str) -> None:
    code, text, output = run(agents_repository, agent)
    assert code == 0, text
    assert output.startswith("detail=")
    assert output.count("\n") == 1


@pytest.mark.parametrize(
    ("agent", "file"),
    [("datagov", "connections"), ("compliance", "controls"), ("judge", "claims")],
)
@pytest.mark.parametrize("content", [None, "{", {}, [], {"connections": [], "controls": []}])
def test_nothing_to_assess_is_a_failure(
    agents_repository: Path, agent: str, file: str, content: object
) -> None:
    path = agents_repository / "agents" / agent / f"{file}.json"
    path.unlink()
    if content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    code, text, _ = run(agents_repository, agent)
    assert code == 1
    assert len(text.splitlines()) == 1, "one line says so"


def test_a_connection_without_an_owner_fails(agents_repository: Path) -> None:
    good = {"name": "a", "owner": "b@example.com", "domain": "c"}
    connections = [good, good | {"owner": " "}, {"name": "x"}, "odd"]
    write(agents_repository, "datagov/connections.json", {"connections": connections})
    code, text, output = run(agents_repository, "datagov")
    assert code == 1
    assert "connection 2: names no owner" in text
    assert output == "detail=4 connections assessed, 4 faults\n"


@pytest.mark.parametrize("evidence", ["none.md", "../outside", "/etc/passwd", "", 5, "agents"])
def test_a_control_without_evidence_here_fails(agents_repository: Path, evidence: object) -> None:
    (agents_repository.parent / "outside").write_text("x")
    controls = [{"id": "a", "evidence": evidence}]
    write(agents_repository, "compliance/controls.json", {"controls": controls})
    assert run(agents_repository, "compliance")[0] == 1


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ({"evidence": "agents/judge/run", "subject": "Judges the claims"}, "concur"),
        ({"evidence": "agents/judge/run", "subject": "no such words" + "!"}, "dissent"),
        ({"evidence": "agents/none", "subject": "x"}, "unable-to-judge"),
        ({"evidence": "../../etc/passwd", "subject": "root"}, "unable-to-judge"),
        ({"evidence": "agents/judge/run"}, "unable-to-judge"),
        (5, "unable-to-judge"),
    ],
)
def test_a_claim_is_judged_by_its_evidence(
    agents_repository: Path, claim: object, verdict: str
) -> None:
    write(agents_repository, "judge/claims.json", {"claims": [claim]})
    code, text, _ = run(agents_repository, "judge")
    assert f"claim 1: {verdict}" in text
    assert code == (0 if verdict == "concur" else 1)


@pytest.mark.parametrize(
    ("file", "text", "code"),
    [
        (".github/workflows/x.yml", "  - uses: actions/checkout@v4\n", 1),
        (".github/workflows/x.yml", '  - uses: "actions/checkout@main" # x\n', 1),
        (".github/workflows/x.yml", "  - uses: ./local\n", 0),
        ("requirements.txt", "a==1.0\nb>=2\n", 1),
        (
            "requirements.txt",
            "# c\n-r other.txt\na==1.0 # why\nb[x]==2 ; python_version > '3'\n",
            0,
        ),
        ("requirements/run.txt", "a==1 \\\n    --hash=sha256:00\n", 0),
        ("requirements/run.txt", "a\n", 1),
    ],
)
def test_a_dependency_that_can_move_fails(
    agents_repository: Path, file: str, text: str, code: int
) -> None:
    (agents_repository / "requirements").mkdir()
    (agents_repository / file).write_text(text)
    assert run(agents_repository, "risk")[0] == code


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ([{"id": "a"}, {"id": "b"}], 0),
        ([{"id": "a"}, {"id": "a"}], 1),
        ([{"id": ""}], 1),
        (["odd"], 1),
        ([], 1),
        (None, 1),
    ],
)
def test_the_rule_book_is_reconciled(
    agents_repository: Path, rules: list[object] | None, code: int
) -> None:
    (agents_repository / "handed-on").mkdir()
    (agents_repository / "handed-on/inputs.json").write_text(json.dumps({"rules": rules}))
    assert run(agents_repository, "recon")[0] == code


def test_recon_without_inputs_fails(agents_repository: Path) -> None:
    assert run(agents_repository, "recon")[0] == 1


def test_the_curator_lists_what_came_since_the_newest_tag(agents_repository: Path) -> None:
    git(agents_repository, "init", "-q")
    assert run(agents_repository, "curator")[0] == 1, "no commit: nothing to curate"
    git(agents_repository, "commit", "-q", "--allow-empty", "-m", "First")
    assert "1 commits since the beginning" in run(agents_repository, "curator")[2]
    git(agents_repository, "tag", "v1")
    git(agents_repository, "commit", "-q", "--allow-empty", "-m", "Second ::add-mask::x")
    code, text, output = run(agents_repository, "curator", CURATOR_CRON_DRY_RUN="False")
    assert code == 0
    assert "Second" in text
    assert "First" not in text
    assert "::" not in text
    assert output == "detail=dry run: 1 commits since the newest tag\n"


def test_the_curator_claims_no_release_that_it_did_not_make(agents_repository: Path) -> None:
    git(agents_repository, "init", "-q")
    git(agents_repository, "commit", "-q", "--allow-empty", "-m", "First")
    assert run(agents_repository, "curator", CURATOR_CRON_DRY_RUN="false")[0] == 1
