"""What `core-console state …` does: each command as a function of the root and its answer.

Owns what people read of the state at rest, and the lock that keeps a restore apart from whoever
serves. Never prints what somebody wrote, and never touches the operator key.
"""

import os
import pwd
from datetime import datetime
from functools import partial
from pathlib import Path

import click
import msgspec

from core_console.cli.failure import Exit, Failed
from core_console.cli.output import Form, say
from core_console.cli.stateroot import done
from core_console.cli.tables import Column, facts, prose, table
from core_console.clock import RandomIds, SystemClock
from core_console.model.document import Document
from core_console.ports import Fault
from core_console.state import backup as backups
from core_console.state import inspect, parts, show, size
from core_console.state import restore as restores
from core_console.state.parts import Part, Root
from core_console.store import archive, serving

_METADOC = parts.NAMES[-1]

_FAULTS_SHOWN = 20
"""The first of them tell what happened; the others are counted."""

_DOCUMENTS = (
    Column("DOCUMENT"),
    Column("REVISION"),
    Column("BYTES"),
    Column("TO RECORD"),
    prose("HOLDS"),
)
_CLAIMS = (
    Column("RUN"),
    Column("PLAYBOOK", rank=2),
    Column("STEP"),
    Column("STATUS"),
    Column("HELD BY", rank=1),
    Column("SINCE", rank=3),
    Column("DEADLINE"),
)


def show_state(root: Path, form: Form) -> None:
    """Print each document at a glance, and who holds which run."""
    found = done(root, partial(_shown, root))
    if form is Form.JSON:
        _print_json(found)
        return
    say(f"{'a console serves' if found.served else 'nobody serves'} this root")
    say(f"the audit chain holds {found.records} records")
    rows = [msgspec.structs.astuple(each) for each in found.documents]
    table(_DOCUMENTS, rows, empty="nothing")
    table(_CLAIMS, map(_claim, found.in_flight), empty="no run is in flight")


def _claim(claim: show.Claim) -> tuple[str, ...]:
    ids = (claim.run_id, claim.playbook_id, claim.step_id, claim.status, claim.held_by)
    return (*ids, _instant(claim.since), _instant(claim.deadline))


def _instant(at: datetime | None) -> str:
    return "" if at is None else f"{at:%Y-%m-%dT%H:%M:%SZ}"


async def _shown(path: Path, root: Root) -> show.State:
    found = [await parts.read(root, name) for name in parts.NAMES]
    numbers = {part.name: await root.chain.last_number(part.name) for part in found}
    return show.State(
        served=serving.is_served(path),
        records=await root.log.last_seq(),
        documents=tuple(show.shown(part, numbers[part.name]) for part in found),
        in_flight=show.claims(_metadoc(found)),
    )


def _metadoc(found: list[Part]) -> Document:
    return next(part.document for part in found if isinstance(part.document, Document))


def show_size(root: Path, form: Form) -> None:
    """Print what takes the room of the metadoc."""
    found = done(root, _measured)
    if form is Form.JSON:
        _print_json(found)
        return
    columns = (Column("KIND"), Column("ITEMS"), Column("BYTES"), prose("LARGEST"))
    table(columns, map(_room, found.kinds), empty="nothing")
    facts(
        (
            ("stored", f"{found.size_bytes:,} bytes at revision {found.revision}"),
            ("reserve", f"{found.reserve_bytes:,} bytes that runs in flight may still add"),
            ("spare", f"{found.spare_bytes:,} bytes"),
            ("budget", f"{found.budget_bytes:,} bytes"),
            ("free", f"{found.free_bytes:,} bytes before history is trimmed for new work"),
        )
    )


def _room(room: size.Room) -> tuple[str, ...]:
    largest = ", ".join(f"{item.id} ({item.size_bytes:,})" for item in room.largest)
    return room.kind, f"{room.items:,}", f"{room.size_bytes:,}", largest


async def _measured(root: Root) -> size.Size:
    part = await parts.read(root, _METADOC)
    return size.measure(_metadoc([part]), len(part.data))


def check(root: Path) -> None:
    """Print that all is well; raise Failed with the first faults when it is not."""
    found = done(root, _faults)
    if not found:
        say("all is well: every document, every blob and the audit chain hold")
        say(done(root, _judged))
        return
    more = len(found) - _FAULTS_SHOWN
    lines = found[:_FAULTS_SHOWN] + ([f"and {more} more"] if more > 0 else [])
    raise Failed(Exit.REFUSED, "the state is NOT sound", lines)


async def _faults(root: Root) -> list[str]:
    return [fault async for fault in inspect.faults(root)]


def backup(root: Path, file: Path) -> None:
    """Write a backup; raise Failed when it cannot be, and then there is no file."""
    manifest = done(root, partial(_backed_up, file))
    for each in manifest.documents:
        say(f"{each.name} at revision {each.revision}: {each.size_bytes} bytes")
    say(f"the backup of {manifest.made_at:%Y-%m-%dT%H:%M:%SZ} is written")


async def _judged(root: Root) -> str:
    """Return what there was to judge: an empty root holds too, and may be the wrong one."""
    stored = [name for name in parts.NAMES if (await parts.read(root, name)).is_stored]
    return f"judged: {', '.join(stored) or 'no document'}, {await root.log.last_seq()} records"


async def _backed_up(file: Path, root: Root) -> backups.Manifest:
    clock = SystemClock()
    with archive.writing(file, int(clock.now().timestamp())) as writer:
        return await backups.take(root, writer, clock)


def restore(root: Path, file: Path, *, chain_is_lost: bool) -> None:
    """Put a backup in place; raise Failed while anybody serves the root, or when it is not fit."""
    try:
        with serving.alone(root):
            told = done(root, partial(_restored, file, chain_is_lost), writes=True)
    except Fault as fault:
        raise Failed(Exit.REFUSED, fault.message) from None
    for name, revision in told.revisions.items():
        say(f"{name} goes on at revision {revision}")
    for name in told.kept:
        say(f"the document before it is kept as {name}")
    say(f"restored from the backup of {told.made_at:%Y-%m-%dT%H:%M:%SZ}: {told.ended} runs ended")


async def _restored(file: Path, chain_is_lost: bool, root: Root) -> restores.Done:  # noqa: FBT001 -- bound by partial, which the root follows
    clock, ids = SystemClock(), RandomIds()
    with archive.reading(file) as reader:
        return await restores.restore(
            root,
            reader,
            actor=f"os:{_os_user()}",
            now=clock.now(),
            swap_id=ids.new("RESTORE"),
            chain_is_lost=chain_is_lost,
        )


def _print_json(found: msgspec.Struct) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(found)).decode())


def _os_user() -> str:
    """Return the name of the user that runs this process, its number when it has none."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
