"""The agents' reports in a console: the writer of their document, and what raises and sweeps.

Owns how these parts are joined. They share the chain, the clock and the policy of the console,
and whoever hands them a store closes it.
"""

from core_console.effects import NoEffects
from core_console.engine import Engine, Metadoc
from core_console.ports import Blobs, Clock, Document, Ids
from core_console.raiser import Raiser
from core_console.recorder import Chain, Recorder
from core_console.reports import REPORTS, Reportsdoc, ReportSweeper
from core_console.writer import Policy


class ReportParts:
    """Every part that the report doors stand on, built but not started."""

    def __init__(
        self,
        *,
        document: Document,
        blobs: Blobs,
        console: Metadoc,
        chain: Chain,
        clock: Clock,
        ids: Ids,
        policy: Policy,
    ) -> None:
        self.recorder = Recorder(chain, REPORTS.name, clock)
        self.engine: Reportsdoc = Engine(
            REPORTS,
            store=document,
            recorder=self.recorder,
            performer=NoEffects(),
            clock=clock,
            ids=ids,
            policy=policy,
            replica=ids.new("CON"),
        )
        self.raiser = Raiser(REPORTS.name, source=self.engine, console=console)
        self.sweeper = ReportSweeper(reports=self.engine, blobs=blobs, clock=clock)
