"""The CapEx values keep their exactness and their defaults when they are stored."""

from datetime import date
from decimal import Decimal

import msgspec

from core_console.model.capex import Basis, Config, Feed, RuleStatus, Thresholds


def test_go_live_is_the_default_until_somebody_sets_it() -> None:
    assert Config().go_live == date(2027, 3, 31)
    assert Config(go_live_date=date(2028, 1, 1)).go_live == date(2028, 1, 1)


def test_a_basis_is_read_back_exactly() -> None:
    exact = Thresholds(overspend_factor=Decimal("1.100000000000000000000000000001"))
    basis = Basis(date(2027, 3, 31), exact, (Feed.SPEND,), {"CP-001": RuleStatus.DRAFT})
    assert msgspec.json.decode(msgspec.json.encode(basis), type=Basis) == basis


def test_default_thresholds_take_no_room() -> None:
    assert msgspec.json.encode(Thresholds()) == b"{}"
