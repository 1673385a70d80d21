"""The command line against a real console: engine, store, chain and all, on a real socket."""

import json
from pathlib import Path

import yaml

from core_console.cli.failure import Exit
from tests.cli.site import PLAYBOOK, Cli, Served, Site


def test_the_main_job_is_done_from_the_command_line(site: Site) -> None:
    playbook_id = site.created()
    refused = site.as_("author", "playbook", "activate", playbook_id, "--revision", "1")
    assert refused.exit_code == Exit.REFUSED
    assert refused.stderr.startswith("PERMISSION_DENIED: four eyes: ")
    activated = site.as_("second", "playbook", "activate", playbook_id, "--revision", "1")
    assert "is ACTIVE: revision 1 as reviewed (the playbook is now at revision 2)" in (
        activated.stdout
    )
    started = site.inner("run", "author", "run", "now", playbook_id, "--note", "November")
    run_id = str(started["id"])
    assert started["status"] == "RUN_STATUS_WAITING_APPROVAL"
    assert run_id in site.as_("second", "approval", "list").stdout

    own = site.as_("author", "approval", "decide", run_id, "approve", "--approve")
    assert own.exit_code == Exit.REFUSED
    assert own.stderr.startswith("PERMISSION_DENIED: four eyes: ")
    decided = site.as_("second", "approval", "decide", run_id, "approve", "--approve")
    assert decided.exit_code == Exit.OK, decided.stderr
    assert site.as_("author", "run", "watch", run_id).exit_code == Exit.OK

    shown = site.as_("stranger", "decisions").stdout
    for word in ("created", "activated", "run started", "approved"):
        assert word in shown
    verified = site.as_("auditor", "audit", "verify")
    assert verified.exit_code == Exit.OK, verified.stderr
    log = site.root / "var/log/audit"
    assert site.run("audit", "verify", "--file", str(log)).exit_code == Exit.OK


def test_a_playbook_is_read_edited_and_written_back(site: Site) -> None:
    playbook_id = site.created()
    document = site.json("author", "playbook", "get", playbook_id)
    text = yaml.safe_dump(document).replace("May it close?", "May it really close?")
    updated = site.inner(
        "playbook", "second", "playbook", "update", playbook_id, "--revision", "1", "-f", "-",
        stdin=text,
    )  # fmt: skip
    assert updated["revision"] == "2"
    assert "May it really close?" in json.dumps(updated)
    args = ("playbook", "update", playbook_id, "--revision", "1", "-f", "-")
    stale = site.as_("author", *args, stdin=PLAYBOOK)
    assert stale.exit_code == Exit.REFUSED
    assert stale.stderr.startswith("ABORTED: ")


def test_what_the_console_refuses_of_a_file_is_told_by_its_line_and_spelling(
    site: Site, tmp_path: Path
) -> None:
    file = tmp_path / "quality.yaml"
    file.write_text(
        PLAYBOOK.replace("id: approve", "id: ..").replace("Ask before", "x" * 121)
        + "  - kind: DETECT\n"
        + "    dispatchAgent: {agent: nobody, timeoutMinutes: 0}\n"
    )
    result = site.as_("author", "playbook", "create", "-f", str(file))
    assert (result.exit_code, result.stdout) == (Exit.REFUSED, "")
    assert {line.removeprefix(f"{file}, ") for line in result.stderr.splitlines()} == {
        "line 1: name: has 138 characters; at most 120",
        "line 3: id: is not 1 to 64 of A-Z a-z 0-9 . _ - (and not . or ..)",
        "line 6: steps[1].id: is not 1 to 64 of A-Z a-z 0-9 . _ - (and not . or ..)",
        (
            "line 7: agent: is not one of the six agents: datagov, compliance, risk, judge, recon, "
            "curator"
        ),
        "line 7: timeoutMinutes: is 0; it takes 5 to 240",
    }


def test_one_refused_field_is_told_once(site: Site) -> None:
    result = site.as_(
        "author", "playbook", "create", "-f", "-", stdin=PLAYBOOK + "status: ACTIVE\n"
    )
    assert result.stderr == (
        "standard input, line 6: status is server-managed: a playbook is written as DRAFT "
        "and becomes ACTIVE only by ActivatePlaybook (four eyes)\n"
    )
    rejected = site.as_(
        "second", "approval", "decide", site.run_of_an_active_playbook(), "approve", "--reject"
    )
    assert (rejected.exit_code, len(rejected.stderr.splitlines())) == (Exit.REFUSED, 1)


def test_who_may_not_is_refused(site: Site) -> None:
    no_admin = site.as_("stranger", "playbook", "create", "-f", "-", stdin=PLAYBOOK)
    assert (no_admin.exit_code, no_admin.stdout) == (Exit.REFUSED, "")
    assert no_admin.stderr.startswith("PERMISSION_DENIED: stranger@example.com is not an Atlas")
    no_auditor = site.as_("author", "audit", "list")
    assert no_auditor.stderr.startswith("PERMISSION_DENIED: author@example.com may not read")
    for token in ("", "no-token-of-ours"):
        nobody = site.as_(token, "playbook", "list")
        assert nobody.exit_code == Exit.REFUSED
        assert nobody.stderr.startswith("UNAUTHENTICATED: ")


def test_a_cancelled_run_is_a_failure_to_its_watcher(site: Site) -> None:
    run_id = site.run_of_an_active_playbook()
    assert site.as_("author", "run", "cancel", run_id, "--note", "wrong").exit_code == Exit.OK
    watched = site.as_("author", "run", "watch", run_id)
    assert watched.exit_code == Exit.REFUSED
    assert "CANCELLED" in watched.stdout
    again = site.as_("author", "run", "cancel", run_id, "--note", "wrong")
    assert again.exit_code in {Exit.OK, Exit.REFUSED}


def test_the_lists_answer_and_page(site: Site) -> None:
    ids = {site.created(PLAYBOOK.replace("Ask", f"Ask {number}")) for number in range(3)}
    first = site.json("author", "playbook", "list", "--page-size", "2")
    token = str(first["nextPageToken"])
    second = site.json("author", "playbook", "list", "--page-size", "2", "--page-token", token)
    listed = [found for page in (first, second) for found in page["playbooks"]]  # type: ignore[attr-defined]  # JSON has no types
    assert {found["id"] for found in listed} == ids
    assert site.as_("author", "run", "list").exit_code == Exit.OK
    assert "why not: " in site.as_("author", "agents").stdout
    assert "identity.token.issue" in site.as_("auditor", "audit", "list").stdout


def test_a_rotated_key_ends_the_tokens_of_a_running_console(site: Site) -> None:
    assert site.as_("author", "playbook", "list").exit_code == Exit.OK
    assert site.run("init", "--rotate", CONSOLE_APPFS_DIR=str(site.root)).exit_code == Exit.OK
    ended = site.as_("author", "playbook", "list")
    assert ended.exit_code == Exit.REFUSED
    assert "issue a new one" in ended.stderr


def test_an_open_console_reads_and_refuses_to_write(tmp_path: Path, run: Cli) -> None:
    environ = {"CONSOLE_APPFS_DIR": str(tmp_path), "CONSOLE_GRPC_ADDR": "127.0.0.1:0"}
    with Served(environ) as served:
        assert run("playbook", "list", CORE_CONSOLE_URL=served.address).exit_code == Exit.OK
        write = run(
            "playbook", "create", "-f", "-", stdin=PLAYBOOK, CORE_CONSOLE_URL=served.address
        )
    assert write.exit_code == Exit.REFUSED
    assert write.stderr.startswith("UNAUTHENTICATED: this console has no sign-in configured")
