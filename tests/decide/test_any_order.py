"""Whatever is asked, in whatever order and at whatever time, the rules of the document hold.

Hypothesis plays operators, agents, two replicas and the clock against `decide`, and every answer
is held against the promises that no single table can state.
"""

from collections import Counter
from copy import deepcopy
from datetime import timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from msgspec.structs import replace

from core_console.decide.commands import (
    ActivatePlaybook,
    CancelRun,
    Command,
    CreatePlaybook,
    DecideApproval,
    Decision,
    DeletePlaybook,
    PausePlaybook,
    RecordCall,
    RecordScan,
    ReportStep,
    ResumePlaybook,
    RunNow,
    Tick,
    UpdatePlaybook,
)
from core_console.decide.decide import decide
from core_console.decide.due import is_abandoned
from core_console.decide.outcome import Accepted, Effect, RunScan
from core_console.decide.status import FINAL, OPEN_STEPS, RUN_MOVES, RUN_OF_STEP
from core_console.model import codec
from core_console.model.document import EMPTY, Document
from core_console.model.playbook import (
    CapexScan,
    DispatchAgent,
    Notify,
    PlaybookStatus,
    RequireApproval,
    Spec,
)
from core_console.model.run import Call, Run, RunStatus, StepRun, StepRunStatus
from tests.builders import (
    AUTHOR,
    NOW,
    SECOND,
    STRANGER,
    a_spec,
    approve,
    context,
    detect,
    notify,
    scan,
)
from tests.fakes import CountingIds

SUCCEEDED, PENDING = StepRunStatus.SUCCEEDED, StepRunStatus.PENDING

people = st.sampled_from([AUTHOR, SECOND, STRANGER])
replicas = st.sampled_from(["console-1", "console-2"])
which = st.sampled_from([0, 0, 0, 1, 1, 2, 3])
specs = st.lists(
    st.sampled_from([detect("d", minutes=5), scan("c"), approve("a", hours=1), notify("n")]),
    min_size=1,
    max_size=4,
).map(lambda steps: a_spec(*(replace(each, id=f"{each.id}{at}") for at, each in enumerate(steps))))
mostly = st.sampled_from([True, True, True, True, False])
minutes = st.sampled_from([0, 0, 0, 1, 2, 3, 5, 10, 60])


def runs_of(document: Document) -> list[Run]:
    return [*document.running.values(), *document.finished.values()]


def current(run: Run) -> StepRun | None:
    """Return the step that the run is at, None when all succeeded."""
    return next((each for each in run.steps if each.status is not SUCCEEDED), None)


class Console(RuleBasedStateMachine):
    """A document, a clock, and what must be remembered to judge them."""

    def __init__(self) -> None:
        super().__init__()
        self.document = EMPTY
        self.ids = CountingIds()
        self.now = NOW
        self.effects: list[tuple[str, Effect]] = []
        self.ended: Counter[tuple[str, RunStatus]] = Counter()

    def ask(self, command: Command, replica: str = "console-1", room: int = 30) -> None:
        """Decide twice, prove that both answers are one, and keep what was decided."""
        before, bytes_before = self.document, codec.encode(self.document)
        answers = []
        for _ in range(2):
            here = context(now=self.now, ids=deepcopy(self.ids), replica=replica, sender_room=room)
            answers.append((decide(before, command, here), here.ids))
        (outcome, ids), (again, _) = answers
        assert outcome == again
        assert codec.encode(before) == bytes_before
        if isinstance(outcome, Accepted) and outcome.document is not before:
            assert isinstance(ids, CountingIds)
            self.ids = ids
            self.keep(outcome, command, replica)

    def keep(self, outcome: Accepted, command: Command, replica: str) -> None:
        before, after = self.document, outcome.document
        assert not outcome.duplicate
        assert outcome.entries or outcome.effects, "a change left no trace"
        assert all(entry.at == self.now for entry in outcome.entries)
        self.judge_moves(before, after)
        if outcome.refused is None:
            self.judge_command(before, command)
        else:
            assert isinstance(command, ReportStep)
            assert replace(after, marks=before.marks) == before, "a refusal moved something"
        self.judge_effects(after, outcome.effects, replica)
        for run in after.finished.values():
            if run.id not in before.finished:
                self.ended[run.playbook_id, run.status] += 1
        self.document = replace(after, revision=before.revision + 1)
        assert codec.decode(codec.encode(self.document)) == self.document

    def judge_moves(self, before: Document, after: Document) -> None:
        old = {run.id: run for run in runs_of(before)}
        new = {run.id: run for run in runs_of(after)}
        assert old.keys() <= new.keys(), "a run was lost"
        for run_id, was in old.items():
            now = new[run_id]
            assert now.status is was.status or now.status in RUN_MOVES[was.status]
            assert [each.step for each in now.steps] == [each.step for each in was.steps]
            if was.status in FINAL:
                called = [replace(each, call=Call.NONE) for each in now.steps]
                assert called == [replace(each, call=Call.NONE) for each in was.steps]
        for playbook_id, playbook in after.playbooks.items():
            was_active = before.playbooks.get(playbook_id)
            assert playbook.revision >= (was_active.revision if was_active else 1)

    def judge_command(self, before: Document, command: Command) -> None:
        match command:
            case ActivatePlaybook(actor=actor, id=playbook_id):
                playbook = before.playbooks[playbook_id]
                assert actor not in {playbook.created_by, playbook.updated_by}
            case RunNow(playbook_id=playbook_id):
                assert before.playbooks[playbook_id].status is PlaybookStatus.ACTIVE
                assert playbook_id not in before.running
            case DeletePlaybook(id=playbook_id):
                assert playbook_id not in before.running
            case DecideApproval(run_id=run_id, step_id=step_id, actor=actor):
                run, step_run = self.step(before, run_id, step_id)
                assert actor != run.initiator
                assert step_run.deadline is not None
                assert step_run.status is StepRunStatus.WAITING_APPROVAL
                assert self.now < step_run.deadline
            case ReportStep(run_id=run_id, step_id=step_id, agent=agent):
                _, step_run = self.step(before, run_id, step_id)
                assert isinstance(step_run.step.action, DispatchAgent)
                assert step_run.step.action.agent == agent
                assert step_run.deadline is not None
                assert step_run.status is StepRunStatus.WAITING_AGENT
                assert self.now < step_run.deadline
            case RecordCall(run_id=run_id, step_id=step_id, claimed_by=claimed_by):
                _, step_run = self.step(before, run_id, step_id)
                assert (step_run.call, step_run.claimed_by) == (Call.PENDING, claimed_by)
            case RecordScan(run_id=run_id, step_id=step_id, claimed_by=claimed_by):
                _, step_run = self.step(before, run_id, step_id)
                expected = (StepRunStatus.RUNNING, claimed_by)
                assert (step_run.status, step_run.claimed_by) == expected
            case _:
                pass

    def judge_effects(self, after: Document, effects: tuple[Effect, ...], replica: str) -> None:
        asked = {(effect.run_id, effect.step_id) for _, effect in self.effects}
        for effect in effects:
            assert (effect.run_id, effect.step_id) not in asked, "a step is performed twice"
            _, step_run = self.step(after, effect.run_id, effect.step_id)
            assert (step_run.claimed_by, step_run.claimed_at) == (replica, self.now)
            self.effects.append((replica, effect))

    @staticmethod
    def step(document: Document, run_id: str, step_id: str) -> tuple[Run, StepRun]:
        run = next(run for run in runs_of(document) if run.id == run_id)
        return run, next(each for each in run.steps if each.step.id == step_id)

    def playbook_id(self, index: int) -> str:
        return [*self.document.playbooks, *["PB-unknown"] * 4][index]

    def run_of(self, index: int) -> Run | None:
        kept = runs_of(self.document)
        return kept[index] if index < len(kept) else None

    def current_id(self, run: Run | None) -> str:
        at = current(run) if run else None
        return at.step.id if at else "nowhere"

    @initialize(first=specs, second=specs)
    def begin(self, first: Spec, second: Spec) -> None:
        """Start with two playbooks that may run, or most sequences would end at four eyes."""
        for number, spec in enumerate((first, second), start=1):
            self.ask(CreatePlaybook(AUTHOR, spec))
            self.ask(ActivatePlaybook(SECOND, f"PB-{number}", 1))
            self.ask(RunNow(AUTHOR, f"PB-{number}"))

    @rule(
        kind=st.sampled_from(
            ["create", "delete", "pause", "resume", "cancel", *["update", "activate"] * 3]
        ),
        actor=people,
        index=which,
        spec=specs,
        behind=st.sampled_from([0, 0, 0, 1]),
    )
    def manage(self, kind: str, actor: str, index: int, spec: Spec, behind: int) -> None:
        """Do what happens now and then, and would end too much if it happened always."""
        playbook_id = self.playbook_id(index)
        playbook = self.document.playbooks.get(playbook_id)
        revision = (playbook.revision if playbook else 1) - behind
        run = self.run_of(index)
        commands: dict[str, Command] = {
            "create": CreatePlaybook(actor, spec),
            "update": UpdatePlaybook(actor, playbook_id, revision, spec),
            "delete": DeletePlaybook(actor, playbook_id),
            "activate": ActivatePlaybook(actor, playbook_id, revision),
            "pause": PausePlaybook(actor, playbook_id),
            "resume": ResumePlaybook(actor, playbook_id),
            "cancel": CancelRun(actor, run.id if run else "PBR-unknown", "stop"),
        }
        if kind != "create" or len(self.document.playbooks) < 3:
            self.ask(commands[kind])

    @rule(
        actor=people,
        index=which,
        request=st.sampled_from(["", "", "req-1", "req-2"]),
        replica=replicas,
        room=st.sampled_from([30, 30, 0]),
    )
    def run_now(self, actor: str, index: int, request: str, replica: str, room: int) -> None:
        self.ask(RunNow(actor, self.playbook_id(index), request), replica, room)

    @precondition(lambda self: bool(self.document.running))
    @rule(index=which, actor=people, replica=replicas, early=st.booleans(), good=mostly)
    def proceed(self, index: int, actor: str, replica: str, *, early: bool, good: bool) -> None:
        """Do what a run in flight waits for, so that runs come to their later steps and ends."""
        flying = list(self.document.running.values())
        run = flying[index % len(flying)]
        at = current(run)
        assert at is not None
        self.ask(self.awaited(run, at, actor, early=early, good=good), replica)

    @staticmethod
    def awaited(run: Run, at: StepRun, actor: str, *, early: bool, good: bool) -> Command:
        call = Call.ACCEPTED if good else Call.UNKNOWN
        called = RecordCall(run.id, at.step.id, at.claimed_by, call, "")
        if at.status is PENDING:
            return Tick()
        match at.step.action:
            case DispatchAgent(agent=agent):
                if at.call is Call.PENDING and not early:
                    return called
                conclusion = "success" if good else "failure"
                return ReportStep(agent, run.id, at.step.id, conclusion, "", "u/1")
            case RequireApproval():
                decision = Decision.APPROVE if good else Decision.REJECT
                return DecideApproval(actor, run.id, at.step.id, decision, "why")
            case Notify():
                return called
            case CapexScan():
                failure = "" if good else "no CapEx feed is loaded"
                return RecordScan(run.id, at.step.id, at.claimed_by, "SCAN-1", {}, failure)

    @precondition(lambda self: bool(self.document.running))
    @rule(index=which, off_ms=st.sampled_from([-1, 0, 0, 1]), abandons=st.booleans())
    def come_to_an_edge(self, index: int, off_ms: int, *, abandons: bool) -> None:
        """Move the clock to where a step becomes overdue, or its claim abandoned."""
        flying = list(self.document.running.values())
        at = current(flying[index % len(flying)])
        assert at is not None
        edge = at.deadline
        if abandons and at.claimed_at is not None:
            wait_minutes = 10 if isinstance(at.step.action, CapexScan) else 2
            edge = at.claimed_at + timedelta(minutes=wait_minutes)
        if edge is not None:
            self.now = max(self.now, edge + timedelta(milliseconds=off_ms))

    @rule(
        actor=people,
        index=which,
        decision=st.sampled_from(list(Decision)),
        replica=replicas,
        room=st.sampled_from([30, 30, 0]),
    )
    def answer(self, actor: str, index: int, decision: Decision, replica: str, room: int) -> None:
        run = self.run_of(index)
        step_id = self.current_id(run)
        run_id = run.id if run else "PBR-unknown"
        self.ask(DecideApproval(actor, run_id, step_id, decision, "why"), replica, room)

    @rule(
        agent=st.sampled_from(["datagov", "datagov", "datagov", "risk"]),
        index=which,
        conclusion=st.sampled_from(["success", "success", "failure"]),
        url=st.sampled_from(["u/1", "u/2"]),
        step=st.sampled_from([None, None, None, 0, 1, 2]),
    )
    def report(self, agent: str, index: int, conclusion: str, url: str, step: int | None) -> None:
        run = self.run_of(index)
        step_id = self.current_id(run)
        if run is not None and step is not None and step < len(run.steps):
            step_id = run.steps[step].step.id
        run_id = run.id if run else "PBR-unknown"
        self.ask(ReportStep(agent, run_id, step_id, conclusion, "", url))

    @rule(
        index=st.sampled_from([0, 0, 0, 1, 1, 2, 5]),
        call=st.sampled_from([Call.ACCEPTED, Call.ACCEPTED, Call.REFUSED, Call.UNKNOWN]),
        failure=st.sampled_from(["", "", "no CapEx feed is loaded"]),
        swapped=st.sampled_from([False, False, False, True]),
    )
    def perform(self, index: int, call: Call, failure: str, *, swapped: bool) -> None:
        """Record the outcome of an effect, early, late, again, or by the wrong process."""
        if index >= len(self.effects):
            return
        replica, effect = self.effects[-1 - index]
        claimant = "console-3" if swapped else replica
        run_id, step_id = effect.run_id, effect.step_id
        if isinstance(effect, RunScan):
            found = "" if failure else "SCAN-1"
            self.ask(RecordScan(run_id, step_id, claimant, found, {}, failure), replica)
        else:
            self.ask(RecordCall(run_id, step_id, claimant, call, "told"), replica)

    @rule(after=minutes, replica=replicas, room=st.sampled_from([0, 1, 30]))
    def tick(self, after: int, replica: str, room: int) -> None:
        self.now += timedelta(minutes=after)
        self.ask(Tick(), replica, room)
        for run in self.document.running.values():
            at = current(run)
            assert at is not None
            assert at.deadline is None or self.now < at.deadline, "an overdue step was left"
            assert not is_abandoned(at, context(now=self.now)), "an abandoned claim was left"
            assert at.status is not PENDING or room <= 1, "a waiting step was left"

    @rule(after=minutes)
    def wait(self, after: int) -> None:
        self.now += timedelta(minutes=after)

    @invariant()
    def one_run_of_a_playbook_is_in_flight_and_stands_where_its_steps_say(self) -> None:
        for playbook_id, run in self.document.running.items():
            assert run.playbook_id == playbook_id
            assert playbook_id in self.document.playbooks
            assert run.id not in self.document.finished
            assert run.finished_at is None
            at = current(run)
            assert at is not None
            assert at.status in {PENDING, *OPEN_STEPS}
            index = run.steps.index(at)
            assert all(each.status is PENDING for each in run.steps[index + 1 :])
            expected = RunStatus.RUNNING if at.status is PENDING else RUN_OF_STEP[at.status]
            assert run.status is expected

    @invariant()
    def a_finished_run_says_how_it_ended(self) -> None:
        for run_id, run in self.document.finished.items():
            assert run.id == run_id
            assert run.status in FINAL
            assert run.finished_at is not None
            at = current(run)
            if at is None:
                assert run.status is RunStatus.SUCCEEDED
                continue
            assert RUN_OF_STEP[at.status] is run.status
            after = run.steps[run.steps.index(at) + 1 :]
            assert all(each.status is StepRunStatus.SKIPPED for each in after)
            assert all(each.claimed_at is None for each in after)

    @invariant()
    def the_counters_are_what_was_finished(self) -> None:
        for playbook_id, playbook in self.document.playbooks.items():
            ended = {
                status: count for (of, status), count in self.ended.items() if of == playbook_id
            }
            assert playbook.runs_finished == sum(ended.values())
            assert playbook.runs_succeeded == ended.get(RunStatus.SUCCEEDED, 0)

    @invariant()
    def an_active_playbook_was_activated_as_it_stands(self) -> None:
        for playbook in self.document.playbooks.values():
            assert playbook.spec_digest == codec.spec_digest(playbook.spec)
            if playbook.status is not PlaybookStatus.DRAFT:
                assert playbook.activated_by not in {playbook.created_by, playbook.updated_by, ""}
                assert playbook.editors == ()


def test_any_order_of_commands_keeps_the_rules() -> None:
    run_state_machine_as_test(
        Console, settings=settings(max_examples=200, stateful_step_count=50, deadline=None)
    )
