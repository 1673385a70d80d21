"""Performing what a swap claimed: a dispatch, a comment, a scan, each at most once.

Owns the queue of claimed effects and the pace at which they leave. Right before a call the step
is read again: only the process that claimed it performs it, only within 60 s of the claim, and
only while the run is not final. The outcome is a new command. Never sends anything twice.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, assert_never

import structlog

from core_console.counts import EffectCounts
from core_console.decide import notice, runs
from core_console.decide.commands import Command, RecordCall, RecordScan
from core_console.decide.outcome import Effect, Outcome, RunScan, SendComment, SendDispatch
from core_console.decide.status import FINAL, OPEN_STEPS
from core_console.model.document import Document
from core_console.model.faults import InvariantError
from core_console.model.playbook import CapexScan
from core_console.model.run import Call, Run, StepRun
from core_console.ports import CallOutcome, Clock, Fault, GitHub, ScanAsked, Scanner

_log = structlog.get_logger(__name__)

WAITING_MAX = 30
"""At one call a second the last of thirty leaves within half of its claim's 60 s."""

PACE_S = 1.0
"""GitHub allows about 80 content-creating calls a minute; one a second stays below."""

CLAIM_S = 60.0
"""How long a claim may be performed (contract, section 4)."""

_RECORD_S = 120.0
"""After two minutes the tick abandons the claim, so its outcome no longer counts."""

_RETRY_S = 1.0


class Console(Protocol):
    """The engine, as far as effects need it."""

    replica: str

    async def submit(self, command: Command) -> Outcome:
        """Return the command's outcome once it is durable."""
        ...

    async def snapshot(self) -> Document:
        """Return the newest durable document."""
        ...


class NoEffects:
    """The performer of a document whose decisions have no effect outside of it."""

    room = 0

    def take(self, effects: Sequence[Effect]) -> None:
        """Refuse effects: there is nobody to perform them."""
        if effects:
            raise InvariantError("a document without a performer claimed an effect")


@dataclass(frozen=True, slots=True)
class _Taken:
    """An effect, and when it was taken in seconds that never jump."""

    effect: Effect
    at_s: float


class Performer:
    """This replica's sender and scanner."""

    def __init__(self, *, github: GitHub, scanner: Scanner, clock: Clock) -> None:
        self.counts = EffectCounts()
        self._github = github
        self._scanner = scanner
        self._clock = clock
        self._waiting: deque[_Taken] = deque()
        self._offered = asyncio.Event()
        self._under_way: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """How many effects wait to be performed."""
        return len(self._waiting)

    @property
    def room(self) -> int:
        """How many more effects may be claimed."""
        return WAITING_MAX - len(self._waiting)

    def take(self, effects: Sequence[Effect]) -> None:
        """Queue effects whose claims are durable."""
        now_s = self._clock.monotonic()
        self._waiting.extend(_Taken(effect, now_s) for effect in effects)
        self._offered.set()

    async def run(self, console: Console) -> None:
        """Perform what is taken, one call a second, for as long as the process lives."""
        while True:
            while self._waiting:
                taken = self._waiting.popleft()
                task = asyncio.create_task(self._perform(console, taken))
                self._under_way.add(task)
                task.add_done_callback(self._under_way.discard)
                if not isinstance(taken.effect, RunScan):
                    await self._clock.sleep(PACE_S)
            self._offered.clear()
            await self._offered.wait()

    async def close(self, console: Console) -> None:
        """Record what was never sent, and let the calls under way end."""
        unsent = [self._not_sent(console, taken.effect) for taken in self._waiting]
        self._waiting.clear()
        await asyncio.gather(*unsent, *self._under_way)

    async def _not_sent(self, console: Console, effect: Effect) -> None:
        outcome = _refused(console, effect, "the console was stopping")
        self.counts.ended[_kind_and_result(effect, outcome)] += 1
        await self._record(console, outcome)

    async def _perform(self, console: Console, taken: _Taken) -> None:
        try:
            outcome = await self._outcome(console, taken)
            self.counts.ended[_kind_and_result(taken.effect, outcome)] += 1
            await self._record(console, outcome)
        except Exception:
            # The claim stays without an outcome, and the tick abandons it: never sent twice.
            ids = taken.effect
            _log.exception("effect_failed", run=ids.run_id, step=ids.step_id)

    async def _outcome(self, console: Console, taken: _Taken) -> RecordCall | RecordScan:
        """Read the step again, perform the effect if it is still this process's, and tell."""
        effect = taken.effect
        document = await self._snapshot(console)
        run = None if document is None else runs.find(document, effect.run_id)
        if run is None:
            return _refused(console, effect, "the store could not be read in time")
        left_s = self._left_s(_step_of(run, effect), taken)
        objection = _objection(console, run, _step_of(run, effect), left_s)
        if objection:
            return _refused(console, effect, objection)
        return await self._call(console, taken, run, left_s)

    async def _objection_now(self, console: Console, taken: _Taken) -> str:
        """Return why the call must not leave any more: it may have waited for its turn."""
        try:
            document = await console.snapshot()
        except Fault as fault:
            return fault.message
        run = runs.find(document, taken.effect.run_id)
        if run is None:
            return "the run is no longer kept"
        step_run = _step_of(run, taken.effect)
        return _objection(console, run, step_run, self._left_s(step_run, taken))

    async def _call(
        self, console: Console, taken: _Taken, run: Run, left_s: float
    ) -> RecordCall | RecordScan:
        effect = taken.effect
        objection = partial(self._objection_now, console, taken)
        match effect:
            case SendDispatch(payload=payload):
                answer = await self._github.dispatch(payload, left_s, objection)
                return _told(console, effect, answer)
            case SendComment(repo=repo, issue=issue):
                body = notice.comment(run)
                answer = await self._github.comment(repo, issue, body, left_s, objection)
                return _told(console, effect, answer)
            case RunScan():
                return await self._scan(console, effect, run)
            case _ as never:
                assert_never(never)

    async def _scan(self, console: Console, effect: RunScan, run: Run) -> RecordScan:
        found = await self._scanner.scan(_asked(run, effect.step_id))
        return RecordScan(
            effect.run_id,
            effect.step_id,
            console.replica,
            found.scan_run_id,
            found.findings,
            found.failure,
            found.detail,
            found.baseline,
            found.basis,
        )

    def _left_s(self, step_run: StepRun, taken: _Taken) -> float:
        """Return for how long the claim holds; a clock that was set back does not prolong it."""
        if step_run.claimed_at is None:
            return 0.0
        age_s = (self._clock.now() - step_run.claimed_at).total_seconds()
        return CLAIM_S - max(age_s, self._clock.monotonic() - taken.at_s)

    async def _snapshot(self, console: Console) -> Document | None:
        """Return the document, None when the store cannot be read while the claim holds."""
        until = self._clock.monotonic() + CLAIM_S
        while self._clock.monotonic() < until:
            try:
                return await console.snapshot()
            except Fault:
                await self._clock.sleep(_RETRY_S)
        return None

    async def _record(self, console: Console, command: RecordCall | RecordScan) -> None:
        """Have the outcome written, trying for as long as it would still count."""
        until = self._clock.monotonic() + _RECORD_S
        while True:
            try:
                await console.submit(command)
            except Fault as fault:
                if self._clock.monotonic() >= until:
                    _log.warning("outcome_unwritten", run=command.run_id, reason=fault.message)
                    return
                await self._clock.sleep(_RETRY_S)
            else:
                return


def _kind_and_result(effect: Effect, outcome: RecordCall | RecordScan) -> tuple[str, str]:
    """Return what was performed and how it ended, in the words of the metrics."""
    if isinstance(outcome, RecordScan):
        return "scan", "failed" if outcome.failure else "passed"
    kind = "dispatch" if isinstance(effect, SendDispatch) else "comment"
    return kind, outcome.call.lower()


def _step_of(run: Run, effect: Effect) -> StepRun:
    return next(each for each in run.steps if each.step.id == effect.step_id)


def _asked(run: Run, step_id: str) -> ScanAsked:
    """Return what the step asks for, with the run's first scan to compare with."""
    action = next(each.step.action for each in run.steps if each.step.id == step_id)
    if not isinstance(action, CapexScan):
        raise InvariantError(f"step {step_id} of run {run.id} is no capex_scan")
    first = next((each.scan for each in run.steps if each.scan is not None), None)
    return ScanAsked(run.id, action.compare_to_first_scan, action.rule_ids, first)


def _objection(console: Console, run: Run, step_run: StepRun, left_s: float) -> str:
    """Return why the effect must not be performed now, "" when it may be."""
    if run.status in FINAL:
        return f"the run is {run.status}"
    if step_run.status not in OPEN_STEPS:
        return f"the step is {step_run.status}"
    if step_run.claimed_by != console.replica:
        return "another process claimed the step"
    if left_s <= 0:
        return f"its claim is older than {CLAIM_S:.0f} s"
    return ""


def _refused(console: Console, effect: Effect, why: str) -> RecordCall | RecordScan:
    detail = f"not sent: {why}"
    if isinstance(effect, RunScan):
        ids = (effect.run_id, effect.step_id, console.replica)
        return RecordScan(*ids, scan_run_id="", findings={}, failure=detail)
    return _told(console, effect, CallOutcome(Call.REFUSED, detail))


def _told(console: Console, effect: Effect, answer: CallOutcome) -> RecordCall:
    return RecordCall(effect.run_id, effect.step_id, console.replica, answer.call, answer.detail)
