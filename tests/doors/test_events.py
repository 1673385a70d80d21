"""Every row of the events door's status table, over real HTTP, with the real engine behind it."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.decide.commands import Tick
from core_console.model.audit import Outcome
from core_console.model.document import Mark
from core_console.model.playbook import PlaybookStatus
from core_console.model.run import Cause
from core_console.ports import Fault, ReporterVerdict, Standing
from tests.builders import NOW, a_playbook, a_run
from tests.doors.house import House, waits_for
from tests.doors.site import BEARER, Answer, Site
from tests.fuzzing import fuzzing

PATH = "/api/playbook-events"
EVENT: dict[str, Any] = {"agent": "datagov", "event": "findings.reported"}
WATCHER = waits_for("datagov", "findings.reported", ("fail_count", "GT", "0"))


@pytest.fixture
def house() -> House:
    return House()


async def post(
    door: Site,
    body: bytes | Mapping[str, Any] = EVENT,
    *,
    method: str = "POST",
    headers: Mapping[str, str | None] | None = None,
) -> Answer:
    return await door.post(body, path=PATH, method=method, headers=headers)


async def test_an_event_that_nothing_waits_for_is_kept(house: House) -> None:
    async with house.open() as door:
        answer = await post(door)

        assert (answer.status, answer.json) == (
            200,
            {"eventId": "PBE-1", "started": [], "skipped": []},
        )
        (event,) = await house.events()
        assert (event.agent, event.event, event.raised_by) == (
            "datagov",
            "findings.reported",
            "agent:datagov",
        )


async def test_an_event_that_matches_starts_a_run(house: House) -> None:
    async with house.open(WATCHER) as door:
        answer = await post(door, EVENT | {"attributes": {"fail_count": "3"}})

        assert answer.json["started"] == ["PBR-1"]
        assert answer.json["skipped"] == []
        run = (await house.engine.snapshot()).running["PB-1"]
        assert (run.initiator, run.event_id) == ("agent:datagov", answer.json["eventId"])


async def test_an_event_that_the_guard_holds_back_says_why(house: House) -> None:
    paused = waits_for("datagov", "findings.reported", status=PlaybookStatus.PAUSED)
    async with house.open(paused) as door:
        answer = await post(door)

        assert answer.json["skipped"] == [
            {"playbookId": "PB-1", "triggerId": "on-event", "reason": "playbook is PAUSED"}
        ]


async def test_every_field_is_kept(house: House) -> None:
    body = EVENT | {
        "subject": "warehouse",
        "detail": "3 findings",
        "attributes": {"fail_count": "3", "empty": ""},
        "causedByRunId": "PBR-1",
        "eventId": "the agent's own / id",
    }
    async with house.open(a_playbook(), a_run(a_playbook())) as door:
        assert (await post(door, body)).status == 200
        (event,) = await house.events()
        assert (event.subject, event.detail) == ("warehouse", "3 findings")
        assert event.attributes == {"fail_count": "3", "empty": ""}
        assert (event.caused_by_run_id, event.external_id) == ("PBR-1", "the agent's own / id")
        assert event.chain_depth == 1


async def test_the_same_event_id_again_answers_the_first_result(house: House) -> None:
    body = EVENT | {"attributes": {"fail_count": "3"}, "eventId": "e-1"}
    async with house.open(WATCHER) as door:
        first = await post(door, body)
        again = await post(door, body)

        assert again.status == 200
        assert again.json == first.json | {"duplicate": True}
        assert len(await house.events()) == 1
        (entry,) = door.book.entries
        assert (entry.outcome, entry.actor) == (Outcome.SUCCESS, "agent:datagov")
        assert entry.target == first.json["eventId"]


async def test_the_same_event_id_of_another_agent_is_another_event(house: House) -> None:
    async with house.open() as door:
        first = await post(door, EVENT | {"eventId": "e-1"})
        other = await post(door, EVENT | {"eventId": "e-1", "agent": "recon"})

        assert other.status == 200
        assert other.json["eventId"] != first.json["eventId"]


@pytest.mark.parametrize(
    "change",
    [
        {"event": "other"},
        {"subject": "x"},
        {"detail": "x"},
        {"attributes": {"a": "b"}},
        {"causedByRunId": "PBR-1"},
    ],
)
async def test_other_content_under_the_same_event_id_is_409(
    house: House, change: dict[str, Any]
) -> None:
    async with house.open(a_playbook(), a_run(a_playbook())) as door:
        await post(door, EVENT | {"eventId": "e-1"})
        answer = await post(door, EVENT | {"eventId": "e-1"} | change)

        assert answer.status == 409
        assert answer.error.startswith("eventId: ")


async def test_without_an_event_id_every_event_is_a_new_one(house: House) -> None:
    async with house.open() as door:
        assert (await post(door)).json["eventId"] != (await post(door)).json["eventId"]


BAD: list[tuple[str, Any, str]] = [
    ("agent", "", "agent: "),
    ("agent", "intern", "agent: "),
    ("agent", "capex", "agent: "),
    ("agent", "Datagov", "agent: "),
    ("agent", 7, "`$.agent`"),
    ("event", "", "event: "),
    ("event", "Findings", "event: "),
    ("event", "a" * 65, "event: "),
    ("event", "a b", "event: "),
    ("event", "ghp_secret", "event: "),
    ("subject", "a" * 257, "subject: "),
    ("subject", "two\nlines", "subject: "),
    ("detail", "é" * 251, "detail: "),
    ("detail", "a\u202eb", "detail: "),
    ("detail", "token ghs_" + "b" * 36, "detail: "),
    ("attributes", [], "`$.attributes`"),
    ("attributes", {"a": 1}, "`$.attributes"),
    ("attributes", {"a": {"b": "c"}}, "`$.attributes"),
    ("attributes", {f"k{number}": "" for number in range(17)}, "attributes: has 17 keys"),
    ("attributes", {"": "x"}, "attributes[0].key: "),
    ("attributes", {"k" * 257: "x"}, "attributes[0].key: "),
    ("attributes", {"a": "", "k": "é" * 129}, "attributes[1].value: "),
    ("attributes", {"AKIA_secret": "x"}, "attributes[0].key: "),
    ("attributes", {"k": "a\x00b"}, "attributes[0].value: "),
    ("causedByRunId", "", "causedByRunId: "),
    ("causedByRunId", "PBR 1", "causedByRunId: "),
    ("causedByRunId", "..", "causedByRunId: "),
    ("causedByRunId", "a" * 65, "causedByRunId: "),
    ("causedByRunId", "ghp_secret", "causedByRunId: "),
    ("causedByRunId", ["PBR-1"], "`$.causedByRunId`"),
    ("eventId", "", "eventId: "),
    ("eventId", "a" * 65, "eventId: "),
    ("eventId", "a\nb", "eventId: "),
    ("eventId", 7, "`$.eventId`"),
    ("chainDepth", 0, "chainDepth: is not a field"),
    ("rows", [], "rows: is not a field"),
    ("committedBy", "author@example.com", "committedBy: is not a field"),
    ("source", "capex", "source: is not a field"),
    ("id", "PBE-1", "id: is not a field"),
    ("event_id", "e-1", "event_id: is not a field"),
    ("subject", None, "subject: is null"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), BAD)
async def test_a_bad_field_is_400_and_named_without_its_value(
    house: House, name: str, value: object, sentence: str
) -> None:
    async with house.open() as door:
        answer = await post(door, EVENT | {name: value})

        assert answer.status == 400
        assert sentence in answer.error
        assert "secret" not in answer.error
        assert "ghs_" not in answer.error
        assert await house.events() == []
        (entry,) = door.book.entries
        assert (entry.action, entry.subject) == ("atlas.events.raise", "playbook")
        assert (entry.outcome, door.book.identified) == (Outcome.FAILURE, [True])


@pytest.mark.parametrize("name", list(EVENT))
async def test_agent_and_event_are_required(house: House, name: str) -> None:
    async with house.open() as door:
        answer = await post(door, {key: value for key, value in EVENT.items() if key != name})

        assert (answer.status, answer.error) == (400, f"{name}: is required")


async def test_a_field_given_twice_is_400(house: House) -> None:
    body = b'{"agent":"datagov","event":"x","attributes":{"a":"1","a":"2"}}'
    async with house.open() as door:
        answer = await post(door, body)

        assert (answer.status, answer.error) == (400, "a: is given twice")


async def test_everything_at_its_bound_is_taken(house: House) -> None:
    body = EVENT | {
        "event": "e" * 64,
        "subject": "é" * 128,
        "detail": "é" * 250,
        "attributes": {f"{number:02}" + "k" * 254: "é" * 128 for number in range(16)},
        "eventId": "e" * 64,
    }
    async with house.open() as door:
        sent = json.dumps(body, ensure_ascii=False).encode()
        assert (await post(door, sent)).status == 200


async def test_an_unknown_run_is_404(house: House) -> None:
    async with house.open() as door:
        answer = await post(door, EVENT | {"causedByRunId": "PBR-9"})

        assert answer.status == 404
        assert answer.error.startswith("causedByRunId: run PBR-9 does not exist")
        assert door.book.entries[0].actor == "agent:datagov"


async def test_a_run_of_which_only_a_mark_is_left_is_known(house: House) -> None:
    mark = Mark("PBR-7", "detect", "judge", 2, NOW, reported=True)
    async with house.open(marks=(mark,)) as door:
        assert (await post(door, EVENT | {"causedByRunId": "PBR-7"})).status == 200
        assert (await house.events())[0].chain_depth == 3


async def test_an_agent_that_leaves_the_cause_out_hides_no_loop(house: House) -> None:
    mark = Mark("PBR-7", "detect", "datagov", 3, NOW)
    async with house.open(waits_for("datagov", "findings.reported"), marks=(mark,)) as door:
        answer = await post(door)

        (skip,) = answer.json["skipped"]
        assert skip["reason"] == (
            "chain depth 4 exceeds 3 (caused by run PBR-7) — refused, not run"
        )


async def test_an_inferred_cause_is_told_from_a_named_one(house: House) -> None:
    mark = Mark("PBR-7", "detect", "datagov", 0, NOW)
    async with house.open(waits_for("datagov", "findings.reported"), marks=(mark,)) as door:
        await post(door)

        run = (await house.engine.snapshot()).running["PB-1"]
        assert (run.chain_depth, run.caused_by_run_id, run.cause) == (1, "PBR-7", Cause.INFERRED)


@pytest.mark.parametrize(
    ("standing", "status"),
    [
        (Standing.INVALID, 401),
        (Standing.FOREIGN, 403),
        (Standing.LIMITED, 429),
        (Standing.UNKNOWN, 503),
        (Standing.UNCONFIGURED, 503),
    ],
)
async def test_a_bearer_that_is_not_valid_has_its_own_status(
    house: House, standing: Standing, status: int
) -> None:
    house.bearers.says = ReporterVerdict(standing, "said so", retry_after_s=17)
    async with house.open() as door:
        answer = await post(door)

        assert (answer.status, answer.error) == (status, "said so")
        assert ("retry-after" in answer.headers) == (status in {429, 503})
        assert door.book.identified == [False]
        assert await house.events() == []


async def test_no_bearer_is_401(house: House) -> None:
    async with house.open() as door:
        answer = await post(door, headers={"Authorization": None})

        assert (answer.status, answer.error) == (401, "missing bearer token")


async def test_only_post_json_of_at_most_16_kib_is_taken(house: House) -> None:
    async with house.open() as door:
        assert (await post(door, method="GET")).headers["allow"] == "post"
        assert (await post(door, method="PUT")).status == 405
        assert (await post(door, b"x" * (16 * 1024 + 1))).status == 413
        assert (await post(door, headers={"Content-Type": "text/plain"})).status == 415


async def test_a_store_that_fails_is_503_and_the_event_may_come_again(house: House) -> None:
    body = EVENT | {"eventId": "e-1"}
    async with house.open() as door:
        house.store.troubles.before.append(Fault("the disk is full"))
        failed = await post(door, body)

        assert (failed.status, failed.error) == (503, "the disk is full")
        assert "retry-after" in failed.headers
        assert "duplicate" not in (await post(door, body)).json


async def test_what_the_swap_decided_is_in_the_chain_once(house: House) -> None:
    async with house.open(WATCHER) as door:
        await post(door, EVENT | {"attributes": {"fail_count": "1"}})
        raised = [each for each in await house.records() if each.action == "atlas.events.raise"]

        (record,) = raised
        assert (record.actor, record.outcome) == ("agent:datagov", "success")
        assert record.target == "PBE-1/PBR-1"
        assert door.book.entries == []


async def test_a_storm_of_events_is_answered_one_by_one(house: House) -> None:
    async with house.open(WATCHER) as door:
        bodies = [EVENT | {"attributes": {"fail_count": str(at)}} for at in range(40)]
        answers = await asyncio.gather(*(post(door, body) for body in bodies))
        await house.engine.submit(Tick())

        assert {answer.status for answer in answers} == {200}
        assert sum(len(answer.json["started"]) for answer in answers) == 1
        assert len(await house.events()) == 40


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def fuzzed(runner: asyncio.Runner) -> Iterator[Site]:
    opened: AbstractAsyncContextManager[Site] = House().open(WATCHER)
    yield runner.run(opened.__aenter__())
    runner.run(opened.__aexit__(None, None, None))


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["agent", "event", "subject", "detail", "attributes", "causedByRunId", "eventId", "x"]
)
SHORT = st.text(max_size=8)
VALUES = ANYTHING | SHORT | st.dictionaries(SHORT, SHORT, max_size=18)
CHANGES = st.dictionaries(FIELDS, VALUES, max_size=4)


@fuzzing(300)
@given(
    body=st.binary(max_size=600)
    | CHANGES.map(lambda change: json.dumps({**EVENT, **change}).encode())
)
def test_any_body_is_answered_as_listed(runner: asyncio.Runner, fuzzed: Site, body: bytes) -> None:
    answer = runner.run(post(fuzzed, body))

    assert answer.status in {200, 400, 404, 409}
    if answer.status == 200:
        assert {"eventId", "started", "skipped"} <= set(answer.json)
    else:
        assert answer.error.isprintable()
        assert BEARER not in answer.error
