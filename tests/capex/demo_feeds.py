"""The demo's feeds, evaluated, as the text that the golden files hold.

Run as a program (`python -m tests.capex.demo_feeds`) it writes the golden files anew; a change of
them is reviewed like a change of code.
"""

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from core_console.capex.attributes import scan_attributes
from core_console.capex.dashboard import dashboard
from core_console.capex.evaluation import Evaluation, evaluate
from core_console.capex.findings import Findings
from core_console.capex.parsing import Parsed, parse
from core_console.model.capex import Config, Feed, Thresholds

GOLDEN = Path(__file__).parent / "golden"
SHIPPED = resources.files("core_console.demo") / "feeds"
PLANS = ("capital_plan", "capital_plan_corrected", "capital_plan_worse")


def demo(plan: str = "capital_plan") -> Evaluation:
    """Evaluate the demo's feeds with one of its three plans."""
    tables = {}
    for feed, name in zip(Feed, (plan, "capital_request", "spend"), strict=True):
        parsed = parse(feed, (SHIPPED / f"{name}.csv").read_bytes())
        assert isinstance(parsed, Parsed), parsed
        assert parsed.notes == ()
        tables[feed] = parsed.table
    return evaluate(tables, config=Config(), thresholds=Thresholds())


def rendered(evaluation: Evaluation) -> str:
    """Return all that is told of an evaluation, a line for each thing."""
    return "".join(f"{line}\n" for line in _lines(evaluation))


def _lines(evaluation: Evaluation) -> Iterator[str]:
    yield from (f"{name} {value}" for name, value in scan_attributes(evaluation).items())
    yield from (f"{rule_id} {count}" for rule_id, count in evaluation.counts().items())
    for score in dashboard(evaluation):
        figure = score.effectiveness
        shown = figure.absent_reason if figure.value is None else f"{figure.value:.6f}"
        yield f"{score.dimension}: {shown} ({score.failures} of {score.checks} checks failed)"
    yield from evaluation.unmeasured
    for each in Findings(evaluation):
        where = f"{each.sheet} row {each.row_number} {each.row_key}".rstrip()
        yield f"{each.id} {each.severity} {where}: {each.message}"


if __name__ == "__main__":
    for name in PLANS:
        (GOLDEN / f"{name}.txt").write_text(rendered(demo(name)), encoding="utf-8")
