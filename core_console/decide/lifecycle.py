"""Writing, editing, deleting and switching playbooks.

Owns every decision about a playbook that is not a run. A refused command changes nothing.
"""

from msgspec.structs import replace

from core_console.decide import firing, foureyes, history
from core_console.decide import spec as specs
from core_console.decide.commands import (
    ActivatePlaybook,
    CreatePlaybook,
    DeletePlaybook,
    DraftPlaybook,
    PausePlaybook,
    ResumePlaybook,
    UpdatePlaybook,
)
from core_console.decide.context import Context
from core_console.decide.identity import is_admin
from core_console.decide.outcome import Accepted, Code, Outcome, Refused, Violation, invalid
from core_console.decide.record import entry, utc_seconds
from core_console.decide.status import PLAYBOOK_MOVES
from core_console.model.codec import spec_digest
from core_console.model.document import Document
from core_console.model.playbook import Playbook, PlaybookStatus

PLAYBOOKS_MAX = 100
"""One document bounds one console's work on purpose (contract, section 9)."""


EDITORS_MAX = 50
"""An e-mail has up to 254 bytes, so an unbounded list of editors could outgrow the spec."""


def create(
    document: Document, command: CreatePlaybook | DraftPlaybook, context: Context
) -> Outcome:
    """Write a new playbook, always as DRAFT; one drafted from findings is recorded as such."""
    wrong = specs.violations(command.spec, admission=context.admission, now=context.now)
    if wrong:
        return invalid(*wrong)
    if len(document.playbooks) >= PLAYBOOKS_MAX:
        return Refused(
            Code.RESOURCE_EXHAUSTED,
            f"there are {PLAYBOOKS_MAX} playbooks, which is the most; delete one first",
        )
    playbook = Playbook(
        id=context.ids.new("PB"),
        spec=command.spec,
        spec_digest=spec_digest(command.spec),
        status=PlaybookStatus.DRAFT,
        revision=1,
        created_by=command.actor,
        created_at=context.now,
        updated_by=command.actor,
        updated_at=context.now,
        changed=document.revision + 1,
        editors=(command.actor,),
    )
    drafted = isinstance(command, DraftPlaybook)
    how = "drafted from the CapEx findings" if drafted else "wrote"
    sentence = f"{command.actor} {how} playbook {playbook.id} as DRAFT{_spec_of(playbook)}"
    word = "draft" if drafted else "create"
    return _stored(document, playbook, word, command.actor, sentence, context)


def update(document: Document, command: UpdatePlaybook, context: Context) -> Outcome:
    """Replace the spec of the revision that was read; a change returns the playbook to DRAFT."""
    if command.revision <= 0:
        return invalid(Violation("revision", "is required: the revision that was read"))
    playbook = document.playbooks.get(command.id)
    if playbook is None:
        return unknown_playbook(command.id)
    if command.revision != playbook.revision:
        return _stale(playbook, command.revision)
    if command.spec == playbook.spec:
        # Before it is checked: what is stored may not be valid any more (the admins changed).
        return Accepted(document, playbook)
    wrong = specs.violations(command.spec, admission=context.admission, now=context.now)
    if wrong:
        return invalid(*wrong)
    return _edited(document, playbook, command, context)


def _edited(
    document: Document, playbook: Playbook, command: UpdatePlaybook, context: Context
) -> Outcome:
    editors = playbook.editors
    if command.actor not in editors:
        editors = (*editors, command.actor)
    if len(editors) > EDITORS_MAX:
        return Refused(
            Code.RESOURCE_EXHAUSTED,
            f"playbook {playbook.id} has {EDITORS_MAX} editors since its last activation, which "
            "is the most; activate it, or write a new one",
        )
    edited = replace(
        playbook,
        spec=command.spec,
        spec_digest=spec_digest(command.spec),
        status=PLAYBOOK_MOVES[playbook.status, "edit"],
        revision=playbook.revision + 1,
        updated_by=command.actor,
        updated_at=context.now,
        changed=document.revision + 1,
        editors=editors,
        trigger_states=firing.kept(playbook, command.spec.triggers),
    )
    sentence = (
        f"{command.actor} edited playbook {edited.id}: {playbook.status} revision "
        f"{playbook.revision} became DRAFT revision {edited.revision}{_spec_of(edited)}"
    )
    return _stored(document, edited, "update", command.actor, sentence, context)


def delete(document: Document, command: DeletePlaybook, context: Context) -> Outcome:
    """Delete a playbook that has no run in flight; finished runs keep their copy."""
    playbook = document.playbooks.get(command.id)
    if playbook is None:
        return unknown_playbook(command.id)
    run = document.running.get(command.id)
    if run is not None:
        return Refused(
            Code.FAILED_PRECONDITION,
            f"playbook {command.id} has a run in flight ({run.id}, {run.status}); "
            "cancel it or wait for its end",
        )
    rest = {key: value for key, value in document.playbooks.items() if key != command.id}
    sentence = f"{command.actor} deleted playbook {command.id} at revision {playbook.revision}"
    record = entry(context, command.actor, "atlas.playbooks.delete", (command.id,), sentence)
    remembering = history.with_deletion(document, command.id)
    return Accepted(replace(remembering, playbooks=rest), None, (record,))


def activate(document: Document, command: ActivatePlaybook, context: Context) -> Outcome:
    """Make exactly the reviewed revision ACTIVE, if its four eyes are met."""
    if command.revision <= 0:
        return invalid(Violation("revision", "is required: the revision that was reviewed"))
    playbook = document.playbooks.get(command.id)
    if playbook is None:
        return unknown_playbook(command.id)
    if _is_activated(playbook, command):
        return Accepted(document, playbook, duplicate=True)
    if command.revision != playbook.revision:
        return _stale(playbook, command.revision)
    if (playbook.status, "activate") not in PLAYBOOK_MOVES:
        return _wrong_status(playbook, "activate", PlaybookStatus.DRAFT)
    objection = _activation_objection(playbook, command.actor, context)
    if objection:
        return Refused(Code.PERMISSION_DENIED, objection)
    return _activated(document, playbook, command, context)


def _is_activated(playbook: Playbook, command: ActivatePlaybook) -> bool:
    """Say whether this very activation was made before: repeating a decision is no error."""
    return (
        playbook.status is PlaybookStatus.ACTIVE
        and playbook.activated_by == command.actor
        and command.revision in (playbook.activated_revision, playbook.revision)
    )


def _activation_objection(playbook: Playbook, actor: str, context: Context) -> str:
    if not is_admin(actor, context.admission):
        return f"{actor} is not an Atlas admin; only an Atlas admin may activate a playbook"
    rule = foureyes.activation(playbook, context.admission, bar_all_editors=context.bar_all_editors)
    return rule.objection(actor)


def _activated(
    document: Document, playbook: Playbook, command: ActivatePlaybook, context: Context
) -> Accepted:
    active = replace(
        _moved(document, playbook, "activate", command.actor, context),
        activated_by=command.actor,
        activated_at=context.now,
        activated_revision=command.revision,
        editors=(),
    )
    sentence = (
        f"{command.actor} activated revision {command.revision} of playbook {active.id}, "
        f"written by {playbook.created_by} and last edited by {playbook.updated_by}"
        f"{_spec_of(active)}"
    )
    return _stored(document, active, "activate", command.actor, sentence, context)


def pause(document: Document, command: PausePlaybook, context: Context) -> Outcome:
    """Stop an ACTIVE playbook from starting runs; runs in flight go on."""
    return _switch(document, command, "pause", context)


def resume(document: Document, command: ResumePlaybook, context: Context) -> Outcome:
    """Make a PAUSED playbook ACTIVE again."""
    return _switch(document, command, "resume", context)


def unknown_playbook(playbook_id: str) -> Refused:
    """Return the refusal of an id that no playbook has."""
    return Refused(Code.NOT_FOUND, f"{specs.named('playbook', playbook_id)} does not exist")


def _switch(
    document: Document, command: PausePlaybook | ResumePlaybook, move: str, context: Context
) -> Outcome:
    playbook = document.playbooks.get(command.id)
    if playbook is None:
        return unknown_playbook(command.id)
    before, after = next(
        (status, result) for (status, name), result in PLAYBOOK_MOVES.items() if name == move
    )
    if playbook.status is after and _was_switched(playbook, command.actor):
        return Accepted(document, playbook, duplicate=True)
    if playbook.status is not before:
        return _wrong_status(playbook, move, before)
    moved = _moved(document, playbook, move, command.actor, context)
    sentence = f"{command.actor} {move}d playbook {moved.id} at revision {playbook.revision}"
    return _stored(document, moved, move, command.actor, sentence, context)


def _was_switched(playbook: Playbook, actor: str) -> bool:
    """Say whether this operator made the last switch, and it was a pause or a resume.

    An activation makes a playbook ACTIVE too, but who activated has not resumed; it is the last
    switch exactly while the revision is the next after the activated one.
    """
    by_activation = playbook.revision == playbook.activated_revision + 1
    return playbook.switched_by == actor and not by_activation


def _moved(
    document: Document, playbook: Playbook, move: str, actor: str, context: Context
) -> Playbook:
    status = PLAYBOOK_MOVES[playbook.status, move]
    states = playbook.trigger_states
    if status is PlaybookStatus.ACTIVE:
        states = firing.from_now(playbook, context.now)
    return replace(
        playbook,
        status=status,
        revision=playbook.revision + 1,
        changed=document.revision + 1,
        switched_by=actor,
        switched_at=context.now,
        trigger_states=states,
    )


def _stored(
    document: Document, playbook: Playbook, word: str, actor: str, sentence: str, context: Context
) -> Accepted:
    record = entry(context, actor, f"atlas.playbooks.{word}", (playbook.id,), sentence)
    playbooks = document.playbooks | {playbook.id: playbook}
    return Accepted(replace(document, playbooks=playbooks), playbook, (record,))


def _stale(playbook: Playbook, revision: int) -> Refused:
    return Refused(
        Code.ABORTED,
        f"playbook {playbook.id} is at revision {playbook.revision}, not {revision}; read it again",
    )


def _wrong_status(playbook: Playbook, move: str, needed: PlaybookStatus) -> Refused:
    who, when = playbook.switched_by, playbook.switched_at
    if playbook.status is PlaybookStatus.DRAFT or when is None:
        who, when = playbook.updated_by, playbook.updated_at
    return Refused(
        Code.FAILED_PRECONDITION,
        f"playbook {playbook.id} is {playbook.status} (by {who} at {utc_seconds(when)}); "
        f"only a playbook that is {needed} can be {move}d",
    )


def _spec_of(playbook: Playbook) -> str:
    return f" (spec sha256 {playbook.spec_digest})"
