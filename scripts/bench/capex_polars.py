"""The same 24 rules in Polars, for the ratio that the CapEx benchmark prints.

Owns a second opinion: it counts the failing rows of each rule, exactly, and the benchmark stops
when a count differs. It makes no findings, ids or messages, so it does less than the product.
"""

from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from core_console.capex.rules.plan import CATEGORIES, GENERIC_WORDS, LETTERS_MIN, PLAN_TYPES
from core_console.model.capex import DEFAULT_GO_LIVE, Thresholds

LIMITS = Thresholds()
ISO = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
ITEM = r"^[A-Za-z0-9_-]{1,64}$"
NUMBERS = {"Amount", "PricePerUnit", "Units"}
DATES = {"PurchaseDate", "RequestDate", "ApprovalDate", "PODate"}


def polars() -> Any | None:  # noqa: ANN401 -- the package is not there to name its types
    """Return Polars, None when it is not installed."""
    try:
        return import_module("polars")
    except ModuleNotFoundError:
        return None


def count(folder: Path) -> tuple[float, float, dict[str, int]]:
    """Return the seconds of reading and of the rules, and the failing rows by rule."""
    began = perf_counter()
    plan, requests, spend = (
        _read(folder / f"{name}.csv") for name in ("capital_plan", "capital_request", "spend")
    )
    read = perf_counter()
    found = {**_plan(plan, requests), **_requests(requests, plan), **_spend(spend, requests, plan)}
    return read - began, perf_counter() - read, found


def _read(path: Path) -> Any:  # noqa: ANN401 -- a Polars frame
    pl = import_module("polars")
    frame = pl.read_csv(path, infer_schema=False).fill_null("")
    trimmed = frame.with_columns(pl.all().str.strip_chars())
    exact = pl.Decimal(38, 6)
    return trimmed.with_columns(
        *(
            pl.col(name).str.replace_all("[$€£,]", "").cast(exact, strict=False)
            for name in trimmed.columns
            if name in NUMBERS
        ),
        *(
            pl.when(pl.col(name).str.contains(ISO))
            .then(pl.col(name))
            .str.to_date("%Y-%m-%d", strict=False)
            for name in trimmed.columns
            if name in DATES
        ),
        *(pl.col(name).cast(pl.Int64, strict=False) for name in trimmed.columns if "weeks" in name),
    )


def _fails(frame: Any, **held: Any) -> dict[str, int]:  # noqa: ANN401 -- Polars expressions
    """Count for each rule the rows where it does not hold; null is not judged."""
    counted = frame.select(
        **{name: (~each).fill_null(value=False).sum() for name, each in held.items()}
    )
    return {name.replace("_", "-"): value for name, value in counted.row(0, named=True).items()}


def _judged(condition: Any, held: Any) -> Any:  # noqa: ANN401 -- Polars expressions
    pl = import_module("polars")
    return pl.when(condition).then(held)


def _plan(plan: Any, requests: Any) -> dict[str, int]:  # noqa: ANN401 -- Polars frames
    pl = import_module("polars")
    item, words = pl.col("ItemId"), pl.col("Description").str.to_lowercase()
    letters = words.str.replace_all(r"[\W\d_]+", "")
    alone = words.str.extract_all(r"[^\W\d_]+").list.len() <= 1
    generic = letters.is_in(list(GENERIC_WORDS)) | letters.str.strip_suffix("s").is_in(
        list(GENERIC_WORDS)
    )
    usable = item.str.contains(ITEM) & (pl.len().over("ItemId") == 1)
    known, cheap = (
        pl.col("Category").is_in(list(CATEGORIES)),
        pl.col("PricePerUnit") < LIMITS.unit_price_capital_threshold,
    )
    due = pl.lit(DEFAULT_GO_LIVE) - pl.duration(weeks=pl.col("Lead_time_in_weeks"))
    apart = (due - pl.col("PurchaseDate")).dt.total_days().abs()
    return _fails(
        plan,
        CP_001=item != "",
        CP_002=_judged(item != "", usable),
        CP_003=(letters.str.len_chars() >= LETTERS_MIN) & ~(alone & generic),
        CP_004=pl.col("Type").is_in(list(PLAN_TYPES)),
        CP_005=known,
        CP_006=_judged(known, ~(cheap & (pl.col("Category") == "Capital"))),
        CP_007=apart <= LIMITS.tolerance_days,
        CP_008=pl.col("PurchaseDate").is_not_null(),
        CR_008=_judged((item != "") & usable, item.is_in(requests["ItemId"].to_list())),
    )


def _unique(frame: Any, key: str, *columns: str) -> Any:  # noqa: ANN401 -- Polars frames
    """Return the rows whose key no other row has, with their columns renamed."""
    pl = import_module("polars")
    once = frame.filter((pl.len().over(key) == 1) & (pl.col(key) != ""))
    return once.select(key, *(pl.col(name).alias(f"its_{name}") for name in columns))


def _requests(requests: Any, plan: Any) -> dict[str, int]:  # noqa: ANN401 -- Polars frames
    pl = import_module("polars")
    joined = requests.join(
        _unique(plan, "ItemId", "PurchaseDate", "Amount"), on="ItemId", how="left"
    )
    asked, approved, item = pl.col("RequestDate"), pl.col("ApprovalDate"), pl.col("ItemId")
    bought, planned = pl.col("its_PurchaseDate"), pl.col("its_Amount")
    return _fails(
        joined,
        CR_001=item != "",
        CR_002=_judged(item != "", item.is_in(plan["ItemId"].to_list())),
        CR_003=pl.col("ApprovalId") != "",
        CR_004=pl.col("Vendor") != "",
        CR_005=asked <= bought,
        CR_006=(asked - bought).dt.total_days().abs() <= LIMITS.tolerance_days,
        CR_007=(approved - asked).dt.total_days() >= LIMITS.approval_lag_min_days,
        CR_009=(pl.col("Amount") - planned).abs() * 100 <= planned.abs() * 5,
        CR_010=asked.is_not_null() & approved.is_not_null(),
    )


def _spend(spend: Any, requests: Any, plan: Any) -> dict[str, int]:  # noqa: ANN401 -- Polars frames
    pl = import_module("polars")
    joined = spend.join(
        _unique(requests, "ApprovalId", "ApprovalDate", "Amount"), on="ApprovalId", how="left"
    ).join(_unique(plan, "ItemId", "Type"), on="ItemId", how="left")
    approval, kind, its_kind = pl.col("ApprovalId"), pl.col("Type"), pl.col("its_Type")
    spent = pl.col("Amount").sum().over("ApprovalId")
    return _fails(
        joined,
        SP_001=(approval != "") & (pl.col("ItemId") != "") & (kind != ""),
        SP_002=pl.col("PODate") >= pl.col("its_ApprovalDate"),
        SP_003=spent * 10 <= pl.col("its_Amount") * 11,
        SP_004=_judged(approval != "", approval.is_in(requests["ApprovalId"].to_list())),
        SP_005=_judged((kind != "") & its_kind.is_in(list(PLAN_TYPES)), kind == its_kind),
        SP_006=pl.col("PODate").is_not_null(),
    )
