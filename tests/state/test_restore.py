"""A backup, and what a restore makes of it: nothing starts, and nothing is lost."""

from datetime import timedelta
from hashlib import sha256
from io import BytesIO
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from core_console.batch import CAPEX, METADOC
from core_console.decide.commands import RunNow, Tick
from core_console.decide.decide import decide
from core_console.decide.outcome import Accepted
from core_console.governance.chain import decode
from core_console.governance.verify import verify
from core_console.model.codec import CAPEX as CAPEX_CODEC
from core_console.model.codec import METADOC as METADOC_CODEC
from core_console.model.document import Document
from core_console.model.run import RunStatus, StepRunStatus
from core_console.ports import Fault
from core_console.reports import REPORTS
from core_console.state import backup, inspect, restore
from core_console.state.restored import UNREAD_REVISIONS
from tests.builders import AUTHOR, NOW, a_document, a_playbook, approve, context
from tests.state.conftest import Bag, Site, a_site, an_outbox, full

LATER = NOW + timedelta(days=2)
SAID = "restored from a backup of 2026-11-30T12:00:00Z"


async def taken(site: Site) -> Bag:
    bag = Bag()
    await backup.take(site.root, bag, site.clock)
    return bag


async def put_back(site: Site, bag: Bag, **options: Any) -> restore.Done:  # noqa: ANN401 -- any option
    return await restore.restore(
        site.root, bag, actor="os:keeper", now=LATER, swap_id="RESTORE-1", **options
    )


async def went_on(site: Site, **changes: Any) -> None:  # noqa: ANN401 -- of the document
    """Let the metadoc be swapped after the backup was taken."""
    document = replace(await site.metadoc(), **changes)
    await site.hold(METADOC.name, METADOC_CODEC.encode(document))


def holds(site: Site) -> bool:
    return verify(BytesIO(b"".join(line + b"\n" for line in site.log.lines))).intact


async def faults(site: Site) -> list[str]:
    return [each async for each in inspect.faults(site.root)]


async def test_a_backup_holds_the_documents_their_blobs_and_where_the_chain_stood(
    site: Site,
) -> None:
    bag = await taken(site)
    manifest = backup.manifest_of(bag)
    assert manifest.made_at == NOW
    assert [each.name for each in manifest.documents] == [CAPEX.name, REPORTS.name, METADOC.name]
    assert [len(each.blobs) for each in manifest.documents] == [2, 1, 0]
    assert manifest.chain.seq == 6
    assert manifest.chain.numbers == {CAPEX.name: 1, REPORTS.name: 1, METADOC.name: 4}
    assert backup.document_of(bag, manifest, METADOC.name).document == full()
    for kept in manifest.documents:
        for digest in kept.blobs:
            assert backup.blob_of(bag, kept.name, digest)
    assert not [name for name in bag.pieces if "key" in name]


async def test_nothing_is_no_backup() -> None:
    with pytest.raises(Fault, match="nothing to back up"):
        await taken(Site())


async def test_a_document_that_breaks_its_promises_is_not_backed_up(site: Site) -> None:
    await went_on(site, trimmed=99)
    with pytest.raises(Fault, match="atlas-playbooks breaks its own promises"):
        await taken(site)


async def test_what_was_backed_up_comes_back(site: Site) -> None:
    bag = await taken(site)
    await went_on(site, playbooks={}, running={}, events={}, revision=20)
    done = await put_back(site, bag)
    document = await site.metadoc()
    assert document.playbooks.keys() == {"PB-1", "PB-2", "PB-3"}
    assert document.events == full().events
    assert done.made_at == NOW
    assert done.revisions[METADOC.name] == document.revision
    assert await faults(site) == []
    assert holds(site)


async def test_runs_in_flight_end_failed_and_say_why(site: Site) -> None:
    done = await put_back(site, await taken(site))
    document = await site.metadoc()
    assert document.running == {}
    assert done.ended == 2
    for run_id in ("PBR-1", "PBR-3"):
        run = document.finished[run_id]
        assert (run.status, run.detail, run.finished_at) == (RunStatus.FAILED, SAID, LATER)
        assert run.steps[0].status is StepRunStatus.FAILED
        assert {each.status for each in run.steps[1:]} <= {StepRunStatus.SKIPPED}
        assert run.steps[0].detail == SAID
    before, after = full().playbooks["PB-1"], document.playbooks["PB-1"]
    assert after.runs_finished == before.runs_finished + 1
    assert after.runs_succeeded == before.runs_succeeded


async def test_the_numbers_are_above_both_documents_and_the_chain(site: Site) -> None:
    bag = await taken(site)
    await went_on(site, revision=40, outbox=an_outbox(6, 9), outbox_number=9)
    await site.chain.drain(METADOC.name, an_outbox(5, 9))
    await put_back(site, bag)
    document = await site.metadoc()
    assert document.revision > 40
    assert document.swap_id == "RESTORE-1"
    assert document.outbox[0].number == 10
    assert document.outbox[0].entry.action == "state.restore"
    assert await site.chain.last_number(METADOC.name) == document.outbox_number


async def test_a_backup_that_is_newer_than_the_document_counts_too(site: Site) -> None:
    bag = await taken(site)
    older = replace(full(), revision=10, outbox=(), outbox_number=4)
    site.stores[METADOC.name] = type(site.stores[METADOC.name])()
    await site.hold(METADOC.name, METADOC_CODEC.encode(older))
    await put_back(site, bag)
    actions = [decode(line).action for line in site.log.lines]
    told = [decode(line) for line in site.log.lines]
    numbers = [each.number for each in told if each.document == METADOC.name]
    assert numbers == [1, 2, 3, 4, 5, 6, 7, 8], "entry 5 waited in the backup alone"
    assert actions.count("state.restore") == 3
    assert holds(site)


async def test_what_was_decided_and_not_recorded_is_recorded_first(site: Site) -> None:
    bag = await taken(site)
    await went_on(site, revision=11, outbox=an_outbox(5, 6), outbox_number=6)
    await put_back(site, bag)
    told = [decode(line) for line in site.log.lines]
    mine = [(each.number, each.action) for each in told if each.document == METADOC.name]
    assert [number for number, _ in mine] == [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert [action for _, action in mine[6:]] == [
        "state.restore",
        "atlas.playbooks.run.end",
        "atlas.playbooks.run.end",
    ]
    restored = told[-3] if told[-3].action == "state.restore" else told[-1]
    assert restored.actor == "os:keeper"
    assert holds(site)


async def test_the_record_says_what_a_restore_did(site: Site) -> None:
    await put_back(site, await taken(site))
    said = {
        record.document: record.detail
        for record in map(decode, site.log.lines)
        if record.action == "state.restore"
    }
    assert said[METADOC.name] == (
        f"atlas-playbooks is {SAID}, at revision 10; it goes on at 11; "
        "2 runs in flight ended FAILED, 0 events were dropped"
    )
    assert said[CAPEX.name].endswith("0 runs in flight ended FAILED, 1 events were dropped")


async def test_slots_count_from_now(site: Site) -> None:
    await put_back(site, await taken(site))
    document = await site.metadoc()
    state = document.playbooks["PB-1"].trigger_states["nightly"]
    assert state.slot_done == LATER
    outcome = decide(document, Tick(), context(now=LATER + timedelta(minutes=1)))
    assert isinstance(outcome, Accepted)
    assert outcome.document.running == {}
    assert outcome.effects == ()


async def test_a_slot_mark_never_moves_back(site: Site) -> None:
    ahead = LATER + timedelta(days=1)
    playbook = full().playbooks["PB-1"]
    states = {"nightly": replace(playbook.trigger_states["nightly"], slot_done=ahead)}
    marked = replace(playbook, trigger_states=states)
    await went_on(site, playbooks=full().playbooks | {"PB-1": marked})
    await put_back(site, await taken(site))
    assert (await site.metadoc()).playbooks["PB-1"].trigger_states["nightly"].slot_done == ahead


async def test_harness_events_that_waited_are_dropped_and_later_ones_are_taken(
    site: Site,
) -> None:
    bag = await taken(site)
    await went_on(site, taken={"capex": 3})
    feeds = replace(await site.feeds(), raising=(), raising_number=7)
    await site.hold(CAPEX.name, CAPEX_CODEC.encode(feeds))
    await put_back(site, bag)
    after = await site.feeds()
    assert (after.raising, after.raising_number) == ((), 7)
    assert (after.stages, after.released) == ((), ())
    assert (await site.metadoc()).taken == {"capex": 7}


async def test_blobs_come_back_with_the_documents_that_name_them(site: Site) -> None:
    bag = await taken(site)
    elsewhere = Site()
    await put_back(elsewhere, bag, chain_is_lost=True)
    assert await faults(elsewhere) == []
    assert len(elsewhere.blobs[CAPEX.name].held) == 1, "a staged file expires, so it is left out"
    assert holds(elsewhere)


async def test_the_replaced_documents_stay_beside_the_new_ones(site: Site) -> None:
    bag = await taken(site)
    await went_on(site, revision=20)
    before = (await site.stores[METADOC.name].load()).data
    done = await put_back(site, bag)
    assert site.kept["atlas-playbooks.replaced-20261202T120000Z"] == before
    assert "atlas-playbooks.replaced-20261202T120000Z" in done.kept


async def test_a_document_that_cannot_be_read_is_replaced_and_kept(site: Site) -> None:
    bag = await taken(site)
    await site.hold(METADOC.name, b"damaged")
    await put_back(site, bag)
    assert (await site.metadoc()).revision == full().revision + UNREAD_REVISIONS + 1
    assert b"damaged" in site.kept.values()
    assert await faults(site) == []
    assert holds(site)


async def test_a_store_that_is_away_is_no_damage(site: Site) -> None:
    bag = await taken(site)

    class Away(type(site.stores[METADOC.name])):  # type: ignore[misc]  # its class is known
        async def load(self) -> None:
            raise Fault("the disk reports an input/output error")

    site.stores[METADOC.name] = Away()
    with pytest.raises(Fault, match="input/output"):
        await put_back(site, bag)
    assert site.kept == {}


async def test_restoring_again_changes_nothing_but_the_numbers(site: Site) -> None:
    bag = await taken(site)
    await put_back(site, bag)
    once = await site.metadoc()
    await put_back(site, bag)
    twice = await site.metadoc()
    assert twice.revision > once.revision
    assert twice.finished.keys() == once.finished.keys()
    assert await faults(site) == []
    assert holds(site)


async def test_a_restore_that_stopped_half_way_is_simply_done_again(site: Site) -> None:
    bag = await taken(site)
    replace_document = site._replace
    done: list[str] = []

    async def stopping(name: str, data: bytes, kept: str) -> None:
        if done:
            raise Fault("the disk is full")
        done.append(name)
        await replace_document(name, data, kept)

    site._replace = stopping  # type: ignore[method-assign]  # the test's last inch
    with pytest.raises(Fault, match="the disk is full"):
        await put_back(site, bag)
    site._replace = replace_document  # type: ignore[method-assign]  # put back
    await put_back(site, bag)
    assert await faults(site) == []
    assert holds(site)


async def test_a_chain_that_could_not_be_written_is_caught_up_by_the_next_console(
    site: Site,
) -> None:
    bag = await taken(site)
    site.log.troubles.before.extend([None, Fault("the disk is full")])
    with pytest.raises(Fault, match="the disk is full"):
        await put_back(site, bag)
    assert [each for each in await faults(site) if "outbox" in each] == []
    for name, load in (
        (CAPEX.name, site.feeds),
        (REPORTS.name, site.reports),
        (METADOC.name, site.metadoc),
    ):
        await site.chain.drain(name, (await load()).outbox)
    assert await faults(site) == []
    assert holds(site)


async def test_who_watched_the_replaced_document_meets_a_gap(site: Site) -> None:
    bag = await taken(site)
    await went_on(site, revision=40)
    await put_back(site, bag)
    document = await site.metadoc()
    assert document.trimmed >= 40
    assert {each.changed for each in document.playbooks.values()} == {document.revision}


async def test_a_restored_console_works(site: Site) -> None:
    await put_back(site, await taken(site))
    document = await site.metadoc()
    outcome = decide(document, RunNow(AUTHOR, "PB-1"), context(now=LATER))
    assert isinstance(outcome, Accepted)


async def test_a_chain_that_ends_before_the_backup_must_be_put_right_first(site: Site) -> None:
    bag = await taken(site)
    other = await a_site()
    other.log.lines = site.log.lines[:3]
    with pytest.raises(Fault, match="ends at record 3, and it held 6"):
        await put_back(other, bag)
    assert other.kept == {}
    await put_back(other, bag, chain_is_lost=True)
    assert holds(other)


async def test_with_the_chain_lost_the_state_goes_on_from_a_backup_of_itself(site: Site) -> None:
    site.log.lines.clear()
    assert any("is lost" in each for each in await faults(site))
    bag = await taken(site)
    await put_back(site, bag)
    assert await faults(site) == []
    assert holds(site)
    assert (await site.metadoc()).playbooks.keys() == full().playbooks.keys()


async def test_the_backup_of_another_root_is_refused(site: Site) -> None:
    bag = await taken(site)
    other = await a_site()
    other.log.lines.clear()
    await other.chain.drain(CAPEX.name, an_outbox(1, 8))
    with pytest.raises(Fault, match="record 6 of the audit chain is another one"):
        await put_back(other, bag)


async def test_a_document_that_breaks_its_promises_is_not_restored(site: Site) -> None:
    bag = await taken(site)
    broken = METADOC_CODEC.encode(replace(full(), trimmed=99))
    _forge(bag, METADOC.name, broken)
    with pytest.raises(Fault, match="atlas-playbooks breaks its own promises: it is at revision"):
        await put_back(site, bag)
    assert site.kept == {}


async def test_a_piece_that_was_changed_is_refused(site: Site) -> None:
    bag = await taken(site)
    name = f"documents/{METADOC.name}"
    bag.pieces[name] = bag.pieces[name].replace(b"Watch the data", b"Watch the date")
    with pytest.raises(Fault, match="is not what its manifest says"):
        await put_back(site, bag)
    bag = await taken(site)
    blob = next(each for each in bag.pieces if each.startswith("blobs/atlas-reports"))
    bag.pieces[blob] = b"[]"
    with pytest.raises(Fault, match="is not whole"):
        await put_back(site, bag)
    assert site.kept == {}


@pytest.mark.parametrize(
    ("was", "now", "told"),
    [
        (b'"kind": "core-console-backup"', b'"kind": "another"', "cannot be read"),
        (b'"format": 1', b'"format": 2', "another version"),
        (b'"name": "capex"', b'"name": "atlas-playbooks"', "another version"),
        (b'"name": "capex"', b'"name": "../../etc/passwd"', "another version"),
    ],
)
async def test_a_manifest_of_something_else_is_refused(
    site: Site, was: bytes, now: bytes, told: str
) -> None:
    bag = await taken(site)
    assert was in bag.pieces["manifest.json"]
    bag.pieces["manifest.json"] = bag.pieces["manifest.json"].replace(was, now)
    with pytest.raises(Fault, match=told):
        await put_back(site, bag)


async def test_a_restore_that_would_break_a_promise_changes_nothing(site: Site) -> None:
    room = 786_432 - len(METADOC_CODEC.encode(a_document(a_playbook(approve())))) - 200
    tight = replace(a_document(a_playbook(approve())), taken={"x" * room: 1}, outbox_number=5)
    await site.hold(METADOC.name, METADOC_CODEC.encode(tight))
    await site.chain.drain(METADOC.name, an_outbox(5, 5))
    bag = await taken(site)
    with pytest.raises(Fault, match="so it is not put in place"):
        await put_back(site, bag)
    assert site.kept == {}


async def test_a_document_that_the_backup_does_not_have_becomes_empty(site: Site) -> None:
    alone = Site()
    document: Document = replace(full(), taken={})
    await alone.hold(METADOC.name, METADOC_CODEC.encode(document))
    await alone.chain.drain(METADOC.name, an_outbox(1, 4))
    bag = await taken(alone)
    await put_back(site, bag, chain_is_lost=True)
    assert (await site.feeds()).feeds == {}
    assert await faults(site) == []
    other = Site()
    other.log.lines = list(alone.log.lines)
    await put_back(other, bag)
    assert not (await other.stores[CAPEX.name].load()).data, "it was never there"


def _forge(bag: Bag, name: str, data: bytes) -> None:
    """Put other bytes in the place of a document, and let the manifest say so."""

    bag.pieces[f"documents/{name}"] = data
    manifest = msgspec.json.decode(bag.pieces["manifest.json"])
    for each in manifest["documents"]:
        if each["name"] == name:
            each |= {"digest": sha256(data).hexdigest(), "size_bytes": len(data)}
    bag.pieces["manifest.json"] = msgspec.json.encode(manifest)
