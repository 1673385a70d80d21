"""The summary of an evaluation: findings by severity, the dq score, and each feed's state.

Owns the figures of GetSummary and of a preview. Dry runs count in none of them but their own.
"""

from dataclasses import dataclass

from core_console.capex.evaluation import Evaluation
from core_console.model.capex import Effect, Feed, Figure, Severity


@dataclass(frozen=True, slots=True)
class FeedSummary:
    """What is known of one feed: its rows, and how many of them have a scored finding."""

    feed: Feed
    loaded: bool
    rows: int
    rows_flagged: int
    findings: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures; `by_severity` names every severity and `by_rule` every scored, measured rule."""

    findings: int
    by_severity: dict[Severity, int]
    by_rule: dict[str, int]
    dry_run_findings: int
    dq: Figure
    feeds: tuple[FeedSummary, ...]
    unmeasured: tuple[str, ...]


def summarise(evaluation: Evaluation) -> Summary:
    """Return the summary of `evaluation`."""
    by_severity = dict.fromkeys(Severity, 0)
    by_feed = dict.fromkeys(Feed, 0)
    dry = 0
    for each in evaluation.outcomes:
        if each.effect is Effect.DRY_RUN:
            dry += len(each.failing)
            continue
        by_severity[each.rule.severity] += len(each.failing)
        by_feed[each.rule.sheet] += len(each.failing)
    return Summary(
        findings=sum(by_severity.values()),
        by_severity=by_severity,
        by_rule=evaluation.counts(),
        dry_run_findings=dry,
        dq=evaluation.dq(),
        feeds=tuple(_feed(evaluation, feed, by_feed[feed]) for feed in Feed),
        unmeasured=evaluation.unmeasured,
    )


def _feed(evaluation: Evaluation, feed: Feed, findings: int) -> FeedSummary:
    return FeedSummary(
        feed=feed,
        loaded=feed in evaluation.case.loaded,
        rows=len(evaluation.case.table(feed)),
        rows_flagged=evaluation.flagged.get(feed, 0),
        findings=findings,
    )
