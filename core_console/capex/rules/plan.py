"""The rules of the capital plan's own texts and prices: CP-001 to CP-006.

Owns their conditions (CapEx page, section 4).
"""

import re
from collections.abc import Sequence

from core_console.capex.case import ABSENT, Case
from core_console.capex.numbers import plain
from core_console.capex.rules.rule import Gap, RowRef, Rule, Verdicts
from core_console.capex.texts import quoted
from core_console.model.capex import Column, Dimension, Feed, Severity

PLAN_TYPES = frozenset({"Manufacturing", "Tools", "Testing"})
CATEGORIES = frozenset({"Capital", "Non-Capital"})
LETTERS_MIN = 3  # CapEx page, CP-003
# Words that name no thing; a plural counts as its singular.
GENERIC_WORDS = frozenset(
    {
        "asset", "capex", "capital", "equipment", "expense", "goods", "hardware", "item",
        "machine", "material", "misc", "miscellaneous", "na", "none", "other", "part", "product",
        "purchase", "something", "stuff", "supplies", "tbc", "tbd", "test", "testing", "thing",
        "tool", "unit", "unknown", "various",
    }
)  # fmt: skip

_ITEM_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TWO_WORDS = re.compile(r"[^\W\d_]{3,}[\W\d_]+[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")


def _blank_item(case: Case) -> Verdicts:
    return [item != "" for item in case.plan.texts[Column.ITEM_ID]]


def _no_item(case: Case, row: int) -> str:
    del case, row
    return "ItemId is blank"


CP_001 = Rule(
    id="CP-001",
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.CRITICAL,
    dimension=Dimension.COMPLETENESS,
    condition="ItemId is not blank",
    remediation="Give the item an ItemId that no other item has.",
    holds=_blank_item,
    says=_no_item,
)


def usable_items(case: Case) -> Verdicts:
    """Say for each plan row whether its ItemId is well-formed and unique; None when blank."""
    row_of, fits = case.plan_rows, _ITEM_ID.fullmatch
    return [
        None if not item else row_of[item] != ABSENT and fits(item) is not None
        for item in case.plan.texts[Column.ITEM_ID]
    ]


def _bad_item(case: Case, row: int) -> str:
    item = case.plan.texts[Column.ITEM_ID][row]
    if not _ITEM_ID.fullmatch(item):
        return f"ItemId {quoted(item)} is not 1 to 64 of letters, digits, - and _"
    return f"ItemId {quoted(item)} stands on {case.plan_counts[item]} rows"


def _same_item(case: Case, row: int) -> Sequence[RowRef]:
    items = case.plan.texts[Column.ITEM_ID]
    same = (other for other, item in enumerate(items) if item == items[row] and other != row)
    return tuple((Feed.CAPITAL_PLAN, other) for other in same)


CP_002 = Rule(
    id="CP-002",
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.CRITICAL,
    condition="ItemId is 1 to 64 of letters, digits, - and _, and no other row has it",
    remediation="Correct the ItemId, or merge the rows that share it.",
    holds=usable_items,
    says=_bad_item,
    also_read=_same_item,
)


def says_something(description: str) -> bool:
    """Say whether a description is more than a generic word alone and has three letters."""
    if _TWO_WORDS.search(description):
        return True
    words = _WORD.findall(description.casefold())
    if sum(map(len, words)) < LETTERS_MIN:
        return False
    return len(words) > 1 or GENERIC_WORDS.isdisjoint({words[0], words[0].removesuffix("s")})


def _described(case: Case) -> Verdicts:
    return [says_something(text) for text in case.plan.texts[Column.DESCRIPTION]]


def _says_nothing(case: Case, row: int) -> str:
    return f"Description {quoted(case.plan.texts[Column.DESCRIPTION][row])} names no thing"


CP_003 = Rule(
    id="CP-003",
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.MEDIUM,
    condition="Description has at least 3 letters and is not a generic word alone",
    remediation="Describe what is bought, so that somebody else would know it.",
    holds=_described,
    says=_says_nothing,
)


def _typed(case: Case) -> Verdicts:
    return [found in PLAN_TYPES for found in case.plan.texts[Column.TYPE]]


def _bad_type(case: Case, row: int) -> str:
    found = case.plan.texts[Column.TYPE][row]
    return f"Type is {quoted(found)}, not Manufacturing, Tools or Testing"


CP_004 = Rule(
    id="CP-004",
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.HIGH,
    dimension=Dimension.VALIDITY,
    condition="Type is Manufacturing, Tools or Testing",
    remediation="Set Type to Manufacturing, Tools or Testing.",
    holds=_typed,
    says=_bad_type,
)


def _categorised(case: Case) -> Verdicts:
    return [found in CATEGORIES for found in case.plan.texts[Column.CATEGORY]]


def _bad_category(case: Case, row: int) -> str:
    return (
        f"Category is {quoted(case.plan.texts[Column.CATEGORY][row])}, not Capital or Non-Capital"
    )


CP_005 = Rule(
    id="CP-005",
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.HIGH,
    dimension=Dimension.ACCURACY,
    condition="Category is Capital or Non-Capital",
    remediation="Set Category to Capital or Non-Capital.",
    holds=_categorised,
    says=_bad_category,
)


def _expensed(case: Case) -> Verdicts:
    least = case.limits.unit_price_capital_threshold
    return [
        None
        if price is None or category not in CATEGORIES
        else price >= least or category == "Non-Capital"
        for price, category in zip(
            case.plan.numbers[Column.PRICE_PER_UNIT],
            case.plan.texts[Column.CATEGORY],
            strict=True,
        )
    ]


def _capitalised(case: Case, row: int) -> str:
    price = case.plan.numbers[Column.PRICE_PER_UNIT][row]
    least = plain(case.limits.unit_price_capital_threshold)
    return f"Category is Capital, and PricePerUnit {plain(price)} is below {least}"


CP_006 = Rule(
    id="CP-006",
    sheet=Feed.CAPITAL_PLAN,
    severity=Severity.CRITICAL,
    condition="a unit price below {limits.unit_price_capital_threshold} is Non-Capital",
    remediation="Set Category to Non-Capital, or correct PricePerUnit.",
    holds=_expensed,
    says=_capitalised,
    gap=Gap(
        "PricePerUnit is blank",
        lambda case: case.plan.numbers[Column.PRICE_PER_UNIT].count(None),
    ),
)
