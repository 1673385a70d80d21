"""The three report doors over real HTTP: what is stored, what is raised, and who may read it."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from copy import deepcopy
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_console.decide.agent_reports import ITEMS_MAX
from core_console.decide.stored_reports import RAISING_MAX
from core_console.doors.agent_reports import BODY_BYTES
from core_console.model.audit import Outcome
from core_console.model.document import Mark
from core_console.ports import Fault, ReporterVerdict, Standing
from tests.builders import NOW, a_playbook, a_run, a_run_at, later
from tests.doors.house import House, get, waits_for
from tests.doors.site import BEARER, REPORT, Answer, Site
from tests.fuzzing import fuzzing

DATAGOV, RECON, JUDGE = (
    "/api/data-governance-findings",
    "/api/rules-recon/report",
    "/api/judgements",
)
BODIES: dict[str, dict[str, Any]] = {
    DATAGOV: {
        "agent": "datagov",
        "connectionsAssessed": 3,
        "findings": [
            {
                "control": "owner",
                "verdict": "fail",
                "domain": "sales",
                "connection": "warehouse",
                "detail": "names no owner",
            },
            {"control": "tls", "verdict": "warn", "domain": "", "connection": "lake"},
            {"control": "tls", "verdict": "pass", "domain": "sales", "connection": "warehouse"},
            {"control": "tls", "verdict": "unable-to-assess", "domain": "x", "connection": "y"},
        ],
    },
    RECON: {
        "tenant": "north",
        "verdicts": [
            {"rule": "CP-001", "verdict": "aligned"},
            {"rule": "CP-002", "verdict": "drift", "detail": "tolerance is 21 days"},
            {"rule": "XX-9", "verdict": "shadow"},
            {"rule": "SP-001", "verdict": "missing"},
        ],
    },
    JUDGE: {
        "judgements": [
            {"id": "claim-1", "outcome": "concur"},
            {"id": "claim-2", "outcome": "dissent", "reason": "the ratio is 0.4"},
            {"id": "claim-3", "outcome": "unable-to-judge"},
        ]
    },
}
AGENTS = {DATAGOV: "datagov", RECON: "recon", JUDGE: "judge"}
EVENTS = {
    DATAGOV: ("findings.reported", {"fail_count": "1", "warn_count": "1"}),
    RECON: ("recon.reported", {"drift": "1", "shadow": "1", "missing": "1", "tenant": "north"}),
    JUDGE: ("judgements.reported", {"dissent": "1", "unable": "1"}),
}
PATHS = list(BODIES)
paths = pytest.mark.parametrize("path", PATHS)


@pytest.fixture
def house() -> House:
    return House()


async def post(
    door: Site,
    path: str,
    body: bytes | Mapping[str, Any] | None = None,
    *,
    method: str = "POST",
    headers: Mapping[str, str | None] | None = None,
) -> Answer:
    sent = BODIES[path] if body is None else body
    return await door.post(sent, path=path, method=method, headers=headers)


@paths
async def test_a_report_is_stored_and_its_event_is_raised(house: House, path: str) -> None:
    async with house.open() as door:
        answer = await post(door, path)

        assert (answer.status, answer.json) == (200, {"accepted": True})
        (event,) = await house.events()
        agent = AGENTS[path]
        assert (event.agent, event.raised_by) == (agent, f"agent:{agent}")
        assert (event.event, event.attributes) == EVENTS[path]
        latest = (await house.reports.snapshot()).latest[agent]
        assert latest.digest in event.detail
        assert list(house.blobs.held) == [latest.digest]
        assert (await house.reports.snapshot()).raising == (), "what was raised is cleared"
        assert door.book.entries == [], "the swap that stores it records it"


@paths
async def test_the_latest_report_is_shown_to_an_operator(house: House, path: str) -> None:
    async with house.open() as door:
        await post(door, path, BODIES[path] | {"causedByRunId": "PBR-1"})
        assert (await get(door, path)).status == 404
        await post(door, path)
        answer = await get(door, path)

        assert answer.status == 200
        assert answer.json["report"] == BODIES[path]
        assert answer.json["agent"] == AGENTS[path]
        assert answer.json["reportedBy"] == f"agent:{AGENTS[path]}"
        assert answer.json["reportedAt"] == "2026-11-30T12:00:00Z"
        (blob,) = house.blobs.held
        assert answer.json["digest"] == blob
        assert answer.json["sizeBytes"] == len(house.blobs.held[blob][0])


@paths
async def test_a_report_that_was_never_sent_is_404_with_a_sentence(house: House, path: str) -> None:
    async with house.open() as door:
        answer = await get(door, path)

        assert (answer.status, answer.error) == (404, f"{AGENTS[path]} has not reported yet")


@paths
async def test_reading_needs_an_operator_unless_the_console_is_open(
    house: House, path: str
) -> None:
    async with house.open() as door:
        await post(door, path)
        assert (await get(door, path, None)).status == 401
        assert (await get(door, path, f"Bearer {BEARER}")).status == 401
        assert (await get(door, f"{path}?x=1")).status == 400
        house.door.is_open = True
        assert (await get(door, path, None)).status == 200


@paths
async def test_the_same_report_within_24_hours_raises_nothing(house: House, path: str) -> None:
    async with house.open() as door:
        await post(door, path)
        await house.clock.advance(24 * 3600 - 1)
        shuffled = dict(reversed(BODIES[path].items()))
        again = await post(door, path, json.dumps(shuffled, indent=2).encode())

        assert (again.status, again.json) == (200, {"accepted": True, "duplicate": True})
        assert len(await house.events()) == 1
        (entry,) = door.book.entries
        assert (entry.outcome, entry.actor) == (Outcome.SUCCESS, f"agent:{AGENTS[path]}")
        assert entry.target.startswith(f"{AGENTS[path]}/")


async def test_after_24_hours_the_same_report_is_a_new_one(house: House) -> None:
    async with house.open() as door:
        await post(door, JUDGE)
        await house.clock.advance(24 * 3600)

        assert (await post(door, JUDGE)).json == {"accepted": True}
        assert len({event.id for event in await house.events()}) == 2


async def test_an_earlier_report_that_comes_back_is_the_latest_and_raises_nothing(
    house: House,
) -> None:
    async with house.open() as door:
        await post(door, JUDGE)
        await post(door, JUDGE, {"judgements": []})
        again = await post(door, JUDGE)

        assert again.json == {"accepted": True, "duplicate": True}
        assert (await get(door, JUDGE)).json["report"] == BODIES[JUDGE]
        assert len(await house.events()) == 2
        assert door.book.entries == [], "the swap that made it the latest records it"
        records = [each for each in await house.records() if each.action == "atlas.reports.judge"]
        assert "no event is raised" in records[-1].detail


async def test_a_report_starts_the_playbook_whose_conditions_one_row_meets(house: House) -> None:
    one_row = (("connection", "EQ", "warehouse"), ("verdict", "EQ", "fail"))
    two_rows = (("connection", "EQ", "lake"), ("verdict", "EQ", "fail"))
    starts = waits_for("datagov", "findings.reported", *one_row)
    sleeps = waits_for("datagov", "findings.reported", *two_rows, id="PB-2")
    async with house.open(starts, sleeps) as door:
        await post(door, DATAGOV)

        (event,) = await house.events()
        assert [each.playbook_id for each in event.started] == ["PB-1"]
        assert event.skipped == ()


async def test_a_passing_control_is_no_row(house: House) -> None:
    playbook = waits_for("datagov", "findings.reported", ("verdict", "EQ", "pass"))
    async with house.open(playbook) as door:
        await post(door, DATAGOV)

        assert (await house.events())[0].started == ()


async def test_the_event_is_raised_before_the_answer_so_the_step_report_hides_no_loop(
    house: House,
) -> None:
    playbook = a_playbook(id="PB-1")
    run = a_run_at(playbook, "detect", chain_depth=3)
    mark = Mark("PBR-1", "detect", "datagov", 3, NOW)
    watcher = waits_for("datagov", "findings.reported", id="PB-2")
    async with house.open(playbook, run, watcher, marks=(mark,)) as door:
        await post(door, DATAGOV)
        assert (await door.post(REPORT)).status == 200

        (event,) = await house.events()
        assert event.chain_depth == 4
        assert event.skipped[0].reason.startswith("chain depth 4 exceeds 3")


async def test_an_event_that_waited_is_judged_before_the_step_report_ends_its_dispatch(
    house: House,
) -> None:
    playbook = a_playbook(id="PB-1")
    run = a_run_at(playbook, "detect", chain_depth=3)
    mark = Mark("PBR-1", "detect", "datagov", 3, NOW)
    async with house.open(playbook, run, marks=(mark,)) as door:
        house.store.troubles.before.append(Fault("the disk is full"))
        assert (await post(door, DATAGOV)).json == {"accepted": True}
        assert await house.events() == [], "stored, and the event waits"
        assert (await door.post(REPORT)).status == 200

        assert [event.chain_depth for event in await house.events()] == [4]


async def test_a_crash_between_store_and_raise_loses_and_doubles_nothing(house: House) -> None:
    async with house.open() as door:
        house.store.troubles.before.append(Fault("the disk is full"))
        await post(door, DATAGOV)
        again = await post(door, DATAGOV)
        await house.raiser.move()

        assert again.json == {"accepted": True, "duplicate": True}
        assert len(await house.events()) == 1


async def test_a_named_run_is_checked_and_kept(house: House) -> None:
    async with house.open(a_playbook(), a_run(a_playbook())) as door:
        body = BODIES[JUDGE] | {"causedByRunId": "PBR-1"}
        assert (await post(door, JUDGE, body)).status == 200

        (event,) = await house.events()
        assert (event.caused_by_run_id, event.chain_depth) == ("PBR-1", 1)


@paths
async def test_an_unknown_run_is_404_and_stores_nothing(house: House, path: str) -> None:
    async with house.open() as door:
        answer = await post(door, path, BODIES[path] | {"causedByRunId": "PBR-9"})

        assert answer.status == 404
        assert answer.error.startswith("causedByRunId: ")
        assert house.blobs.held == {}
        (entry,) = door.book.entries
        agent = AGENTS[path]
        assert (entry.action, entry.subject) == (f"atlas.reports.{agent}", "report")
        assert (entry.actor, entry.target) == (f"agent:{agent}", agent)


def changed(path: str, place: str, value: object) -> dict[str, Any]:
    """Return the body with another value at a place such as `findings.0.control`."""
    body = deepcopy(BODIES[path])
    *way, name = place.split(".")
    inner: Any = body
    for step in way:
        inner = inner[int(step)] if step.isdigit() else inner[step]
    inner[name] = value
    return body


BAD: list[tuple[str, str, object, str]] = [
    (DATAGOV, "agent", "recon", "agent: is not datagov"),
    (DATAGOV, "connectionsAssessed", -1, "connectionsAssessed: "),
    (DATAGOV, "connectionsAssessed", 1_000_001, "connectionsAssessed: "),
    (DATAGOV, "connectionsAssessed", "3", "`$.connectionsAssessed`"),
    (DATAGOV, "connectionsAssessed", True, "`$.connectionsAssessed`"),
    (DATAGOV, "findings", {}, "`$.findings`"),
    (DATAGOV, "findings", [1], "`$.findings[0]`"),
    (DATAGOV, "findings.0.control", " ", "findings[0].control: is required"),
    (DATAGOV, "findings.0.control", "c" * 257, "findings[0].control: has 257 bytes"),
    (DATAGOV, "findings.1.verdict", "failed", "findings[1].verdict: is not one of pass, "),
    (DATAGOV, "findings.1.verdict", "ghp_secret", "findings[1].verdict: is not one of pass, "),
    (DATAGOV, "findings.1.domain", "a\nb", "findings[1].domain: "),
    (DATAGOV, "findings.1.connection", "a\u202eb", "findings[1].connection: "),
    (DATAGOV, "findings.1.connection", 7, "`$.findings[1].connection`"),
    (DATAGOV, "findings.0.detail", "token ghs_secret", "findings[0].detail: "),
    (DATAGOV, "findings.0.detail", "d" * 501, "findings[0].detail: has 501 bytes"),
    (DATAGOV, "findings.0.row", "x", "another type"),
    (DATAGOV, "findings.0.detail", None, "detail: is null"),
    (DATAGOV, "findings", BODIES[DATAGOV]["findings"] * 501, "findings: has 2,004 items"),
    (RECON, "agent", "recon", "agent: is not a field"),
    (RECON, "tenant", "", "tenant: is required"),
    (RECON, "tenant", "é" * 129, "tenant: has 258 bytes"),
    (RECON, "verdicts.0.rule", "", "verdicts[0].rule: is required"),
    (RECON, "verdicts.0.verdict", "Aligned", "verdicts[0].verdict: is not one of aligned, "),
    (RECON, "verdicts.0.detail", "AKIA secret", "verdicts[0].detail: "),
    (RECON, "verdicts", BODIES[RECON]["verdicts"] * 501, "verdicts: has 2,004 items"),
    (JUDGE, "judgements.0.id", "", "judgements[0].id: is required"),
    (JUDGE, "judgements.0.outcome", "agree", "judgements[0].outcome: is not one of concur, "),
    (JUDGE, "judgements.0.reason", "a\x00b", "judgements[0].reason: "),
    (JUDGE, "judgements", BODIES[JUDGE]["judgements"] * 667, "judgements: has 2,001 items"),
    (JUDGE, "causedByRunId", "", "causedByRunId: "),
    (JUDGE, "causedByRunId", "a b", "causedByRunId: "),
    (JUDGE, "causedByRunId", "ghp_secret", "causedByRunId: "),
    (JUDGE, "chainDepth", 0, "chainDepth: is not a field"),
]


@pytest.mark.parametrize(("path", "place", "value", "sentence"), BAD)
async def test_a_bad_field_is_400_and_named_without_its_value(
    house: House, path: str, place: str, value: object, sentence: str
) -> None:
    async with house.open() as door:
        answer = await post(door, path, changed(path, place, value))

        assert answer.status == 400
        assert sentence in answer.error
        assert "secret" not in answer.error
        assert house.blobs.held == {}
        assert [entry.outcome for entry in door.book.entries] == [Outcome.FAILURE]


@pytest.mark.parametrize(
    ("path", "name"), [(path, name) for path in PATHS for name in BODIES[path]]
)
async def test_every_field_is_required(house: House, path: str, name: str) -> None:
    async with house.open() as door:
        body = {key: value for key, value in BODIES[path].items() if key != name}
        answer = await post(door, path, body)

        assert (answer.status, answer.error) == (400, f"{name}: is required")


@paths
async def test_the_body_of_another_door_is_400(house: House, path: str) -> None:
    async with house.open() as door:
        for other in PATHS:
            if other != path:
                assert (await post(door, path, BODIES[other])).status == 400


async def test_the_largest_report_is_taken_whole(house: House) -> None:
    finding = {"control": "c", "verdict": "fail", "domain": "d", "detail": "w" * 400}
    findings = [finding | {"connection": f"c-{number}"} for number in range(ITEMS_MAX)]
    body = json.dumps(BODIES[DATAGOV] | {"findings": findings}).encode()
    sent = body[:-1] + b" " * (BODY_BYTES - len(body)) + b"}"
    last = waits_for("datagov", "findings.reported", ("connection", "EQ", "c-1999"))
    async with house.open(last) as door:
        assert (await post(door, DATAGOV, sent)).json == {"accepted": True}
        assert len((await get(door, DATAGOV)).json["report"]["findings"]) == ITEMS_MAX
        assert len((await house.events())[0].started) == 1
        assert (await post(door, DATAGOV, sent + b" ")).status == 413


@paths
async def test_a_bearer_that_is_not_the_apps_is_refused_and_recorded(
    house: House, path: str
) -> None:
    async with house.open() as door:
        assert (await post(door, path, headers={"Authorization": "Bearer operator"})).status == 401
        house.bearers.says = ReporterVerdict(Standing.FOREIGN)
        assert (await post(door, path)).status == 403

        assert [entry.outcome for entry in door.book.entries] == [Outcome.DENIED] * 2
        assert [entry.actor for entry in door.book.entries] == ["anonymous"] * 2


@paths
async def test_the_path_takes_get_and_post_only(house: House, path: str) -> None:
    async with house.open() as door:
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS"):
            answer = await post(door, path, method=method)
            assert (answer.status, answer.headers["allow"]) == (405, "get, head, post")


async def test_a_reports_store_that_fails_is_503_and_the_report_may_come_again(
    house: House,
) -> None:
    async with house.open() as door:
        house.reports_store.troubles.before.append(Fault("the disk is full"))
        failed = await post(door, DATAGOV)

        assert (failed.status, failed.error) == (503, "the disk is full")
        assert "retry-after" in failed.headers
        assert await house.events() == [], "nothing is raised before the store write"
        assert (await post(door, DATAGOV)).json == {"accepted": True}


async def test_a_blob_that_is_gone_is_503(house: House) -> None:
    async with house.open() as door:
        await post(door, DATAGOV)
        house.blobs.held.clear()
        answer = await get(door, DATAGOV)

        assert answer.status == 503
        assert "gone" in answer.error


async def test_reports_whose_events_cannot_be_raised_do_not_pile_up(house: House) -> None:
    async with house.open() as door:
        for number in range(RAISING_MAX):
            house.store.troubles.before.append(Fault("the disk is full"))
            body = {"judgements": [{"id": f"c-{number}", "outcome": "concur"}]}
            assert (await post(door, JUDGE, body)).status == 200
        answer = await post(door, JUDGE)

        assert answer.status == 503
        assert "wait to be raised" in answer.error
        await house.raiser.move()
        assert len(await house.events()) == RAISING_MAX


async def test_what_is_recorded_names_no_word_of_the_report(house: House) -> None:
    async with house.open() as door:
        await post(door, RECON)
        (record,) = [each for each in await house.records() if each.document == "atlas-reports"]

        assert (record.actor, record.subject) == ("agent:recon", "report")
        assert "north" not in record.detail
        assert "4 items" in record.detail
        assert record.at.startswith(later().strftime("%Y-%m-%d"))


async def test_the_digest_is_that_of_what_is_shown(house: House) -> None:
    async with house.open() as door:
        await post(door, JUDGE)
        shown = (await get(door, JUDGE)).json
        canonical = json.dumps(shown["report"], sort_keys=True, separators=(",", ":"))

        assert sha256(canonical.encode()).hexdigest() == shown["digest"]


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as found:
        yield found


@pytest.fixture(scope="module")
def fuzzed(runner: asyncio.Runner) -> Iterator[Site]:
    watcher = waits_for("datagov", "findings.reported", ("fail_count", "GT", "0"))
    opened: AbstractAsyncContextManager[Site] = House().open(watcher)
    yield runner.run(opened.__aenter__())
    runner.run(opened.__aexit__(None, None, None))


ANYTHING: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
PLACES = {
    DATAGOV: ["agent", "connectionsAssessed", "findings", "findings.0.verdict", "findings.1.x"],
    RECON: ["tenant", "verdicts", "verdicts.0.rule", "verdicts.3.verdict", "causedByRunId"],
    JUDGE: ["judgements", "judgements.0.id", "judgements.2.outcome", "causedByRunId", "x"],
}
SENT = st.sampled_from(PATHS).flatmap(
    lambda path: st.tuples(
        st.just(path),
        st.binary(max_size=600)
        | st.builds(
            lambda place, value: json.dumps(changed(path, place, value)).encode(),
            st.sampled_from(PLACES[path]),
            ANYTHING | st.text(max_size=8),
        ),
    )
)


@fuzzing(300)
@given(sent=SENT)
def test_any_body_is_answered_as_listed(
    runner: asyncio.Runner, fuzzed: Site, sent: tuple[str, bytes]
) -> None:
    path, body = sent
    answer = runner.run(post(fuzzed, path, body))

    assert answer.status in {200, 400, 404}
    if answer.status == 200:
        assert answer.json["accepted"] is True
        assert runner.run(get(fuzzed, path)).status == 200
    else:
        assert answer.error.isprintable()
