"""Callers that start runs and end them again, as fast as they are answered.

Owns the load alone. Each caller has playbooks of its own, so that none waits for another's run,
and asks one console of those given, in turn. RunNow is timed; CancelRun frees the playbook and is
not, but it is a durable transition of about the same cost: so a rate counts both.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import grpc
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from scripts.bench.measuring import Row, row_of
from scripts.bench.run_now import PLAYBOOKS

if TYPE_CHECKING:  # a class of the stubs alone
    from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceAsyncStub

WARM_UP_S = 0.5
_OWN_CHANNEL = (("grpc.use_local_subchannel_pool", 1),)

T = TypeVar("T")


@dataclass
class Load:
    """What one load came to: the milliseconds of each RunNow by caller, and the time it took.

    `aborted` counts the answers "another replica was first", after which a caller asks again.
    """

    times_ms: list[list[float]]
    wall_s: float = 0.0
    aborted: int = 0

    @property
    def calls(self) -> int:
        """Return how many durable calls were answered: each RunNow and its CancelRun."""
        return 2 * sum(map(len, self.times_ms))

    def row(self, name: str, ratio: str = "") -> Row:
        """Return the durable calls a second, and what a RunNow took."""
        every = [each for times in self.times_ms for each in times]
        found = row_of(name, every, self.wall_s, ratio=ratio)
        return Row(name, self.calls / self.wall_s, found.p50_ms, found.p99_ms, ratio)

    def worst_p99_ms(self) -> float:
        """Return the p99 of the caller that was served worst."""
        return max(row_of("", times, self.wall_s).p99_ms for times in self.times_ms)


async def start_and_end(
    addresses: Sequence[str],
    token: str,
    callers: int,
    seconds: float,
    begins: Callable[[], None] = lambda: None,
) -> Load:
    """Let the callers start and end runs; `begins` is called after the warm-up."""
    async with AsyncExitStack() as stack:
        stubs = [
            PlaybookServiceStub(
                await stack.enter_async_context(
                    grpc.aio.insecure_channel(
                        addresses[number % len(addresses)], options=_OWN_CHANNEL
                    )
                )
            )
            for number in range(callers)
        ]
        await _loaded(stubs, token, WARM_UP_S)
        begins()
        return await _loaded(stubs, token, seconds)


async def _loaded(stubs: "Sequence[PlaybookServiceAsyncStub]", token: str, seconds: float) -> Load:
    share = PLAYBOOKS // len(stubs)
    load = Load([[] for _ in stubs])
    began = time.perf_counter()

    async def caller(number: int) -> None:
        turn = 0
        while time.perf_counter() - began < seconds:
            playbook_id = f"PB-{number * share + turn % share:016d}"
            load.times_ms[number].append(await _one(stubs[number], token, playbook_id, load))
            turn += 1

    await asyncio.gather(*map(caller, range(len(stubs))))
    load.wall_s = time.perf_counter() - began
    return load


async def _one(stub: "PlaybookServiceAsyncStub", token: str, playbook_id: str, load: Load) -> float:
    """Start a run and end it; return the milliseconds of the start."""
    metadata = (("authorization", f"Bearer {token}"),)
    run_now = pb.RunNowRequest(playbook_id=playbook_id)
    began = time.perf_counter()
    answer = await _answered(load, lambda: stub.RunNow(run_now, metadata=metadata))
    took_ms = (time.perf_counter() - began) * 1_000
    cancel = pb.CancelRunRequest(run_id=answer.run.id, note="bench")
    await _answered(load, lambda: stub.CancelRun(cancel, metadata=metadata))
    return took_ms


async def _answered(load: Load, call: Callable[[], Awaitable[T]]) -> T:
    """Return the answer, asking again for as long as another replica was first."""
    while True:
        try:
            return await call()
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.ABORTED:
                raise
            load.aborted += 1
