"""The CapEx half of a console: the writer of its document, and what reads, scans and sweeps.

Owns how these parts are joined. They share the chain, the clock and the policy of the console,
and whoever hands them a store closes it.
"""

from collections.abc import Awaitable, Callable

from core_console.batch import CAPEX
from core_console.capex.evaluator import Evaluator
from core_console.capex.looking import Eyes
from core_console.capex.scanner import FeedScanner
from core_console.capex.scope import Scope
from core_console.capex.service import Capex
from core_console.capex.sweeper import Sweeper
from core_console.effects import NoEffects
from core_console.engine import Capexdoc, Engine
from core_console.ports import Blobs, Clock, Document, Ids
from core_console.recorder import Chain, Recorder
from core_console.writer import Policy


class FeedParts:
    """Every part of the CapEx engine, built but not started."""

    def __init__(
        self,
        *,
        document: Document,
        blobs: Blobs,
        chain: Chain,
        clock: Clock,
        ids: Ids,
        policy: Policy,
        raise_events: Callable[[], Awaitable[None]],
    ) -> None:
        self.recorder = Recorder(chain, CAPEX.name, clock)
        self.engine: Capexdoc = Engine(
            CAPEX,
            store=document,
            recorder=self.recorder,
            performer=NoEffects(),
            clock=clock,
            ids=ids,
            policy=policy,
            replica=ids.new("CON"),
        )
        self.evaluator = Evaluator(blobs)
        eyes = Eyes(writer=self.engine, evaluator=self.evaluator, scope=Scope)
        self.capex = Capex(
            writer=self.engine,
            blobs=blobs,
            evaluator=self.evaluator,
            eyes=eyes,
            clock=clock,
            raise_events=raise_events,
        )
        self.scanner = FeedScanner(self.capex)
        self.sweeper = Sweeper(writer=self.engine, blobs=blobs, clock=clock)

    def close(self) -> None:
        """Finish what is being evaluated; nothing may be asked afterwards."""
        self.evaluator.close()
