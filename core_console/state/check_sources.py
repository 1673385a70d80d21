"""Do the documents of the feeds and of the agents' reports keep their promises?

Owns the judgement of the documents from which harness events are raised, and which blobs they
name. It shares the model's types and nothing else.
"""

import re
from collections.abc import Iterator, Mapping

from core_console.model.capex_document import CapexDocument
from core_console.model.event import Raising
from core_console.model.reports import ReportsDocument
from core_console.state.check import Recorded, of_outbox

SCANS_MAX = 50
REPORTING = ("datagov", "recon", "judge")

_DIGEST = re.compile(r"[0-9a-f]{64}")


def of_feeds(document: CapexDocument, recorded: Recorded) -> Iterator[str]:
    """Yield every promise that the CapEx document breaks."""
    yield from of_outbox(document, recorded)
    yield from _raising(document.raising, document.raising_number)
    yield from _digests(blobs_of_feeds(document))
    if len(document.scans) > SCANS_MAX:
        yield f"it has {len(document.scans)} scan runs, and {SCANS_MAX} is the most"
    numbers = [scan.number for scan in document.scans]
    if numbers != sorted(set(numbers)):
        yield "its scan runs are not numbered in order"
    if len({stage.id for stage in document.stages}) < len(document.stages):
        yield "a staged file is there twice"


def of_reports(document: ReportsDocument, recorded: Recorded) -> Iterator[str]:
    """Yield every promise that the reports document breaks."""
    yield from of_outbox(document, recorded)
    yield from _raising(document.raising, document.raising_number)
    yield from _digests(blobs_of_reports(document))
    for agent, latest in document.latest.items():
        if agent != latest.agent or agent not in REPORTING:
            yield f"the latest report of {latest.agent} stands under {agent}"
    if unknown := document.seen.keys() - set(REPORTING):
        yield f"it remembers reports of {len(unknown)} agents that send none"


def blobs_of_feeds(document: CapexDocument) -> Mapping[str, str]:
    """Return what each blob is that the document cannot do without, by its digest."""
    staged = {each.digest: f"staged file {each.id}" for each in document.stages}
    return staged | {each.digest: f"feed {name}" for name, each in document.feeds.items()}


def blobs_of_reports(document: ReportsDocument) -> Mapping[str, str]:
    """Return what each blob is that the document cannot do without, by its digest."""
    return {each.digest: f"report of {agent}" for agent, each in document.latest.items()}


def _digests(blobs: Mapping[str, str]) -> Iterator[str]:
    for digest, what in blobs.items():
        if _DIGEST.fullmatch(digest) is None:
            yield f"the {what} has a digest that is none"


def _raising(raising: tuple[Raising, ...], last: int) -> Iterator[str]:
    numbers = [each.number for each in raising]
    if numbers != sorted(set(numbers)) or (numbers and not 1 <= numbers[0] <= numbers[-1] <= last):
        yield f"the events that wait are not numbered in order up to {last}"
