"""The real client against the real stand-in, in one process, with a clock that never waits."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

import httpx
import uvicorn
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from core_console.githubapp.app import GitHubApp
from core_console.githubapp.settings import GitHubSettings
from core_console.githubapp.transport import Timeouts
from core_console.model.run import DispatchPayload
from core_console.ports import Clock
from core_console.standin.api import Connections, build_api
from core_console.standin.api_control import Control
from core_console.standin.faults import Endpoint, Plan, Plans, Trouble
from core_console.standin.server import address_of, build_server, listening
from core_console.standin.state import App, Installation, Repository, World
from tests.fakes import NOON

ORG = "runink-demo"
AGENTS_REPO = "core"
PAYLOAD = DispatchPayload(
    agent="datagov", playbook_id="PB-1", run_id="PBR-1", step_id="detect", chain_depth=0
)

# Loopback answers in milliseconds; a hang has to be noticed quickly.
TIMEOUTS = Timeouts(connect_s=1.0, read_s=0.4, total_s=2.0)


class HastyClock:
    """A clock whose sleepers wake at once, with the time moved on and the wait written down."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self.slept: list[float] = []

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.elapsed_s)

    def monotonic(self) -> float:
        return self.elapsed_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.elapsed_s += seconds
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        self.elapsed_s += seconds


@cache
def key_pair(which: str = "app") -> tuple[str, bytes]:
    """Return the private and the public PEM of a key; another name is another key."""
    assert which
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return private.decode(), public


@dataclass
class Site:
    """A world, its server, and clients of it."""

    url: str
    clock: HastyClock
    world: World
    plans: Plans
    installation: Installation
    repository: Repository
    clients: list[GitHubApp] = field(default_factory=list)

    def settings(self, **changes: object) -> GitHubSettings:
        given: dict[str, object] = {
            "app_id": str(self.world.app.id),
            "private_key": key_pair()[0],
            "org": ORG,
            "agents_repo": AGENTS_REPO,
            "api_url": self.url,
        }
        return GitHubSettings(**(given | changes))  # type: ignore[arg-type] # any field, by name

    def client(self, clock: Clock | None = None, **changes: object) -> GitHubApp:
        made = GitHubApp(self.settings(**changes), clock or self.clock, timeouts=TIMEOUTS)
        self.clients.append(made)
        return made

    def plan(self, trouble: Trouble, endpoint: Endpoint = Endpoint.ANY, **more: int) -> None:
        self.plans.add(Plan(trouble, endpoint, **more))

    def asked(self, path_end: str) -> int:
        return sum(call.path.endswith(path_end) for call in self.world.calls)

    def bearer(self, repositories: frozenset[int] | None = None) -> list[str]:
        return [f"Bearer {self.world.mint(self.installation, repositories=repositories)[0]}"]

    def foreign_bearer(self, bot_id: int = 5, **where: Installation) -> list[str]:
        on = where.get("on", self.installation)
        text = self.world.mint_foreign(
            on, bot_login="other[bot]", bot_id=bot_id, repositories=frozenset(on.repositories)
        )
        return [f"Bearer {text}"]


def new_world(clock: Clock) -> World:
    """Return a world with the App, and nothing else."""
    return World(clock, App(4711, "Iv23liStandin", "runink-core", 9_001, key_pair()[1]))


async def start(server: uvicorn.Server, listener: socket.socket) -> None:
    """Start serving in this loop, without the pauses that a process's server makes."""
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    await server.startup(sockets=[listener])


async def stop(server: uvicorn.Server, connections: Connections) -> None:
    """End serving: what is still connected is cut."""
    for one in server.servers:
        one.close()
    for transport in list(connections.values()):
        transport.abort()
    await asyncio.gather(*server.server_state.tasks)


@asynccontextmanager
async def serving() -> AsyncIterator[Site]:
    """Serve a fresh world on a loopback port until the block ends."""
    clock, plans = HastyClock(), Plans()
    connections: Connections = {}
    world = new_world(clock)
    installation = world.add_installation(ORG)
    repository = world.add_repository(installation, AGENTS_REPO, issues={1})
    listener = listening(0)
    site = Site(address_of(listener), clock, world, plans, installation, repository)
    server = build_server(build_api(world, plans, connections, Control()), connections)
    await start(server, listener)
    try:
        yield site
    finally:
        for client in site.clients:
            await client.aclose()
        await stop(server, connections)
        listener.close()


def plain_client(site: Site) -> httpx.AsyncClient:
    """Return a client that sends only what a test tells it to."""
    return httpx.AsyncClient(base_url=site.url, trust_env=False, headers={"User-Agent": "tests"})
