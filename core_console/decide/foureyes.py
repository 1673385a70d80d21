"""Four eyes as a value: who is needed, who is barred, and why.

Owns the rule of who may activate a playbook and who may decide an approval (governance,
section 2). The same value is shown before anybody tries and enforced when somebody does.
"""

from msgspec import Struct

from core_console.decide.identity import Admission, is_admin, normalise
from core_console.model.playbook import Playbook, RequireApproval
from core_console.model.run import Run


class Barred(Struct, frozen=True, gc=False):
    """One operator who may not decide."""

    operator: str
    reason: str


class FourEyes(Struct, frozen=True, gc=False):
    """Who may decide: `eligible` is empty when everybody admitted who is not barred may.

    When the admins are listed and every one of them is barred it is empty too; `needed` says so.
    """

    needed: str
    eligible: tuple[str, ...]
    barred: tuple[Barred, ...]

    def objection(self, operator: str) -> str:
        """Return why this operator may not decide, "" when they may."""
        for barred in self.barred:
            if barred.operator == operator:
                return f"four eyes: {operator} {barred.reason}; {self.needed}"
        return ""


def activation(playbook: Playbook, admission: Admission, *, bar_all_editors: bool) -> FourEyes:
    """Return who may activate this revision: an admin who neither wrote nor last edited it."""
    reasons = {playbook.created_by: "wrote this playbook"}
    reasons.setdefault(playbook.updated_by, "was the last to edit this playbook")
    if bar_all_editors:
        for editor in playbook.editors:
            reasons.setdefault(editor, "edited this playbook since its last activation")
    return _four_eyes("another Atlas admin must activate it", admission.admins, reasons)


def approval(run: Run, action: RequireApproval, admission: Admission) -> FourEyes:
    """Return who may decide this approval: never the run's initiator."""
    deciders = admission.admins
    if action.approver and deciders is not None:
        deciders |= {normalise(action.approver) or action.approver}
    needed = "another Atlas admin must decide it"
    if action.approver:
        needed = f"{action.approver} or another Atlas admin must decide it"
    return _four_eyes(needed, deciders, {run.initiator: "started this run"})


def may_decide(operator: str, action: RequireApproval, admission: Admission) -> bool:
    """Say whether the operator is the named approver or an Atlas admin."""
    return normalise(action.approver) == operator or is_admin(operator, admission)


def _four_eyes(needed: str, allowed: frozenset[str] | None, reasons: dict[str, str]) -> FourEyes:
    eligible = tuple(sorted((allowed or frozenset()) - reasons.keys()))
    if allowed is not None and not eligible:
        needed += ", and none is listed who may"
    return FourEyes(needed, eligible, tuple(Barred(*item) for item in reasons.items()))
