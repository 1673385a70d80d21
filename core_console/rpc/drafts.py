"""DraftFromFindings: from the request and the current findings to a spec.

Owns the request's own fields and their names in errors. What the spec may hold is `decide`'s to
judge; its refusal then blames the field of the request that the value came from.
"""

from msgspec import Struct
from runink.core.atlas.v1 import playbook_pb2

from core_console.capex.draft import draft
from core_console.capex.looking import Seen, Unseen
from core_console.decide.outcome import Code, Refused, Violation, invalid
from core_console.model.playbook import Spec
from core_console.ports import Fault
from core_console.rpc.errors import RefusedError

RULES_DEFAULT = 3  # contract, section 8
RULES = range(1, 11)  # the same

_FIELDS = {
    "playbook.steps[1].require_approval.approver": "approver",
    "playbook.steps[2].notify.repo": "repo",
    "playbook.steps[2].notify.issue": "issue",
}
"""Where the draft puts what the request gives."""


class Wanted(Struct, frozen=True, gc=False):
    """What a draft is asked for."""

    max_rules: int
    repo: str
    issue: int
    approver: str


def read(request: playbook_pb2.DraftFromFindingsRequest) -> Wanted:
    """Return what is asked for; raise RefusedError for what is left out or out of bounds."""
    max_rules = request.max_rules if request.HasField("max_rules") else RULES_DEFAULT
    wrong = []
    if max_rules not in RULES:
        said = f"is {max_rules}; it takes {RULES[0]} to {RULES[-1]}"
        wrong.append(Violation("max_rules", said))
    if not request.repo:
        wrong.append(Violation("repo", "is required: the repository whose issue is told"))
    if not request.issue:
        wrong.append(Violation("issue", "is required: the issue that is told"))
    if wrong:
        raise RefusedError(invalid(*wrong))
    return Wanted(max_rules, request.repo, request.issue, request.approver)


def spec(wanted: Wanted, found: Seen | Unseen) -> Spec:
    """Return the draft; raise RefusedError without a finding, Fault when nobody could look."""
    if isinstance(found, Unseen):
        raise Fault(found.provenance.unmeasured[0])
    made = draft(
        found.evaluation.counts(),
        max_rules=wanted.max_rules,
        repo=wanted.repo,
        issue=wanted.issue,
        approver=wanted.approver,
    )
    if made is None:
        why = "no scored rule has a finding" if found.inputs.digests else "no feed is loaded"
        raise RefusedError(Refused(Code.FAILED_PRECONDITION, f"there is nothing to draft: {why}"))
    return made


def blaming_the_request(error: RefusedError) -> RefusedError:
    """Return the error with the fields of the draft named as the request names them."""
    refused = error.refused
    if not refused.violations:
        return error
    return RefusedError(
        invalid(
            *(
                Violation(_FIELDS.get(each.field, each.field), each.description)
                for each in refused.violations
            )
        )
    )
