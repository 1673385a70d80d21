"""The methods that anybody may call: health and reflection, which stand at nobody else's cost.

Owns how many of them stand at once, in all and of one peer, and how long. Knows no token.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import cast

from google.protobuf.message import Message

from core_console.decide.outcome import Code, Refused
from core_console.rpc import errors
from core_console.rpc.arrival import Arrivals, patience_s
from core_console.rpc.caller import origin_of
from core_console.rpc.errors import RefusedError
from core_console.rpc.handlers import (
    Context,
    Decode,
    Handler,
    answering,
    decode_of,
    decoded,
    perform_of,
)
from core_console.rpc.places import Places

_Answer = Callable[[Context], Awaitable[Message | None]]

CHECKS_MAX, CHECKS_EACH_MAX = 128, 64
"""An eighth of all calls: a check is answered at once, so only what never ends is held up."""

STREAMS_MAX, STREAMS_EACH_MAX = 64, 16
"""A load balancer opens one per backend, a person one at a time. Checks have places of their own:
streams that somebody holds keep no probe from being answered."""

WATCH_S = 10 * 60.0
"""Who watches opens the stream again, as every client of the health service does."""

CONVERSATION_S = 60.0
"""Reflection is asked a few things in a row, within a second."""


class Public:
    """Bounds the public methods."""

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._checks = Places(in_all_max=CHECKS_MAX, each_max=CHECKS_EACH_MAX)
        self._streams = Places(in_all_max=STREAMS_MAX, each_max=STREAMS_EACH_MAX)

    def bounded(self, method: str, handler: Handler) -> Handler:
        """Return the handler behind its bounds."""
        places = self._streams if handler.response_streaming else self._checks
        answer = (
            self._talk(method, handler)
            if handler.request_streaming
            else self._once(method, handler)
        )

        async def placed(_messages: object, context: Context) -> Message | None:
            try:
                with places.taken(origin_of(context.peer())):
                    return await answer(context)
            except RefusedError as error:
                said = errors.answer_to(error)
            return await context.abort(said.code, said.sentence, said.details)

        return answering(handler, placed)

    def _once(self, method: str, handler: Handler) -> _Answer:
        decode, perform = decode_of(handler), perform_of(handler)

        async def answer(context: Context) -> Message | None:
            who = origin_of(context.peer())
            timeout_s = patience_s(method, identified=False)
            raw = await self._arrivals.message(context, who, timeout_s=timeout_s)
            request = decoded(method, decode, raw)
            try:
                async with asyncio.timeout(WATCH_S):
                    return await perform(request, context)
            except TimeoutError:
                sentence = f"a stream stands for at most {WATCH_S / 60:g} minutes: open it again"
                raise RefusedError(Refused(Code.UNAVAILABLE, sentence)) from None

        return answer

    def _talk(self, method: str, handler: Handler) -> _Answer:
        decode = decode_of(handler)
        behaviour = cast(
            "Callable[[AsyncIterator[Message], Context], AsyncIterator[Message]]",
            handler.stream_stream,
        )

        async def answer(context: Context) -> None:
            async for message in behaviour(self._requests(method, decode, context), context):
                await context.write(message)

        return answer

    async def _requests(
        self, method: str, decode: Decode, context: Context
    ) -> AsyncIterator[Message]:
        """Yield what the caller asks until it has asked all, or its time is over."""
        loop = asyncio.get_running_loop()
        until = loop.time() + CONVERSATION_S
        while (left_s := until - loop.time()) > 0:
            raw = await self._arrivals.next(context, left_s)
            if raw is None:
                return
            yield decoded(method, decode, raw)
