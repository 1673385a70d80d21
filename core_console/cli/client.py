"""The command line's connection to a console.

Owns the address, the transport's safety and the deadline. Never sends a token in clear beyond this
machine, and never prints one.
"""

import functools
import os
from collections.abc import Callable, Generator
from pathlib import Path
from types import TracebackType
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar

import click
import grpc
from google.protobuf.message import Message
from runink.core.atlas.v1.audit_pb2_grpc import AuditServiceStub
from runink.core.atlas.v1.capex_pb2_grpc import CapexServiceStub
from runink.core.atlas.v1.governance_pb2_grpc import GovernanceServiceStub
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from core_console.addresses import split_address
from core_console.cli.failure import Exit, Failed
from core_console.cli.output import Form, Page
from core_console.cli.refusal import Locate, Target, told

DEFAULT_URL = "127.0.0.1:7443"

_CALL_TIMEOUT_S = 30.0
"""A write waits for its swap, and under contention for a few: seconds, never half a minute."""

_MESSAGE_BYTES_MAX = 16 * 1024 * 1024
"""The largest page, 200 runs of 10 steps with full notes, is under 10 MiB."""

_UPLOAD_TIMEOUT_S = 120.0
"""Eight MiB over a slow line, and then the parse."""

P = ParamSpec("P")
Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


def target_of(url: str, *, has_ca: bool) -> Target:
    """Return where `url` leads: `host:port`, or with `https://` (or a CA) by TLS.

    Raises:
        Failed: it is no address, or a token would leave this machine in clear.
    """
    scheme, _, rest = url.strip().rpartition("://")
    address = split_address(rest.rstrip("/"))
    if scheme not in {"", "http", "https"} or address is None or address.port == 0:
        raise Failed(Exit.USAGE, f"CORE_CONSOLE_URL must be host:port, such as {DEFAULT_URL}")
    is_secure = scheme == "https" or has_ca
    if not is_secure and not address.is_loopback:
        raise Failed(
            Exit.USAGE,
            "a console beyond this machine is reached by TLS only: write https://host:port, "
            "or name its authority in CORE_CONSOLE_CA",
        )
    return Target(address, is_secure)


class Connection:
    """One channel and the services on it."""

    def __init__(self, url: str, token: str = "", ca: Path | None = None) -> None:
        """Open the channel; nothing is sent yet."""
        self.target = target_of(url, has_ca=ca is not None)
        self._metadata = tuple(bearer(token).items())
        self._channel = _channel(self.target, ca)
        self.playbooks = PlaybookServiceStub(self._channel)
        self.governance = GovernanceServiceStub(self._channel)
        self.audit = AuditServiceStub(self._channel)
        self.capex = CapexServiceStub(self._channel)

    def __enter__(self) -> Self:
        """Return the connection itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the channel."""
        self._channel.close()

    def call(
        self,
        method: "grpc.UnaryUnaryMultiCallable[Request, Response]",
        request: Request,
        locate: Locate | None = None,
    ) -> Response:
        """Return the answer to one call; raise Failed when there is none.

        `locate` finds a refused field in the file that was sent.
        """
        try:
            return method(request, timeout=_CALL_TIMEOUT_S, metadata=self._metadata)
        except grpc.RpcError as error:
            raise told(error, self.target, locate) from None

    def stream(
        self,
        method: "grpc.UnaryStreamMultiCallable[Request, Response]",
        request: Request,
        *,
        timeout_s: float,
    ) -> Generator[Response, None, None]:
        """Yield what the console tells until the time is over; raise Failed when it cannot."""
        call = method(request, timeout=timeout_s, metadata=self._metadata)
        try:
            yield from call
        except grpc.RpcError as error:
            if call.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise told(error, self.target) from None
        finally:
            call.cancel()

    def upload(
        self, method: "grpc.UnaryUnaryMultiCallable[Request, Response]", request: Request
    ) -> "Upload[Response]":
        """Begin a call that carries a file; it goes on while the caller does something else."""
        return Upload(
            method.future(request, timeout=_UPLOAD_TIMEOUT_S, metadata=self._metadata), self.target
        )


class Upload(Generic[Response]):
    """A call under way."""

    def __init__(self, call: "grpc.Future[Response]", target: Target) -> None:
        self._call = call
        self._target = target

    @property
    def is_done(self) -> bool:
        """Say whether it has been answered or has failed."""
        return self._call.done()

    def answer(self) -> Response:
        """Wait for the answer and return it; raise Failed when there is none."""
        try:
            return self._call.result()
        except grpc.RpcError as error:
            raise told(error, self._target) from None


def bearer(token: str) -> dict[str, str]:
    """Return how a call names its caller, empty without a token; raise Failed for no token."""
    token = token.strip()
    if not all("!" <= character <= "~" for character in token):
        raise Failed(Exit.USAGE, "CORE_CONSOLE_TOKEN holds what no token holds: issue a new one")
    return {"authorization": f"Bearer {token}"} if token else {}


def _channel(target: Target, ca: Path | None) -> grpc.Channel:
    options = [
        ("grpc.max_receive_message_length", _MESSAGE_BYTES_MAX),
        # A proxy for the outside world has no way to this machine's own console.
        ("grpc.enable_http_proxy", 0 if target.address.is_loopback else 1),
    ]
    if not target.is_secure:
        return grpc.insecure_channel(str(target.address), options=options)
    try:
        roots = None if ca is None else ca.read_bytes()
    except OSError as error:
        raise Failed(Exit.USAGE, f"CORE_CONSOLE_CA cannot be read: {error.strerror}") from None
    credentials = grpc.ssl_channel_credentials(root_certificates=roots)
    return grpc.secure_channel(str(target.address), credentials, options=options)


def connected(command: Callable[Concatenate[Connection, Page, P], None]) -> Callable[P, None]:
    """Give a command its connection and its page, and the options that say which."""

    @click.option(
        "--url",
        envvar="CORE_CONSOLE_URL",
        default=DEFAULT_URL,
        show_default=True,
        show_envvar=True,
        metavar="HOST:PORT",
        help="The console's gRPC address; https://host:port is TLS.",
    )
    @click.option(
        "--ca",
        envvar="CORE_CONSOLE_CA",
        show_envvar=True,
        type=click.Path(path_type=Path),
        help="PEM file of the authority that signed the console's certificate; means TLS.",
    )
    @click.option(
        "-o",
        "--output",
        type=click.Choice([form.value for form in Form]),
        default=Form.TABLE.value,
        show_default=True,
        help="A table for people, or the response as proto3 JSON.",
    )
    @functools.wraps(command)
    def wrapped(*args: P.args, **options: P.kwargs) -> None:
        url, ca, output = (options.pop(name) for name in ("url", "ca", "output"))
        token = os.environ.get("CORE_CONSOLE_TOKEN", "")
        place = Path(str(ca)) if ca else None
        with Connection(str(url) or DEFAULT_URL, token, place) as connection:
            command(connection, Page(Form(str(output))), *args, **options)

    return wrapped
