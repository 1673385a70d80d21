"""A CSV file on its way to the console, with a bar for whoever waits for a large one.

Owns the reading of the file and the bar. Never parses the file: that is the console's to do.
"""

from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from runink.core.atlas.v1 import capex_pb2 as pb

from core_console.cli.client import Connection
from core_console.cli.failure import Exit, Failed
from core_console.cli.output import terminal
from core_console.clock import SystemClock

FILE_BYTES_MAX = 8 * 1024 * 1024
"""The contract's cap of one upload: a larger file is not sent at all."""

LARGE_BYTES = 512 * 1024
"""Above this a person has time to wonder whether anything happens."""

_PIECE_BYTES = 256 * 1024
_POLL_S = 0.05

_TOO_LARGE = pb.ParseIssue(
    code="too_large", message=f"the file has more than {FILE_BYTES_MAX:,} bytes"
)


def stage(connection: Connection, feed: pb.Feed.ValueType, path: Path) -> pb.StageFeedResponse:
    """Send the file to be staged and return the answer; raise Failed when it cannot be read."""
    try:
        size = path.stat().st_size
        with _bar(is_shown=size >= LARGE_BYTES) as bar:
            csv = _read(path, size, bar)
            if len(csv) > FILE_BYTES_MAX:
                return pb.StageFeedResponse(errors=[_TOO_LARGE])
            return _sent(connection, feed, path.name, csv, bar)
    except OSError as error:
        raise Failed(Exit.USAGE, f"{path} cannot be read: {error.strerror}") from None


def _bar(*, is_shown: bool) -> Progress:
    screen = terminal(to_errors=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        console=screen,
        transient=True,
        disable=not (is_shown and screen.is_terminal),
    )


def _read(path: Path, size: int, bar: Progress) -> bytes:
    """Return the file's bytes, one more than may be sent at most."""
    task = bar.add_task("reading", total=size)
    csv = bytearray()
    with path.open("rb") as file:
        while len(csv) <= FILE_BYTES_MAX and (piece := file.read(_PIECE_BYTES)):
            csv += piece
            bar.update(task, advance=len(piece))
    bar.remove_task(task)
    return bytes(csv)


def _sent(
    connection: Connection, feed: pb.Feed.ValueType, name: str, csv: bytes, bar: Progress
) -> pb.StageFeedResponse:
    """Return the answer; how far a call has come nobody can see, only that it goes on."""
    bar.add_task(f"the console reads {name}", total=None)
    request = pb.StageFeedRequest(feed=feed, filename=name, csv=csv)
    upload = connection.upload(connection.capex.StageFeed, request)
    clock = SystemClock()
    while not bar.disable and not upload.is_done:
        clock.pause(_POLL_S)
    return upload.answer()
