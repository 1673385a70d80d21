"""When a run may start: slots, cooldowns, depth.

Owns what must be remembered of earlier starts to judge the next: it outlives the document's
history, and it follows a trigger for as long as its id exists.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from core_console.model.document import Document
from core_console.model.event import Event
from core_console.model.playbook import DispatchAgent
from core_console.model.run import Run, TriggerKind
from tests.sim.broken import hold

_DEPTH_MAX = 3
_OUTSTANDING = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class _Claim:
    agent: str
    depth: int
    at: datetime


@dataclass(slots=True)
class Starts:
    """Every start that was stored so far."""

    slots: dict[tuple[str, str], set[datetime]] = field(default_factory=dict)
    fired: dict[tuple[str, str], datetime] = field(default_factory=dict)
    slot_done: dict[tuple[str, str], datetime] = field(default_factory=dict)
    depths: dict[str, int] = field(default_factory=dict)
    outstanding: dict[tuple[str, str], _Claim] = field(default_factory=dict)
    reported: set[tuple[str, str]] = field(default_factory=set)
    events: set[str] = field(default_factory=set)
    requests: dict[str, str] = field(default_factory=dict)

    def begin(self, document: Document) -> None:
        """Take over what was stored before."""
        self.events.update(document.events)
        self.depths.update({run.id: run.chain_depth for run in document.finished.values()})

    def judge_events(self, document: Document) -> None:
        """Judge the depth of each new event against the dispatches that no swap ended since."""
        for event in document.events.values():
            if event.id not in self.events:
                self.events.add(event.id)
                self._judge_event(event)

    def _judge_event(self, event: Event) -> None:
        least = 0
        if event.caused_by_run_id in self.depths:
            least = self.depths[event.caused_by_run_id] + 1
        for claim in self.outstanding.values():
            if claim.agent == event.agent and event.at - claim.at < _OUTSTANDING:
                least = max(least, claim.depth + 1)
        hold(
            event.chain_depth >= least,
            "depth follows the causes",
            "{} has depth {}, and its causes {}",
            event.id,
            event.chain_depth,
            least,
        )
        hold(
            not event.started or event.chain_depth <= _DEPTH_MAX,
            "depth is bounded",
            "{} started runs at depth {}",
            event.id,
            event.chain_depth,
        )

    def judge_start(self, run: Run, document: Document) -> None:
        """Judge a run that is new."""
        hold(run.id not in self.depths, "a run starts once", "{} started twice", run.id)
        self.depths[run.id] = run.chain_depth
        hold(run.chain_depth <= _DEPTH_MAX, "depth is bounded", "{}: {}", run.id, run.chain_depth)
        if run.request_id:
            hold(
                run.request_id not in self.requests,
                "a request starts one run",
                "{} and {}",
                run.id,
                self.requests.get(run.request_id),
            )
            self.requests[run.request_id] = run.id
        if run.trigger is TriggerKind.MANUAL:
            return
        key = (run.playbook_id, run.trigger_id)
        if run.slot is not None:
            fired = self.slots.setdefault(key, set())
            hold(run.slot not in fired, "a slot fires once", "{} at {} again", key, run.slot)
            fired.add(run.slot)
        at = run.slot or run.started_at
        self._judge_cooldown(key, at, run, document)
        self.fired[key] = at

    def _judge_cooldown(
        self, key: tuple[str, str], at: datetime, run: Run, document: Document
    ) -> None:
        before = self.fired.get(key)
        playbook = document.playbooks.get(run.playbook_id)
        if before is None or playbook is None or playbook.spec_digest != run.spec_digest:
            return
        cooldown = next(
            each.cooldown_minutes for each in playbook.spec.triggers if each.id == run.trigger_id
        )
        hold(
            at - before >= timedelta(minutes=cooldown),
            "a cooldown is kept",
            "{} at {} and {}",
            run.id,
            before,
            at,
        )

    def hear_report(self, run_id: str, step_id: str) -> None:
        """Take a dispatch for ended: its report came, accepted or not."""
        self.reported.add((run_id, step_id))
        self.outstanding.pop((run_id, step_id), None)

    def follow(self, document: Document) -> None:
        """Remember the claims, and forget what the document may forget with a trigger's id."""
        for run in document.running.values():
            for each in run.steps:
                action = each.step.action
                key = (run.id, each.step.id)
                if not isinstance(action, DispatchAgent) or key in self.reported:
                    continue
                if each.claimed_at and not each.finished_at:
                    claim = _Claim(action.agent, run.chain_depth, each.claimed_at)
                    self.outstanding.setdefault(key, claim)
        self._follow_triggers(document)

    def _follow_triggers(self, document: Document) -> None:
        alive = {
            (playbook.id, trigger.id): playbook
            for playbook in document.playbooks.values()
            for trigger in playbook.spec.triggers
        }
        for key in (self.slots.keys() | self.fired.keys() | self.slot_done.keys()) - alive.keys():
            self.slots.pop(key, None)
            self.fired.pop(key, None)
            self.slot_done.pop(key, None)
        for key, playbook in alive.items():
            state = playbook.trigger_states.get(key[1])
            if state is None or state.slot_done is None:
                continue
            before = self.slot_done.get(key)
            hold(
                before is None or state.slot_done >= before,
                "a slot fires once",
                "{} went back to {}",
                key,
                state.slot_done,
            )
            self.slot_done[key] = state.slot_done
