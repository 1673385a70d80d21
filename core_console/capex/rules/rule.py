"""What a rule is: its facts, its condition as a function, and the words for a row that fails.

Owns the type alone. A condition answers for every row of its sheet at once, for a column of
50,000 cells is judged ten times faster by one loop than by 50,000 calls.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core_console.capex.case import ABSENT, Case
from core_console.model.capex import Column, Dimension, Feed, Severity, Thresholds

Verdicts = list[bool | None]
"""For each row of the sheet: whether the condition holds; None when it cannot be judged."""

RowRef = tuple[Feed, int]
"""A row of a feed, counted from 0."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Rows that a rule cannot judge for a reason that no other rule reports."""

    reason: str
    count: Callable[[Case], int]


def _nothing_else(case: Case, row: int) -> Sequence[RowRef]:
    del case, row
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the book.

    `condition` is what must hold, in words; thresholds stand in it by their names in braces.
    `needs` are the feeds that it looks into beside its own sheet. `says` gives the message for a
    row on which it does not hold, `also_read` the other rows that the verdict read.
    """

    id: str
    sheet: Feed
    severity: Severity
    condition: str
    remediation: str
    holds: Callable[[Case], Verdicts]
    says: Callable[[Case, int], str]
    dimension: Dimension | None = None
    needs: tuple[Feed, ...] = ()
    also_read: Callable[[Case, int], Sequence[RowRef]] = _nothing_else
    gap: Gap | None = None

    def words(self, limits: Thresholds) -> str:
        """Return the condition with the thresholds filled in."""
        return self.condition.format(limits=limits)


def plan_of_request(case: Case, row: int) -> Sequence[RowRef]:
    """Return the plan row that a request names."""
    return _present(Feed.CAPITAL_PLAN, case.plan_of_request[row])


def plan_of_spend(case: Case, row: int) -> Sequence[RowRef]:
    """Return the plan row that a spend row names."""
    return _present(Feed.CAPITAL_PLAN, case.plan_of_spend[row])


def request_of_spend(case: Case, row: int) -> Sequence[RowRef]:
    """Return the request that a spend row names."""
    return _present(Feed.CAPITAL_REQUEST, case.request_of_spend[row])


def ambiguous_approvals(case: Case) -> int:
    """Count the spend rows whose ApprovalId several requests have."""
    several = {cell for cell, row in case.approval_rows.items() if row == ABSENT}
    return sum(map(several.__contains__, case.spend.texts[Column.APPROVAL_ID]))


def _present(feed: Feed, row: int) -> Sequence[RowRef]:
    return () if row == ABSENT else ((feed, row),)
