"""Every row of the step report's status table, over real HTTP."""

from typing import Any

import pytest

from core_console.decide.outcome import Accepted, Code, Refused
from core_console.model.audit import Outcome
from core_console.model.document import EMPTY
from core_console.ports import Fault, ReporterVerdict, Standing
from tests.builders import NOW
from tests.doors.site import (
    BEARER,
    REPORT,
    URL,
    Bearers,
    Book,
    Engine,
    Site,
    application,
    listening,
)


async def test_a_report_that_is_awaited_is_accepted(door: Site) -> None:
    answer = await door.post()

    assert (answer.status, answer.json) == (200, {"accepted": True})
    (taken,) = door.engine.taken
    assert (taken.run_id, taken.step_id, taken.agent) == ("PBR-1", "detect", "datagov")
    assert (taken.conclusion, taken.detail) == ("success", "3 findings")
    assert taken.github_run_url == URL + "17"
    assert taken.actor == "agent:datagov"
    assert door.book.entries == [], "the swap that decides it records it"


async def test_the_same_report_again_is_a_duplicate_and_is_recorded(door: Site) -> None:
    await door.post()
    answer = await door.post({**REPORT, "detail": "other words"})

    assert (answer.status, answer.json) == (200, {"accepted": True, "duplicate": True})
    (entry,) = door.book.entries
    assert (entry.outcome, entry.actor) == (Outcome.SUCCESS, "agent:datagov")
    assert door.book.identified == [True]


async def test_a_conflicting_report_is_409(door: Site) -> None:
    await door.post()
    answer = await door.post({**REPORT, "conclusion": "failure"})

    assert (answer.status, answer.error) == (409, "another report was accepted")


async def test_another_agents_report_is_409(door: Site) -> None:
    assert (await door.post({**REPORT, "agent": "risk"})).status == 409


@pytest.mark.parametrize("change", [{"runId": "PBR-2"}, {"stepId": "notify"}])
async def test_an_unknown_run_or_step_is_404(door: Site, change: dict[str, str]) -> None:
    answer = await door.post({**REPORT, **change})

    assert (answer.status, answer.error) == (404, "there is no such run or step")


async def test_detail_may_be_empty(door: Site) -> None:
    assert (await door.post({**REPORT, "detail": ""})).status == 200


@pytest.mark.parametrize("conclusion", ["success", "failure", "cancelled", "skipped"])
async def test_each_conclusion_is_taken(door: Site, conclusion: str) -> None:
    await door.post({**REPORT, "conclusion": conclusion})

    assert door.engine.taken[0].conclusion == conclusion


@pytest.mark.parametrize("agent", ["datagov", "compliance", "risk", "judge", "recon", "curator"])
async def test_each_of_the_six_may_report(door: Site, agent: str) -> None:
    assert (await door.post({**REPORT, "agent": agent})).status in {200, 409}


BAD: list[tuple[str, Any]] = [
    ("runId", ""),
    ("runId", "PBR 1"),
    ("runId", "PBR/1"),
    ("runId", "."),
    ("runId", ".."),
    ("runId", "a" * 65),
    ("runId", "PBR-1\n"),
    ("runId", "PBR-\u0661"),
    ("runId", "ghp_secret"),
    ("stepId", ""),
    ("stepId", "détect"),
    ("stepId", "a" * 65),
    ("agent", ""),
    ("agent", "intern"),
    ("agent", "Datagov"),
    ("agent", "datagov "),
    ("conclusion", ""),
    ("conclusion", "SUCCESS"),
    ("conclusion", "neutral"),
    ("detail", "a" * 501),
    ("detail", "é" * 251),
    ("detail", "two\nlines"),
    ("detail", "a\x00b"),
    ("detail", "a\u202eb"),
    ("detail", "a\u2028b"),
    ("detail", "token ghs_" + "b" * 36),
    ("githubRunUrl", ""),
    ("githubRunUrl", URL),
    ("githubRunUrl", URL + "17/attempts/2"),
    ("githubRunUrl", URL + "17?x=1"),
    ("githubRunUrl", URL + "17\n"),
    ("githubRunUrl", URL + "\u0661"),
    ("githubRunUrl", URL + "-1"),
    ("githubRunUrl", URL + "1" * 300),
    ("githubRunUrl", URL.replace("https", "http") + "17"),
    ("githubRunUrl", URL.replace("github.com", "github.com.example.org") + "17"),
    ("githubRunUrl", URL.replace("github.com", "x@github.com") + "17"),
    ("githubRunUrl", URL.replace("/example/", "/other/") + "17"),
    ("githubRunUrl", URL.replace("/core/", "/core2/") + "17"),
    ("githubRunUrl", " " + URL + "17"),
]


@pytest.mark.parametrize(("name", "value"), BAD)
async def test_a_bad_field_is_400_and_named_without_its_value(
    door: Site, name: str, value: str
) -> None:
    answer = await door.post({**REPORT, name: value})

    assert answer.status == 400
    assert answer.error.startswith(f"{name}: ")
    assert "ghs_" not in answer.error
    assert "secret" not in answer.error
    assert door.engine.taken == []
    assert door.book.entries[0].outcome is Outcome.FAILURE
    assert door.book.identified == [True]


async def test_a_detail_of_exactly_500_bytes_passes(door: Site) -> None:
    assert (await door.post({**REPORT, "detail": "é" * 250})).status == 200


@pytest.mark.parametrize("name", list(REPORT))
async def test_every_field_is_required(door: Site, name: str) -> None:
    answer = await door.post({key: value for key, value in REPORT.items() if key != name})

    assert (answer.status, answer.error) == (400, f"{name}: is required")


async def test_no_bearer_is_401(door: Site) -> None:
    answer = await door.post(headers={"Authorization": None})

    assert (answer.status, answer.error) == (401, "missing bearer token")
    assert answer.headers["www-authenticate"].startswith("bearer")
    assert door.book.entries[0].outcome is Outcome.DENIED
    assert door.book.entries[0].actor == "anonymous"
    assert door.book.identified == [False]


VERDICTS = [
    (Standing.INVALID, 401, Outcome.DENIED),
    (Standing.FOREIGN, 403, Outcome.DENIED),
    (Standing.LIMITED, 429, Outcome.DENIED),
    (Standing.UNKNOWN, 503, Outcome.FAILURE),
    (Standing.UNCONFIGURED, 503, Outcome.FAILURE),
]


@pytest.mark.parametrize(("standing", "status", "outcome"), VERDICTS)
async def test_a_bearer_that_is_not_valid_has_its_own_status(
    door: Site, standing: Standing, status: int, outcome: Outcome
) -> None:
    door.bearers.says = ReporterVerdict(standing, "said so", retry_after_s=17)
    answer = await door.post()

    assert (answer.status, answer.error) == (status, "said so")
    assert ("www-authenticate" in answer.headers) == (status == 401)
    assert answer.headers.get("retry-after") == ("17" if status in {429, 503} else None)
    assert [entry.outcome for entry in door.book.entries] == [outcome]
    assert door.book.identified == [False]
    assert door.engine.taken == []


@pytest.mark.parametrize("standing", [row[0] for row in VERDICTS])
async def test_a_verdict_without_a_reason_still_has_a_sentence(
    door: Site, standing: Standing
) -> None:
    door.bearers.says = ReporterVerdict(standing)

    assert len((await door.post()).error.split()) > 3


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (Code.INVALID_ARGUMENT, 400),
        (Code.UNAUTHENTICATED, 401),
        (Code.PERMISSION_DENIED, 403),
        (Code.NOT_FOUND, 404),
        (Code.FAILED_PRECONDITION, 409),
        (Code.ABORTED, 503),
        (Code.RESOURCE_EXHAUSTED, 503),
        (Code.UNAVAILABLE, 503),
    ],
)
async def test_every_refusal_has_its_status(door: Site, code: Code, status: int) -> None:
    door.engine.answers = Refused(code, "for a reason")
    answer = await door.post()

    assert (answer.status, answer.error) == (status, "for a reason")
    assert ("retry-after" in answer.headers) == (status == 503)


async def test_a_refusal_that_the_swap_records_is_not_recorded_again(door: Site) -> None:
    refusal = Refused(Code.FAILED_PRECONDITION, "for a reason")
    door.engine.answers = Accepted(EMPTY, refused=refusal)
    answer = await door.post()

    assert (answer.status, answer.error) == (409, "for a reason")
    assert answer.headers["content-type"] == "application/json"
    assert door.book.entries == []


@pytest.mark.parametrize(
    ("fault", "wait"),
    [
        (Fault("the store cannot be read"), "5"),
        (Fault("the store cannot be read", retry_after_s=0.2), "1"),
        (Fault("the store cannot be read", retryable=False, retry_after_s=30.5), "31"),
    ],
)
async def test_a_fault_is_an_honest_503(door: Site, fault: Fault, wait: str) -> None:
    door.engine.raises = fault
    answer = await door.post()

    assert (answer.status, answer.error) == (503, "the store cannot be read")
    assert answer.headers["retry-after"] == wait


async def test_an_organisation_that_is_not_known_yet_is_503() -> None:
    def unknown() -> str:
        raise Fault("GitHub could not be reached")

    asgi = application(Engine(), Bearers(), Book(), run_url_prefix=unknown)
    async with listening(asgi) as (port, _):
        answer = await Site(port, Engine(), Bearers(), Book()).post()

        assert (answer.status, answer.error) == (503, "GitHub could not be reached")
        assert answer.headers["retry-after"] == "5"


async def test_a_refusal_is_recorded_with_who_and_what(door: Site) -> None:
    await door.post({**REPORT, "runId": "PBR-2"})

    (entry,) = door.book.entries
    assert (entry.at, entry.action, entry.subject) == (
        NOW,
        "atlas.playbooks.run.report",
        "playbook",
    )
    assert (entry.actor, entry.target) == ("agent:datagov", "PBR-2/detect")
    assert (entry.outcome, entry.detail) == (Outcome.FAILURE, "there is no such run or step")


async def test_a_record_never_holds_what_a_caller_made_up(door: Site) -> None:
    await door.post({**REPORT, "agent": "x" * 99, "runId": "<script>"})

    (entry,) = door.book.entries
    assert (entry.actor, entry.target) == ("anonymous", "")


async def test_a_log_that_cannot_be_written_hides_no_answer(door: Site) -> None:
    door.book.full = True

    assert (await door.post(headers={"Authorization": None})).status == 401


async def test_an_error_of_ours_is_a_plain_500_and_tells_nothing(
    door: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    door.engine.raises = RuntimeError(f"boom {BEARER} /var/lib")
    answer = await door.post()

    assert answer.status == 500
    assert "boom" not in answer.error
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert [entry.detail for entry in door.book.entries] == ["the console failed on this call"]
    logged = capsys.readouterr()
    assert "door.failed" in logged.out + logged.err
    assert BEARER not in logged.out + logged.err
