"""Whatever is sent, a door answers what the contract lists: never a 5xx but an honest 503."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import SECOND
from tests.doors.site import (
    PATH,
    REPORT,
    Answer,
    Auditor,
    Bearers,
    Book,
    Engine,
    Site,
    application,
    audit_doors,
    dialled,
    head,
    listening,
    site,
)
from tests.fuzzing import fuzzing

LISTED = {200, 400, 401, 404, 405, 408, 409, 413, 415}


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def door(runner: asyncio.Runner) -> Iterator[Site]:
    listening = site()
    yield runner.run(listening.__aenter__())
    runner.run(listening.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def reader(runner: asyncio.Runner) -> Iterator[Site]:
    doors = audit_doors(Auditor(), auditors=frozenset({SECOND}))
    served = listening(application(Engine(), Bearers(), Book(), audit=doors))
    port, _ = runner.run(served.__aenter__())
    yield Site(port, Engine(), Bearers(), Book())
    runner.run(served.__aexit__(None, None, None))


def holds(answer: Answer) -> None:
    assert answer.status in LISTED
    if answer.status == 200:
        assert answer.json in ({"accepted": True}, {"accepted": True, "duplicate": True})
    else:
        assert answer.error.isprintable()


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=600),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
NEARLY = st.fixed_dictionaries({}, optional={name: st.just(REPORT[name]) for name in REPORT})
CHANGES = st.dictionaries(st.sampled_from([*REPORT, "x", "run_id", ""]), ANYTHING, max_size=3)
BODIES = (
    st.binary(max_size=2_000)
    | ANYTHING.map(lambda value: json.dumps(value).encode())
    | st.builds(lambda base, change: json.dumps({**base, **change}).encode(), NEARLY, CHANGES)
    | st.builds(
        lambda change: json.dumps({**REPORT, **change}, ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        ),
        CHANGES,
    )
)
TOKEN = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)
KNOWN = st.sampled_from(["content-type", "authorization", "expect", "content-encoding", "cookie"])
VALUE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=300).map(str.strip)


def cut(body: bytes, places: list[int]) -> bytes:
    """Return `body` with some of its bytes gone."""
    gone = {place % max(1, len(body)) for place in places}
    return bytes(byte for place, byte in enumerate(body) if place not in gone)


@fuzzing(300)
@given(body=BODIES)
def test_any_body_is_answered_as_listed(runner: asyncio.Runner, door: Site, body: bytes) -> None:
    holds(runner.run(door.post(body)))


@fuzzing(200)
@given(places=st.lists(st.integers(0, 400), max_size=3))
def test_a_damaged_report_is_answered_as_listed(
    runner: asyncio.Runner, door: Site, places: list[int]
) -> None:
    holds(runner.run(door.post(cut(json.dumps(dict(REPORT)).encode(), places))))


@fuzzing(200)
@given(headers=st.dictionaries(KNOWN | TOKEN, VALUE, max_size=4))
def test_any_headers_are_answered_as_listed(
    runner: asyncio.Runner, door: Site, headers: dict[str, str]
) -> None:
    body = json.dumps(dict(REPORT)).encode()
    framing = {"transfer-encoding", "content-length", "connection", "host", "upgrade"}
    extra = "".join(f"{k}: {v}\r\n" for k, v in headers.items() if k not in framing)
    sent = head("POST", PATH, len(body))[:-2] + extra.encode() + b"\r\n" + body

    holds(runner.run(door.raw(sent)))


FILTER = st.sampled_from(["actor", "outcome", "since", "before", "limit", "page_token", "x"])


@fuzzing(200)
@given(pairs=st.lists(st.tuples(FILTER, st.text(max_size=40) | st.datetimes().map(str))))
def test_any_filters_are_answered_as_listed(
    runner: asyncio.Runner, reader: Site, pairs: list[tuple[str, str]]
) -> None:
    query = urlencode(pairs, errors="surrogatepass")
    answer = runner.run(reader.post(b"", method="GET", path=f"/api/audit?{query}"))

    assert answer.status in {200, 400}


@fuzzing(200)
@given(sent=st.binary(max_size=300) | st.binary(max_size=80).map(lambda tail: b"GET /" + tail))
def test_any_bytes_leave_the_server_up(runner: asyncio.Runner, door: Site, sent: bytes) -> None:
    async def send() -> bytes:
        async with dialled(door.port) as (reader, writer):
            writer.write(sent + b"\r\n\r\n")
            writer.write_eof()
            async with asyncio.timeout(5):
                return await reader.read(100)

    first = runner.run(send())

    assert b" 500 " not in first.split(b"\r\n")[0]
    assert runner.run(door.post(b"", method="GET", path="/healthz")).status == 200
