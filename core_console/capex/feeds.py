"""The header contract of the three feeds, and a parsed feed as columns.

Owns which columns a feed has and how each is read. Never parses: `parsing` does.
"""

from dataclasses import dataclass
from decimal import Decimal

from core_console.model.capex import Column, Feed

CSV_BYTES_MAX = 8 * 1_024 * 1_024  # CapEx page, section 2: one unary message holds it
ROWS_MAX = 50_000  # CapEx page, section 2: what is evaluated within a second


@dataclass(frozen=True, slots=True)
class Contract:
    """What a feed's file must hold; every other column is text."""

    columns: tuple[Column, ...]
    not_blank: tuple[Column, ...]
    key: Column
    numbers: tuple[Column, ...]
    dates: tuple[Column, ...]
    wholes: tuple[Column, ...] = ()


CONTRACTS = {
    Feed.CAPITAL_PLAN: Contract(
        columns=(
            Column.ITEM_ID,
            Column.DESCRIPTION,
            Column.TYPE,
            Column.CATEGORY,
            Column.LEAD_TIME,
            Column.PURCHASE_DATE,
            Column.UNITS,
            Column.PRICE_PER_UNIT,
            Column.AMOUNT,
        ),
        not_blank=(Column.DESCRIPTION, Column.AMOUNT),
        key=Column.ITEM_ID,
        numbers=(Column.UNITS, Column.PRICE_PER_UNIT, Column.AMOUNT),
        dates=(Column.PURCHASE_DATE,),
        wholes=(Column.LEAD_TIME,),
    ),
    Feed.CAPITAL_REQUEST: Contract(
        columns=(
            Column.ID,
            Column.REQUEST_DATE,
            Column.ITEM_ID,
            Column.APPROVAL_DATE,
            Column.APPROVAL_ID,
            Column.VENDOR,
            Column.AMOUNT,
        ),
        not_blank=(Column.ID, Column.AMOUNT),
        key=Column.ID,
        numbers=(Column.AMOUNT,),
        dates=(Column.REQUEST_DATE, Column.APPROVAL_DATE),
    ),
    Feed.SPEND: Contract(
        columns=(
            Column.PO_NO,
            Column.PO_DATE,
            Column.AMOUNT,
            Column.APPROVAL_ID,
            Column.ITEM_ID,
            Column.TYPE,
        ),
        not_blank=(Column.PO_NO, Column.AMOUNT),
        key=Column.PO_NO,
        numbers=(Column.AMOUNT,),
        dates=(Column.PO_DATE,),
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A feed as columns of equal length; row n is the n-th entry of each, from 0.

    `texts` has every column as trimmed text. In `numbers`, `wholes` and `days` None stands for a
    blank cell, in `days` also for one that is no date. `lines` are physical lines of the file.
    """

    feed: Feed
    lines: list[int]
    texts: dict[Column, list[str]]
    numbers: dict[Column, list[Decimal | None]]
    wholes: dict[Column, list[int | None]]
    days: dict[Column, list[int | None]]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lines)

    def row(self, number: int) -> tuple[str, ...]:
        """Return the cells of row `number` in the order of the contract."""
        return tuple(self.texts[column][number] for column in CONTRACTS[self.feed].columns)


def no_rows(feed: Feed) -> Table:
    """Return the table that stands in for a feed that is not loaded."""
    contract = CONTRACTS[feed]
    return Table(
        feed=feed,
        lines=[],
        texts={column: [] for column in contract.columns},
        numbers={column: [] for column in contract.numbers},
        wholes={column: [] for column in contract.wholes},
        days={column: [] for column in contract.dates},
    )
