"""Every document of a root, its blobs and its chain, put to their checks.

Owns the order of looking, which lets a console go on serving meanwhile. Never changes anything.
"""

from collections.abc import AsyncIterator

from core_console.governance.trail import Trail
from core_console.ports import Fault
from core_console.state import parts
from core_console.state.check import Recorded
from core_console.state.parts import Part, Root


async def faults(root: Root) -> AsyncIterator[str]:
    """Yield everything that is wrong, one sentence each, none when all is well."""
    try:
        async for fault in _chain(root):
            yield fault
    except Fault as error:
        yield f"audit chain: {error.message}"
    for name in parts.NAMES:
        try:
            async for fault in _document(root, name):
                yield f"{name}: {fault}"
        except Fault as error:
            yield f"{name}: {error.message}"


async def _chain(root: Root) -> AsyncIterator[str]:
    found = await Trail(root.log).verify()
    if not found.intact:
        yield f"audit chain: record {found.first_bad_seq} does not hold: {found.fault}"


async def _document(root: Root, name: str) -> AsyncIterator[str]:
    before = await root.chain.last_number(name)
    part = await parts.read(root, name)
    after = await root.chain.last_number(name)
    for fault in part.faults(Recorded(before, after)):
        yield fault
    if part.is_stored:
        async for fault in _blobs(root, part):
            yield fault


async def _blobs(root: Root, part: Part) -> AsyncIterator[str]:
    gone: list[str] = []
    for digest, what in part.blobs().items():
        try:
            await root.blobs[part.name].get(digest)
        except Fault as error:
            gone.append(f"the {what} cannot be read: {error.message}")
    if gone and (await parts.read(root, part.name)).blobs() == part.blobs():
        for fault in gone:
            yield fault
