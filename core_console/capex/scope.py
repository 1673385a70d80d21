"""What rule governance says of the rules: their thresholds, and which of them count.

Owns the effect that follows from a rule's status (governance, section 5).
"""

from collections.abc import Mapping
from types import MappingProxyType

from msgspec import Struct

from core_console.model.capex import Effect, RuleStatus, Thresholds

EFFECTS: Mapping[RuleStatus, Effect] = MappingProxyType(
    {
        RuleStatus.APPROVED: Effect.SCORED,
        RuleStatus.PENDING: Effect.DRY_RUN,
        RuleStatus.DRAFT: Effect.DRY_RUN,
        RuleStatus.REJECTED: Effect.NOT_EVALUATED,
    }
)


class Scope(Struct, frozen=True, gc=False):
    """The thresholds, and the status of each rule that is not APPROVED, in the order of ids."""

    thresholds: Thresholds = Thresholds()
    statuses: tuple[tuple[str, RuleStatus], ...] = ()

    def effects(self) -> dict[str, Effect]:
        """Return the effect of each rule that is not APPROVED; every other one is SCORED."""
        return {rule_id: EFFECTS[status] for rule_id, status in self.statuses}
