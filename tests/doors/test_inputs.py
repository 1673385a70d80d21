"""The recon agent's inputs over real HTTP: who may read them, and what they hold."""

from decimal import Decimal

import pytest

from core_console.capex.rules.book import RULE_BOOK
from core_console.capex.scope import Scope
from core_console.doors.inputs import inputs
from core_console.model.audit import Outcome
from core_console.model.capex import RuleStatus, Thresholds
from core_console.ports import Fault, ReporterVerdict, Standing
from tests.doors.house import House, get
from tests.doors.site import BEARER

PATH = "/api/rules-recon/inputs"
APP = f"Bearer {BEARER}"


@pytest.fixture
def house() -> House:
    return House()


async def test_an_operator_and_a_job_of_the_app_read_the_same(house: House) -> None:
    async with house.open() as door:
        by_operator, by_job = await get(door, PATH), await get(door, PATH, APP)

        assert (by_operator.status, by_job.status) == (200, 200)
        assert by_operator.body == by_job.body


async def test_the_rule_book_is_whole_and_in_its_order(house: House) -> None:
    async with house.open() as door:
        rules = (await get(door, PATH)).json["rules"]

        assert [rule["id"] for rule in rules] == [rule.id for rule in RULE_BOOK]
        assert len(rules) == 24
        assert all(rule["condition"] and rule["remediation"] for rule in rules)
        assert "{" not in "".join(rule["condition"] for rule in rules)


async def test_the_thresholds_in_force_stand_in_the_conditions(house: House) -> None:
    thresholds = Thresholds(tolerance_days=21, overspend_factor=Decimal("1.25"))
    house.scope = Scope(thresholds)
    async with house.open() as door:
        found = (await get(door, PATH)).json

        assert found["thresholds"] == {
            "toleranceDays": 21,
            "unitPriceCapitalThreshold": "500",
            "approvalLagMinDays": 3,
            "requestPlanTolerancePct": "5",
            "overspendFactor": "1.25",
        }
        rules = {rule["id"]: rule for rule in found["rules"]}
        assert rules["SP-003"]["thresholds"] == ["overspendFactor"]
        assert "1.25" in rules["SP-003"]["condition"]
        assert rules["CP-001"]["thresholds"] == []


async def test_each_rule_has_its_status_for_a_rejected_one_is_not_missing(house: House) -> None:
    house.scope = Scope(statuses=(("CP-002", RuleStatus.REJECTED),))
    async with house.open() as door:
        rules = {rule["id"]: rule for rule in (await get(door, PATH)).json["rules"]}

        assert (rules["CP-001"]["status"], rules["CP-002"]["status"]) == ("APPROVED", "REJECTED")


def test_every_threshold_is_used_by_a_rule() -> None:
    found = inputs(Scope())

    used = {name for rule in found["rules"] for name in rule["thresholds"]}
    assert used == set(found["thresholds"])


async def test_what_a_job_reads_is_recorded_and_what_an_operator_reads_is_not(
    house: House,
) -> None:
    async with house.open() as door:
        await get(door, PATH)
        await get(door, PATH, APP)

        (entry,) = door.book.entries
        assert (entry.actor, entry.outcome) == ("agent:recon", Outcome.SUCCESS)
        assert (entry.action, entry.subject) == ("atlas.rules.inputs", "rule")
        assert door.book.identified == [True]


@pytest.mark.parametrize(
    ("standing", "status", "outcome"),
    [
        (Standing.INVALID, 401, Outcome.DENIED),
        (Standing.FOREIGN, 403, Outcome.DENIED),
        (Standing.LIMITED, 429, Outcome.DENIED),
        (Standing.UNKNOWN, 503, Outcome.FAILURE),
        (Standing.UNCONFIGURED, 503, Outcome.FAILURE),
    ],
)
async def test_a_job_without_the_apps_authority_has_its_own_status(
    house: House, standing: Standing, status: int, outcome: Outcome
) -> None:
    house.bearers.says = ReporterVerdict(standing, "said so")
    async with house.open() as door:
        answer = await get(door, PATH, APP)

        assert (answer.status, answer.error) == (status, "said so")
        (entry,) = door.book.entries
        assert (entry.actor, entry.outcome) == ("anonymous", outcome)
        assert door.book.identified == [False]


@pytest.mark.parametrize("bearer", [None, "Bearer nobody", "Bearer ghp_" + "a" * 36, "ghs_x"])
async def test_nobody_else_reads_and_github_is_not_asked(house: House, bearer: str | None) -> None:
    async with house.open() as door:
        assert (await get(door, PATH, bearer)).status == 401
        assert house.bearers.asked == []


async def test_a_false_app_token_is_not_let_in_by_an_open_console(house: House) -> None:
    house.door.is_open = True
    async with house.open() as door:
        assert (await get(door, PATH, None)).status == 200
        assert (await get(door, PATH, "bearer ghs_" + "b" * 36)).status == 401


async def test_a_rule_book_that_cannot_be_read_are_503(house: House) -> None:
    house.scope = Fault("the store cannot be read")
    async with house.open() as door:
        answer = await get(door, PATH)

        assert (answer.status, answer.error) == (503, "the store cannot be read")


async def test_only_reading_is_taken_and_no_parameter(house: House) -> None:
    async with house.open() as door:
        assert (await door.post(path=PATH)).status == 405
        assert (await get(door, f"{PATH}?tenant=x")).status == 400
