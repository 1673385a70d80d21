"""PlaybookService: each RPC reads its request, asks the engine and shows the answer.

Owns no rule: shapes are `from_proto`'s, decisions the engine's, and who may call is the gate's.
"""

# ruff: noqa: N802 -- the contract names the methods

from collections.abc import AsyncIterator
from itertools import chain

from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceServicer

from core_console.capex.service import Capex
from core_console.decide import commands, foureyes, runs, schedule
from core_console.decide.commands import Command
from core_console.decide.lifecycle import unknown_playbook
from core_console.decide.operators import unknown_run
from core_console.decide.outcome import Accepted, Refused
from core_console.model.document import Document
from core_console.model.event import Event
from core_console.model.faults import InvariantError
from core_console.model.playbook import AGENTS, Playbook
from core_console.model.run import Run
from core_console.ports import GitHub
from core_console.rpc import caller, drafts, enums, from_proto, pages, to_proto
from core_console.rpc.console import Console
from core_console.rpc.errors import RefusedError
from core_console.rpc.from_proto import known_id
from core_console.rpc.gate import Context
from core_console.rpc.pages import Position
from core_console.rpc.run_views import RunViews
from core_console.rpc.watch import Watch
from core_console.writer import Policy

PROVENANCE = "core-console-provenance"
"""The trailing metadata of a read that may not show the newest state."""


class Playbooks(PlaybookServiceServicer):
    """The servicer. Every error is raised and answered by the gate."""

    def __init__(self, *, console: Console, capex: Capex, github: GitHub, policy: Policy) -> None:
        self._console = console
        self._capex = capex
        self._github = github
        self._policy = policy
        self._run_views = RunViews()
        self._watch = Watch(console=console, show_playbook=self._shown, run_views=self._run_views)

    async def ListPlaybooks(
        self, request: pb.ListPlaybooksRequest, context: Context
    ) -> pb.ListPlaybooksResponse:
        """List the playbooks by name."""
        wanted = from_proto.statuses(request.statuses, enums.PLAYBOOK_STATUS_OF)
        page = pages.read(
            "playbooks",
            sorted(wanted),
            page_size=request.page_size,
            page_token=request.page_token,
        )
        document = await self._seen(context)
        kept = (each for each in document.playbooks.values() if each.status in wanted or not wanted)
        found, token = pages.cut(kept, page, _by_name)
        return pb.ListPlaybooksResponse(playbooks=map(self._shown, found), next_page_token=token)

    async def GetPlaybook(
        self, request: pb.GetPlaybookRequest, context: Context
    ) -> pb.GetPlaybookResponse:
        """Read one playbook."""
        found = (await self._seen(context)).playbooks.get(request.id)
        if found is None:
            raise RefusedError(unknown_playbook(known_id(request.id)))
        return pb.GetPlaybookResponse(playbook=self._shown(found))

    async def CreatePlaybook(
        self, request: pb.CreatePlaybookRequest, _context: Context
    ) -> pb.CreatePlaybookResponse:
        """Write a new playbook as DRAFT."""
        command = from_proto.create(request, actor=_actor())
        return pb.CreatePlaybookResponse(playbook=await self._playbook(command))

    async def UpdatePlaybook(
        self, request: pb.UpdatePlaybookRequest, _context: Context
    ) -> pb.UpdatePlaybookResponse:
        """Replace the spec of the revision that was read."""
        stored = (await self._console.snapshot()).playbooks.get(request.id)
        current = stored is not None and stored.revision == request.revision
        shown = self._shown(stored) if stored is not None and current else None
        command = from_proto.update(request, shown, actor=_actor())
        return pb.UpdatePlaybookResponse(playbook=await self._playbook(command))

    async def DeletePlaybook(
        self, request: pb.DeletePlaybookRequest, _context: Context
    ) -> pb.DeletePlaybookResponse:
        """Delete a playbook that has no run in flight."""
        await self._submit(commands.DeletePlaybook(_actor(), known_id(request.id)))
        return pb.DeletePlaybookResponse()

    async def DraftFromFindings(
        self, request: pb.DraftFromFindingsRequest, _context: Context
    ) -> pb.DraftFromFindingsResponse:
        """Write the playbook that the current findings ask for, as DRAFT."""
        wanted = drafts.read(request)
        spec = drafts.spec(wanted, await self._capex.eyes.look())
        try:
            written = await self._playbook(commands.DraftPlaybook(_actor(), spec))
        except RefusedError as error:
            raise drafts.blaming_the_request(error) from None
        return pb.DraftFromFindingsResponse(playbook=written)

    async def ActivatePlaybook(
        self, request: pb.ActivatePlaybookRequest, _context: Context
    ) -> pb.ActivatePlaybookResponse:
        """Make the reviewed revision ACTIVE."""
        command = commands.ActivatePlaybook(_actor(), known_id(request.id), request.revision)
        return pb.ActivatePlaybookResponse(playbook=await self._playbook(command))

    async def PausePlaybook(
        self, request: pb.PausePlaybookRequest, _context: Context
    ) -> pb.PausePlaybookResponse:
        """Stop an ACTIVE playbook from starting runs."""
        command = commands.PausePlaybook(_actor(), known_id(request.id))
        return pb.PausePlaybookResponse(playbook=await self._playbook(command))

    async def ResumePlaybook(
        self, request: pb.ResumePlaybookRequest, _context: Context
    ) -> pb.ResumePlaybookResponse:
        """Make a PAUSED playbook ACTIVE again."""
        command = commands.ResumePlaybook(_actor(), known_id(request.id))
        return pb.ResumePlaybookResponse(playbook=await self._playbook(command))

    async def RunNow(self, request: pb.RunNowRequest, _context: Context) -> pb.RunNowResponse:
        """Start a run by hand."""
        return pb.RunNowResponse(run=await self._run(from_proto.run_now(request, actor=_actor())))

    async def CancelRun(
        self, request: pb.CancelRunRequest, _context: Context
    ) -> pb.CancelRunResponse:
        """Cancel a run in flight."""
        command = commands.CancelRun(_actor(), known_id(request.run_id), request.note)
        return pb.CancelRunResponse(run=await self._run(command))

    async def ListRuns(self, request: pb.ListRunsRequest, context: Context) -> pb.ListRunsResponse:
        """List runs, newest first."""
        wanted = from_proto.statuses(request.statuses, enums.RUN_STATUS_OF)
        page = pages.read(
            "runs",
            (request.playbook_id, sorted(wanted)),
            page_size=request.page_size,
            page_token=request.page_token,
        )
        document = await self._seen(context)
        kept = (
            run
            for run in chain(document.running.values(), document.finished.values())
            if request.playbook_id in ("", run.playbook_id) and (run.status in wanted or not wanted)
        )
        found, token = pages.cut(kept, page, _by_start, newest_first=True)
        return pb.ListRunsResponse(runs=map(self._run_views.of, found), next_page_token=token)

    async def GetRun(self, request: pb.GetRunRequest, context: Context) -> pb.GetRunResponse:
        """Read one run."""
        found = runs.find(await self._seen(context), request.id)
        if found is None:
            raise RefusedError(unknown_run(known_id(request.id)))
        return pb.GetRunResponse(run=self._run_views.of(found))

    async def DecideApproval(
        self, request: pb.DecideApprovalRequest, _context: Context
    ) -> pb.DecideApprovalResponse:
        """Approve or reject a step that waits for a decision."""
        command = from_proto.decide_approval(request, actor=_actor())
        return pb.DecideApprovalResponse(run=await self._run(command))

    async def ListDispatchableAgents(
        self, _request: pb.ListDispatchableAgentsRequest, _context: Context
    ) -> pb.ListDispatchableAgentsResponse:
        """List the six agents, and what keeps the console from dispatching."""
        reasons = await self._github.missing()
        return pb.ListDispatchableAgentsResponse(
            agents=AGENTS, can_dispatch=not reasons, reasons=reasons
        )

    async def ListEvents(
        self, request: pb.ListEventsRequest, context: Context
    ) -> pb.ListEventsResponse:
        """List events, newest first."""
        page = pages.read(
            "events",
            (request.agent, request.playbook_id),
            page_size=request.page_size,
            page_token=request.page_token,
        )
        document = await self._seen(context)
        kept = (
            event
            for event in document.events.values()
            if request.agent in ("", event.agent) and _touches(event, request.playbook_id)
        )
        found, token = pages.cut(kept, page, _by_time, newest_first=True)
        return pb.ListEventsResponse(events=map(to_proto.event, found), next_page_token=token)

    def WatchActivity(
        self, request: pb.WatchActivityRequest, context: Context
    ) -> AsyncIterator[pb.WatchActivityResponse]:
        """Tell what changed after a revision, and then whatever changes."""
        return self._watch.follow(request.after_revision, context)

    async def _seen(self, context: Context) -> Document:
        """Return the state for a read; trailing metadata say when it may not be the newest."""
        seen = await self._console.look()
        if seen.provenance:
            context.set_trailing_metadata(((PROVENANCE, seen.provenance),))
        return seen.document

    async def _submit(self, command: Command) -> Playbook | Run | Event | None:
        outcome = await self._console.submit(command)
        match outcome:
            case Refused():
                raise RefusedError(outcome)
            case Accepted(entries=entries, answer=answer):
                caller.current().unchanged = not entries
                return answer

    async def _playbook(self, command: Command) -> pb.Playbook:
        answer = await self._submit(command)
        if not isinstance(answer, Playbook):
            raise InvariantError(f"{type(command).__name__} answered no playbook")
        return self._shown(answer)

    async def _run(self, command: Command) -> pb.Run:
        answer = await self._submit(command)
        if not isinstance(answer, Run):
            raise InvariantError(f"{type(command).__name__} answered no run")
        return to_proto.run(answer)

    def _shown(self, playbook: Playbook) -> pb.Playbook:
        rule = foureyes.activation(
            playbook, self._policy.admission, bar_all_editors=self._policy.bar_all_editors
        )
        slots = schedule.next_slots(playbook, now=self._console.clock.now())
        return to_proto.playbook(playbook, rule, slots)


def _actor() -> str:
    return caller.current().actor


def _by_name(playbook: Playbook) -> Position:
    return 0, playbook.spec.name, playbook.id


def _by_start(run: Run) -> Position:
    return pages.instant(run.started_at), "", run.id


def _by_time(event: Event) -> Position:
    return pages.instant(event.at), "", event.id


def _touches(event: Event, playbook_id: str) -> bool:
    if not playbook_id:
        return True
    return playbook_id in (
        *(each.playbook_id for each in event.started),
        *(each.playbook_id for each in event.skipped),
    )
