"""The playbook that the current findings ask for.

Owns DraftFromFindings' spec (contract, section 8). Deterministic: the same counts, the same spec.
"""

from collections.abc import Mapping

from core_console.model.playbook import (
    CapexScan,
    Notify,
    RequireApproval,
    Spec,
    Step,
    StepKind,
)

APPROVAL_HOURS = 72  # the contract's default for an approval


def worst(counts: Mapping[str, int], max_rules: int) -> tuple[str, ...]:
    """Return the rules with the most findings, most first, equal ones by id."""
    ranked = sorted(
        (rule_id for rule_id, count in counts.items() if count > 0),
        key=lambda rule_id: (-counts[rule_id], rule_id),
    )
    return tuple(ranked[:max_rules])


def draft(
    counts: Mapping[str, int], *, max_rules: int, repo: str, issue: int, approver: str
) -> Spec | None:
    """Return the spec for the scored `counts` by rule, None when no rule has a finding."""
    rule_ids = worst(counts, max_rules)
    if not rule_ids:
        return None
    named = ", ".join(rule_ids)
    told = ", ".join(f"{rule_id} ({counts[rule_id]:,})" for rule_id in rule_ids)
    return Spec(
        name=f"CapEx: {named}",
        description=f"Drafted from the current findings, by rule: {told}.",
        steps=(
            Step("scan", StepKind.DETECT, CapexScan(), "Count the findings"),
            Step(
                "approve",
                StepKind.VALIDATE,
                RequireApproval(
                    APPROVAL_HOURS, approver, f"Are the findings of {named} real, and corrected?"
                ),
                "Look at the findings",
            ),
            Step("notify", StepKind.NOTIFY, Notify(repo, issue), "Tell the issue"),
            Step(
                "verify",
                StepKind.VERIFY,
                CapexScan(compare_to_first_scan=True, rule_ids=rule_ids),
                "Prove that the findings did not rise",
            ),
        ),
        triggers=(),
    )
