"""Findings, written out from an evaluation as they are read.

Owns a finding's id and its place in the order: rules as in the book, then rows as in the file. The
same row content and rule have the same id, whatever else the feeds hold.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

from core_console.capex.evaluation import Evaluation, RuleOutcome
from core_console.capex.feeds import CONTRACTS
from core_console.capex.texts import KEY_CHARACTERS, clipped
from core_console.model.capex import Effect, Feed, Finding, Severity


@dataclass(frozen=True, slots=True)
class Filter:
    """Which findings are meant; None leaves a field open."""

    feed: Feed | None = None
    rule_id: str | None = None
    severity: Severity | None = None

    def takes(self, outcome: RuleOutcome) -> bool:
        """Say whether the findings of a rule are meant."""
        rule = outcome.rule
        return (
            self.feed in {None, rule.sheet}
            and self.rule_id in {None, rule.id}
            and self.severity in {None, rule.severity}
        )


EVERY = Filter()


class Findings(Sequence[Finding]):
    """The findings that a filter takes; only those that are asked for are written out."""

    def __init__(self, evaluation: Evaluation, taken: Filter = EVERY) -> None:
        self._evaluation = evaluation
        self._outcomes = [each for each in evaluation.outcomes if taken.takes(each)]
        self._starts: list[int] = []
        self._length = 0
        for each in self._outcomes:
            self._starts.append(self._length)
            self._length += len(each.failing)

    def __len__(self) -> int:
        """Return how many findings there are."""
        return self._length

    @overload
    def __getitem__(self, index: int) -> Finding: ...
    @overload
    def __getitem__(self, index: slice) -> list[Finding]: ...
    def __getitem__(self, index: int | slice) -> Finding | list[Finding]:
        """Return one finding, or a page of them."""
        if isinstance(index, slice):
            return [self._at(each) for each in range(*index.indices(self._length))]
        return self._at(range(self._length)[index])

    def _at(self, place: int) -> Finding:
        # A rule without findings starts where the next one does: the last of equals has the place.
        outcome_at = bisect_left(self._starts, place + 1) - 1
        outcome = self._outcomes[outcome_at]
        return _finding(
            self._evaluation, outcome, outcome.failing[place - self._starts[outcome_at]]
        )


def find(evaluation: Evaluation, finding_id: str) -> Finding | None:
    """Return the finding of that id, None when there is none now."""
    found = locate(evaluation, finding_id)
    return None if found is None else _finding(evaluation, *found)


def locate(evaluation: Evaluation, finding_id: str) -> tuple[RuleOutcome, int] | None:
    """Return the rule and the row, from 0, that a finding's id stands for."""
    rule_id, _, row_id = finding_id.partition(".")
    for outcome in evaluation.outcomes:
        if outcome.rule.id == rule_id:
            return next(_rows_of(evaluation, outcome, row_id), None)
    return None


def _rows_of(
    evaluation: Evaluation, outcome: RuleOutcome, row_id: str
) -> Iterator[tuple[RuleOutcome, int]]:
    ids = evaluation.row_ids[outcome.rule.sheet]
    return ((outcome, row) for row in outcome.failing if ids[row] == row_id)


def _finding(evaluation: Evaluation, outcome: RuleOutcome, row: int) -> Finding:
    rule = outcome.rule
    table = evaluation.case.table(rule.sheet)
    key = table.texts[CONTRACTS[rule.sheet].key][row]
    return Finding(
        id=f"{rule.id}.{evaluation.row_ids[rule.sheet][row]}",
        rule_id=rule.id,
        sheet=rule.sheet,
        severity=rule.severity,
        row_key=clipped(key, KEY_CHARACTERS),
        row_number=row + 1,
        message=rule.says(evaluation.case, row),
        dry_run=outcome.effect is Effect.DRY_RUN,
    )
