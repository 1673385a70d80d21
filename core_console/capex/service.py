"""The CapEx engine at work: stage, preview, commit, clear, configure, scan.

Owns the order of things: a file's bytes are durable before a swap names them, figures are worked
out off the event loop before the swap that keeps them, and an event is raised only after the
swap that it tells of. Never decides what may be stored: `decide.capex` does.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from core_console.capex.attributes import scan_attributes, scan_rows
from core_console.capex.evaluator import Evaluator
from core_console.capex.looking import Eyes, Seen, Unseen, unseen
from core_console.capex.parsing import Parsed
from core_console.capex.writer import Writer
from core_console.decide import capex_commands as commands
from core_console.decide import staging
from core_console.decide.ingest import not_loaded, note_refused
from core_console.decide.outcome import CapexAccepted, CapexOutcome, Code, Refused
from core_console.model.capex import Config, Feed, ParseIssue, Provenance
from core_console.model.capex_document import CapexDocument, ScanRun, StagedFeed
from core_console.model.faults import InvariantError
from core_console.ports import Blobs, Clock, Fault

ATTEMPTS_MAX = 5
"""Evaluations that were overtaken before a caller is told: each one means that another commit
landed within a second or two."""

STAGING_MAX = 4
"""Uploads at once: each holds up to 16 MiB, and they are parsed one after another anyway."""


@dataclass(frozen=True, slots=True)
class Preview:
    """The current feeds and the candidate, each evaluated as far as it could be looked at."""

    before: Seen | Unseen
    after: Seen | Unseen


@dataclass(frozen=True, slots=True)
class Recorded:
    """A scan run as it was recorded, with what its evaluation was and what it left out."""

    scan: ScanRun
    seen: Seen

    @property
    def provenance(self) -> Provenance:
        """Where the figures come from."""
        return self.seen.provenance


Asked = tuple[commands.CapexCommand, Seen] | Refused
Ask = Callable[[CapexDocument], Awaitable[Asked]]

A = TypeVar("A")


class Capex:
    """The feeds of this console, whichever process serves them."""

    def __init__(
        self,
        *,
        writer: Writer,
        blobs: Blobs,
        evaluator: Evaluator,
        eyes: Eyes,
        clock: Clock,
        raise_events: Callable[[], Awaitable[None]],
    ) -> None:
        self.eyes = eyes
        self._writer = writer
        self._blobs = blobs
        self._evaluator = evaluator
        self._clock = clock
        self._raise_events = raise_events
        self._staging = 0

    async def stage(
        self, *, actor: str, feed: Feed, filename: str, csv: bytes
    ) -> StagedFeed | tuple[ParseIssue, ...] | Refused:
        """Hold a file that parses; return its faults when it does not. May raise Fault."""
        if self._staging >= STAGING_MAX:
            said = f"{STAGING_MAX} files are being staged at this moment; try again"
            return Refused(Code.RESOURCE_EXHAUSTED, said)
        self._staging += 1
        try:
            return await self._staged(actor, feed, filename, csv)
        finally:
            self._staging -= 1

    async def _staged(
        self, actor: str, feed: Feed, filename: str, csv: bytes
    ) -> StagedFeed | tuple[ParseIssue, ...] | Refused:
        # Asked before, so that a file which may not be staged costs no parse and no disk.
        document = await self._writer.snapshot()
        refused = staging.objection(document, filename, self._clock.now())
        if refused is not None:
            return refused
        parsed = await self._evaluator.parse(feed, csv)
        if not isinstance(parsed, Parsed):
            return parsed
        digest = await self._blobs.put(csv)
        self._evaluator.keep(feed, digest, parsed.table)
        outcome = await self._writer.submit(
            commands.StageFeed(actor, feed, filename, digest, len(parsed.table), parsed.notes)
        )
        return outcome if isinstance(outcome, Refused) else _answer(outcome, StagedFeed)

    async def preview(self, stage_ids: Sequence[str]) -> Preview | Refused:
        """Evaluate the staged files over the current feeds; nothing is written or recorded."""
        document = await self._writer.snapshot()
        stages = staging.chosen(document, stage_ids, self._clock.now())
        if isinstance(stages, Refused):
            return stages
        before = await self._seen(document, staging.loaded(document))
        return Preview(before, await self._seen(document, staging.overlaid(document, stages)))

    async def _seen(self, document: CapexDocument, digests: Mapping[Feed, str]) -> Seen | Unseen:
        try:
            return await self.eyes.see(document, digests)
        except Fault as fault:
            return unseen(fault)

    async def commit(
        self, *, actor: str, stage_ids: Sequence[str], note: str
    ) -> Recorded | Refused:
        """Replace each staged feed and raise `scan.committed`; may raise Fault."""
        refused = note_refused(note)
        if refused is not None:
            return refused

        async def ask(document: CapexDocument) -> Asked:
            stages = staging.chosen(document, stage_ids, self._clock.now())
            if isinstance(stages, Refused):
                return stages
            digests = staging.overlaid(document, stages)
            seen = await self.eyes.see(document, digests)
            command = commands.CommitIngest(
                actor=actor,
                stage_ids=tuple(stage_ids),
                note=note,
                evaluated=_evaluated(seen, digests),
                attributes=scan_attributes(seen.evaluation),
                rows=scan_rows(seen.evaluation),
            )
            return command, seen

        recorded = await self._recorded(ask)
        if isinstance(recorded, Recorded):
            # The commit stands whatever becomes of this: every tick raises what still waits.
            with suppress(Fault):
                await self._raise_events()
        return recorded

    async def clear(self, *, actor: str, feed: Feed, note: str) -> Recorded | Refused:
        """Empty one feed; may raise Fault."""
        refused = note_refused(note)
        if refused is not None:
            return refused

        async def ask(document: CapexDocument) -> Asked:
            if feed not in document.feeds:
                return not_loaded(feed)
            digests = staging.without(document, feed)
            seen = await self.eyes.see(document, digests)
            return commands.ClearFeed(actor, feed, note, _evaluated(seen, digests)), seen

        return await self._recorded(ask)

    async def record_scan(self, run_id: str) -> Recorded | Refused:
        """Evaluate the current feeds for a playbook's run and keep the figures; may raise Fault."""

        async def ask(document: CapexDocument) -> Asked:
            digests = staging.loaded(document)
            if not digests:
                return Refused(Code.FAILED_PRECONDITION, "no CapEx feed is loaded")
            seen = await self.eyes.see(document, digests)
            return commands.RecordScanRun(run_id, _evaluated(seen, digests)), seen

        return await self._recorded(ask)

    async def configure(self, *, actor: str, config: Config) -> CapexOutcome:
        """Replace the settings; may raise Fault."""
        return await self._writer.submit(commands.UpdateConfig(actor, config))

    async def _recorded(self, ask: Ask) -> Recorded | Refused:
        """Evaluate and record; when the feeds changed meanwhile, do both again."""
        for _ in range(ATTEMPTS_MAX - 1):
            outcome = await self._attempt(ask)
            if isinstance(outcome, Recorded) or outcome.code is not Code.ABORTED:
                return outcome
        return await self._attempt(ask)

    async def _attempt(self, ask: Ask) -> Recorded | Refused:
        asked = await ask(await self._writer.snapshot())
        if isinstance(asked, Refused):
            return asked
        command, seen = asked
        outcome = await self._writer.submit(command)
        if isinstance(outcome, Refused):
            return outcome
        return Recorded(_answer(outcome, ScanRun), seen)


def _evaluated(seen: Seen, digests: dict[Feed, str]) -> commands.Evaluated:
    return commands.Evaluated(digests, seen.document.config, seen.summary)


def _answer(outcome: CapexAccepted, kind: type[A]) -> A:
    if not isinstance(outcome.answer, kind):
        raise InvariantError(f"a command on the feeds answered no {kind.__name__}")
    return outcome.answer
