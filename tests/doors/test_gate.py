"""The gate: what is checked before a body is believed, and in which order."""

import asyncio
import json
from collections.abc import Mapping

import pytest

from core_console.model.audit import Outcome
from core_console.ports import ReporterVerdict, Standing
from tests.doors.site import BEARER, PATH, REPORT, Site, answer_of, dialled, head, site, until

BODY = json.dumps(dict(REPORT)).encode()
LIMIT = 16 * 1024


def padded(size: int) -> bytes:
    return BODY[:-1] + b" " * (size - len(BODY)) + b"}"


def chunked(*chunks: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


def chunked_head() -> bytes:
    return head("POST", PATH, 0, {"Content-Length": None, "Transfer-Encoding": "chunked"})


# Each call has every later fault as well; the first one in the contract's order is answered.
ORDER: list[tuple[int, str, bytes, dict[str, str | None]]] = [
    (405, "PUT", b"x" * (LIMIT + 1), {"Content-Type": "text/plain", "Authorization": None}),
    (413, "POST", b"x" * (LIMIT + 1), {"Content-Type": "text/plain", "Authorization": None}),
    (415, "POST", b"x", {"Content-Type": "text/plain", "Authorization": None}),
    (401, "POST", b"x", {"Authorization": None}),
    (400, "POST", b"x", {}),
    (404, "POST", json.dumps({**REPORT, "runId": "PBR-2"}).encode(), {}),
]


@pytest.mark.parametrize(("status", "method", "body", "headers"), ORDER)
async def test_the_first_fault_in_the_contracts_order_is_answered(
    door: Site, status: int, method: str, body: bytes, headers: Mapping[str, str | None]
) -> None:
    answer = await door.post(body, method=method, headers=headers)

    assert answer.status == status
    assert answer.error
    assert len(door.book.entries) == 1, "every call is recorded once"


@pytest.mark.parametrize("standing", [Standing.FOREIGN, Standing.LIMITED, Standing.UNKNOWN])
async def test_the_bearer_is_judged_before_the_body(door: Site, standing: Standing) -> None:
    door.bearers.says = ReporterVerdict(standing, "no")

    assert (await door.post(b"not json")).status in {403, 429, 503}


async def test_github_is_not_asked_about_a_call_that_fails_before(door: Site) -> None:
    await door.post(method="PUT")
    await door.post(b"x" * (LIMIT + 1))
    await door.post(headers={"Content-Type": "text/plain"})

    assert door.bearers.asked == []


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"])
async def test_only_post_is_taken(door: Site, method: str) -> None:
    answer = await door.post(method=method)

    assert answer.status == 405
    assert answer.headers["allow"] == "post"
    assert "access-control-allow-origin" not in answer.headers
    assert door.engine.taken == []


async def test_head_is_405_without_a_body(door: Site) -> None:
    async with dialled(door.port) as (reader, writer):
        writer.write(head("HEAD", PATH, 0))
        answer = await answer_of(reader, bodiless=True)

        assert answer.status == 405
        assert await reader.read() == b""


@pytest.mark.parametrize(("size", "status"), [(LIMIT - 1, 200), (LIMIT, 200), (LIMIT + 1, 413)])
async def test_a_body_may_have_16_kib_and_no_byte_more(door: Site, size: int, status: int) -> None:
    assert (await door.post(padded(size))).status == status


@pytest.mark.parametrize(("size", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (LIMIT * 9, 413)])
async def test_a_body_without_a_length_is_measured_as_it_comes(
    door: Site, size: int, status: int
) -> None:
    body = padded(size)
    pieces = [body[start : start + 1000] for start in range(0, size, 1000)]
    answer = await door.raw(chunked_head() + chunked(*pieces))

    assert answer.status == status


async def test_a_large_upload_is_taken_off_the_callers_hands_so_that_it_sees_413(
    door: Site,
) -> None:
    answer = await door.post(b"x" * 900_000)

    assert answer.status == 413
    assert answer.headers["connection"] == "close"


async def test_a_caller_that_waits_for_our_word_is_refused_without_it(door: Site) -> None:
    answer = await door.raw(head("POST", PATH, LIMIT + 1, {"Expect": "100-continue"}))

    assert answer.status == 413


async def test_a_caller_that_waits_for_our_word_gets_it(door: Site) -> None:
    async with dialled(door.port) as (reader, writer):
        writer.write(head("POST", PATH, len(BODY), {"Expect": "100-continue"}))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(BODY)

        assert (await answer_of(reader)).status == 200


@pytest.mark.parametrize("length", ["-1", "1e3", "+5", "0x10", "9" * 30, "5, 6", ""])
async def test_a_length_that_is_no_number_is_refused(door: Site, length: str) -> None:
    answer = await door.raw(head("POST", PATH, 0, {"Content-Length": length}))

    assert answer.status in {400, 413}
    assert answer.error


async def test_two_lengths_that_differ_are_refused(door: Site) -> None:
    answer = await door.raw(head("POST", PATH, 5)[:-2] + b"Content-Length: 6\r\n\r\n" + b"12345")

    assert answer.status == 400
    assert answer.error


async def test_a_length_beside_chunks_smuggles_nothing(door: Site) -> None:
    smuggled = head("POST", PATH, 5, {"Transfer-Encoding": "chunked"})
    async with dialled(door.port) as (reader, writer):
        writer.write(smuggled + chunked(BODY) + head("GET", "/healthz", 0, {"Connection": "close"}))
        first = await answer_of(reader)

        assert first.status in {200, 400}
        assert len(door.engine.taken) <= 1


@pytest.mark.parametrize(
    "kind",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json; charset="utf-8"',
    ],
)
async def test_json_in_utf8_is_taken(door: Site, kind: str) -> None:
    assert (await door.post(headers={"Content-Type": kind})).status == 200


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "application/json; charset=utf-8; charset=latin-1",
        "application/json; boundary=x",
        "application/jsonp",
        "application/ld+json",
        "application/json, text/plain",
    ],
)
async def test_anything_else_is_415(door: Site, kind: str | None) -> None:
    assert (await door.post(headers={"Content-Type": kind})).status == 415


async def test_two_content_types_are_415(door: Site) -> None:
    start = head("POST", PATH, len(BODY))[:-2]

    assert (await door.raw(start + b"Content-Type: application/json\r\n\r\n" + BODY)).status == 415


async def test_a_compressed_body_is_415(door: Site) -> None:
    assert (await door.post(headers={"Content-Encoding": "gzip"})).status == 415


async def test_two_authorization_headers_are_both_shown_to_the_judge(door: Site) -> None:
    start = head("POST", PATH, len(BODY))[:-2]
    answer = await door.raw(start + b"authorization: Bearer other\r\n\r\n" + BODY)

    assert answer.status == 401
    assert door.bearers.asked == [(f"Bearer {BEARER}", "Bearer other")]


async def test_the_scheme_may_be_written_in_lower_case(door: Site) -> None:
    assert (await door.post(headers={"Authorization": f"bearer {BEARER}"})).status == 200


async def test_a_bearer_in_the_query_counts_for_nothing(door: Site) -> None:
    answer = await door.post(path=f"{PATH}?access_token={BEARER}", headers={"Authorization": None})

    assert answer.status == 401


async def test_the_address_that_a_header_claims_is_not_believed(door: Site) -> None:
    claimed = {"X-Forwarded-For": "203.0.113.9", "Forwarded": "for=203.0.113.9"}

    assert (await door.post(headers=claimed)).status == 200


async def test_a_slow_body_is_408() -> None:
    async with site(body_s=0.05) as door:
        answer = await door.raw(head("POST", PATH, len(BODY)), BODY[:10])

        assert answer.status == 408
        assert answer.headers["connection"] == "close"
        assert [entry.outcome for entry in door.book.entries] == [Outcome.FAILURE]


async def test_a_drip_of_bytes_does_not_win_time() -> None:
    async with site(body_s=0.1) as door, dialled(door.port) as (reader, writer):
        writer.write(head("POST", PATH, len(BODY)))
        answering = asyncio.create_task(answer_of(reader))
        for byte in BODY:
            if answering.done():
                break
            writer.write(bytes([byte]))
            await asyncio.sleep(0.01)

        assert (await answering).status == 408


async def test_a_caller_that_hangs_up_is_recorded_and_spoils_nothing(door: Site) -> None:
    async with dialled(door.port) as (_, writer):
        writer.write(head("POST", PATH, len(BODY)) + BODY[:10])
        await writer.drain()
        writer.close()
        await until(lambda: bool(door.book.entries))

        assert door.book.entries[0].detail == "the body broke off before its end"
        assert (await door.post()).status == 200


async def test_the_bearer_is_in_no_record_and_no_answer(
    door: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    for change in ({"runId": "x y"}, {"runId": "PBR-2"}, {"agent": "risk"}, {BEARER: "x"}):
        answer = await door.post({**REPORT, **change})
        assert BEARER.encode() not in answer.body

    assert all(BEARER not in str(entry) for entry in door.book.entries)
    printed = capsys.readouterr()
    assert BEARER not in printed.out + printed.err
