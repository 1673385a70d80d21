"""The words and values of the CapEx engine: feeds, columns, findings, thresholds, a scan's basis.

Owns value types alone. Never evaluates: the rules and what they come to are `capex`'s.
"""

from datetime import date
from decimal import Decimal
from enum import StrEnum

from msgspec import Struct


class Feed(StrEnum):
    """One of the three CSV feeds, in the order in which people name them."""

    CAPITAL_PLAN = "capital_plan"
    CAPITAL_REQUEST = "capital_request"
    SPEND = "spend"


class Column(StrEnum):
    """A column of a feed, spelt as its header must spell it."""

    ITEM_ID = "ItemId"
    DESCRIPTION = "Description"
    TYPE = "Type"
    CATEGORY = "Category"
    LEAD_TIME = "Lead_time_in_weeks"
    PURCHASE_DATE = "PurchaseDate"
    UNITS = "Units"
    PRICE_PER_UNIT = "PricePerUnit"
    AMOUNT = "Amount"
    ID = "ID"
    REQUEST_DATE = "RequestDate"
    APPROVAL_DATE = "ApprovalDate"
    APPROVAL_ID = "ApprovalId"
    VENDOR = "Vendor"
    PO_NO = "PoNo"
    PO_DATE = "PODate"


class ParseCode(StrEnum):
    """Why a file could not be staged (CapEx page, section 2)."""

    TOO_LARGE = "too_large"
    NOT_UTF8 = "not_utf8"
    MISSING_COLUMN = "missing_column"
    BLANK = "blank"
    NOT_A_NUMBER = "not_a_number"
    EMPTY = "empty"
    MALFORMED_CSV = "malformed_csv"


class ParseIssue(Struct, frozen=True, gc=False):
    """A fault of a file: `line` is the physical line and `column` the cell of its row.

    Both count from 1; 0 means that no line or no cell is to blame.
    """

    code: ParseCode
    message: str
    line: int = 0
    column: int = 0


class Severity(StrEnum):
    """How much a finding matters."""

    CRITICAL = "CRITICAL"
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"


class Dimension(StrEnum):
    """A dimension of data quality on the dashboard."""

    COMPLETENESS = "Completeness"
    VALIDITY = "Validity"
    CONSISTENCY = "Consistency"
    ACCURACY = "Accuracy"
    TIMELINESS = "Timeliness"
    UNIQUENESS = "Uniqueness"


class RuleStatus(StrEnum):
    """Where a rule stands in rule governance."""

    APPROVED = "APPROVED"
    PENDING = "PENDING"
    DRAFT = "DRAFT"
    REJECTED = "REJECTED"


class Effect(StrEnum):
    """What a rule's findings count for."""

    SCORED = "SCORED"
    DRY_RUN = "DRY_RUN"
    NOT_EVALUATED = "NOT_EVALUATED"


class Thresholds(Struct, frozen=True, gc=False, omit_defaults=True):
    """The five figures of the rule book that rule governance may change."""

    tolerance_days: int = 14
    unit_price_capital_threshold: Decimal = Decimal(500)
    approval_lag_min_days: int = 3
    request_plan_tolerance_pct: Decimal = Decimal(5)
    overspend_factor: Decimal = Decimal("1.10")


DEFAULT_GO_LIVE = date(2027, 3, 31)


class Config(Struct, frozen=True, gc=False, omit_defaults=True):
    """What operators set; a `go_live_date` of None stands for the default."""

    go_live_date: date | None = None

    @property
    def go_live(self) -> date:
        """Return the date that the rules count from."""
        return self.go_live_date or DEFAULT_GO_LIVE


class Source(StrEnum):
    """Where the figures of a read come from."""

    LIVE = "LIVE"
    DEFAULT = "DEFAULT"
    EMPTY = "EMPTY"
    UNAVAILABLE = "UNAVAILABLE"


class Provenance(Struct, frozen=True, gc=False):
    """Where figures come from, and in sentences what they leave out."""

    source: Source
    unmeasured: tuple[str, ...] = ()


class Figure(Struct, frozen=True, gc=False):
    """A computed number that is never invented; `absent_reason` is set exactly when it is None."""

    value: Decimal | None
    absent_reason: str = ""


class Finding(Struct, frozen=True, gc=False):
    """A row on which a rule does not hold.

    `row_number` counts data rows from 1. `row_key` is the row's ItemId, ID or PoNo, as far as it
    can be shown; it may be empty. A `dry_run` finding counts in no figure.
    """

    id: str
    rule_id: str
    sheet: Feed
    severity: Severity
    row_key: str
    row_number: int
    message: str
    dry_run: bool


class Basis(Struct, frozen=True, gc=False, omit_defaults=True):
    """What a scan's counts depend on beside the rows; counts of two bases compare only if equal.

    `statuses` leaves out the APPROVED rules. `feeds` are the loaded ones.
    """

    go_live: date
    thresholds: Thresholds
    feeds: tuple[Feed, ...]
    statuses: dict[str, RuleStatus] = {}
