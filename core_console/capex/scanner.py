"""A playbook's capex_scan step: evaluate the current feeds, keep a scan run, compare.

Owns the sentence that each outcome leaves on the step (contract, section 4). Every failure is an
answer: a step that could not look fails and says so, it is never taken for a clean one.
"""

from msgspec.structs import replace

from core_console.capex.comparison import compare_to_first
from core_console.capex.looking import basis_of
from core_console.capex.service import Capex, Recorded
from core_console.decide.outcome import Refused
from core_console.ports import Fault, ScanAsked, ScanFound

NO_FIRST = "not comparable: the run has no first scan to compare with"


class FeedScanner:
    """Scans the feeds of this console."""

    def __init__(self, capex: Capex) -> None:
        self._capex = capex

    async def scan(self, asked: ScanAsked) -> ScanFound:
        """Evaluate the current feeds, record a ScanRun and compare; a failure is an answer."""
        try:
            recorded = await self._capex.record_scan(asked.run_id)
        except Fault as fault:
            return ScanFound("", {}, f"could not look: {fault.message}")
        if isinstance(recorded, Refused):
            return ScanFound("", {}, recorded.reason)
        return _compared(asked, recorded) if asked.compares else _found(recorded)


def _found(recorded: Recorded, *, failure: str = "", detail: str = "") -> ScanFound:
    return ScanFound(
        recorded.scan.id,
        recorded.scan.summary.by_rule,
        failure=failure,
        detail=detail,
        basis=basis_of(recorded.seen.inputs),
    )


def _compared(asked: ScanAsked, recorded: Recorded) -> ScanFound:
    first = asked.first
    if first is None or first.basis is None:
        return _found(recorded, failure=NO_FIRST)
    told = compare_to_first(
        first=first.findings,
        first_basis=first.basis,
        now=recorded.scan.summary.by_rule,
        basis=basis_of(recorded.seen.inputs),
        rule_ids=asked.rule_ids,
    )
    failure, detail = ("", told.detail) if told.passed else (told.detail, "")
    found = _found(recorded, failure=failure, detail=detail)
    return replace(found, baseline=first.findings)
