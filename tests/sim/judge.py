"""The invariants of the whole system, held after every step against what is durable.

Owns the judgement of each swap, each append, each answer and each call to GitHub. It is told by
the simulated store, log, callers and GitHub, never by the product.
"""

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

from core_console.batch import METADOC
from core_console.decide.commands import CancelRun, Command, DecideApproval, ReportStep
from core_console.decide.outcome import Accepted, Code, Refused
from core_console.decide.status import FINAL
from core_console.governance.chain import decode, rfc3339
from core_console.governance.verify import verify
from core_console.model.audit import Entry
from core_console.model.document import Document
from core_console.model.playbook import CapexScan, DispatchAgent, Playbook
from core_console.model.run import Run, StepRun, StepRunStatus
from tests.sim.broken import hold
from tests.sim.moves import REACHABLE, judge_change, judge_new
from tests.sim.starts import Starts
from tests.sim.told import Told

BUDGET_BYTES = 786_432
_KEPT_FINISHED = 200
_KEPT_EVENTS = 300
_TIGHT_BYTES = 500_000
"""Below it no budget asks for trimming, so only the counts may."""

_VERIFY_EVERY = 64
_CLAIM_S = 60.0
_SLACK_S = 1.0


class Judge:
    """Everything that was promised so far, and whether it held."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.starts = Starts()
        self.document = METADOC.empty
        self.entries: dict[int, Entry] = {}
        self.lines: list[bytes] = []
        self.recorded = 0
        self.sent: Counter[tuple[str, str]] = Counter()
        self.scans: Counter[str] = Counter()
        self.claimed_at_s: dict[tuple[str, str], float] = {}
        self.reports: set[tuple[str, str, str, str]] = set()
        self.taken: set[int] = set()
        self._durable: Counter[Entry] = Counter()
        self._answered: Counter[Entry] = Counter()
        self._playbooks: dict[str, Playbook] = {}
        self._runs: dict[str, Run] = {}
        self._swaps: dict[int, str] = {}

    def begin(self, document: Document) -> None:
        """Take over the document that is stored at first."""
        self.document = document
        self.told.begin(document)
        self.starts.begin(document)
        self._remember(document)

    def swapped(self, document: Document, size: int, *, replica: str, at_s: float) -> None:
        """Judge a swap that has just become durable."""
        before = self.document
        hold(document.revision == before.revision + 1, "a swap moves the revision", "{}", size)
        hold(size <= BUDGET_BYTES, "the budget holds", "{} bytes", size)
        said = self._judge_outbox(before, document)
        self.told.hear(said, document)
        self.told.agree(document)
        for each in said:
            if each.action.endswith(".report"):
                _, run_id, step_id = each.target.split("/")
                self.starts.hear_report(run_id, step_id)
        self._judge_runs(before, document, replica, at_s)
        self.starts.judge_events(document)
        self.starts.follow(document)
        _judge_history(before, document, size)
        self.document = document
        self._remember(document)

    def _judge_outbox(self, before: Document, document: Document) -> list[Entry]:
        rule = "every decision is in the chain exactly once"
        numbers = [each.number for each in document.outbox]
        first = document.outbox_number - len(numbers) + 1
        hold(numbers == list(range(first, first + len(numbers))), rule, "outbox {}", numbers)
        hold(
            first <= self.recorded + 1,
            rule,
            "entries up to {} left the document, and the chain holds {}",
            first - 1,
            self.recorded,
        )
        said = []
        for each in document.outbox:
            known = self.entries.get(each.number)
            if known is not None:
                hold(known == each.entry, rule, "entry {} became another", each.number)
            else:
                hold(each.number > before.outbox_number, rule, "entry {} came late", each.number)
                self.entries[each.number] = each.entry
                self._durable[each.entry] += 1
                said.append(each.entry)
        hold(
            document.outbox_number == before.outbox_number + len(said),
            rule,
            "{} new entries, and the number went from {} to {}",
            len(said),
            before.outbox_number,
            document.outbox_number,
        )
        return said

    def _judge_runs(self, before: Document, document: Document, replica: str, at_s: float) -> None:
        old = _runs(before)
        new = _runs(document)
        for run_id in old.keys() - new.keys():
            ended = old[run_id].status in FINAL
            hold(ended, "nothing in flight disappears", "{} is gone", run_id)
        ids = [run.id for run in document.running.values()]
        hold(len(set(ids)) == len(ids), "one run in flight a playbook", "{}", ids)
        for playbook_id, run in document.running.items():
            hold(run.playbook_id == playbook_id, "one run in flight a playbook", "{}", run.id)
            hold(run.status not in FINAL, "legal moves", "{} is in flight, {}", run.id, run.status)
        for run_id, now in new.items():
            was = old.get(run_id)
            if was is now or was == now:
                continue
            if was is None:
                judge_new(now, replica)
                self.starts.judge_start(now, document)
            else:
                judge_change(was, now, replica)
            self._judge_steps(was, now, at_s)

    def _judge_steps(self, was: Run | None, now: Run, at_s: float) -> None:
        for place, step in enumerate(now.steps):
            key = (now.id, step.step.id)
            earlier = None if was is None else was.steps[place]
            if step.claimed_by and (earlier is None or not earlier.claimed_by):
                hold(key not in self.claimed_at_s, "a step is claimed once", "{} again", key)
                self.claimed_at_s[key] = at_s
            if step.conclusion and not (earlier and earlier.conclusion):
                self._judge_report(now, step)

    def _judge_report(self, run: Run, step: StepRun) -> None:
        assert isinstance(step.step.action, DispatchAgent)
        report = (step.step.action.agent, run.id, step.step.id, step.conclusion)
        hold(report in self.reports, "success is reported", "nobody sent {}", report)

    def appended(self, lines: Sequence[bytes]) -> None:
        """Judge lines that are durable in the log."""
        rule = "every decision is in the chain exactly once"
        for line in lines:
            record = decode(line)
            self.lines.append(line)
            hold(record.seq == len(self.lines), "the chain verifies", "seq {}", record.seq)
            if not record.document:
                continue
            hold(record.number == self.recorded + 1, rule, "{} after {}", record, self.recorded)
            entry = self.entries.get(record.number)
            hold(entry is not None, rule, "{} was decided by no durable swap", record)
            assert entry is not None
            same = (rfc3339(entry.at), entry.actor, entry.action, entry.target, entry.detail)
            is_same = same == (
                record.at, record.actor, record.action, record.target, record.detail
            )  # fmt: skip
            hold(is_same, rule, "{} is not {}", record, entry)
            self.recorded = record.number
        if len(self.lines) % _VERIFY_EVERY < len(lines):
            self.verify()

    def verify(self) -> None:
        """Verify the bytes of the whole chain as an outsider does."""
        found = verify(io.BytesIO(b"".join(line + b"\n" for line in self.lines)))
        hold(found.intact and found.records == len(self.lines), "the chain verifies", "{}", found)

    def answered(self, outcome: Accepted) -> None:
        """Judge a success that a caller was just told of."""
        rule = "nobody is answered before it is durable"
        for entry in outcome.entries:
            self._answered[entry] += 1
            hold(self._answered[entry] <= self._durable[entry], rule, "{}", entry)
        answer = outcome.answer
        if isinstance(answer, Playbook):
            known = self._playbooks.get(answer.id)
            stored = known is not None and known.revision >= answer.revision
            # Another command of the same swap may have deleted it.
            hold(stored or answer.id in self.told.deleted, rule, "{}", answer.id)
        if isinstance(answer, Run):
            run = self._runs.get(answer.id)
            reached = run is not None and run.status in REACHABLE[answer.status]
            hold(reached, rule, "{} {}, stored {}", answer.id, answer.status, run)

    def shown(self, document: Document, *, least_revision: int) -> None:
        """Judge what a reader was shown."""
        revision = document.revision
        rule = "no read shows what is not durable"
        hold(self._swaps.get(revision) == document.swap_id, rule, "revision {}", revision)
        hold(revision >= least_revision, "no read is stale", "{}, not {}", revision, least_revision)

    def refused(self, command: Command, refused: Refused) -> None:
        """Judge a refusal: what is in flight can be ended however full the document is."""
        ends = isinstance(command, CancelRun | DecideApproval | ReportStep)
        full = refused.code in {Code.RESOURCE_EXHAUSTED, Code.UNAVAILABLE}
        hold(not (ends and full), "what is in flight can be ended", "{}: {}", command, refused)

    def calling(self, key: tuple[str, str], *, replica: str, patience_s: float) -> None:
        """Judge that a process begins to call GitHub for a step of a run."""
        run = self._runs.get(key[0])
        step = None if run is None else next(each for each in run.steps if each.step.id == key[1])
        owner = "" if step is None else step.claimed_by
        hold(owner == replica, "a deed follows its claim", "{} by {}, not {}", key, replica, owner)
        hold(0 < patience_s <= _CLAIM_S, "a claim holds for 60 s", "{}: {} s", key, patience_s)

    def called(self, key: tuple[str, str], at_s: float, *, unaware: bool) -> None:
        """Judge that GitHub got a call for a step of a run.

        A process is unaware of what others stored while its own swap is under way.
        """
        run = self._runs[key[0]]
        over = run.status in FINAL and not unaware
        hold(not over, "no call leaves after the end", "{}: {}", key, run.status)
        self.sent[key] += 1
        hold(self.sent[key] == 1, "a dispatch is sent at most once", "{}: {}", key, self.sent[key])
        age_s = at_s - self.claimed_at_s.get(key, at_s)
        hold(age_s <= _CLAIM_S + _SLACK_S, "a claim holds for 60 s", "{}: {} s", key, age_s)

    def scanned(self, run_id: str) -> None:
        """Judge that a scan began for a run."""
        self.scans[run_id] += 1
        run = self._runs.get(run_id)
        hold(run is not None, "a deed follows its claim", "a scan for {}", run_id)
        assert run is not None
        claimed = sum(
            isinstance(each.step.action, CapexScan) and bool(each.claimed_by) for each in run.steps
        )
        hold(self.scans[run_id] <= claimed, "a deed follows its claim", "scan {}", run_id)

    def ended(self, snapshots: Mapping[str, Document], refusals: int) -> None:
        """Judge how it all came to rest."""
        self.verify()
        running = [run.id for run in self.document.running.values()]
        hold(not running, "every run ends", "{}", running)
        open_ = [
            each.step.id
            for run in self.document.finished.values()
            for each in run.steps
            if each.status is StepRunStatus.PENDING
        ]
        hold(not open_, "every run ends", "{}", open_)
        number = self.document.outbox_number
        hold(self.recorded == number, "the outbox is drained", "{} of {}", self.recorded, number)
        for name, found in snapshots.items():
            hold(found == self.document, "all replicas agree", "{} does not", name)
        others = sum(not decode(line).document for line in self.lines)
        hold(others <= refusals, "a refusal is recorded once", "{} of {}", others, refusals)

    def _remember(self, document: Document) -> None:
        self._playbooks.update(document.playbooks)
        self._runs.update(_runs(document))
        self._swaps[document.revision] = document.swap_id


def _runs(document: Document) -> dict[str, Run]:
    return {run.id: run for run in chain(document.running.values(), document.finished.values())}


def _judge_history(before: Document, after: Document, size: int) -> None:
    """Judge that history goes from its old end, and only for a reason."""
    rule = "history is trimmed from its old end"
    tight = size > _TIGHT_BYTES
    for was, now, most in (
        (list(before.finished), after.finished, _KEPT_FINISHED),
        (list(before.events), after.events, _KEPT_EVENTS),
    ):
        gone = [each for each in was if each not in now]
        hold(gone == was[: len(gone)], rule, "{} went before older ones", gone)
        hold(not gone or len(now) == most or tight, rule, "{} went for no reason", gone)
        hold(len(now) <= most, rule, "{} are kept", len(now))
