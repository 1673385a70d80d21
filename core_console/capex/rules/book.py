"""The 24 rules in the order of the book.

Owns the order and the look-up by id.
"""

from core_console.capex.rules import plan, requests, spend, timing
from core_console.capex.rules.rule import Rule

RULE_BOOK: tuple[Rule, ...] = (
    plan.CP_001,
    plan.CP_002,
    plan.CP_003,
    plan.CP_004,
    plan.CP_005,
    plan.CP_006,
    timing.CP_007,
    requests.CR_001,
    requests.CR_002,
    requests.CR_003,
    requests.CR_004,
    timing.CR_005,
    timing.CR_006,
    timing.CR_007,
    requests.CR_008,
    requests.CR_009,
    spend.SP_001,
    timing.SP_002,
    spend.SP_003,
    spend.SP_004,
    spend.SP_005,
    timing.CP_008,
    timing.CR_010,
    timing.SP_006,
)

RULES = {rule.id: rule for rule in RULE_BOOK}
