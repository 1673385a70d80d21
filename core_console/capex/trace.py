"""The rows that a verdict read.

Owns the answer to "why this finding": the row itself first, then every other row that the rule
looked at. Never lists more than 500 rows, and says how many it left out.
"""

from dataclasses import dataclass

from core_console.capex.evaluation import Evaluation
from core_console.capex.feeds import CONTRACTS
from core_console.capex.findings import find, locate
from core_console.capex.texts import IN_TRACE_CHARACTERS, clipped
from core_console.model.capex import Column, Feed, Finding

ROWS_MAX = 500  # CapEx page, section 2: unpaged per-row list in a read


@dataclass(frozen=True, slots=True)
class TracedRow:
    """A row as it was read; `number` counts data rows from 1, `line` is the file's line."""

    feed: Feed
    number: int
    line: int
    cells: tuple[tuple[Column, str], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A finding with the rows that its verdict read, and what the list leaves out."""

    finding: Finding
    condition: str
    remediation: str
    rows: tuple[TracedRow, ...]
    unmeasured: tuple[str, ...]


def trace(evaluation: Evaluation, finding_id: str) -> Trace | None:
    """Return the trace of a finding, None when there is no such finding now."""
    finding, found = find(evaluation, finding_id), locate(evaluation, finding_id)
    if finding is None or found is None:
        return None
    outcome, row = found
    rule, case = outcome.rule, evaluation.case
    read = ((rule.sheet, row), *rule.also_read(case, row))
    left = len(read) - ROWS_MAX
    return Trace(
        finding=finding,
        condition=rule.words(case.limits),
        remediation=rule.remediation,
        rows=tuple(_traced(evaluation, feed, each) for feed, each in read[:ROWS_MAX]),
        unmeasured=(f"{left:,} more rows were read and are not listed",) if left > 0 else (),
    )


def _traced(evaluation: Evaluation, feed: Feed, row: int) -> TracedRow:
    table = evaluation.case.table(feed)
    cells = (clipped(cell, IN_TRACE_CHARACTERS) for cell in table.row(row))
    return TracedRow(
        feed=feed,
        number=row + 1,
        line=table.lines[row],
        cells=tuple(zip(CONTRACTS[feed].columns, cells, strict=True)),
    )
