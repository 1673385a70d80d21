"""The messages of calls on their way in: waited for, but not for ever, nor by anybody's hundreds.

Owns how long a call may stand whose message has not come, and how many such calls one caller may
have. Never looks into a message.
"""

import asyncio
from functools import partial

from core_console.decide.outcome import Code, Refused
from core_console.rpc.errors import RefusedError
from core_console.rpc.handlers import MESSAGE_BYTES_OF, Context
from core_console.rpc.places import Places

MESSAGE_S = 10.0
"""A message comes right behind its call; who takes longer holds a place for nothing."""

UPLOAD_S = 120.0
"""The largest upload over 1.2 Mbit/s; only who has a token is waited for that long."""

WAITING_MAX = 128
"""Calls of one caller whose message is not there yet: an eighth of all places. A thousand calls at
once come with theirs and never wait two at a time. Callers with a token are counted by their name,
so that nobody without one takes their places."""


class Arrivals:
    """Waits for messages; how many calls there are in all is the server's to bound."""

    def __init__(self) -> None:
        self._places = Places(each_max=WAITING_MAX)
        self._reading: set[asyncio.Task[object]] = set()

    async def message(self, context: Context, who: str, *, timeout_s: float) -> bytes:
        """Return the call's one message.

        Raises:
            RefusedError: it did not come, or too many calls of `who` wait already.
        """
        with self._places.taken(who):
            raw = await self.next(context, timeout_s)
        if raw is None:
            sentence = f"the call's message did not come: send it within {timeout_s:g} s"
            raise RefusedError(Refused(Code.UNAVAILABLE, sentence))
        return raw

    async def next(self, context: Context, timeout_s: float) -> bytes | None:
        """Return the call's next message, None when there is none within the time.

        After None the call must end: its reading is never cancelled, because gRPC would then
        write into memory that is gone. The end of the call ends the reading.
        """
        loop = asyncio.get_running_loop()
        reading: asyncio.Task[object] = loop.create_task(context.read())
        over = loop.create_future()
        self._reading.add(reading)
        reading.add_done_callback(partial(self._ended, over))
        patience = loop.call_later(timeout_s, _wake, over)
        try:
            await over
        finally:
            patience.cancel()
        raw = reading.result() if reading.done() else None
        return raw if isinstance(raw, bytes) else None  # gRPC has a word of its own for the end

    def _ended(self, over: asyncio.Future[None], reading: asyncio.Task[object]) -> None:
        self._reading.discard(reading)
        if not reading.cancelled():
            reading.exception()  # the call may have ended already, and then nobody else will look
        _wake(over)


def _wake(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


def patience_s(method: str, *, identified: bool) -> float:
    """Return how long a call's message is waited for."""
    return UPLOAD_S if identified and method in MESSAGE_BYTES_OF else MESSAGE_S
