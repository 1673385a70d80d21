"""The gRPC server: its limits, its services, health and reflection, and how it stops.

Owns the limits of a connection and of the process, each with its reason. Never routes by itself
and knows no rule.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2_grpc
from runink.core.atlas.v1 import (
    audit_pb2,
    audit_pb2_grpc,
    capex_pb2,
    capex_pb2_grpc,
    governance_pb2,
    governance_pb2_grpc,
    playbook_pb2,
    playbook_pb2_grpc,
)

from core_console.capex.service import Capex
from core_console.governance.decisions import Decisions
from core_console.governance.trail import Trail
from core_console.ports import Clock, Fault, GitHub, Log
from core_console.rpc.audit import Audit
from core_console.rpc.capex import Feeds
from core_console.rpc.console import Console
from core_console.rpc.gate import Authenticator, Gate, Refusals
from core_console.rpc.governance import Governance
from core_console.rpc.handlers import UPLOAD_BYTES, Handler, Methods
from core_console.rpc.health import Health
from core_console.rpc.playbooks import Playbooks
from core_console.rpc.reflection import described
from core_console.writer import Policy

RECEIVE_BYTES = UPLOAD_BYTES
"""gRPC has one limit for all methods, so it is StageFeed's: twice the largest feed and a little.
The gate refuses more than a default message for every other method before it decodes anything,
and drops the bytes of whoever may not call at once."""

METADATA_BYTES = 16 * 1024
"""An operator token is at most 4 KiB; this leaves room for what proxies and tracers add."""

RPCS_MAX = 1_024
"""Four batches of the writer: whoever comes behind them waits longer than by trying again. What
stands without working (public streams, calls whose message has not come) has smaller bounds of its
own (`public`, `arrival`), for these places are everybody's."""

STREAMS_MAX = 256
"""RPCs of one connection at once: a client fills one batch of the writer over one connection. It
bounds no caller: any may have several connections."""

CONNECTIONS_MAX = 1_024
"""As many as RPCs; fewer where the process may open fewer files (`app.descriptors`). Whoever comes
beyond is hung up on: gRPC cannot tell whose they are, so a crowd is a proxy's to keep out."""

HANDSHAKE_MS = 10 * 1_000
"""TLS and the first frames take a few packets; who sends none holds a place for nothing."""

IDLE_MS = 5 * 60 * 1_000
"""A client that calls nothing for five minutes may connect again: places are few."""

AGE_MS = 30 * 60 * 1_000
AGE_GRACE_MS = 2 * 60 * 1_000
"""No call stands for ever, whatever its peer sends or leaves unread: after half an hour a
connection takes no new calls, and it ends after as long as the longest upload may take. Clients
connect again by themselves; who follows a stream opens it again."""

PING_MS = 60 * 1_000
PING_PATIENCE_MS = 20 * 1_000
"""A peer that vanished without a word is noticed within a minute and a half."""

PINGS_APART_MS = 10 * 1_000
"""A client that pings more often is told to calm down; gRPC's clients use 10 s at the least."""

STOP_S = 10.0
"""A swap takes milliseconds; what is still open after this is somebody's idle stream."""

_OPTIONS = (
    ("grpc.max_receive_message_length", RECEIVE_BYTES),
    ("grpc.max_metadata_size", METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES),
    ("grpc.max_concurrent_streams", STREAMS_MAX),
    ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
    ("grpc.max_connection_idle_ms", IDLE_MS),
    ("grpc.max_connection_age_ms", AGE_MS),
    ("grpc.max_connection_age_grace_ms", AGE_GRACE_MS),
    ("grpc.keepalive_time_ms", PING_MS),
    ("grpc.keepalive_timeout_ms", PING_PATIENCE_MS),
    ("grpc.http2.min_ping_interval_without_data_ms", PINGS_APART_MS),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", PINGS_APART_MS),
    # Two processes on one port would each get some of the calls; the second must fail instead.
    ("grpc.so_reuseport", 0),
)

SERVICES = (
    playbook_pb2.DESCRIPTOR.services_by_name["PlaybookService"].full_name,
    capex_pb2.DESCRIPTOR.services_by_name["CapexService"].full_name,
    governance_pb2.DESCRIPTOR.services_by_name["GovernanceService"].full_name,
    audit_pb2.DESCRIPTOR.services_by_name["AuditService"].full_name,
)
"""What is served besides health and reflection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the services stand on.

    `recorded` waits until what any document decided is in the chain, as far as it can be written.
    """

    console: Console
    capex: Capex
    recorded: Callable[[], Awaitable[None]]
    github: GitHub
    policy: Policy
    authenticator: Authenticator
    refusals: Refusals
    log: Log
    clock: Clock


@dataclass(frozen=True, slots=True)
class Certificate:
    """The server's certificate chain and its private key, both PEM."""

    chain: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Listener:
    """A server that is bound to `port`; `start` makes it answer."""

    server: grpc.aio.Server
    port: int
    _health: Health

    async def start(self) -> None:
        """Begin to answer."""
        await self.server.start()

    async def stop(self, grace_s: float = STOP_S) -> None:
        """Refuse new calls, let those under way finish for at most `grace_s`, and stop."""
        self._health.stop()
        await self.server.stop(grace_s)


def build(
    parts: Parts,
    *,
    host: str,
    port: int,
    certificate: Certificate | None = None,
    connections_max: int = CONNECTIONS_MAX,
) -> Listener:
    """Return a server bound to the address, with every service; port 0 takes a free one.

    Raises:
        Fault: the address cannot be bound, or the certificate cannot be used.
    """
    gate = Gate(
        authenticator=parts.authenticator,
        admission=parts.policy.admission,
        refusals=parts.refusals,
        clock=parts.clock,
    )
    server = grpc.aio.server(
        handlers=(gate,),
        options=(*_OPTIONS, ("grpc.max_allowed_incoming_connections", connections_max)),
        maximum_concurrent_rpcs=RPCS_MAX,
    )
    health = Health(SERVICES)
    gate.guard(_methods(parts, health))
    return Listener(server, _bind(server, host, port, certificate), health)


def _methods(parts: Parts, health: Health) -> Mapping[str, Handler]:
    methods = Methods()
    _add_services(methods.server, parts)
    health_pb2_grpc.add_HealthServicer_to_server(health, methods.server)
    served = (*SERVICES, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
    reflected = (*served, reflection.SERVICE_NAME)
    reflection_pb2_grpc.add_ServerReflectionServicer_to_server(  # type: ignore[no-untyped-call]  # its stubs lack types
        reflection.aio.ReflectionServicer(reflected, pool=described()), methods.server
    )
    return methods.handlers


def _add_services(server: grpc.aio.Server, parts: Parts) -> None:
    trail = Trail(parts.log)
    playbooks = Playbooks(
        console=parts.console, capex=parts.capex, github=parts.github, policy=parts.policy
    )
    playbook_pb2_grpc.add_PlaybookServiceServicer_to_server(playbooks, server)
    capex_pb2_grpc.add_CapexServiceServicer_to_server(Feeds(parts.capex, parts.clock), server)
    governance_pb2_grpc.add_GovernanceServiceServicer_to_server(
        Governance(recorded=parts.recorded, decisions=Decisions(trail)), server
    )
    audit_pb2_grpc.add_AuditServiceServicer_to_server(
        Audit(recorded=parts.recorded, trail=trail), server
    )


def _bind(server: grpc.aio.Server, host: str, port: int, certificate: Certificate | None) -> int:
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if certificate is None:
            return server.add_insecure_port(address)
        pair = (certificate.key, certificate.chain)
        return server.add_secure_port(address, grpc.ssl_server_credentials([pair]))
    except RuntimeError as error:
        raise Fault(
            f"{address} cannot be bound: another process has it, or the certificate does not fit",
            retryable=False,
        ) from error
