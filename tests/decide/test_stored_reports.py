"""What becomes of the reports document: the latest report, its event, and the one that repeats."""

from datetime import datetime, timedelta

from msgspec.structs import replace

from core_console.decide import stored_reports
from core_console.decide.agent_reports import Told
from core_console.decide.capex_commands import ClearRaised
from core_console.decide.outcome import Code, Refused
from core_console.decide.stored_reports import (
    RAISING_MAX,
    RELEASED_MAX,
    SEEN_MAX,
    ReportsAccepted,
    ReportsCommand,
    StoreReport,
    decide,
)
from core_console.model.event import Chain, Raising
from core_console.model.reports import EMPTY_REPORTS, REPORTS, ReportsDocument
from core_console.model.run import Cause
from tests.builders import NOW, context, later

A, B = "a" * 64, "b" * 64


def a_report(digest: str = A, *, agent: str = "judge") -> StoreReport:
    told = Told(
        agent=agent,
        event="judgements.reported",
        items=2,
        attributes={"dissent": "1", "unable": "0"},
        rows=({"id": "claim-1"},),
        caused_by_run_id="PBR-1",
    )
    return StoreReport(told, digest, 1_000, Chain(2, "PBR-1", Cause.NAMED))


def after(
    document: ReportsDocument, command: ReportsCommand, *, now: datetime = NOW
) -> ReportsAccepted:
    found = decide(document, command, context(now=now))
    assert isinstance(found, ReportsAccepted)
    return found


def refused(document: ReportsDocument, command: ReportsCommand) -> Refused:
    found = decide(document, command, context())
    assert isinstance(found, Refused)
    return found


def cleared(document: ReportsDocument) -> ReportsDocument:
    return after(document, ClearRaised(document.raising_number)).document


def test_a_report_is_stored_together_with_the_event_to_raise() -> None:
    done = after(EMPTY_REPORTS, a_report())

    latest = done.document.latest["judge"]
    assert (latest.digest, latest.at, latest.size_bytes, latest.items) == (A, NOW, 1_000, 2)
    assert done.answer == latest
    (raising,) = done.document.raising
    assert raising == Raising(
        number=1,
        id=raising.id,
        agent="judge",
        event="judgements.reported",
        detail=f"report sha256 {A}",
        attributes={"dissent": "1", "unable": "0"},
        rows=({"id": "claim-1"},),
        caused_by_run_id="PBR-1",
        chain=Chain(2, "PBR-1", Cause.NAMED),
    )
    assert raising.id.startswith("PBE-")
    assert done.document.raising_number == 1


def test_it_is_recorded_without_a_word_of_the_report() -> None:
    (entry,) = after(EMPTY_REPORTS, a_report()).entries

    assert (entry.actor, entry.action, entry.subject) == (
        "agent:judge",
        "atlas.reports.judge",
        "report",
    )
    assert entry.target == f"judge/{A}"
    assert entry.detail.startswith(f"agent:judge reported 2 items (sha256 {A}); event PBE-")


def test_the_same_report_again_changes_nothing() -> None:
    stored = after(EMPTY_REPORTS, a_report()).document
    again = after(stored, a_report(), now=later(hours=23, minutes=59))

    assert again.document is stored
    assert (again.duplicate, again.entries) == (True, ())


def test_after_24_hours_it_raises_another_event() -> None:
    stored = after(EMPTY_REPORTS, a_report()).document
    again = after(stored, a_report(), now=later(hours=24))

    first, second = again.document.raising
    assert not again.duplicate
    assert first.id != second.id
    assert second.number == 2
    assert again.document.seen["judge"] == {A: later(hours=24)}


def test_a_clock_that_jumps_back_raises_nothing_twice() -> None:
    stored = after(EMPTY_REPORTS, a_report()).document

    assert after(stored, a_report(), now=later(hours=-1)).duplicate


def test_an_earlier_report_that_comes_back_is_the_latest_and_raises_nothing() -> None:
    stored = after(after(EMPTY_REPORTS, a_report()).document, a_report(B)).document
    again = after(stored, a_report(), now=later(hours=1))

    assert again.duplicate
    assert again.document.latest["judge"].digest == A
    assert again.document.latest["judge"].at == later(hours=1)
    assert again.document.raising == stored.raising
    (entry,) = again.entries
    assert "the same came at 2026-11-30T12:00:00Z, so no event is raised" in entry.detail


def test_the_same_bytes_from_another_agent_are_its_own_report() -> None:
    stored = after(EMPTY_REPORTS, a_report()).document
    other = after(stored, a_report(agent="recon"))

    assert not other.duplicate
    assert set(other.document.latest) == {"judge", "recon"}
    assert len({raising.id for raising in other.document.raising}) == 2


def test_what_was_the_latest_is_released_for_a_day() -> None:
    stored = after(after(EMPTY_REPORTS, a_report()).document, a_report(B)).document
    assert [each.digest for each in stored.released] == [A]

    later_on = after(cleared(stored), a_report("c" * 64), now=later(hours=24)).document
    assert [each.digest for each in later_on.released] == [B]


def test_the_released_are_bounded() -> None:
    document = EMPTY_REPORTS
    for number in range(RELEASED_MAX + 5):
        document = cleared(after(document, a_report(f"{number:064}")).document)

    assert len(document.released) == RELEASED_MAX
    assert document.released[-1].digest == f"{RELEASED_MAX + 3:064}"


def test_events_that_cannot_be_raised_do_not_pile_up() -> None:
    document = EMPTY_REPORTS
    for number in range(RAISING_MAX):
        document = after(document, a_report(f"{number:064}")).document

    assert refused(document, a_report()).code is Code.UNAVAILABLE
    assert after(document, a_report(f"{0:064}")).duplicate, "a duplicate raises nothing"
    assert not after(cleared(document), a_report()).duplicate


def test_more_different_reports_than_are_remembered_are_refused_by_name() -> None:
    seen = {f"{number:064}": NOW for number in range(SEEN_MAX)}
    document = replace(EMPTY_REPORTS, seen={"judge": seen})

    found = refused(document, a_report())
    assert found.code is Code.RESOURCE_EXHAUSTED
    assert "1,000 different reports" in found.reason
    assert not after(document, a_report(agent="recon")).duplicate
    assert not after(document, a_report(), now=NOW + timedelta(hours=24)).duplicate


def test_what_was_raised_is_cleared_and_its_number_never_comes_again() -> None:
    stored = after(after(EMPTY_REPORTS, a_report()).document, a_report(B)).document
    once = after(stored, ClearRaised(1)).document
    assert [raising.number for raising in once.raising] == [2]

    again = after(once, ClearRaised(1))
    assert again.document is once
    assert again.entries == ()
    third = after(cleared(once), a_report("c" * 64)).document
    assert [raising.number for raising in third.raising] == [3]


def test_only_a_report_is_new_work() -> None:
    assert stored_reports.is_new_work(a_report())
    assert not stored_reports.is_new_work(ClearRaised(1))


def test_a_document_is_written_and_read_back_as_it_was() -> None:
    document = after(after(EMPTY_REPORTS, a_report()).document, a_report(B)).document

    assert REPORTS.decode(REPORTS.encode(document)) == document


def test_the_document_stays_small_however_much_is_reported() -> None:
    seen = {f"{number:064}": NOW for number in range(SEEN_MAX)}
    full = replace(EMPTY_REPORTS, seen=dict.fromkeys(("datagov", "recon", "judge"), seen))

    assert len(REPORTS.encode(full)) < 320_000
