"""Bugs to plant: each is one that somebody could write, and what it breaks.

Owns the list. A planted bug replaces a function of the product for the length of one test.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from core_console import batch, effects, writer
from core_console.batch import Kind
from core_console.decide import approvals, depth, due, firing, foureyes, loopguard, reports, runs
from core_console.decide.foureyes import FourEyes
from core_console.decide.outbox import with_entries, without_recorded
from core_console.decide.outcome import Code, Refused, SendDispatch
from core_console.decide.status import FINAL
from core_console.doors import errors
from core_console.effects import Performer
from core_console.governance.chain import Chain
from core_console.inbox import Inbox
from core_console.latest import Held, Latest
from core_console.model.document import Document
from core_console.model.playbook import TriggerState
from core_console.model.run import Call, Run, StepRunStatus
from core_console.ports import Conflict
from core_console.writer import Writer

Patch = pytest.MonkeyPatch


def effects_before_the_swap(patch: Patch) -> None:
    decide_batch, stamped = Kind.decide_batch, Writer._stamped
    early: list[Any] = []

    def without_effects(self: Any, *asked: Any) -> Any:
        decided = decide_batch(self, *asked)
        early[:] = decided.effects
        return dataclasses.replace(decided, effects=[])

    def taking(self: Any, document: Any) -> Any:
        self._means.performer.take(early)
        return stamped(self, document)

    async def unread(self: Any, console: Any, taken: Any) -> Any:
        if isinstance(taken.effect, SendDispatch):
            return await self._call(console, taken, None, 60.0)
        return await outcome(self, console, taken)

    async def none(*_: Any) -> str:
        return ""

    outcome = Performer._outcome
    patch.setattr(Performer, "_objection_now", none)
    patch.setattr(Kind, "decide_batch", without_effects)
    patch.setattr(Writer, "_stamped", taking)
    patch.setattr(Performer, "_outcome", unread)


def an_entry_is_dropped_on_a_conflict(patch: Patch) -> None:
    swap, lost = Latest.swap, [False]

    async def losing(self: Any, held: Any, document: Any) -> None:
        try:
            await swap(self, held, document)
        except Conflict:
            lost[0] = True
            raise

    def forgetting(document: Any, entries: Sequence[Any]) -> Any:
        dropped, lost[0] = lost[0], False
        return with_entries(document, entries[1:] if dropped else entries)

    patch.setattr(Latest, "swap", losing)
    patch.setattr(batch, "with_entries", forgetting)


def a_lost_race_is_taken_for_won(patch: Patch) -> None:
    swap = Latest.swap

    async def winning(self: Any, held: Any, document: Any) -> None:
        try:
            await swap(self, held, document)
        except Conflict:
            self.forget()

    patch.setattr(Latest, "swap", winning)


def a_failed_swap_is_taken_for_landed(patch: Patch) -> None:
    async def landed(self: Any) -> bool:
        self._latest.forget()
        return True

    patch.setattr(Writer, "_landed", landed)


def a_report_has_no_deadline(patch: Patch) -> None:
    real = reports._conflict

    def unhurried(run: Run, step_run: Any, command: Any, context: Any) -> str:
        return real(run, replace(step_run, deadline=None), command, context)

    patch.setattr(reports, "_conflict", unhurried)


def an_approval_has_no_deadline(patch: Patch) -> None:
    real = approvals._too_late

    def unhurried(run: Run, step_run: Any, context: Any) -> Any:
        return real(run, replace(step_run, deadline=None), context)

    patch.setattr(approvals, "_too_late", unhurried)


def an_unknown_call_is_sent_again(patch: Patch) -> None:
    real = Performer._call

    async def stubborn(self: Any, *asked: Any) -> Any:
        told = await real(self, *asked)
        if getattr(told, "call", None) is Call.UNKNOWN:
            return await real(self, *asked)
        return told

    patch.setattr(Performer, "_call", stubborn)


def a_negative_count_trims_history(patch: Patch) -> None:
    def trimmed(finished: dict[str, Run], run: Run) -> dict[str, Run]:
        kept = finished | {run.id: run}
        for oldest in list(kept)[: len(kept) - runs.FINISHED_MAX]:
            del kept[oldest]
        return kept

    patch.setattr(runs, "_with_finished", trimmed)


def an_entry_leaves_before_it_is_recorded(patch: Patch) -> None:
    def hasty(document: Any, recorded: int) -> Any:
        return without_recorded(document, recorded + 1)

    patch.setattr(writer, "without_recorded", hasty)


def an_append_forgets_what_the_chain_holds(patch: Patch) -> None:
    async def forgetful(self: Any, document: str) -> int:
        return int(self._numbers.setdefault(document, 0))

    patch.setattr(Chain, "_last_number", forgetful)


def the_last_editor_may_activate(patch: Patch) -> None:
    real = foureyes.activation

    def lenient(playbook: Any, *lists: Any, **settings: Any) -> FourEyes:
        return real(replace(playbook, updated_by=playbook.created_by), *lists, **settings)

    patch.setattr(foureyes, "activation", lenient)


def the_starter_may_decide(patch: Patch) -> None:
    real = foureyes.approval

    def lenient(run: Run, *asked: Any) -> FourEyes:
        return real(replace(run, initiator="somebody@example.com"), *asked)

    patch.setattr(foureyes, "approval", lenient)


def the_guard_overlooks_a_run_in_flight(patch: Patch) -> None:
    real = loopguard.judge

    def blind(document: Document, *asked: Any, **more: Any) -> Any:
        return real(replace(document, running={}), *asked, **more)

    patch.setattr(loopguard, "judge", blind)


def the_guard_overlooks_a_cooldown(patch: Patch) -> None:
    real = loopguard.judge

    def blind(document: Document, playbook: Any, *asked: Any, **more: Any) -> Any:
        return real(document, replace(playbook, trigger_states={}), *asked, **more)

    patch.setattr(loopguard, "judge", blind)


def a_cause_is_counted_only_when_it_is_named(patch: Patch) -> None:
    patch.setattr(depth, "outstanding", lambda *_: ())


def no_claim_is_abandoned(patch: Patch) -> None:
    patch.setattr(due, "is_abandoned", lambda *_: False)


def a_set_back_clock_moves_slots_back(patch: Patch) -> None:
    def from_now(playbook: Any, now: Any) -> dict[str, TriggerState]:
        return {
            trigger_id: replace(state, slot_done=now)
            for trigger_id, state in playbook.trigger_states.items()
        }

    patch.setattr(firing, "from_now", from_now)


def a_tick_claims_what_is_claimed(patch: Patch) -> None:
    real = due._due

    def again(run: Run, context: Any) -> Any:
        index = runs.current_index(run)
        if run.steps[index].status is StepRunStatus.WAITING_AGENT:
            return runs.claim_next(run, context)
        return real(run, context)

    patch.setattr(due, "_due", again)


def a_read_shows_a_swap_under_way(patch: Patch) -> None:
    swap = Latest.swap

    async def showing(self: Any, held: Any, document: Any) -> None:
        self._held = Held(held.version, document)
        await swap(self, held, document)

    patch.setattr(Latest, "swap", showing)


def a_read_is_not_refreshed(patch: Patch) -> None:
    real = Latest.fresh

    async def lazy(self: Any) -> Any:
        return self._held if self._held is not None else await real(self)

    patch.setattr(Latest, "fresh", lazy)


def a_caller_is_forgotten(patch: Patch) -> None:
    real = Inbox.answer

    def hasty(self: Any, asked: Sequence[Any], outcomes: Sequence[Any]) -> None:
        real(self, asked[:1], outcomes[:1])

    patch.setattr(Inbox, "answer", hasty)


def a_call_leaves_for_a_run_that_ended(patch: Patch) -> None:
    real = effects._objection

    def lenient(console: Any, run: Run, step_run: Any, left_s: float) -> str:
        return "" if run.status in FINAL else real(console, run, step_run, left_s)

    patch.setattr(effects, "_objection", lenient)


def a_door_tells_an_agent_to_try_again(patch: Patch) -> None:
    real = errors.refused

    def lenient(refused: Refused) -> Any:
        lost = refused.code is Code.FAILED_PRECONDITION
        return real(Refused(Code.UNAVAILABLE, refused.reason) if lost else refused)

    patch.setattr(errors, "refused", lenient)


CHAIN = "every decision is in the chain exactly once"
AGREE = "the document and its records agree"
DURABLE = "nobody is answered before it is durable"
HISTORY = "history is trimmed from its old end"

PLANTED: dict[Callable[[Patch], None], set[str]] = {
    effects_before_the_swap: {"a deed follows its claim"},
    an_entry_is_dropped_on_a_conflict: {CHAIN, AGREE, DURABLE},
    a_lost_race_is_taken_for_won: {CHAIN, AGREE, DURABLE},
    a_failed_swap_is_taken_for_landed: {CHAIN, DURABLE},
    a_report_has_no_deadline: {"deadlines are kept"},
    an_approval_has_no_deadline: {"deadlines are kept"},
    an_unknown_call_is_sent_again: {"a dispatch is sent at most once"},
    a_negative_count_trims_history: {HISTORY, AGREE, "nothing in flight disappears"},
    an_entry_leaves_before_it_is_recorded: {CHAIN},
    an_append_forgets_what_the_chain_holds: {CHAIN},
    the_last_editor_may_activate: {"four eyes"},
    the_starter_may_decide: {"four eyes"},
    the_guard_overlooks_a_run_in_flight: {"one run in flight a playbook"},
    the_guard_overlooks_a_cooldown: {"a cooldown is kept", "a slot fires once"},
    a_cause_is_counted_only_when_it_is_named: {"depth follows the causes"},
    no_claim_is_abandoned: {"every run ends"},
    a_set_back_clock_moves_slots_back: {"a slot fires once"},
    a_read_shows_a_swap_under_way: {"no read shows what is not durable"},
    a_read_is_not_refreshed: {"no read is stale"},
    a_caller_is_forgotten: {"every caller is answered"},
    a_call_leaves_for_a_run_that_ended: {"no call leaves after the end"},
    a_door_tells_an_agent_to_try_again: {"a door says what was decided"},
    a_tick_claims_what_is_claimed: {"a step is claimed once", "legal moves"},
}
