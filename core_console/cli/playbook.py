"""`core-console playbook …`: write playbooks and move them through their life.

Owns these commands; how a playbook looks on the screen is `playbook_view`'s.
"""

from pathlib import Path

import click
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.cli.client import Connection, connected
from core_console.cli.help import Group
from core_console.cli.options import file_option, paged, revision_option, status_option
from core_console.cli.output import Page, enum_prefix, is_asked_by_a_person, say, short_names
from core_console.cli.playbook_view import STATUS, show_list, show_playbook, standing
from core_console.cli.specfile import read_spec

_STATUSES = short_names(STATUS)
_EXAMPLE = Path(__file__).with_name("example.yaml")


@click.group(cls=Group)
def playbook() -> None:
    """Write, activate, pause and delete playbooks.

    Example: core-console playbook list
    """


@playbook.command("list")
@status_option(_STATUSES)
@paged
@connected
def list_playbooks(
    connection: Connection,
    page: Page,
    statuses: tuple[str, ...],
    page_size: int,
    page_token: str,
) -> None:
    """List the playbooks by name.

    Example: core-console playbook list --status ACTIVE
    """
    request = pb.ListPlaybooksRequest(
        statuses=[pb.PlaybookStatus.Value(enum_prefix(STATUS) + name) for name in statuses],
        page_size=page_size,
        page_token=page_token,
    )
    page.answer(connection.call(connection.playbooks.ListPlaybooks, request), show_list)


@playbook.command("get")
@click.argument("playbook_id", metavar="ID")
@connected
def get_playbook(connection: Connection, page: Page, playbook_id: str) -> None:
    """Show one playbook whole, with who may activate it and who is barred.

    Example: core-console playbook get PB-4k2m… -o json
    """
    response = connection.call(
        connection.playbooks.GetPlaybook, pb.GetPlaybookRequest(id=playbook_id)
    )
    page.answer(response, lambda found: show_playbook(found.playbook))


@playbook.command("example")
def example() -> None:
    """Print a playbook file with every field and its comment, to begin with.

    Example: core-console playbook example > quality.yaml
    """
    click.echo(_EXAMPLE.read_text(encoding="utf-8"), nl=False)


@playbook.command("create")
@file_option
@connected
def create_playbook(connection: Connection, page: Page, file: str) -> None:
    """Write a new playbook, always as DRAFT.

    Example: core-console playbook create -f quality.yaml
    """
    spec = read_spec(file)
    request = pb.CreatePlaybookRequest(playbook=spec.playbook)
    response = connection.call(connection.playbooks.CreatePlaybook, request, spec.locate)
    page.answer(response, lambda found: _say(found.playbook))
    _say_activate(page, response.playbook)


@playbook.command("draft")
@click.option("--repo", required=True, metavar="R", help="The repository whose issue is told.")
@click.option("--issue", type=click.IntRange(min=1), required=True, metavar="N", help="The issue.")
@click.option(
    "--max-rules", type=click.IntRange(1, 10), metavar="N", help="How many rules; default 3."
)
@click.option("--approver", default="", metavar="E", help="Who decides; default any Atlas admin.")
@connected
def draft_playbook(
    connection: Connection,
    page: Page,
    repo: str,
    issue: int,
    max_rules: int | None,
    approver: str,
) -> None:
    """Write a DRAFT from the rules with the most CapEx findings.

    Example: core-console playbook draft --repo governance --issue 7
    """
    request = pb.DraftFromFindingsRequest(
        repo=repo, issue=issue, max_rules=max_rules, approver=approver
    )
    response = connection.call(connection.playbooks.DraftFromFindings, request)
    page.answer(response, lambda found: _say(found.playbook))
    _say_activate(page, response.playbook)


@playbook.command("update")
@click.argument("playbook_id", metavar="ID")
@revision_option
@file_option
@connected
def update_playbook(
    connection: Connection, page: Page, playbook_id: str, revision: int, file: str
) -> None:
    """Replace the whole spec; an ACTIVE or PAUSED playbook returns to DRAFT.

    Example: core-console playbook update PB-4k2m… --revision 3 -f quality.yaml
    """
    spec = read_spec(file)
    request = pb.UpdatePlaybookRequest(id=playbook_id, revision=revision, playbook=spec.playbook)
    response = connection.call(connection.playbooks.UpdatePlaybook, request, spec.locate)
    if response.playbook.revision == revision:
        page.answer(response, lambda found: say(f"unchanged: {standing(found.playbook)}"))
        return
    page.answer(response, lambda found: _say(found.playbook))
    _say_activate(page, response.playbook)


@playbook.command("delete")
@click.argument("playbook_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask first.")
@connected
def delete_playbook(connection: Connection, page: Page, playbook_id: str, *, yes: bool) -> None:
    """Delete a playbook that has no run in flight; on a terminal it asks first.

    Example: core-console playbook delete PB-4k2m… --yes
    """
    if not yes and is_asked_by_a_person():
        click.confirm(f"delete {playbook_id} for good?", abort=True, err=True)
    response = connection.call(
        connection.playbooks.DeletePlaybook, pb.DeletePlaybookRequest(id=playbook_id)
    )
    page.answer(response, lambda _: say(f"{playbook_id} is deleted"))


@playbook.command("activate")
@click.argument("playbook_id", metavar="ID")
@revision_option
@connected
def activate_playbook(connection: Connection, page: Page, playbook_id: str, revision: int) -> None:
    """Make exactly the revision that you reviewed ACTIVE (four eyes).

    Example: core-console playbook activate PB-4k2m… --revision 3
    """
    request = pb.ActivatePlaybookRequest(id=playbook_id, revision=revision)
    response = connection.call(connection.playbooks.ActivatePlaybook, request)
    page.answer(response, lambda found: _say_activated(found.playbook))
    page.hint(f"start it now: core-console run now {response.playbook.id}")


@playbook.command("pause")
@click.argument("playbook_id", metavar="ID")
@connected
def pause_playbook(connection: Connection, page: Page, playbook_id: str) -> None:
    """Stop an ACTIVE playbook from starting runs.

    Example: core-console playbook pause PB-4k2m…
    """
    response = connection.call(
        connection.playbooks.PausePlaybook, pb.PausePlaybookRequest(id=playbook_id)
    )
    page.answer(response, lambda found: _say(found.playbook))


@playbook.command("resume")
@click.argument("playbook_id", metavar="ID")
@connected
def resume_playbook(connection: Connection, page: Page, playbook_id: str) -> None:
    """Make a PAUSED playbook ACTIVE again.

    Example: core-console playbook resume PB-4k2m…
    """
    response = connection.call(
        connection.playbooks.ResumePlaybook, pb.ResumePlaybookRequest(id=playbook_id)
    )
    page.answer(response, lambda found: _say(found.playbook))


def _say(found: pb.Playbook) -> None:
    say(f"{standing(found)} at revision {found.revision}")


def _say_activated(found: pb.Playbook) -> None:
    now = f"(the playbook is now at revision {found.revision})"
    say(f"{standing(found)}: revision {found.activated_revision} as reviewed {now}")


def _say_activate(page: Page, found: pb.Playbook) -> None:
    activate = f"core-console playbook activate {found.id} --revision {found.revision}"
    page.hint(f"another operator: {activate}")
