"""The playbooks that the pages show are real: a console takes each, and no field goes unsaid."""

import re
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.failure import Exit
from core_console.cli.specfile import parse_spec
from tests.cli.site import Cli, Site

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "playbooks.md").read_text()
FILES = sorted((ROOT / "docs" / "examples").glob("*.yaml"))


def spec_fields(message: Descriptor) -> set[str]:
    """Return the names of all fields that a person may write in a message."""
    names: set[str] = set()
    for field in message.fields:
        names.add(field.name)
        if field.message_type is not None:
            names |= spec_fields(field.message_type)
    return names


WRITTEN = (
    {"name", "description", "steps", "triggers"}
    | spec_fields(pb.Step.DESCRIPTOR)
    | spec_fields(pb.Trigger.DESCRIPTOR)
)


def test_the_printed_example_is_taken_by_a_console_and_can_be_activated(
    site: Site, run: Cli
) -> None:
    example = run("playbook", "example")
    assert example.exit_code == Exit.OK
    playbook_id = site.created(example.stdout)
    activated = site.inner(
        "playbook", "second", "playbook", "activate", playbook_id, "--revision", "1"
    )
    assert activated["status"] == "PLAYBOOK_STATUS_ACTIVE"
    assert "next slots" in site.as_("author", "playbook", "get", playbook_id).stdout


def test_the_printed_example_and_the_page_have_every_field(run: Cli) -> None:
    example = run("playbook", "example").stdout
    for field in WRITTEN:
        assert re.search(rf"\b{field}:", example), field
        assert re.search(rf"`{field}\b", PAGE), field


def test_what_the_example_calls_the_default_is_what_is_stored(site: Site, run: Cli) -> None:
    text = run("playbook", "example").stdout
    bare = "\n".join(
        line
        for line in text.splitlines()
        if not re.search(r"(timeout|cooldown)_\w+: .*default", line)
    )
    assert bare != text
    stored = site.inner("playbook", "author", "playbook", "get", site.created(bare + "\n"))
    steps, triggers = stored["steps"], stored["triggers"]
    assert isinstance(steps, list)
    assert isinstance(triggers, list)
    assert steps[0]["dispatchAgent"]["timeoutMinutes"] == 60
    assert steps[2]["requireApproval"]["timeoutHours"] == 72
    assert triggers[1]["cooldownMinutes"] == 60


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_example_file_is_taken_by_a_console(site: Site, file: Path) -> None:
    site.created(file.read_text())


def test_the_smallest_playbook_of_the_page_is_the_example_file() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shown = parse_spec(block, source="page").playbook
    kept = parse_spec((ROOT / "docs/examples/approval.yaml").read_text(), source="file").playbook
    assert shown == kept


CRONS = re.findall(r"^\| `([^`]+)` \| ", PAGE.partition("## The cron rule")[2], re.MULTILINE)


@pytest.mark.parametrize("cron", CRONS)
def test_every_cron_of_the_page_is_taken(site: Site, cron: str) -> None:
    trigger = f'triggers:\n  - id: slot\n    schedule: {{cron: "{cron}"}}\n'
    site.created((ROOT / "docs/examples/approval.yaml").read_text() + trigger)


@pytest.mark.parametrize("cron", ["@daily", "*/5 * * * *", "0 0 31 2 *", "0 0 * * fri-mon"])
def test_a_cron_that_the_page_refuses_is_refused_with_its_line(site: Site, cron: str) -> None:
    text = (ROOT / "docs/examples/approval.yaml").read_text()
    text += f'triggers:\n  - id: slot\n    schedule:\n      cron: "{cron}"\n'
    result = site.as_("author", "playbook", "create", "-f", "-", stdin=text)
    assert result.exit_code == Exit.REFUSED
    assert result.stderr.startswith(f"standard input, line {len(text.splitlines())}: cron: ")
