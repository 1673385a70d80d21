"""Putting a backup back, while nobody serves the root.

Owns the order: everything is read and judged before anything is changed; what was decided is in
the chain before the document that decided it is replaced; the replaced document stays beside the
new one. Stopped at any point, it is simply done again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from core_console.governance.chain import decode
from core_console.model.audit import OutboxEntry
from core_console.model.document import Document
from core_console.ports import Fault
from core_console.state import backup, parts
from core_console.state.backup import ChainAt, Manifest, Source
from core_console.state.parts import Part, Root
from core_console.state.restored import Before, Why, restored


class Done(Struct, frozen=True, gc=False):
    """What a restore did: each document with its new revision, and the runs that it ended."""

    made_at: datetime
    revisions: dict[str, int]
    ended: int
    kept: tuple[str, ...]


class _Plan(Struct, frozen=True, gc=False):
    """What is going to be put in the place of one document."""

    new: Part
    old: Part | None
    blobs: tuple[str, ...]


async def restore(
    root: Root,
    source: Source,
    *,
    actor: str,
    now: datetime,
    swap_id: str,
    chain_is_lost: bool = False,
) -> Done:
    """Put the backup in place; call it only while nobody serves the root.

    Raises:
        Fault: the backup is not whole, breaks a promise or is not this root's, or the disk
            refuses. Until the first document is replaced nothing was changed.
    """
    manifest = backup.manifest_of(source)
    if not chain_is_lost:
        await _check_chain(root, manifest.chain)
    old = {name: await _readable(root, name) for name in parts.NAMES}
    found = {name: backup.document_of(source, manifest, name) for name in parts.NAMES}
    for part in found.values():
        backup.refuse_broken(part, "nothing was changed")
    why = Why(actor=actor, made_at=manifest.made_at, now=now, swap_id=swap_id)
    plans = await _plans(root, found, old, why)
    for plan in plans:
        for digest in plan.blobs:
            data = backup.blob_of(source, plan.new.name, digest)
            await root.blobs[plan.new.name].put(data)
    await _record_first(root, found, old)
    kept = f"replaced-{now:%Y%m%dT%H%M%SZ}"
    for plan in plans:
        await root.replace(plan.new.name, plan.new.data, kept)
    for plan in plans:
        await root.chain.drain(plan.new.name, plan.new.document.outbox)
    return _done(manifest, found, plans, kept)


async def _check_chain(root: Root, at: ChainAt) -> None:
    """Refuse a chain that does not hold what it held when the backup was made."""
    last = await root.log.last_seq()
    if last < at.seq:
        raise Fault(
            f"the audit chain ends at record {last}, and it held {at.seq} when the backup was "
            "made: put a newer copy of it in place, or say --chain-is-lost",
            retryable=False,
        )
    if at.seq and decode((await root.log.read(at.seq, 1))[0]).hash != at.hash:
        raise Fault(
            f"record {at.seq} of the audit chain is another one than when the backup was made: "
            "this is the backup of another root, or the chain was rewritten",
            retryable=False,
        )


async def _readable(root: Root, name: str) -> Part | None:
    """Return the document that is replaced, None when it cannot be read: that may be why."""
    try:
        return await parts.read(root, name)
    except Fault as fault:
        if fault.retryable:
            raise
        return None


async def _plans(
    root: Root, found: Mapping[str, Part], old: Mapping[str, Part | None], why: Why
) -> list[_Plan]:
    taken = _taken([*found.values(), *(part for part in old.values() if part is not None)])
    plans = []
    for name, part in found.items():
        here = old[name]
        if not part.is_stored and here is not None and not here.is_stored:
            continue
        before = Before(
            document=None if here is None else here.document,
            recorded=await root.chain.last_number(name),
            taken=taken,
        )
        new = parts.encoded(name, restored(part, before, why))
        backup.refuse_broken(new, "so it is not put in place, and nothing was changed")
        plans.append(_Plan(new, here, tuple(sorted(new.blobs()))))
    return plans


def _taken(documents: Sequence[Part]) -> dict[str, int]:
    """Return, by source, the highest number of a harness event that is known of anywhere."""
    taken: dict[str, int] = {}
    for part in documents:
        known = {part.name: getattr(part.document, "raising_number", 0)}
        if isinstance(part.document, Document):
            known = part.document.taken
        for source, number in known.items():
            taken[source] = max(number, taken.get(source, 0))
    return {source: number for source, number in taken.items() if number}


async def _record_first(
    root: Root, found: Mapping[str, Part], old: Mapping[str, Part | None]
) -> None:
    """Append what was decided and is not in the chain yet: of the replaced one, and the backup."""
    for name, part in found.items():
        for document in (old[name], part):
            if document is not None:
                last = await root.chain.last_number(name)
                await root.chain.drain(name, _following(document.document.outbox, last))


def _following(outbox: tuple[OutboxEntry, ...], last: int) -> tuple[OutboxEntry, ...]:
    """Return the entries that the chain lacks, none when others before them are lost."""
    missing = tuple(each for each in outbox if each.number > last)
    return missing if missing and missing[0].number == last + 1 else ()


def _done(manifest: Manifest, found: Mapping[str, Part], plans: Sequence[_Plan], kept: str) -> Done:
    running = (
        len(part.document.running) if isinstance(part.document, Document) else 0
        for part in found.values()
    )
    return Done(
        manifest.made_at,
        {plan.new.name: plan.new.document.revision for plan in plans},
        sum(running),
        tuple(f"{each.new.name}.{kept}" for each in plans if _was_there(each.old)),
    )


def _was_there(old: Part | None) -> bool:
    """Say whether there was a file to keep; one that could not be read was one."""
    return old is None or old.is_stored
