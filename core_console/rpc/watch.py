"""WatchActivity: what changed after a revision, and then whatever changes, as it does.

Owns the stream: its pace, its heartbeat, its end, and how many there may be. Queues nothing for
anybody: what is told next is worked out from the newest document when the reader is ready for it.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from typing import assert_never

from msgspec import Struct
from runink.core.atlas.v1 import playbook_pb2 as pb

from core_console.decide import activity
from core_console.decide.activity import Gap, Place, Told
from core_console.decide.outcome import Refused
from core_console.model.document import Deletion, Document
from core_console.model.event import Event
from core_console.model.playbook import Playbook
from core_console.model.run import Run
from core_console.rpc import caller, to_proto
from core_console.rpc.console import Console
from core_console.rpc.errors import RefusedError, invalid_field
from core_console.rpc.handlers import Context
from core_console.rpc.places import Places
from core_console.rpc.run_views import RunViews
from core_console.subscribers import POLL_S

HEARTBEAT_S = 15.0
"""The contract's: whoever hears nothing for longer knows that the stream is dead."""

PACE_S = 0.1
"""The first change is told at once; of those right behind it a person sees ten a second at most,
and a hundred streams that are told each swap by itself would keep the writer from swapping."""

_QUIET_S = HEARTBEAT_S - POLL_S
"""The time is looked at once a second while nothing changes, so the heartbeat is never late."""

STREAMS_MAX, STREAMS_EACH_MAX = 100, 25
"""A tenth of all calls, for a stream holds its place for half an hour; an operator has a few
screens, and a program one stream for each of its processes."""


class _Shown(Struct, frozen=True, gc=False):
    """What was told last, to whoever was at that place of that document."""

    document: Document
    before: Place
    after: Place
    messages: tuple[pb.WatchActivityResponse, ...]


class Watch:
    """Serves the streams of one console."""

    def __init__(
        self,
        *,
        console: Console,
        show_playbook: Callable[[Playbook], pb.Playbook],
        run_views: RunViews,
    ) -> None:
        self._console = console
        self._show_playbook = show_playbook
        self._run_views = run_views
        self._places = Places(each_max=STREAMS_EACH_MAX, in_all_max=STREAMS_MAX)
        self._shown: _Shown | None = None

    async def follow(
        self, after_revision: int, context: Context
    ) -> AsyncIterator[pb.WatchActivityResponse]:
        """Yield what changed after the revision and whatever changes until the stream ends.

        Raises:
            RefusedError: the revision is none, too many streams are open, or the caller may not
                read any more.
            Fault: the store cannot be asked, or the console is stopping.
        """
        if after_revision < 0:
            said = "takes 0 for everything that is kept, or the revision of the last message"
            raise invalid_field("after_revision", f"is {after_revision}; it {said}")
        self._take_place(context)
        clock = self._console.clock
        document = await self._console.snapshot()
        # Who begins with nothing to be told learns at once that the stream is alive.
        heard_s = clock.monotonic() - HEARTBEAT_S
        place = activity.place(document, after_revision)
        while True:
            _expect_standing(place)
            shown = self._next(document, place)
            for message in shown.messages:
                yield message
                heard_s = clock.monotonic()
            place = shown.after
            if shown.messages and place.revision == document.revision:
                await clock.sleep(PACE_S)
            if clock.monotonic() >= heard_s + _QUIET_S:
                yield self._heartbeat(place)
                heard_s = clock.monotonic()
            left_s = heard_s + _QUIET_S - clock.monotonic()
            document = await self._console.changed(place.revision, within_s=left_s)

    def _take_place(self, context: Context) -> None:
        """Hold a place until the call has ended, however it ends."""
        call = caller.current()
        who = call.actor if call.identity else caller.origin_of(context.peer())
        held = ExitStack()
        held.enter_context(self._places.taken(who))
        context.add_done_callback(lambda _: held.close())  # type: ignore[arg-type]  # it takes any callable

    def _next(self, document: Document, place: Place) -> _Shown:
        """Return what is told next; readers who are equally far share the very messages."""
        last = self._shown
        if last is not None and last.document is document and last.before == place:
            return last
        page = activity.page(document, place)
        messages = tuple(map(self._message, page.told))
        self._shown = _Shown(document, place, page.place, messages)
        return self._shown

    def _message(self, told: Told) -> pb.WatchActivityResponse:
        message = pb.WatchActivityResponse(revision=told.revision)
        match told.change:
            case Playbook() as playbook:
                message.playbook.CopyFrom(self._show_playbook(playbook))
            case Deletion(playbook_id=playbook_id):
                message.deleted_playbook_id = playbook_id
            case Event() as event:
                message.event.CopyFrom(to_proto.event(event))
            case Run() as run:
                message.run.CopyFrom(self._run_views.of(run))
            case Gap(after_revision=after, up_to_revision=up_to):
                message.gap.after_revision = after
                message.gap.up_to_revision = up_to
            case _ as never:
                assert_never(never)
        return message

    def _heartbeat(self, place: Place) -> pb.WatchActivityResponse:
        at = to_proto.instant(self._console.clock.now())
        return pb.WatchActivityResponse(revision=place.revision, heartbeat=pb.Heartbeat(at=at))


def _expect_standing(place: Place) -> None:
    """Raise RefusedError once the caller may not read any more: nothing more is told to it."""
    barred = caller.current().barred()
    if barred is None:
        return
    sentence = f"{barred.reason}, and go on after revision {place.revision}"
    raise RefusedError(Refused(barred.code, sentence))
