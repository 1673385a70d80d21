"""Whatever happens in whatever order, the guard holds: no loop, no second slot, no lost skip.

Hypothesis plays agents, slots, operators and a clock that also jumps back against `decide`.
"""

from collections.abc import Iterator
from copy import deepcopy
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec.structs import replace

from core_console.decide.commands import (
    CancelRun,
    Command,
    PausePlaybook,
    RaiseEvent,
    ReportStep,
    ResumePlaybook,
    RunNow,
    Tick,
)
from core_console.decide.decide import decide
from core_console.decide.outcome import Accepted
from core_console.model import codec
from core_console.model.document import Document
from core_console.model.event import Event
from core_console.model.playbook import (
    AgentEventTrigger,
    Playbook,
    PlaybookStatus,
    ScheduleTrigger,
    Trigger,
)
from core_console.model.run import Run, TriggerKind
from tests.builders import (
    AUTHOR,
    NOW,
    RUN_URL,
    SECOND,
    a_document,
    a_playbook,
    a_spec,
    context,
    detect,
)
from tests.fakes import CountingIds

AGENTS = ("datagov", "judge", "recon")


def chained(number: int) -> Playbook:
    """Return a playbook that dispatches one agent and starts on another's event, or on a slot."""
    heard = AGENTS[number - 1]
    triggers = (
        Trigger("event", AgentEventTrigger(heard, "found"), 5),
        Trigger("again", AgentEventTrigger(heard, "found"), 30),
        Trigger("slot", ScheduleTrigger(f"{number * 7} */{number} * * *"), 60 * number),
    )
    spec = replace(a_spec(detect("go", agent=AGENTS[number % 3], minutes=5)), triggers=triggers)
    return a_playbook(id=f"PB-{number}", spec=spec, switched_at=NOW)


def runs_of(document: Document) -> Iterator[Run]:
    yield from document.running.values()
    yield from document.finished.values()


agents = st.sampled_from(AGENTS)
which = st.integers(0, 2)
spans = st.sampled_from([1, 2, 4, 6, 30, 59, 61, 200, 1_500])


class Console(RuleBasedStateMachine):
    """A document, a clock, and what must be remembered to judge them."""

    def __init__(self) -> None:
        super().__init__()
        self.document = a_document(*(chained(number) for number in (1, 2, 3)))
        self.ids = CountingIds()
        self.now = NOW
        self.runs: dict[str, Run] = {}

    def ask(self, command: Command, room: int = 30) -> Accepted | None:
        """Decide twice, prove that both answers are one, and keep what was decided."""
        before = codec.encode(self.document)
        answers = []
        for _ in range(2):
            here = context(now=self.now, ids=deepcopy(self.ids), sender_room=room)
            answers.append((decide(self.document, command, here), here.ids))
        (outcome, ids), (again, _) = answers
        assert outcome == again
        assert codec.encode(self.document) == before
        if not isinstance(outcome, Accepted) or outcome.document is self.document:
            return None
        assert outcome.entries or outcome.effects, "a change left no trace"
        assert isinstance(ids, CountingIds)
        self.ids = ids
        self.judge_states(outcome.document)
        self.judge_starts(outcome.document)
        self.document = replace(outcome.document, revision=self.document.revision + 1)
        assert codec.decode(codec.encode(self.document)) == self.document
        return outcome

    def judge_states(self, after: Document) -> None:
        for playbook_id, playbook in self.document.playbooks.items():
            for trigger_id, was in playbook.trigger_states.items():
                state = after.playbooks[playbook_id].trigger_states[trigger_id]
                assert moved_on(was.slot_done, state.slot_done)
                assert moved_on(was.fired_at, state.fired_at)

    def judge_starts(self, after: Document) -> None:
        for run in runs_of(after):
            if run.id in self.runs:
                continue
            playbook = self.document.playbooks[run.playbook_id]
            assert playbook.status is PlaybookStatus.ACTIVE
            assert run.chain_depth <= 3
            assert (run.chain_depth > 0) == bool(run.caused_by_run_id)
            if run.caused_by_run_id:
                assert run.chain_depth > self.runs[run.caused_by_run_id].chain_depth
            self.judge_cooldown(playbook, run)
            self.runs[run.id] = run

    def judge_cooldown(self, playbook: Playbook, run: Run) -> None:
        if run.trigger is TriggerKind.MANUAL:
            return
        trigger = next(each for each in playbook.spec.triggers if each.id == run.trigger_id)
        for other in self.runs.values():
            if (other.playbook_id, other.trigger_id) == (playbook.id, trigger.id):
                apart = (run.slot or run.started_at) - (other.slot or other.started_at)
                assert apart >= timedelta(minutes=trigger.cooldown_minutes)

    @rule(agent=agents, named=st.sampled_from(["", "", "first", "last"]), room=which)
    def event(self, agent: str, named: str, room: int) -> None:
        ids = list(self.runs)
        cause = {"first": ids[:1], "last": ids[-1:]}.get(named, [])
        event = RaiseEvent(agent=agent, event="found", caused_by_run_id=cause[0] if cause else "")
        outcome = self.ask(event, room * 15)
        assert outcome is not None
        assert isinstance(outcome.answer, Event)
        told = [(each.playbook_id, each.trigger_id) for each in outcome.answer.started]
        told += [(each.playbook_id, each.trigger_id) for each in outcome.answer.skipped]
        number = AGENTS.index(agent) + 1
        expected = [(f"PB-{number}", "again"), (f"PB-{number}", "event")]
        assert sorted(told) == expected, "each matching trigger is told, and no other"
        assert len(outcome.entries) == 1

    @rule(index=which, agent=agents, right=st.booleans())
    def report(self, index: int, agent: str, *, right: bool) -> None:
        found = list(runs_of(self.document))
        if index < len(found):
            run = found[index]
            action = run.steps[0].step.action
            named = getattr(action, "agent", agent) if right else agent
            self.ask(ReportStep(named, run.id, "go", "success", "", RUN_URL))

    @rule(minutes=spans, room=st.sampled_from([0, 30]))
    def tick(self, minutes: int, room: int) -> None:
        self.now += timedelta(minutes=minutes)
        self.ask(Tick(), room)
        for playbook in self.document.playbooks.values():
            if playbook.status is PlaybookStatus.ACTIVE:
                assert not self.overlooked(playbook), "a slot was overlooked"

    def overlooked(self, playbook: Playbook) -> bool:
        done = playbook.trigger_states.get("slot")
        since = NOW if done is None or done.slot_done is None else done.slot_done
        number = int(playbook.id[-1])
        newest = self.now.replace(minute=number * 7, second=0, microsecond=0)
        while newest > self.now or newest.hour % number:
            newest -= timedelta(hours=1)
        return newest > since

    @rule(minutes=st.sampled_from([1, 60, 180]))
    def jump_back(self, minutes: int) -> None:
        self.now -= timedelta(minutes=minutes)

    @rule(number=st.integers(1, 3), kind=st.sampled_from(["pause", "resume", "resume", "run"]))
    def operate(self, number: int, kind: str) -> None:
        commands: dict[str, Command] = {
            "pause": PausePlaybook(AUTHOR, f"PB-{number}"),
            "resume": ResumePlaybook(SECOND, f"PB-{number}"),
            "run": RunNow(AUTHOR, f"PB-{number}"),
        }
        self.ask(commands[kind])

    @rule(index=which)
    def cancel(self, index: int) -> None:
        flying = list(self.document.running.values())
        if index < len(flying):
            self.ask(CancelRun(SECOND, flying[index].id, "stop"))

    @invariant()
    def a_slot_starts_one_run(self) -> None:
        slots = [
            (run.playbook_id, run.trigger_id, run.slot)
            for run in self.runs.values()
            if run.slot is not None
        ]
        assert len(slots) == len(set(slots))

    @invariant()
    def every_dispatch_left_a_mark(self) -> None:
        marked = {mark.run_id: mark for mark in self.document.marks}
        for run in runs_of(self.document):
            claimed_at = run.steps[0].claimed_at
            if claimed_at is not None:
                assert marked[run.id].claimed_at == claimed_at
                assert marked[run.id].depth == run.chain_depth
                assert marked[run.id].reported or not run.steps[0].conclusion


def moved_on(before: datetime | None, after: datetime | None) -> bool:
    return before is None or (after is not None and after >= before)


def test_any_order_of_events_slots_and_reports_keeps_the_guard() -> None:
    run_state_machine_as_test(
        Console, settings=settings(max_examples=80, stateful_step_count=40, deadline=None)
    )
