"""The curator under its own interpreter: what a dry run leaves, and what another one hands on."""

from pathlib import Path

import pytest

from tests.github.conftest import Agents, Ended
from tests.github.taken import raised

NOTES = "release-notes.md"


def commit(agents: Agents, subject: str) -> None:
    agents.git("commit", "-q", "--allow-empty", "-m", subject)


@pytest.fixture
def history(agents: Agents) -> Agents:
    """A repository with a commit, a tag, and two commits since."""
    agents.git("init", "-q")
    for subject in ("First", "Second", "Third: say why"):
        commit(agents, subject)
        if subject == "First":
            agents.git("tag", "v1")
    return agents


def left(agents: Agents) -> set[str]:
    return {path.name for path in agents.repository.iterdir()} - {".git", ".github", "agents"}


def notes(agents: Agents) -> str:
    return (agents.repository / NOTES).read_text()


def wet(agents: Agents, **variables: str) -> Ended:
    return agents.run("curator", CURATOR_CRON_DRY_RUN="false", **variables)


@pytest.mark.parametrize("word", [None, "", "true", "False", "FALSE", "0", "no", " false"])
def test_all_but_the_literal_false_is_a_dry_run_that_leaves_nothing(
    history: Agents, word: str | None
) -> None:
    given = {} if word is None else {"CURATOR_CRON_DRY_RUN": word}
    ended = history.run("curator", **given, PLAYBOOK_RUN_ID="PBR-1")
    assert (ended.code, ended.detail) == (0, "dry run: 2 commits since v1")
    assert left(history) == set()
    assert "- Third: say why (" in ended.text


def test_otherwise_the_notes_and_an_event_are_handed_on(history: Agents) -> None:
    ended = wet(history, GITHUB_RUN_ID="7")
    assert ended.code == 0, ended.text
    lines = notes(history).splitlines()
    assert lines[:2] == ["# Since v1", ""]
    assert [line.rsplit(" (", 1)[0] for line in lines[2:]] == ["- Third: say why", "- Second"]
    event = raised("curator", ended)
    assert (event.event, event.external_id) == ("release.noted", "curator-7-1")
    assert event.detail == ended.detail
    assert event.detail.endswith("are handed on; nothing is published")
    assert (event.attributes["since"], event.attributes["commits"]) == ("v1", "2")
    assert len(event.attributes["head"]) == 40


def test_a_playbook_is_the_cause_by_the_same_rule(history: Agents) -> None:
    assert wet(history, PLAYBOOK_RUN_ID="PBR-1").json()["causedByRunId"] == "PBR-1"


def test_notes_of_nothing_are_no_event(history: Agents) -> None:
    history.git("tag", "v2")
    history.write(NOTES, "old")
    ended = wet(history)
    assert (ended.code, ended.detail, ended.report) == (0, "0 commits since v2", None)
    assert left(history) == set()


def test_without_a_tag_all_commits_count_and_merges_do_not(agents: Agents) -> None:
    agents.git("init", "-q", "-b", "main")
    commit(agents, "One")
    agents.git("checkout", "-q", "-b", "side")
    commit(agents, "Two")
    agents.git("checkout", "-q", "main")
    agents.git("merge", "-q", "--no-ff", "-m", "Merge", "side")
    ended = agents.run("curator")
    assert ended.detail == "dry run: 2 commits since the beginning"
    assert "Merge" not in ended.text


@pytest.mark.parametrize(
    ("subject", "line"),
    [
        ("a ghp_token here", "- (withheld: it looks like a credential) ("),
        ("x ##[error]y", "- x # #[error]y ("),
        ("a\u202eb\x1b[31mc", "- a b [31mc ("),
        ("a\x1fb", "- a b ("),
        ("é" * 300, "- " + "é" * 200 + "… ("),
        ("$(touch hacked) `id` %s", "- $(touch hacked) `id` %s ("),
    ],
)
def test_a_subject_is_one_harmless_line(history: Agents, subject: str, line: str) -> None:
    commit(history, subject)
    ended = wet(history)
    assert ended.code == 0
    assert notes(history).splitlines()[2].startswith(line)
    assert "##[" not in ended.text
    assert not (history.repository / "hacked").exists()
    raised("curator", ended)


def test_more_than_500_commits_are_counted_and_not_dropped_in_silence(agents: Agents) -> None:
    agents.git("init", "-q", "-b", "main")
    entries = "".join(
        f"commit refs/heads/main\ncommitter a <a@example.com> {number} +0000\ndata 2\nc\n\n"
        for number in range(1, 503)
    )
    agents.write("../import", entries)
    agents.git("-c", "core.quotepath=off", "config", "gc.auto", "0")
    fed = agents.repository.parent / "import"
    feed(agents, fed)
    ended = wet(agents)
    assert ended.detail.startswith("notes of 502 commits")
    assert notes(agents).splitlines()[-1] == "- and 2 earlier commits"
    assert len(notes(agents).splitlines()) == 2 + 500 + 1


def feed(agents: Agents, stream: Path) -> None:
    agents.git("-c", f"alias.feed=!git fast-import --quiet <'{stream}'", "feed")


@pytest.mark.parametrize("shallow", [False, True])
def test_without_the_history_nothing_is_curated(
    agents: Agents, tmp_path: Path, *, shallow: bool
) -> None:
    if shallow:
        source = Agents(tmp_path / "source")
        source.repository.mkdir()
        source.git("init", "-q")
        commit(source, "One")
        commit(source, "Two")
        agents.git("init", "-q", "-b", "main")
        agents.git("fetch", "-q", "--depth=1", f"file://{source.repository}", "HEAD:got")
        agents.git("checkout", "-q", "got")
    ended = wet(agents)
    assert (ended.code, ended.report) == (1, None)
    assert "nothing could be curated" in ended.detail


def test_an_odd_tag_is_not_told(history: Agents) -> None:
    history.git("tag", "ghp_" + "x" * 20)
    commit(history, "Fourth")
    ended = wet(history)
    assert raised("curator", ended).attributes["since"] == "a tag"
    assert "ghp_" not in ended.text
