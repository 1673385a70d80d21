"""The decision log: which records are decisions, in one word and one sentence each."""

import json

import pytest

from core_console.decide.outcome import Refused
from core_console.governance.chain import decode
from core_console.governance.decisions import Decision, Decisions, Word, decision_of
from core_console.governance.trail import Trail
from core_console.model.audit import AuditRecord, Entry, OutboxEntry, Outcome
from core_console.store.memory import MemoryLog
from tests.governance.records import METADOC, chain_on, entry


async def recorded(said: Entry, *, decided: bool = True) -> AuditRecord:
    """Return the entry's record: of a decision in a document, or of a refusal."""
    log = MemoryLog()
    if decided:
        await chain_on(log).drain(METADOC, [OutboxEntry(1, said)])
    else:
        await chain_on(log).add([said])
    return decode(log.lines[0])


@pytest.mark.parametrize(
    ("action", "word"),
    [
        ("create", Word.CREATED),
        ("draft", Word.CREATED),
        ("update", Word.EDITED),
        ("activate", Word.ACTIVATED),
        ("pause", Word.PAUSED),
        ("resume", Word.RESUMED),
        ("delete", Word.DELETED),
        ("run", Word.RUN_STARTED),
        ("run.start", Word.RUN_STARTED),
        ("run.cancel", Word.CANCELLED),
        ("run.end", Word.RUN_ENDED),
        ("run.dispatch", Word.DISPATCHED),
        ("run.report", Word.REPORTED),
        ("run.notify", Word.NOTIFIED),
        ("run.scan", Word.SCANNED),
        ("run.timeout", Word.TIMED_OUT),
        ("run.expire", Word.EXPIRED),
    ],
)
async def test_every_action_has_its_word(action: str, word: Word) -> None:
    decision = decision_of(await recorded(entry(action=f"atlas.playbooks.{action}")))
    assert decision is not None
    assert decision.decision is word


@pytest.mark.parametrize(
    ("detail", "word"),
    [
        ("approved by second@example.com: step a of run PBR-1", Word.APPROVED),
        ("rejected by second@example.com: step a of run PBR-1", Word.REJECTED),
        ("four eyes: the initiator may not decide", Word.DECIDED),
        ("approvedly odd", Word.DECIDED),
    ],
)
async def test_an_approval_says_which_way_it_went(detail: str, word: Word) -> None:
    said = entry(detail, action="atlas.playbooks.approval.decide", target="PB-1/PBR-1/a")
    decision = decision_of(await recorded(said))
    assert decision is not None
    assert (decision.decision, decision.sentence) == (word, detail)


@pytest.mark.parametrize(
    ("target", "ids"),
    [
        ("PB-1", ("PB-1", "", "", "")),
        ("PB-1/PBR-2", ("PB-1", "PBR-2", "", "")),
        ("PB-1/PBR-2/detect", ("PB-1", "PBR-2", "detect", "")),
        ("PB-1/PBR-2/PB-3", ("PB-1", "PBR-2", "PB-3", "")),
        ("PBR-2/detect", ("", "PBR-2", "detect", "")),
        ("", ("", "", "", "")),
        ("nonsense", ("", "", "", "")),
    ],
)
async def test_the_ids_are_told_apart(target: str, ids: tuple[str, str, str, str]) -> None:
    found = decision_of(await recorded(entry(target=target)))
    assert found is not None
    assert (found.playbook_id, found.run_id, found.step_id, found.event_id) == ids


@pytest.mark.parametrize(
    ("target", "word", "ids"),
    [
        ("PBE-1/PBR-2", Word.RUN_STARTED, ("PBE-1", "", "PBR-2", "")),
        ("PBE-1/PBR-2/PBR-3", Word.RUN_STARTED, ("PBE-1", "", "PBR-2", "")),
        ("PBE-1/PB-4", Word.SKIPPED, ("PBE-1", "PB-4", "", "")),
    ],
)
async def test_an_event_is_told_by_what_it_led_to(
    target: str, word: Word, ids: tuple[str, str, str, str]
) -> None:
    found = decision_of(await recorded(entry(action="atlas.events.raise", target=target)))
    assert found is not None
    assert found.decision is word
    assert (found.event_id, found.playbook_id, found.run_id, found.step_id) == ids


async def test_an_event_that_nobody_waits_for_is_no_decision() -> None:
    said = entry(action="atlas.events.raise", target="PBE-1")
    assert decision_of(await recorded(said)) is None


async def test_a_dispatch_that_github_refused_is_shown() -> None:
    said = entry(
        action="atlas.playbooks.run.dispatch", actor="system:engine", outcome=Outcome.FAILURE
    )
    decision = decision_of(await recorded(said))
    assert decision is not None
    assert (decision.decision, decision.outcome) == (Word.DISPATCHED, Outcome.FAILURE)


async def test_a_denied_attempt_of_an_operator_is_shown() -> None:
    said = entry(
        "four eyes: the author may not activate",
        action="atlas.playbooks.activate",
        outcome=Outcome.DENIED,
    )
    decision = decision_of(await recorded(said, decided=False))
    assert decision is not None
    assert (decision.decision, decision.outcome) == (Word.ACTIVATED, Outcome.DENIED)


@pytest.mark.parametrize(
    "said",
    [
        entry(outcome=Outcome.FAILURE),
        entry(outcome=Outcome.DENIED, actor="anonymous"),
        entry(outcome=Outcome.DENIED, actor="agent:recon", action="atlas.playbooks.run.report"),
        entry(action="identity.token.issue", subject="identity"),
        entry(action="atlas.playbooks.run.notify"),
    ],
)
async def test_what_decided_nothing_is_not_shown(said: Entry) -> None:
    assert decision_of(await recorded(said, decided=False)) is None


async def test_a_decision_is_a_view_of_its_record() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    await chain.add([entry(outcome=Outcome.FAILURE)])
    await chain.drain(METADOC, [OutboxEntry(1, entry("author@example.com created PB-1"))])
    page = await Decisions(Trail(log)).page()
    assert not isinstance(page, Refused)
    assert page.decisions == (
        Decision(
            audit_seq=2,
            at="2026-11-30T12:00:00.000Z",
            subject="playbook",
            actor="author@example.com",
            decision=Word.CREATED,
            outcome=Outcome.SUCCESS,
            playbook_id="PB-1",
            sentence="author@example.com created PB-1",
        ),
    )
    assert page.next_page_token == ""


async def test_decisions_are_paged_and_filtered_like_records() -> None:
    log = MemoryLog()
    chain = chain_on(log)
    for number in range(1, 61):
        actor = f"operator-{number % 2}@example.com"
        await chain.add([entry(outcome=Outcome.FAILURE, actor=actor)])
        await chain.drain(METADOC, [OutboxEntry(number, entry(f"entry {number}", actor=actor))])
    decisions = Decisions(Trail(log))
    seen: list[int] = []
    token = ""
    while True:
        page = await decisions.page(actor="operator-1@example.com", page_size=7, page_token=token)
        assert not isinstance(page, Refused)
        seen += [decision.audit_seq for decision in page.decisions]
        token = page.next_page_token
        if not token:
            break
    assert seen == [
        record["seq"]
        for record in map(json.loads, reversed(log.lines))
        if record["document"] and record["actor"] == "operator-1@example.com"
    ]
    other = await decisions.page(subject="rule")
    assert not isinstance(other, Refused)
    assert other.decisions == ()
    wrong = await decisions.page(page_token="nonsense")
    assert isinstance(wrong, Refused)
