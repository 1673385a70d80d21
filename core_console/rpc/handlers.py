"""gRPC's handlers as the gate sees them: their types, their bounds, and how they are called.

Owns how large a message may be and that nothing larger is decoded. Knows nobody's rights.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import grpc
from google.protobuf.message import DecodeError, Message

from core_console.decide.outcome import Code, Refused
from core_console.rpc.errors import RefusedError

MESSAGE_BYTES = 4 * 1024 * 1024
"""gRPC's own default. The largest playbook is under 100 KiB; a client that sends more gets a
sentence about what is too long rather than a transport's error."""

UPLOAD_BYTES = 16 * 1024 * 1024 + 64 * 1024
"""An upload of twice the largest feed still gets its `too_large` as a fault of the file; the rest
is for the other fields and the framing (CapEx page, section 2)."""

MESSAGE_BYTES_OF = {"/runink.core.atlas.v1.CapexService/StageFeed": UPLOAD_BYTES}
"""The methods that take more than a default message; every other one refuses it undecoded."""

if TYPE_CHECKING:  # it is generic for the type checker alone
    Handler = grpc.RpcMethodHandler[Any, Any]
else:
    Handler = grpc.RpcMethodHandler

Context = grpc.aio.ServicerContext[Any, Any]
Decode = Callable[[bytes], Message]
Perform = Callable[[Any, Context], Awaitable[Message | None]]
Answer = Callable[[object, Context], Awaitable[Message | None]]


class Methods:
    """What the generated code registers with a server, kept by full method instead.

    gRPC's Python server waits for each *registered* method by itself, and arms all those waits
    again for every call: with the contract's forty methods that is a fifth of a call's time.
    Found by name, as what the gate guards is, they cost one wait.
    """

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Take no notice: the generated code tells the same once more, method by method."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Keep the handlers of a service."""
        self.handlers |= {f"/{service}/{name}": each for name, each in handlers.items()}

    @property
    def server(self) -> grpc.aio.Server:
        """This, as the type that the generated code asks for."""
        return cast("grpc.aio.Server", self)


def perform_of(handler: Handler) -> Perform:
    """Return the method as one awaitable, so that both shapes leave by the same way.

    gRPC takes a coroutine that writes for itself as well as a generator of messages.
    """
    if not handler.response_streaming:
        return cast("Perform", handler.unary_unary)
    behaviour = cast("Callable[[Any, Context], AsyncIterator[Message]]", handler.unary_stream)

    async def perform(request: Message, context: Context) -> None:
        async for message in behaviour(request, context):
            try:
                await context.write(message)
            except grpc.aio.InternalError:
                # gRPC's word for a message that cannot leave: the caller is gone, in the middle
                # of a stream as any caller may be.
                return

    return perform


def decode_of(handler: Handler) -> Decode:
    """Return what makes a message of the method's bytes."""
    return cast("Decode", handler.request_deserializer)


def answering(handler: Handler, answer: Answer) -> Handler:
    """Return the handler that lets `answer` answer, and ask for the message by itself.

    It is declared as one that takes a stream of requests, because gRPC waits for the message of
    any other one before it calls anybody: a call whose message never came would stand for ever.
    On the wire there is no difference.
    """
    make: Callable[..., Handler] = (
        grpc.stream_stream_rpc_method_handler
        if handler.response_streaming
        else grpc.stream_unary_rpc_method_handler
    )
    # Without a deserializer the bytes arrive here: a caller who may not call costs no parse.
    return make(answer, None, handler.response_serializer)


def decoded(method: str, decode: Decode, raw: bytes) -> Message:
    """Return the message; raise RefusedError for bytes that are too many or none of it."""
    most = MESSAGE_BYTES_OF.get(method, MESSAGE_BYTES)
    if len(raw) > most:
        sentence = f"the request has {len(raw):,} bytes; this method takes at most {most:,}"
        raise RefusedError(Refused(Code.RESOURCE_EXHAUSTED, sentence))
    try:
        return decode(raw)
    except DecodeError:
        sentence = "the request is no message of this method: send it as the contract defines it"
        raise RefusedError(Refused(Code.INVALID_ARGUMENT, sentence)) from None
