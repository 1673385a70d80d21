"""Playbooks are written, reviewed, switched and deleted by people, and never by half."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from core_console.decide.commands import (
    ActivatePlaybook,
    Command,
    CreatePlaybook,
    DeletePlaybook,
    DraftPlaybook,
    PausePlaybook,
    ResumePlaybook,
    UpdatePlaybook,
)
from core_console.decide.context import Context
from core_console.decide.outcome import Code
from core_console.model.codec import spec_digest
from core_console.model.document import Deletion, Document
from core_console.model.playbook import Playbook, PlaybookStatus
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    STRANGER,
    a_document,
    a_playbook,
    a_run_at,
    a_spec,
    approve,
    context,
    later,
    notify,
)
from tests.decide.verdicts import accepted, refused, repeated, said, the_playbook, unchanged
from tests.fakes import CountingIds

DRAFT, ACTIVE, PAUSED = PlaybookStatus.DRAFT, PlaybookStatus.ACTIVE, PlaybookStatus.PAUSED
NEW_SPEC = a_spec(notify())
YESTERDAY = "2026-11-29T12:00:00Z"
UNKNOWN: list[Command] = [
    UpdatePlaybook(AUTHOR, "PB-9", 1, NEW_SPEC),
    DeletePlaybook(AUTHOR, "PB-9"),
    ActivatePlaybook(SECOND, "PB-9", 1),
    PausePlaybook(AUTHOR, "PB-9"),
    ResumePlaybook(AUTHOR, "PB-9"),
]


def test_a_playbook_is_written_as_draft_with_everything_set_by_the_console() -> None:
    outcome = accepted(a_document(), CreatePlaybook(AUTHOR, NEW_SPEC))
    assert the_playbook(outcome) == Playbook(
        id="PB-1",
        spec=NEW_SPEC,
        spec_digest=spec_digest(NEW_SPEC),
        status=DRAFT,
        revision=1,
        created_by=AUTHOR,
        created_at=NOW,
        updated_by=AUTHOR,
        updated_at=NOW,
        changed=11,
        editors=(AUTHOR,),
    )
    assert said(outcome) == [(AUTHOR, "atlas.playbooks.create", "PB-1", "success")]
    assert outcome.entries[0].detail == (
        f"{AUTHOR} wrote playbook PB-1 as DRAFT (spec sha256 {spec_digest(NEW_SPEC)})"
    )


def test_a_playbook_that_the_findings_ask_for_is_a_draft_like_any_other() -> None:
    outcome = accepted(a_document(), DraftPlaybook(AUTHOR, NEW_SPEC))
    written = accepted(a_document(), CreatePlaybook(AUTHOR, NEW_SPEC))
    assert the_playbook(outcome) == the_playbook(written)
    assert said(outcome) == [(AUTHOR, "atlas.playbooks.draft", "PB-1", "success")]
    assert outcome.entries[0].detail.startswith(f"{AUTHOR} drafted from the CapEx findings")


def test_names_need_not_be_unique() -> None:
    ids = CountingIds()
    first = accepted(a_document(), CreatePlaybook(AUTHOR, NEW_SPEC), context(ids=ids))
    second = accepted(first.document, CreatePlaybook(AUTHOR, NEW_SPEC), context(ids=ids))
    assert list(second.document.playbooks) == ["PB-1", "PB-2"]


@pytest.mark.parametrize(
    "command",
    [CreatePlaybook(AUTHOR, a_spec(name="")), UpdatePlaybook(AUTHOR, "PB-1", 1, a_spec(name=""))],
)
def test_a_bad_spec_is_refused_by_field(command: Command) -> None:
    document = a_document(a_playbook(status=DRAFT))
    refusal = refused(document, command, Code.INVALID_ARGUMENT, "playbook.name: is required")
    assert [each.field for each in refusal.violations] == ["playbook.name"]


def test_the_lists_of_the_console_count_when_a_spec_is_saved() -> None:
    command = CreatePlaybook(AUTHOR, a_spec(approve()))
    reason = (
        "playbook.steps[0].require_approval.approver: leaves nobody able to decide: "
        "the only Atlas admin would also start the runs"
    )
    refused(a_document(), command, Code.INVALID_ARGUMENT, reason, context(admins={AUTHOR}))


def test_there_are_at_most_a_hundred_playbooks() -> None:
    playbooks = [a_playbook(id=f"PB-{number}") for number in range(1, 101)]
    ids = CountingIds()
    for _ in playbooks:
        ids.new("PB")
    command = CreatePlaybook(AUTHOR, NEW_SPEC)
    last = accepted(a_document(*playbooks[:99]), command, context(ids=ids))
    assert len(last.document.playbooks) == 100
    reason = "there are 100 playbooks, which is the most; delete one first"
    refused(a_document(*playbooks), command, Code.RESOURCE_EXHAUSTED, reason)


@pytest.mark.parametrize("command", UNKNOWN)
def test_an_unknown_playbook_is_not_found(command: Command) -> None:
    refused(a_document(a_playbook()), command, Code.NOT_FOUND, "playbook PB-9 does not exist")


@pytest.mark.parametrize("odd", ["", "ghp_secret", "a/b", "x" * 65, "\n"])
def test_an_odd_id_is_not_repeated(odd: str) -> None:
    reason = "a playbook of that id does not exist"
    refused(a_document(), PausePlaybook(AUTHOR, odd), Code.NOT_FOUND, reason)


@pytest.mark.parametrize("status", list(PlaybookStatus))
def test_an_edit_returns_the_playbook_to_draft(status: PlaybookStatus) -> None:
    before = a_playbook(status=status)
    command = UpdatePlaybook(SECOND, "PB-1", before.revision, NEW_SPEC)
    outcome = accepted(a_document(before), command)
    editors = (AUTHOR, SECOND) if status is DRAFT else (SECOND,)
    assert the_playbook(outcome) == replace(
        before,
        spec=NEW_SPEC,
        spec_digest=spec_digest(NEW_SPEC),
        status=DRAFT,
        revision=before.revision + 1,
        updated_by=SECOND,
        updated_at=NOW,
        changed=11,
        editors=editors,
    )
    assert said(outcome) == [(SECOND, "atlas.playbooks.update", "PB-1", "success")]
    assert outcome.entries[0].detail == (
        f"{SECOND} edited playbook PB-1: {status} revision {before.revision} became DRAFT "
        f"revision {before.revision + 1} (spec sha256 {spec_digest(NEW_SPEC)})"
    )


@pytest.mark.parametrize("status", list(PlaybookStatus))
def test_an_edit_that_changes_nothing_changes_nothing(status: PlaybookStatus) -> None:
    playbook = a_playbook(status=status)
    command = UpdatePlaybook(SECOND, "PB-1", playbook.revision, playbook.spec)
    outcome = unchanged(a_document(playbook), command)
    assert (outcome.answer, outcome.duplicate) == (playbook, False)


def test_an_editor_is_listed_once() -> None:
    playbook = a_playbook(status=DRAFT)
    outcome = accepted(a_document(playbook), UpdatePlaybook(AUTHOR, "PB-1", 1, NEW_SPEC))
    assert the_playbook(outcome).editors == (AUTHOR,)


def test_there_are_at_most_fifty_editors_between_activations() -> None:
    fifty = tuple(f"e{number}@example.com" for number in range(50))
    reason = (
        "playbook PB-1 has 50 editors since its last activation, which is the most; "
        "activate it, or write a new one"
    )
    document = a_document(a_playbook(status=DRAFT, editors=fifty))
    another = UpdatePlaybook(AUTHOR, "PB-1", 1, NEW_SPEC)
    refused(document, another, Code.RESOURCE_EXHAUSTED, reason)
    accepted(document, replace(another, actor=fifty[7]))
    fewer = a_document(a_playbook(status=DRAFT, editors=fifty[:49]))
    assert len(the_playbook(accepted(fewer, another)).editors) == 50


@pytest.mark.parametrize("revision", [1, 3, 2**62])
@pytest.mark.parametrize(
    "command",
    [UpdatePlaybook(AUTHOR, "PB-1", 0, a_spec(name="")), ActivatePlaybook(AUTHOR, "PB-1", 0)],
)
def test_a_stale_revision_is_told_before_anything_else(
    command: UpdatePlaybook | ActivatePlaybook, revision: int
) -> None:
    document = a_document(a_playbook())
    reason = f"playbook PB-1 is at revision 2, not {revision}; read it again"
    refused(document, replace(command, revision=revision), Code.ABORTED, reason)


@pytest.mark.parametrize("revision", [0, -1])
@pytest.mark.parametrize("playbook_id", ["PB-1", "PB-9"])
def test_the_revision_is_required(revision: int, playbook_id: str) -> None:
    document = a_document(a_playbook(status=DRAFT))
    refused(
        document,
        UpdatePlaybook(AUTHOR, playbook_id, revision, NEW_SPEC),
        Code.INVALID_ARGUMENT,
        "revision: is required: the revision that was read",
    )
    refused(
        document,
        ActivatePlaybook(SECOND, playbook_id, revision),
        Code.INVALID_ARGUMENT,
        "revision: is required: the revision that was reviewed",
    )


def test_a_deleted_playbook_leaves_its_finished_runs() -> None:
    playbook = a_playbook(notify())
    document = a_document(playbook, a_playbook(id="PB-2"))
    outcome = accepted(document, DeletePlaybook(STRANGER, "PB-1"))
    assert outcome.document == replace(
        document,
        playbooks={"PB-2": a_playbook(id="PB-2")},
        deleted=(Deletion("PB-1", document.revision + 1),),
    )
    assert outcome.answer is None
    assert said(outcome) == [(STRANGER, "atlas.playbooks.delete", "PB-1", "success")]
    assert outcome.entries[0].detail == f"{STRANGER} deleted playbook PB-1 at revision 2"


@pytest.mark.parametrize("status", list(PlaybookStatus))
def test_a_playbook_with_a_run_in_flight_is_not_deleted(status: PlaybookStatus) -> None:
    playbook = a_playbook(status=status)
    document = a_document(playbook, a_run_at(playbook, "detect"))
    reason = (
        "playbook PB-1 has a run in flight (PBR-1, WAITING_AGENT); cancel it or wait for its end"
    )
    refused(document, DeletePlaybook(AUTHOR, "PB-1"), Code.FAILED_PRECONDITION, reason)


def test_the_second_operator_activates_exactly_what_was_reviewed() -> None:
    draft = a_playbook(status=DRAFT, updated_by=STRANGER, editors=(AUTHOR, STRANGER))
    outcome = accepted(a_document(draft), ActivatePlaybook(SECOND, "PB-1", 1))
    assert the_playbook(outcome) == replace(
        draft,
        status=ACTIVE,
        revision=2,
        changed=11,
        activated_by=SECOND,
        activated_at=NOW,
        activated_revision=1,
        switched_by=SECOND,
        switched_at=NOW,
        editors=(),
    )
    assert said(outcome) == [(SECOND, "atlas.playbooks.activate", "PB-1", "success")]
    assert outcome.entries[0].detail == (
        f"{SECOND} activated revision 1 of playbook PB-1, written by {AUTHOR} and last edited "
        f"by {STRANGER} (spec sha256 {draft.spec_digest})"
    )


@pytest.mark.parametrize(
    ("actor", "changes", "bar_all", "reason"),
    [
        (AUTHOR, {}, False, "wrote this playbook"),
        (AUTHOR, {"updated_by": STRANGER}, False, "wrote this playbook"),
        (STRANGER, {"updated_by": STRANGER}, False, "was the last to edit this playbook"),
        (
            STRANGER,
            {"editors": (AUTHOR, STRANGER)},
            True,
            "edited this playbook since its last activation",
        ),
    ],
)
def test_neither_the_author_nor_the_last_editor_may_activate(
    actor: str, changes: dict[str, Any], reason: str, *, bar_all: bool
) -> None:
    document = a_document(replace(a_playbook(status=DRAFT), **changes))
    sentence = f"four eyes: {actor} {reason}; another Atlas admin must activate it"
    command = ActivatePlaybook(actor, "PB-1", 1)
    here = context(bar_all_editors=bar_all)
    refused(document, command, Code.PERMISSION_DENIED, sentence, here)


def test_an_earlier_editor_may_activate_unless_all_are_barred() -> None:
    document = a_document(a_playbook(status=DRAFT, editors=(AUTHOR, STRANGER)))
    accepted(document, ActivatePlaybook(STRANGER, "PB-1", 1))


def test_only_an_admin_activates() -> None:
    refused(
        a_document(a_playbook(status=DRAFT)),
        ActivatePlaybook(SECOND, "PB-1", 1),
        Code.PERMISSION_DENIED,
        f"{SECOND} is not an Atlas admin; only an Atlas admin may activate a playbook",
        context(admins={AUTHOR, STRANGER}),
    )


@pytest.mark.parametrize("revision", [1, 2])
def test_the_same_activation_again_is_ok(revision: int) -> None:
    document = a_document(a_playbook())
    outcome = repeated(document, ActivatePlaybook(SECOND, "PB-1", revision))
    assert outcome.answer == document.playbooks["PB-1"]


@pytest.mark.parametrize("revision", [3, 7])
def test_another_revision_is_no_repetition(revision: int) -> None:
    reason = f"playbook PB-1 is at revision 2, not {revision}; read it again"
    command = ActivatePlaybook(SECOND, "PB-1", revision)
    refused(a_document(a_playbook()), command, Code.ABORTED, reason)


def test_an_activation_by_another_is_told_who_was_first() -> None:
    reason = (
        f"playbook PB-1 is ACTIVE (by {SECOND} at {YESTERDAY}); "
        "only a playbook that is DRAFT can be activated"
    )
    command = ActivatePlaybook(STRANGER, "PB-1", 2)
    refused(a_document(a_playbook()), command, Code.FAILED_PRECONDITION, reason)


def test_a_paused_playbook_is_not_activated_past_its_four_eyes() -> None:
    reason = (
        f"playbook PB-1 is PAUSED (by {AUTHOR} at {YESTERDAY}); "
        "only a playbook that is DRAFT can be activated"
    )
    document = a_document(a_playbook(status=PAUSED))
    refused(document, ActivatePlaybook(SECOND, "PB-1", 3), Code.FAILED_PRECONDITION, reason)


def test_an_old_activation_is_no_licence_for_what_was_edited_since() -> None:
    edited = accepted(a_document(a_playbook()), UpdatePlaybook(AUTHOR, "PB-1", 2, NEW_SPEC))
    reason = "playbook PB-1 is at revision 3, not 1; read it again"
    refused(edited.document, ActivatePlaybook(SECOND, "PB-1", 1), Code.ABORTED, reason)
    again = accepted(edited.document, ActivatePlaybook(SECOND, "PB-1", 3))
    assert (the_playbook(again).revision, the_playbook(again).activated_revision) == (4, 3)


def test_whoever_edits_after_activating_is_barred_from_the_next_activation() -> None:
    edited = accepted(a_document(a_playbook()), UpdatePlaybook(SECOND, "PB-1", 2, NEW_SPEC))
    for actor in (AUTHOR, SECOND):
        command = ActivatePlaybook(actor, "PB-1", 3)
        why = "wrote this playbook" if actor == AUTHOR else "was the last to edit this playbook"
        sentence = f"four eyes: {actor} {why}; another Atlas admin must activate it"
        refused(edited.document, command, Code.PERMISSION_DENIED, sentence)
    accepted(edited.document, ActivatePlaybook(STRANGER, "PB-1", 3))


@pytest.mark.parametrize(
    ("before", "command", "after", "word"),
    [
        (ACTIVE, PausePlaybook(STRANGER, "PB-1"), PAUSED, "pause"),
        (PAUSED, ResumePlaybook(STRANGER, "PB-1"), ACTIVE, "resume"),
    ],
)
def test_a_switch_moves_the_status_and_the_revision_alone(
    before: PlaybookStatus, command: Command, after: PlaybookStatus, word: str
) -> None:
    playbook = a_playbook(status=before)
    document = a_document(playbook, a_run_at(playbook, "detect"))
    outcome = accepted(document, command)
    assert the_playbook(outcome) == replace(
        playbook,
        status=after,
        revision=playbook.revision + 1,
        changed=11,
        switched_by=STRANGER,
        switched_at=NOW,
    )
    assert outcome.document.running == document.running
    assert said(outcome) == [(STRANGER, f"atlas.playbooks.{word}", "PB-1", "success")]
    assert outcome.entries[0].detail == (
        f"{STRANGER} {word}d playbook PB-1 at revision {playbook.revision}"
    )


def test_the_same_switch_again_by_the_same_person_is_ok() -> None:
    paused = accepted(a_document(a_playbook()), PausePlaybook(STRANGER, "PB-1"))
    repeated(paused.document, PausePlaybook(STRANGER, "PB-1"))
    resumed = accepted(paused.document, ResumePlaybook(STRANGER, "PB-1"))
    repeated(resumed.document, ResumePlaybook(STRANGER, "PB-1"))


def wrong(status: PlaybookStatus, by: str, needed: PlaybookStatus, word: str) -> str:
    return (
        f"playbook PB-1 is {status} (by {by} at {YESTERDAY}); "
        f"only a playbook that is {needed} can be {word}"
    )


@pytest.mark.parametrize(
    ("status", "command", "reason"),
    [
        (DRAFT, PausePlaybook(AUTHOR, "PB-1"), wrong(DRAFT, AUTHOR, ACTIVE, "paused")),
        (PAUSED, PausePlaybook(SECOND, "PB-1"), wrong(PAUSED, AUTHOR, ACTIVE, "paused")),
        (DRAFT, ResumePlaybook(AUTHOR, "PB-1"), wrong(DRAFT, AUTHOR, PAUSED, "resumed")),
        (ACTIVE, ResumePlaybook(AUTHOR, "PB-1"), wrong(ACTIVE, SECOND, PAUSED, "resumed")),
        # Who activated has not resumed: this is no repetition.
        (ACTIVE, ResumePlaybook(SECOND, "PB-1"), wrong(ACTIVE, SECOND, PAUSED, "resumed")),
    ],
)
def test_a_switch_in_the_wrong_state_names_status_who_and_when(
    status: PlaybookStatus, command: Command, reason: str
) -> None:
    refused(a_document(a_playbook(status=status)), command, Code.FAILED_PRECONDITION, reason)


def test_a_draft_that_was_active_before_is_told_by_its_last_edit() -> None:
    edited = accepted(a_document(a_playbook()), UpdatePlaybook(STRANGER, "PB-1", 2, NEW_SPEC))
    reason = (
        f"playbook PB-1 is DRAFT (by {STRANGER} at 2026-11-30T12:00:00Z); "
        "only a playbook that is ACTIVE can be paused"
    )
    command = PausePlaybook(AUTHOR, "PB-1")
    refused(edited.document, command, Code.FAILED_PRECONDITION, reason)


def test_every_change_raises_the_revision_by_one() -> None:
    ids = CountingIds()

    def at(minute: int) -> Context:
        return context(now=NOW + timedelta(minutes=minute), ids=ids)

    steps: list[Command] = [
        CreatePlaybook(AUTHOR, a_spec()),
        ActivatePlaybook(SECOND, "PB-1", 1),
        PausePlaybook(AUTHOR, "PB-1"),
        ResumePlaybook(SECOND, "PB-1"),
        UpdatePlaybook(STRANGER, "PB-1", 4, NEW_SPEC),
    ]
    document: Document = a_document()
    for number, command in enumerate(steps, start=1):
        outcome = accepted(document, command, at(number))
        document = outcome.document
        assert the_playbook(outcome).revision == number
    playbook = document.playbooks["PB-1"]
    assert (playbook.activated_at, playbook.switched_at, playbook.updated_at) == (
        later(minutes=2),
        later(minutes=4),
        later(minutes=5),
    )
