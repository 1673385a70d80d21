"""How late a schedule's run starts: beyond a whole tick interval, the console itself is late.

Run: .venv/bin/python -m scripts.bench.slots --slots 3. Crons have a resolution of a minute, so it
takes a minute a slot, and is no part of `make bench`. Some consoles with full documents wait for
the same slots, for their ticks fall at other moments. The baseline is the longest time between
two ticks, jitter and all.
"""

import argparse
import asyncio
import tempfile
from contextlib import ExitStack
from datetime import datetime, timedelta
from pathlib import Path

import grpc
from msgspec.structs import replace
from runink.core.atlas.v1 import playbook_pb2 as pb
from runink.core.atlas.v1.playbook_pb2_grpc import PlaybookServiceStub

from core_console.clock import SystemClock
from core_console.model.codec import spec_digest
from core_console.model.document import Document
from core_console.model.playbook import Playbook, ScheduleTrigger, Trigger, TriggerState
from core_console.ticker import SPREAD
from scripts.bench.consoles import Console, Root, root_with, serving
from scripts.bench.measuring import Row, row_of, show
from scripts.bench.run_now import FULL_BYTES, document

CONSOLES = 4
TICK_S = 1
LONGEST_S = TICK_S * (1 + SPREAD)
SLOTS_MAX = 15
_START = timedelta(seconds=10)
"""What the consoles need to start, with some to spare."""

_MINUTE = timedelta(minutes=1)
_COOLDOWN_MINUTES = 60


def next_slots(count: int) -> list[datetime]:
    """Return the next minutes that begin once the consoles run."""
    first = (SystemClock().now() + _START + _MINUTE).replace(second=0, microsecond=0)
    return [first + number * _MINUTE for number in range(count)]


def scheduled(each: Playbook, slot: datetime) -> Playbook:
    """Return the playbook with an hourly schedule at that slot's minute."""
    cron = ScheduleTrigger(f"{slot.minute} * * * *")
    spec = replace(each.spec, triggers=(Trigger("hourly", cron, _COOLDOWN_MINUTES),))
    now = SystemClock().now()
    return replace(
        each,
        spec=spec,
        spec_digest=spec_digest(spec),
        switched_at=now,
        trigger_states={"hourly": TriggerState(slot_done=now)},
    )


def waiting(slots: list[datetime]) -> Document:
    """Return a full document in which one playbook waits for each slot."""
    stored = document(FULL_BYTES)
    waiting = zip(stored.playbooks.values(), slots, strict=False)
    theirs = {each.id: scheduled(each, slot) for each, slot in waiting}
    return replace(stored, playbooks=stored.playbooks | theirs)


async def late_ms(console: Console, root: Root, slots: list[datetime]) -> list[float]:
    """Return how many milliseconds after its slot each run started, once all slots are over."""
    clock = SystemClock()
    end = slots[-1] + timedelta(seconds=5 * TICK_S)
    await clock.sleep((end - clock.now()).total_seconds())
    async with grpc.aio.insecure_channel(console.address) as channel:
        answer = await PlaybookServiceStub(channel).ListRuns(
            pb.ListRunsRequest(page_size=len(slots)),
            metadata=(("authorization", f"Bearer {root.token}"),),
        )
    fired = [run for run in answer.runs if run.trigger == pb.TRIGGER_KIND_SCHEDULE]
    assert len(fired) == len(slots), f"{len(fired)} of {len(slots)} slots fired"
    return [(run.started_at.ToNanoseconds() - run.slot.ToNanoseconds()) / 1e6 for run in fired]


async def _all_late_ms(
    served: list[tuple[Console, Root]], slots: list[datetime]
) -> list[list[float]]:
    return await asyncio.gather(*(late_ms(*each, slots) for each in served))


def measured(folder: Path, count: int) -> Row:
    """Serve the consoles over the slots, and measure."""
    slots = next_slots(count)
    with ExitStack() as stack:
        served = []
        for number in range(CONSOLES):
            root = root_with(folder / f"{number}", waiting(slots))
            ticking = serving(root, settings={"CONSOLE_TICK_SECONDS": str(TICK_S)})
            served.append((stack.enter_context(ticking), root))
        late = asyncio.run(_all_late_ms(served, slots))
    every = [each for theirs in late for each in theirs]
    beyond = max(every) - LONGEST_S * 1_000
    ratio = f"worst {max(every):,.0f} ms, {beyond:+,.0f} ms to a whole interval"
    return row_of(f"slot to run, ticks {TICK_S} s apart", every, count * 60, ratio=ratio)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slots", type=int, default=2, help="minutes to wait for, at most 15")
    parser.add_argument("--json", type=Path, help="write the figures here too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=".") as name:
        row = measured(Path(name), min(max(given.slots, 1), SLOTS_MAX))
    show([row], json_path=given.json)


if __name__ == "__main__":
    main()
