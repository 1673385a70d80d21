"""Whether what an event says meets a trigger's conditions (contract, section 5).

Owns the five comparisons and the rule of rows. Never raises for what somebody wrote: a text that
cannot be compared is simply no match.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import assert_never

from core_console.model.playbook import Condition, ConditionOp

# ASCII digits alone: no exponent, no sign but minus, no separator. Exact, whatever the length.
_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def holds(condition: Condition, text: str) -> bool:
    """Say whether an attribute that is present, with this text, meets the condition."""
    match condition.op:
        case ConditionOp.EQ:
            return text == condition.value
        case ConditionOp.NEQ:
            return text != condition.value
        case ConditionOp.CONTAINS:
            return condition.value in text
        case ConditionOp.GT:
            pair = _decimals(text, condition.value)
            return pair is not None and pair[0] > pair[1]
        case ConditionOp.GTE:
            pair = _decimals(text, condition.value)
            return pair is not None and pair[0] >= pair[1]
        case _ as never:
            assert_never(never)


def _decimals(left: str, right: str) -> tuple[Decimal, Decimal] | None:
    """Return both as exact numbers, None when either is none; comparing them rounds nothing."""
    if not (_DECIMAL.fullmatch(left) and _DECIMAL.fullmatch(right)):
        return None
    return Decimal(left), Decimal(right)


class Facts:
    """What one event says: its own attributes, and one row per finding when it has rows.

    Conditions are met when ONE row, together with the event's own attributes, meets all of them;
    a row never overrides what the event itself says. Built once per event and asked for every
    trigger: each text of an attribute knows the rows that have it, and each condition is tried
    once, so that hundreds of triggers do not walk thousands of rows each.
    """

    def __init__(
        self, attributes: Mapping[str, str], rows: Sequence[Mapping[str, str]] = ()
    ) -> None:
        self._all = frozenset(range(max(1, len(rows))))
        columns: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
        for number, row in enumerate(rows):
            for name, text in row.items():
                columns[name][text].add(number)
        own = {name: {text: self._all} for name, text in attributes.items()}
        self._columns: dict[str, Mapping[str, Iterable[int]]] = {**columns, **own}
        self._met: dict[Condition, frozenset[int]] = {}

    def meet(self, conditions: Sequence[Condition]) -> bool:
        """Say whether all the conditions are met; without any, every event meets them."""
        rows = self._all
        for condition in conditions:
            rows &= self._rows_that_meet(condition)
            if not rows:
                return False
        return True

    def _rows_that_meet(self, condition: Condition) -> frozenset[int]:
        met = self._met.get(condition)
        if met is None:
            column = self._columns.get(condition.attribute, {})
            met = frozenset().union(*(column[text] for text in column if holds(condition, text)))
            self._met[condition] = met
        return met
