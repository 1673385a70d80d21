"""The metrics of one console process, as Prometheus reads them.

Owns the names of the metrics and what each of them means. It reads counters when it is asked and
costs nothing in between. Never shows an id, a name, an address or anything that somebody wrote.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from core_console.counts import BATCH_BOUNDS, DocumentCounts, EffectCounts, TickCounts
from core_console.decide.budget import BUDGET_BYTES, SPARE_BYTES, Ledger
from core_console.decide.outcome import Code
from core_console.model.audit import Outcome
from core_console.model.document import EMPTY, Document
from core_console.model.pieces import Pieces
from core_console.model.playbook import PlaybookStatus

_PREFIX = "core_console_"


class Writer(Protocol):
    """An engine, as far as it is measured."""

    counts: DocumentCounts

    @property
    def away(self) -> bool:
        """Whether the store has stopped answering."""
        ...


class Recorder(Protocol):
    """What appends a document's outbox, as far as it is measured."""

    recorded: int
    failing: bool


class Performer(Protocol):
    """What performs effects, as far as it is measured."""

    counts: EffectCounts

    @property
    def waiting(self) -> int:
        """How many claimed effects wait."""
        ...


class Ticker(Protocol):
    """The ticker, as far as it is measured."""

    counts: TickCounts


class Refusals(Protocol):
    """What records refusals, as far as it is measured."""

    unrecorded: int
    met: Counter[Outcome]


class Log(Protocol):
    """The log under the chain, as far as it is measured."""

    repairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where the figures are; `documents` has the writer and the recorder of each by its name."""

    documents: Mapping[str, tuple[Writer, Recorder]]
    performer: Performer
    ticker: Ticker
    refusals: Refusals
    log: Log


class Metrics(Collector):
    """Reads the figures when it is asked."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._reserve: tuple[Document, int] = (EMPTY, 0)
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self) -> bytes:
        """Return every metric in Prometheus' text form."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; the registry asks."""
        yield from self._documents()
        yield from self._budget()
        yield from self._work()
        yield from self._ticks()

    def _documents(self) -> Iterator[Metric]:
        size = _gauge("document_bytes", "Stored size of the document.", "document")
        revision = _gauge("document_revision", "Its revision, one more a swap.", "document")
        away = _gauge("store_away", "1 while its store does not answer.", "document")
        waiting = _gauge("outbox_entries", "Entries that are not in the chain yet.", "document")
        failing = _gauge("outbox_failing", "1 after the chain could not be written.", "document")
        swaps = _counter("swaps", "Swaps that landed.", "document")
        conflicts = _counter("swap_conflicts", "Swaps that another replica won.", "document")
        faults = _counter("store_faults", "Batches that the store failed.", "document")
        answers = _counter("answers", "Commands that were answered.", "document")
        refused = _counter("refusals", "Commands that were refused.", "document", "code")
        batches = HistogramMetricFamily(
            _PREFIX + "swap_commands", "Commands of one swap.", labels=["document"]
        )
        for name, (writer, recorder) in self._sources.documents.items():
            counts, known = writer.counts, writer.counts.document
            outbox = () if known is None else known.outbox
            size.add_metric([name], counts.size_bytes)
            revision.add_metric([name], 0 if known is None else known.revision)
            away.add_metric([name], writer.away)
            waiting.add_metric([name], sum(each.number > recorder.recorded for each in outbox))
            failing.add_metric([name], recorder.failing)
            swaps.add_metric([name], counts.swaps)
            conflicts.add_metric([name], counts.conflicts)
            faults.add_metric([name], counts.faults)
            answers.add_metric([name], counts.answers)
            for code in Code:
                refused.add_metric([name, code], counts.refused[code])
            batches.add_metric([name], buckets=_buckets(counts), sum_value=counts.batched)
        yield from (size, revision, away, waiting, failing)
        yield from (swaps, conflicts, faults, answers, refused, batches)

    def _budget(self) -> Iterator[Metric]:
        trimmed = _counter("trimmed", "History that made room for newer work.", "kind")
        playbooks = _gauge("playbooks", "Playbooks by their status.", "status")
        runs = _gauge("runs_in_flight", "Runs that have not ended.")
        budget = _gauge("budget_bytes", "The most that the playbooks' document may have.")
        reserve = _gauge("reserve_bytes", "What its runs in flight may still add, and the spare.")
        for writer, _ in self._sources.documents.values():
            known = writer.counts.document
            if isinstance(known, Document):
                for kind in ("events", "runs"):
                    trimmed.add_metric([kind], writer.counts.trimmed[kind])
                standing = Counter(each.status for each in known.playbooks.values())
                for status in PlaybookStatus:
                    playbooks.add_metric([status], standing[status])
                runs.add_metric([], len(known.running))
                budget.add_metric([], BUDGET_BYTES)
                reserve.add_metric([], self._reserved(known) + SPARE_BYTES)
        yield from (trimmed, playbooks, runs, budget, reserve)

    def _reserved(self, document: Document) -> int:
        """Return what the runs in flight reserve, worked out once a revision."""
        if self._reserve[0] is not document:
            # An account of its own: the writer's remembers what it measures for its next swap.
            self._reserve = (document, Ledger(Pieces()).room(document).reserve_bytes)
        return self._reserve[1]

    def _work(self) -> Iterator[Metric]:
        effects = _counter("effects", "Effects that ended.", "kind", "result")
        for pair, number in sorted(self._sources.performer.counts.ended.items()):
            effects.add_metric(pair, number)
        waiting = _gauge("effects_waiting", "Claimed effects that wait to be performed.")
        waiting.add_metric([], self._sources.performer.waiting)
        refusals = self._sources.refusals
        turned = _counter("calls_turned_away", "Calls that changed nothing.", "outcome")
        for outcome in (Outcome.DENIED, Outcome.FAILURE):
            turned.add_metric([outcome], refusals.met[outcome])
        unrecorded = _counter("refusals_unrecorded", "Refusals that the chain does not hold.")
        unrecorded.add_metric([], refusals.unrecorded)
        repairs = _counter("audit_repairs", "Torn last lines that were cut off the chain.")
        repairs.add_metric([], self._sources.log.repairs)
        yield from (effects, waiting, turned, unrecorded, repairs)

    def _ticks(self) -> Iterator[Metric]:
        counts = self._sources.ticker.counts
        told: tuple[tuple[Metric, float], ...] = (
            (_counter("ticks", "Ticks that ended."), counts.ticks),
            (_counter("tick_failures", "Parts of ticks that failed."), counts.failures),
            (_counter("tick_seconds", "Time that all ticks took."), counts.took_s),
            (_gauge("tick_last_seconds", "Time that the last tick took."), counts.last_s),
            (_gauge("tick_late_seconds", "How late the last tick began."), counts.late_s),
        )
        for metric, figure in told:
            metric.add_sample(_sample_name(metric), {}, figure)
            yield metric


def _sample_name(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def _counter(name: str, meaning: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(_PREFIX + name, meaning, labels=labels)


def _gauge(name: str, meaning: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(_PREFIX + name, meaning, labels=labels)


def _buckets(counts: DocumentCounts) -> list[tuple[str, float]]:
    """Return the swaps whose commands are at most each bound, as Prometheus counts them."""
    passed = 0
    buckets: list[tuple[str, float]] = []
    for bound, number in zip(BATCH_BOUNDS, counts.batches, strict=True):
        passed += number
        buckets.append((f"{bound}.0", passed))
    return [*buckets, ("+Inf", passed)]
