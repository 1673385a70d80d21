"""What the rules judge: the loaded feeds, joined, with the Go-Live day and the thresholds.

Owns the look-ups between feeds, worked out once for all rules. A look-up that finds nothing, or
more than one row, gives ABSENT: an ambiguous id counts as missing input.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from core_console.capex.feeds import Table, no_rows
from core_console.capex.numbers import EXACT
from core_console.model.capex import Column, Feed, Thresholds

Value = TypeVar("Value")

ABSENT = -1
"""A row that is not there. As an index it means the last entry: see `at`."""

_ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """The feeds as the rules see them; a feed that is not loaded has no rows.

    `plan_rows` and `approval_rows` give the row of an ItemId and of an ApprovalId, ABSENT for an
    ambiguous one; `plan_counts` says how many rows have an ItemId. The three lists say for each
    row of one feed which row of another it names. `spent` is the spend of each request, by its
    row. `go_live` is an ordinal.
    """

    plan: Table
    requests: Table
    spend: Table
    loaded: frozenset[Feed]
    go_live: int
    limits: Thresholds
    plan_rows: Mapping[str, int]
    plan_counts: Mapping[str, int]
    approval_rows: Mapping[str, int]
    plan_of_request: Sequence[int]
    plan_of_spend: Sequence[int]
    request_of_spend: Sequence[int]
    spent: Mapping[int, Decimal]

    def table(self, feed: Feed) -> Table:
        """Return the rows of a feed."""
        match feed:
            case Feed.CAPITAL_PLAN:
                return self.plan
            case Feed.CAPITAL_REQUEST:
                return self.requests
            case Feed.SPEND:
                return self.spend


def join(feeds: Mapping[Feed, Table], *, go_live: int, limits: Thresholds) -> Case:
    """Return the case of the loaded `feeds`."""
    plan, requests, spend = (feeds.get(feed) or no_rows(feed) for feed in Feed)
    plan_rows = _index(plan.texts[Column.ITEM_ID])
    approval_rows = _index(requests.texts[Column.APPROVAL_ID])
    request_of_spend = _look_up(approval_rows, spend.texts[Column.APPROVAL_ID])
    return Case(
        plan=plan,
        requests=requests,
        spend=spend,
        loaded=frozenset(feeds),
        go_live=go_live,
        limits=limits,
        plan_rows=plan_rows,
        plan_counts=Counter(plan.texts[Column.ITEM_ID]),
        approval_rows=approval_rows,
        plan_of_request=_look_up(plan_rows, requests.texts[Column.ITEM_ID]),
        plan_of_spend=_look_up(plan_rows, spend.texts[Column.ITEM_ID]),
        request_of_spend=request_of_spend,
        spent=_sums(request_of_spend, spend.numbers[Column.AMOUNT]),
    )


def at(column: Sequence[Value | None], rows: Iterable[int]) -> list[Value | None]:
    """Return the entries of `column` at `rows`, None for an ABSENT row."""
    padded = [*column, None]
    return [padded[row] for row in rows]


def _index(cells: Sequence[str]) -> dict[str, int]:
    rows: dict[str, int] = {}
    for row, cell in enumerate(cells):
        if cell:
            rows[cell] = ABSENT if cell in rows else row
    return rows


def _look_up(index: Mapping[str, int], cells: Iterable[str]) -> list[int]:
    return [index.get(cell, ABSENT) for cell in cells]


def _sums(requests: Iterable[int], amounts: Iterable[Decimal | None]) -> dict[int, Decimal]:
    sums: dict[int, Decimal] = {}
    add = EXACT.add
    for request, amount in zip(requests, amounts, strict=True):
        if request != ABSENT and amount is not None:
            sums[request] = add(sums.get(request, _ZERO), amount)
    return sums
