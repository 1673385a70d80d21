"""Feeds for the CapEx benchmark: always the same rows, with a given share of faults.

Owns the generator. It draws from a fixed sequence, so that two runs measure the same work.
"""

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

GO_LIVE = date(2027, 3, 31)
TYPES = ("Manufacturing", "Tools", "Testing")
HEADS = {
    "capital_plan": "ItemId,Description,Type,Category,Lead_time_in_weeks,PurchaseDate,Units,"
    "PricePerUnit,Amount",
    "capital_request": "ID,RequestDate,ItemId,ApprovalDate,ApprovalId,Vendor,Amount",
    "spend": "PoNo,PODate,Amount,ApprovalId,ItemId,Type",
}
WORDS = "with fixture plates, cabling, commissioning and a first year of service parts "


class Draws:
    """A linear congruential sequence with the constants of Numerical Recipes."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        """Return a number from 0 to limit - 1."""
        self._state = (self._state * 1_664_525 + 1_013_904_223) % 2**32
        return (self._state >> 8) % limit

    def one_in(self, often: int) -> bool:
        """Return true once in so many draws on average; never when `often` is 0."""
        return often > 0 and self.below(often) == 0


def write(folder: Path, *, rows: int, fault_one_in: int) -> None:
    """Write the three feeds; each cell that may be faulty is so once in `fault_one_in`."""
    lines: dict[str, list[str]] = {name: [head] for name, head in HEADS.items()}
    for plan, request, spend in _rows(rows, fault_one_in):
        for each, line in zip(lines.values(), (plan, request, spend), strict=True):
            each.append(line)
    for name, text in lines.items():
        (folder / f"{name}.csv").write_text("\n".join(text) + "\n", encoding="utf-8")


def write_large(path: Path, *, size_bytes: int, rows: int) -> None:
    """Write a capital plan of `rows` rows and nearly `size_bytes`, with quoted cells."""
    filler = WORDS * 4
    room = (size_bytes - len(HEADS["capital_plan"])) // rows - 110
    line = (
        'IT-{n:06d},"Robot arm {n}, type ""B"", {words}",Manufacturing,Capital,12,'
        '2027-01-{day:02d},3,"1,{price:03d}.50","{amount:,}.25"'
    )
    text = [HEADS["capital_plan"]]
    text += [
        line.format(n=n, words=filler[:room], day=n % 28 + 1, price=n % 1_000, amount=3_000 + n)
        for n in range(rows)
    ]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


def _rows(count: int, fault_one_in: int) -> Iterator[tuple[str, str, str]]:
    draws = Draws(20_270_331)

    def or_fault(good: object, bad: object) -> object:
        return bad if draws.one_in(fault_one_in) else good

    for n in range(count):
        item, approval, kind = f"IT-{n:06d}", f"AP-{n:06d}", TYPES[draws.below(3)]
        weeks, price, units = draws.below(40) + 1, 500 + draws.below(90_000), draws.below(20) + 1
        due = GO_LIVE - timedelta(weeks=weeks)
        bought = due + timedelta(days=draws.below(29) - 14 + (0, 40)[draws.one_in(fault_one_in)])
        asked = bought - timedelta(days=draws.below(15) - (0, 30)[draws.one_in(fault_one_in)])
        approved = asked + timedelta(days=draws.below(18) + 3 - (0, 20)[draws.one_in(fault_one_in)])
        ordered = approved + timedelta(days=draws.below(30) - (0, 40)[draws.one_in(fault_one_in)])
        amount = f"{price * units}.25"
        plan = (
            f"{or_fault(item, '')},{or_fault(f'Torque station {n % 977}', 'Tool')},"
            f"{or_fault(kind, 'Tooling')},{or_fault('Capital', 'Capex')},{weeks},"
            f"{or_fault(bought, '31/12/2026')},{units},{or_fault(price, 480)}.50,{amount}"
        )
        request = (
            f"RQ-{n:06d},{or_fault(asked, 'soon')},{or_fault(item, '')},{approved},"
            f"{or_fault(approval, '')},{or_fault(f'Vendor {n % 211}', '')},"
            f"{or_fault(amount, '17.10')}"
        )
        spend = (
            f"PO-{n:06d},{or_fault(ordered, '')},{or_fault(amount, '99999999')},"
            f"{or_fault(approval, 'AP-unknown')},{item},{or_fault(kind, 'Other')}"
        )
        yield plan, request, spend
