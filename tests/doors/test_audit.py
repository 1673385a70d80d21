"""The audit trail over HTTP: for the session admins, exactly as the chain holds it."""

import asyncio
import io
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core_console.governance import verify
from core_console.governance.authenticator import Authenticator
from core_console.governance.chain import Chain
from core_console.governance.refusals import Refusals
from core_console.governance.rootkey import KeyFile, make_key
from core_console.governance.tokens import issue
from core_console.governance.verify import Verification
from core_console.model.audit import AuditRecord, Entry, Outcome
from core_console.ports import Fault
from core_console.settings import load
from core_console.store.memory import MemoryLog
from tests.builders import AUTHOR, NOW, SECOND
from tests.doors.site import (
    Answer,
    Bearers,
    Book,
    Engine,
    Site,
    application,
    audit_doors,
    listening,
)
from tests.fakes import CountingIds, ManualClock

ENTRY = Entry(
    at=NOW,
    actor=AUTHOR,
    action="atlas.playbooks.create",
    target="PB-1",
    outcome=Outcome.SUCCESS,
    detail="created",
    subject="playbook",
)


class Trail:
    """A console with an author, and a second operator who may read the trail."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = MemoryLog()
        self.chain = Chain(self.log, ManualClock())
        self.site = Site(0, Engine(), Bearers(), Book())
        self.verifying: asyncio.Event | None = None

    async def verify(self) -> Verification:
        if self.verifying is not None:
            await self.verifying.wait()
        return verify.verify(io.BytesIO(b"".join(line + b"\n" for line in self.log.lines)))

    def token(self, email: str, minutes: int = 5) -> str:
        key = KeyFile(self.root).current()
        assert key is not None
        ids = CountingIds().new("TOK")
        return issue(email, timedelta(minutes=minutes), key=key, now=NOW, token_id=ids)

    async def get(self, path: str, *, email: str | None = SECOND, method: str = "GET") -> Answer:
        bearer = None if email is None else f"Bearer {self.token(email)}"
        headers = {"Authorization": bearer, "Content-Length": None}
        return await self.site.post(b"", path=path, method=method, headers=headers)

    async def seqs(self, query: str) -> list[int]:
        answer = await self.get(f"/api/audit?{query}")
        assert answer.status == 200, answer.body
        return [record["seq"] for record in answer.json["records"]]


@pytest.fixture
async def trail(tmp_path: Path) -> AsyncIterator[Trail]:
    make_key(tmp_path, CountingIds())
    found = Trail(tmp_path)
    doors = audit_doors(
        Authenticator(load({"CONSOLE_APPFS_DIR": str(tmp_path)})),
        log=found.log,
        verify=found.verify,
        auditors=frozenset({SECOND}),
    )
    async with listening(application(Engine(), Bearers(), Book(), audit=doors)) as (port, _):
        found.site.port = port
        yield found


@pytest.fixture
async def filled(trail: Trail) -> Trail:
    await trail.chain.add(
        [
            ENTRY,
            replace(ENTRY, actor=SECOND, action="atlas.playbooks.activate"),
            replace(ENTRY, at=NOW + timedelta(hours=1), outcome=Outcome.DENIED),
            replace(ENTRY, at=NOW + timedelta(hours=2), subject="rule"),
        ]
    )
    return trail


PATHS = ["/api/audit", "/api/audit/1", "/api/audit/verify"]


@pytest.mark.parametrize("path", PATHS)
async def test_only_a_session_admin_reads_it(filled: Trail, path: str) -> None:
    assert (await filled.get(path, email=None)).status == 401
    denied = await filled.get(path, email=AUTHOR)
    assert (denied.status, "CONSOLE_SESSION_ADMINS" in denied.error) == (403, True)
    assert (await filled.get(path, email=SECOND)).status == 200


@pytest.mark.parametrize("path", PATHS)
async def test_a_bearer_that_is_no_operators_token_is_401(filled: Trail, path: str) -> None:
    answer = await filled.site.post(b"", method="GET", path=path)

    assert answer.status == 401
    assert answer.headers["www-authenticate"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_the_trail_is_only_read(filled: Trail, path: str, method: str) -> None:
    assert (await filled.get(path, email=None, method=method)).status == 405


async def test_an_open_console_shows_no_trail(tmp_path: Path) -> None:
    doors = audit_doors(Authenticator(load({"CONSOLE_APPFS_DIR": str(tmp_path)})))
    async with listening(application(Engine(), Bearers(), Book(), audit=doors)) as (port, _):
        door = Site(port, Engine(), Bearers(), Book())
        answer = await door.post(b"", method="GET", path="/api/audit")

        assert answer.status == 401
        assert answer.error.startswith("this console has no sign-in configured")


async def test_records_are_newest_first_and_as_the_chain_holds_them(filled: Trail) -> None:
    answer = await filled.get("/api/audit")

    assert [record["seq"] for record in answer.json["records"]] == [4, 3, 2, 1]
    assert set(answer.json["records"][0]) == set(AuditRecord.__struct_fields__)
    assert answer.json["next_page_token"] == ""


@pytest.mark.parametrize(
    ("query", "seqs"),
    [
        ("actor=author%40example.com", [4, 3, 1]),
        ("actor=second@example.com", [2]),
        ("action=atlas.playbooks.activate", [2]),
        ("outcome=denied", [3]),
        ("subject=rule", [4]),
        ("since=2026-11-30T13:00:00Z", [4, 3]),
        ("before=2026-11-30T13:00:00Z", [2, 1]),
        ("since=2026-11-30T15:00:00%2B02:00&before=2026-11-30T14:00:00Z", [3]),
        ("actor=nobody", []),
        ("limit=1", [4]),
        ("limit=200", [4, 3, 2, 1]),
    ],
)
async def test_each_filter_is_exact(filled: Trail, query: str, seqs: list[int]) -> None:
    assert await filled.seqs(query) == seqs


async def test_pages_follow_each_other_without_a_gap(filled: Trail) -> None:
    first = (await filled.get("/api/audit?limit=3")).json
    second = (await filled.get(f"/api/audit?limit=3&page_token={first['next_page_token']}")).json

    assert [record["seq"] for record in second["records"]] == [1]
    assert second["next_page_token"] == ""


@pytest.mark.parametrize(
    "query",
    [
        "colour=red",
        "Actor=x",
        "actor=x&actor=y",
        "actor=",
        "actor",
        "actor=%ff",
        "actor=%00",
        "actor=" + "a" * 300,
        "outcome=maybe",
        "since=yesterday",
        "since=2026-11-30T13:00:00",
        "since=2026-11-30T13:00:00+02:00",
        "since=9999-12-31T23:59:59-23:00",
        "since=0001-01-01T00:00:00%2B23:00",
        "before=0",
        "limit=0",
        "limit=-1",
        "limit=201",
        "limit=1.0",
        "limit=%D9%A1",
        "limit=" + "9" * 100,
        "page_token=wrong",
        "&".join(f"a{number}=1" for number in range(40)),
    ],
)
async def test_a_parameter_that_is_not_right_is_400(filled: Trail, query: str) -> None:
    answer = await filled.get(f"/api/audit?{query}")

    assert answer.status == 400
    assert "red" not in answer.error
    assert "yesterday" not in answer.error


async def test_one_record_is_read_by_its_number(filled: Trail) -> None:
    answer = await filled.get("/api/audit/2")

    assert (answer.json["seq"], answer.json["actor"]) == (2, SECOND)


@pytest.mark.parametrize(
    ("number", "status"),
    [("5", 404), ("0", 400), ("-1", 400), ("one", 400), ("1?x=1", 400), ("9" * 40, 400)],
)
async def test_a_number_without_a_record_is_told(filled: Trail, number: str, status: int) -> None:
    answer = await filled.get(f"/api/audit/{number}")

    assert answer.status == status
    assert answer.error


async def test_verify_says_that_a_whole_chain_holds(filled: Trail) -> None:
    found: dict[str, Any] = (await filled.get("/api/audit/verify")).json

    assert (found["intact"], found["records"]) == (True, 4)
    assert found["last_hash"].encode() in filled.log.lines[-1]


async def test_verify_names_the_record_that_was_edited(filled: Trail) -> None:
    filled.log.lines[1] = filled.log.lines[1].replace(b"second@", b"nobody@")
    found = (await filled.get("/api/audit/verify")).json

    assert (found["intact"], found["first_bad_seq"]) == (False, 2)
    assert found["fault"]


async def test_one_verification_at_a_time(filled: Trail) -> None:
    filled.verifying = asyncio.Event()
    asked = {asyncio.create_task(filled.get("/api/audit/verify")) for _ in range(3)}
    while len(asked) > 1:
        done, asked = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        assert {task.result().status for task in done} == {429}
    filled.verifying.set()

    assert [(await task).status for task in asked] == [200]


async def test_a_log_that_cannot_be_read_is_503(
    filled: Trail, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(first_seq: int, count: int) -> list[bytes]:
        raise Fault(f"the audit log cannot be read from {first_seq} to {first_seq + count}")

    monkeypatch.setattr(filled.log, "read", broken)
    answer = await filled.get("/api/audit")

    assert (answer.status, answer.headers["retry-after"]) == (503, "5")


async def test_a_flood_of_refusals_cannot_fill_the_chain() -> None:
    log, clock = MemoryLog(), ManualClock()
    refusals = Refusals(Chain(log, clock), clock)
    async with listening(application(Engine(), Bearers(), refusals)) as (port, _):
        door = Site(port, Engine(), Bearers(), Book())
        for _ in range(40):
            assert (await door.post(headers={"Authorization": None})).status == 401

    assert 0 < len(log.lines) < 10
